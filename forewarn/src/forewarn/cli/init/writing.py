"""The text of a first monitor file, valid as it is and with comments for the user."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterator, Mapping

from forewarn.cli.init.catalogue import Role
from forewarn.cli.init.draft import Draft, DraftSignal, DraftTopic
from forewarn.cli.init.examples import (
    LAST_RESORT,
    MOST_BROKEN,
    Example,
    Rule,
    example_of,
    is_number,
    percent,
    share_of,
    stand_in,
    with_flags,
)
from forewarn.cli.init.naming import is_place
from forewarn.cli.init.scanning import Statistics
from forewarn.errors import plural
from forewarn.reports.figures import rounded
from forewarn.signals.clock_kinds import Grid, Steps

_PLAIN = re.compile(r"[A-Za-z_/][\w./]*\Z")
_NOT_PLAIN = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def scalar(text: str) -> str:
    """Return text as a YAML value that reads back as the same text."""
    if _PLAIN.match(text) and text.lower() not in _NOT_PLAIN:
        return text
    return json.dumps(text, ensure_ascii=False)


def written(draft: Draft) -> list[DraftSignal]:
    """Return the signals of the file: all but what only a run's end tells and no label reads."""
    if all(signal.closing for signal in draft.signals):
        return list(draft.signals)  # Else there were none to make an example of.
    return [signal for signal in draft.signals if signal.label or not signal.closing]


def compose(draft: Draft, proposed: Example) -> str:
    """Return the monitor file, with the rules that are proposed, or an example of one."""
    running = [signal for signal in draft.signals if not signal.closing]
    usual = proposed if proposed.properties else example_of(running or draft.signals, draft)
    example = with_flags(usual._replace(others=proposed.others), running)
    lines = [
        *_head(draft),
        *_signals(draft),
        *_of_rules(example),
        *_left_out(draft),
        *_unused(draft),
        *_predicates(example),
    ]
    labelled = _with_labels(example, draft)
    lines += [*_terminal(draft), *_danger(labelled, draft), *_properties(labelled, draft)]
    return "\n".join(lines) + "\n"


def _head(draft: Draft) -> Iterator[str]:
    span, last = (Grid(1.0).span, 0) if draft.timed else (Steps().span, 1)
    read, long = span(draft.scanned + last), span(draft.duration + last)
    looked = "" if draft.scanned >= draft.duration else f", the first {read} read"
    yield f"# Monitor file proposed by `forewarn init` from {draft.recording}"
    yield f"# ({long} long{looked}). It is valid as it is: thresholds come from"
    yield "# the values recorded there, properties are examples. Make them your own, then:"
    yield "#   forewarn validate THIS --bag BAG      find mistakes"
    yield "#   forewarn learn BAG... -c THIS -o MODEL   learn from recordings"
    yield "#   forewarn replay BAG -c THIS -m MODEL     see what would have been foreseen"
    yield "version: 1"
    if draft.rate == "steps":
        yield "clock: steps  # one line, or message of a topic, is one step; durations are in steps"
        if draft.step is not None:
            yield f"step: {scalar(draft.step)}"
    else:
        yield f"rate: {draft.rate:g}  # ticks a second; one tick is one step of the model"
    yield ""
    yield "# A signal is a named value: an expression over the fields of a message, or over other"
    yield "# signals (then without topic). Older than its timeout it is unknown."
    yield "signals:"


def _signals(draft: Draft) -> Iterator[str]:
    topics = {topic.info.name: topic for topic in draft.topics}
    before = None
    for signal in written(draft):
        if signal.topic != before and signal.topic:
            yield f"  # {_describe(topics[signal.topic])}"
        if signal.is_derived and before:
            yield "  # Derived from the signals above:"
        before = signal.topic
        yield f"  {signal.name}:{_comment(_values(signal))}"
        if signal.topic:
            # Types of ROS are written package/msg/Name, messages of other middleware with dots.
            ros = "/" in signal.msgtype
            yield f"    {'topic' if ros else 'channel'}: {scalar(signal.topic)}"
            yield f"    {'type' if ros else 'message'}: {signal.msgtype}"
        if signal.proposal.value:
            yield f"    value: {scalar(signal.proposal.value)}{_comment(signal.proposal.remark)}"
        if signal.proposal.within != "last" and signal.topic:
            yield f"    within: {signal.proposal.within}  # of all messages of a tick"
        if not signal.is_derived:
            yield f"    timeout: {_timeout(signal)}"
        if signal.label:
            nothing = "false" if signal.label == signal.name else "0"
            yield f"    default: {nothing}  # while the run goes on"
        if signal.proposal.unit:
            yield f"    unit: {scalar(signal.proposal.unit)}"


def _of_rules(example: Example) -> Iterator[str]:
    if example.signals:
        yield "  # Derived, for the rules below:"
    for name, section in example.signals.items():
        yield f"  {name}:"
        yield f"    value: {scalar(section['value'])}"
        if "unit" in section:
            yield f"    unit: {scalar(section['unit'])}"


def _left_out(draft: Draft) -> Iterator[str]:
    names = {signal.name for signal in written(draft)}
    if results := [signal.name for signal in draft.signals if signal.name not in names]:
        yield "  # Left out: known on the last line of a run only, and read by no terminal label:"
        yield f"  #   {', '.join(results)}"
    if draft.truths:
        yield f"  # Left out, because only a simulator knows them: {', '.join(draft.truths)}"
    if draft.unnamed:
        yield "  # Left out, because no signal may have such a name (rename them in the recording):"
        yield f"  #   {', '.join(' '.join(name.split()) for name in draft.unnamed)}"


def _timeout(signal: DraftSignal) -> str:
    return "never" if math.isinf(signal.timeout) else f"{signal.timeout:g}"


def _comment(text: str) -> str:
    return f"  # {' '.join(text.split())}" if text else ""


def _values(signal: DraftSignal) -> str:
    found = signal.statistics
    if found is None:
        return "no value in the recording"
    if signal.closing:
        note = _range_text(signal, found, "")
        return f"known on the last line of a run only: a label, not a variable; {note}"
    often = "" if found.known > 0.995 else f", known {percent(found.known)} of the time"
    return _range_text(signal, found, often)


def _range_text(signal: DraftSignal, found: Statistics, often: str) -> str:
    if found.texts:
        return "one of " + ", ".join(repr(text[:24]) for text in found.texts) + often
    if found.is_array:
        return f"an array{often}"
    if math.isnan(found.low):
        return f"no finite number{often}"
    if found.low == found.high:
        return f"always {found.low:.3g}{often}"
    if signal.proposal.role is Role.FLAG:
        return f"between {found.low:g} and {found.high:g}{often}"
    # The share is that of the figures as they are written: values may repeat, and are rounded.
    digits = _digits(found)
    low, high = f"{found.p10:.{digits}g}", f"{found.p90:.{digits}g}"
    inside = share_of((signal.numbers >= float(low)) & (signal.numbers <= float(high)))
    return (
        f"{found.low:.{digits}g} to {found.high:.{digits}g}, median {found.median:.{digits}g}, "
        f"{inside} within {low} to {high}{often}"
    )


def _digits(found: Statistics) -> int:
    """Return how many significant digits distinguish values: many for positions on a map."""
    magnitude = max(abs(found.low), abs(found.high)) / (found.high - found.low)
    return min(3 + max(math.floor(math.log10(magnitude)), 0), 17)


def _describe(topic: DraftTopic) -> str:
    info = topic.info
    text = f"{info.name}  {info.msgtype}, {plural(info.count, 'message')}"
    if topic.period == topic.period and topic.period > 0:
        usual, longest = rounded(topic.period, 2), rounded(topic.longest, 2)
        text += f", usually every {usual} s, at most {longest} s"
    return " ".join(text.split())


def _unused(draft: Draft) -> Iterator[str]:
    used = {signal.topic for signal in draft.signals}
    rest = [topic for topic in draft.topics if topic.info.name not in used]
    if not rest:
        return
    yield "  # Also recorded; a signal is made of a field like those above:"
    for topic in rest:
        yield f"  # {_describe(topic)}"
        if topic.info.error:
            yield f"  #   cannot be decoded: {' '.join(topic.info.error.split())}"
        for field in topic.fields:
            yield f"  #   {field}"


def _predicates(example: Example) -> Iterator[str]:
    yield ""
    yield "# Predicates make the state. Keep only those that matter: each may double the number of"
    yield "# states, and each state has to be seen often enough to learn from."
    yield "predicates:" if example.predicates else "predicates: {}  # such as `far: x > 10`"
    for name, text, remark in example.predicates:
        yield f"  {name}: {scalar(text)}{_comment(remark)}"
    if example.bins:
        yield "# Bins cut one signal at several thresholds, into predicates such as nearest<1."
        yield "bins:"
        for signal, cuts, remark in example.bins:
            yield f"  {signal}: [{', '.join(f'{cut:g}' for cut in cuts)}]{_comment(remark)}"


def _ends(draft: Draft) -> dict[str, tuple[str, str]]:
    """Return the labels of what must not come: what each asks, and the remark to its rule."""
    if_so = "if it is what must not come; else: always(not over), and make `over` the failure"
    found = {_label(s): (s.label, if_so) for s in draft.signals if s.label and not s.is_goal}
    names = {signal.name for signal in draft.signals}
    for signal in draft.signals:
        label = f"had_{signal.end}" if signal.end in names else signal.end
        if signal.end and label not in found:
            found[label] = signal.name, ""
    return found


def _goals(draft: Draft) -> dict[str, str]:
    """Return the labels of runs that went well, and what each asks."""
    goals = {_label(s): s.label for s in draft.signals if s.label and s.is_goal}
    return goals | {_label(s): s.name for s in draft.signals if s.ends_well}


def _with_labels(example: Example, draft: Draft) -> Example:
    """Return the examples with a property for the first label, if there is one.

    It forbids the label; where runs have goals only, it forbids a run that ends without them.
    """
    ends, goals = _ends(draft), _goals(draft)
    if ends:
        label, (_, remark) = next(iter(ends.items()))
        rule = Rule(f"no_{label}", f"always(not {label})", remark)
    elif goals and draft.calls:
        remark = f"a run that is over without {' or '.join(goals)} has failed"
        rule = Rule("ends_well", "always(not over)", remark)
    else:
        return example
    kept = tuple(each for each in example.properties if not each.name.startswith(LAST_RESORT))
    return example._replace(properties=(*kept, rule))


def _label(signal: DraftSignal) -> str:
    return f"was_{signal.name}"


def _terminal(draft: Draft) -> Iterator[str]:
    flags = [s.name for s in draft.signals if s.proposal.role is Role.FLAG]
    labels = [(label, value) for label, (value, _) in _ends(draft).items()]
    # The first label wins: a goal does not hide what must not come.
    labels += _goals(draft).items()
    labels += [("over", "proposed == ''")] if draft.calls else []
    yield ""
    if labels:
        yield "# A terminal label ends an episode and wins over all predicates, the first one over"
        known = any(signal.label for signal in draft.signals) or draft.calls
        yield f"# the others.{' These are known where a run is over.' if known else ''}"
        yield "terminal:"
        for name, value in labels:
            yield f"  {name}: {scalar(value)}"
        return
    yield "# A terminal label ends an episode and wins over all predicates, for example:"
    yield "# terminal:"
    yield f"#   collision: {flags[0] if flags else 'bumper'}"


def _other_rules(example: Example, noun: str) -> Iterator[str]:
    """Yield rules as comments: those that describe how the robot moves, and those beside."""
    often = [rule for rule in example.properties if rule.broken > MOST_BROKEN]
    nothing: Mapping[str, str] = {}
    for rule, conditions in (*((rule, nothing) for rule in often), *example.others):
        if rule.broken > MOST_BROKEN:
            share = percent(rule.broken)
            yield f"  # Broken in {share} of the {noun}, so it is only a comment:"
        else:
            yield f"  # {rule.remark[:1].upper()}{rule.remark[1:]}:"
        yield f"  # {rule.name}:"
        yield f"  #   formula: {scalar(rule.formula)}"
        if conditions:
            told = "; ".join(f"{name}: {text}" for name, text in conditions.items())
            yield f"  #   with {told}"


def _rules(example: Example) -> list[Rule]:
    """Return the rules that the file begins with: those that are seldom broken."""
    kept = [rule for rule in example.properties if rule.broken <= MOST_BROKEN]
    return kept or [stand_in(example.properties[0], example)]


def _danger(example: Example, draft: Draft) -> Iterator[str]:
    """Propose a learned score for the last rule, as a comment: one recording cannot teach it."""
    rule = _rules(example)[-1]
    seen = [signal.name for signal in written(draft) if _may_warn(signal)]
    if draft.calls or not seen or rule not in example.properties:
        return
    start = f"#   risk_ahead: {{for: {rule.name}, history: 1.0, from: ["
    yield ""
    yield "# With some tens of recordings, some with violations, a learned score foresees"
    yield "# more: `forewarn learn` fits it to these signals and their recent past."
    yield "# `estimator: ensemble` adds it to the risk; `forewarn compare` tells whether it helps."
    yield "# learned_score:"
    yield from textwrap.wrap(
        f"{start}{', '.join(seen)}]}}", 99, subsequent_indent="#     ", break_on_hyphens=False
    )


def _may_warn(signal: DraftSignal) -> bool:
    """Tell whether a signal changes, and is neither a place on a map nor what must not come."""
    found = signal.statistics
    if found is None or not is_number(signal) or found.low == found.high:
        return False
    return not (signal.proposal.role is Role.FLAG or signal.label or is_place(signal.name))


def _properties(example: Example, draft: Draft) -> Iterator[str]:
    unit, noun = ("steps", "steps") if draft.rate == "steps" else ("seconds", "ticks")
    yield ""
    yield "# What must never happen. `forewarn explain FORMULA` says what a formula means."
    yield "properties:"
    for rule in _rules(example):
        yield f"  {rule.name}:{_comment(rule.remark)}"
        yield f"    formula: {scalar(rule.formula)}"
        yield f"    horizon: {float(rule.horizon):<14} # {unit} that the risk looks ahead"
        if not draft.calls:
            yield "    estimator: ensemble         # adds up several estimates of the risk"
        yield "    thresholds:"
        yield "      warn: 0.3             # risk from which on to warn"
        yield "      act: 0.6              # risk from which on to intervene"
        yield "      release: 0.2          # risk below which the intervention may end"
        yield f"    enter: 2                # so many {noun} in a row before an alert begins"
        yield "    exit: 5                 # and before it ends"
        yield f"    hold: 1.0               # {unit} that it lasts at least"
        usual = "ASK" if draft.calls else "COMFORTABLE_STOP"
        yield f"    intervention: {rule.intervention or usual}"
        if rule.speed_limit is not None:
            yield f"    speed_limit: {rule.speed_limit:<10g} # m/s"
    yield from _other_rules(example, noun)
    yield ""
    yield "mode: observe               # act: interventions become active"
