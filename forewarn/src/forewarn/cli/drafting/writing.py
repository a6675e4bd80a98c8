"""The text of a first monitor file, valid as it is and commented for whoever tunes it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.cli.drafting.catalogue import Role
from forewarn.cli.drafting.draft import Draft, DraftSignal, DraftTopic, Statistics
from forewarn.reports.figures import rounded
from forewarn.signals.steps import Steps
from forewarn.signals.ticks import Grid

_PLAIN = re.compile(r"[A-Za-z_/][\w./]*\Z")
_NOT_PLAIN = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


class Example(NamedTuple):
    """The example predicates, bins and properties of a file."""

    predicates: tuple[tuple[str, str, str], ...]
    bins: tuple[tuple[str, tuple[float, ...], str], ...]
    properties: tuple[tuple[str, str, str], ...]


def scalar(text: str) -> str:
    """Return text as a YAML value that reads back as the same text."""
    if _PLAIN.match(text) and text.lower() not in _NOT_PLAIN:
        return text
    return json.dumps(text, ensure_ascii=False)


def compose(draft: Draft) -> str:
    """Return the monitor file."""
    running = [signal for signal in draft.signals if not signal.closing]
    example = _example(running or draft.signals)
    lines = [*_head(draft), *_signals(draft), *_unused(draft), *_predicates(example)]
    lines += [*_terminal(draft), *_properties(_with_labels(example, draft.signals), draft)]
    return "\n".join(lines) + "\n"


def _head(draft: Draft) -> Iterator[str]:
    span, last = (Grid(1.0).span, 0) if draft.timed else (Steps().span, 1)
    read, long = span(draft.scanned + last), span(draft.duration + last)
    looked = "" if draft.scanned >= draft.duration else f", the first {read} read"
    yield f"# Monitor file proposed by `forewarn init` from {draft.recording}"
    yield f"# ({long} long{looked}). It is valid as it is: thresholds come from"
    yield "# the values in that recording, properties are examples. Make them your own, then:"
    yield "#   forewarn validate THIS --bag BAG      find mistakes"
    yield "#   forewarn learn BAG... -c THIS -o MODEL   learn how the robot behaves"
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
    for signal in draft.signals:
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
        if not signal.is_derived:
            yield f"    timeout: {_timeout(signal)}"
        if signal.label:
            nothing = "false" if signal.label == signal.name else "0"
            yield f"    default: {nothing}  # while the run goes on"
        if signal.proposal.unit:
            yield f"    unit: {scalar(signal.proposal.unit)}"


def _timeout(signal: DraftSignal) -> str:
    return "never" if math.isinf(signal.timeout) else f"{signal.timeout:g}"


def _comment(text: str) -> str:
    return f"  # {' '.join(text.split())}" if text else ""


def _values(signal: DraftSignal) -> str:
    found = signal.statistics
    if found is None:
        return "no value in the recording"
    if signal.closing:
        told = _told(signal, found, "")
        return f"known on the last line of a run only: a label, not a variable; {told}"
    often = "" if found.known > 0.995 else f", known {_percent(found.known)} of the time"
    return _told(signal, found, often)


def _told(signal: DraftSignal, found: Statistics, often: str) -> str:
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
    low, high = float(f"{found.p10:.3g}"), float(f"{found.p90:.3g}")
    inside = _share((signal.numbers >= low) & (signal.numbers <= high))
    return (
        f"{found.low:.3g} to {found.high:.3g}, median {found.median:.3g}, "
        f"{inside} within {low:g} to {high:g}{often}"
    )


def _share(true: NDArray[np.bool_]) -> str:
    """Return how often something was true."""
    return _percent(float(true.mean()) if true.size else 0.0)


def _percent(share: float) -> str:
    """Return a share as a percentage that is 0 or 100 only if the share is."""
    percent = 100.0 * share
    if 0 < percent < 1 or 99 < percent < 100:
        return "less than 1 %" if percent < 1 else "more than 99 %"
    return f"{percent:.0f} %"


def _often(true: NDArray[np.bool_]) -> str:
    """Return the remark to a condition: how often it was true, of the ticks with a value."""
    return f"true {_share(true)} of the time" if true.size else "no value to measure it"


def _describe(topic: DraftTopic) -> str:
    info = topic.info
    text = f"{info.name}  {info.msgtype}, {info.count} messages"
    if topic.period == topic.period and topic.period > 0:
        rate, longest = rounded(1 / topic.period), rounded(topic.longest, 2)
        text += f", about {rate} Hz, longest pause {longest} s"
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
    yield "# Predicates make the state: what matters, and no more, for every combination that"
    yield "# occurs has to be seen often enough to learn from."
    yield "predicates:"
    for name, text, remark in example.predicates:
        yield f"  {name}: {scalar(text)}{_comment(remark)}"
    if example.bins:
        yield "# Bins cut one signal at several thresholds, into predicates such as nearest<1."
        yield "bins:"
        for signal, cuts, remark in example.bins:
            yield f"  {signal}: [{', '.join(f'{cut:g}' for cut in cuts)}]{_comment(remark)}"


def _with_labels(example: Example, signals: Sequence[DraftSignal]) -> Example:
    """Return the examples with a property for the first label, if there is one."""
    label = next((_label(signal) for signal in signals if signal.label), None)
    if label is None:
        return example
    remark = "if it is what must not come; else: always(not over), and make `over` the failure"
    rule = (f"no_{label}", f"always(not {label})", remark)
    return example._replace(properties=(*example.properties, rule))


def _label(signal: DraftSignal) -> str:
    return f"was_{signal.name}"


def _terminal(draft: Draft) -> Iterator[str]:
    flags = [s.name for s in draft.signals if s.proposal.role is Role.FLAG]
    labels = [(_label(signal), signal.label) for signal in draft.signals if signal.label]
    labels += [("over", "proposed == ''")] if draft.calls else []
    yield ""
    if labels:
        yield "# A terminal label ends an episode and wins over all predicates, the first one over"
        yield "# the others. These are known where a run is over."
        yield "terminal:"
        for name, value in labels:
            yield f"  {name}: {scalar(value)}"
        return
    yield "# A terminal label ends an episode and wins over all predicates, for example:"
    yield "# terminal:"
    yield f"#   collision: {flags[0] if flags else 'bumper'}"


def _properties(example: Example, draft: Draft) -> Iterator[str]:
    unit, noun = ("steps", "steps") if draft.rate == "steps" else ("seconds", "ticks")
    yield ""
    yield "# What must never happen. `forewarn explain FORMULA` says what a formula means."
    yield "properties:"
    for name, formula, remark in example.properties:
        yield f"  {name}:{_comment(remark)}"
        yield f"    formula: {scalar(formula)}"
        yield f"    horizon: 3.0            # {unit} that the risk looks ahead"
        yield "    thresholds:"
        yield "      warn: 0.3             # risk from which on to warn"
        yield "      act: 0.6              # risk from which on to intervene"
        yield "      release: 0.2          # risk below which the intervention may end"
        yield f"    enter: 2                # so many {noun} in a row before an alert begins"
        yield "    exit: 5                 # and before it ends"
        yield f"    hold: 1.0               # {unit} that it lasts at least"
        yield f"    intervention: {'ASK' if draft.calls else 'COMFORTABLE_STOP'}"
    yield ""
    yield "mode: observe               # act: interventions become active"


def _example(signals: Sequence[DraftSignal]) -> Example:
    """Choose examples by what there is: speed and distance, one of them, a flag, any number."""
    speed = _first(signals, Role.SPEED)
    distance = _first(signals, Role.DISTANCE)
    if distance is not None:
        return _distance_example(distance, speed)
    if speed is not None:
        return _speed_example(speed)
    number = next((s for s in signals if _is_number(s)), None)
    if number is not None and number.proposal.role is Role.OTHER:
        high = _nice_below(number.statistics.p90 if number.statistics else 1.0)
        remark = _often(number.numbers > high)
        return Example(
            ((f"{number.name}_high", f"{number.name} > {high:g}", remark),),
            (),
            ((f"no_{number.name}_high", f"always(not {number.name}_high)", ""),),
        )
    return _plain_example(signals[0])


def _plain_example(signal: DraftSignal) -> Example:
    texts = signal.statistics.texts if signal.statistics else ()
    test = f"{signal.name} == {texts[-1]!r}" if texts else f"{signal.name} > 0"
    remark = "" if texts else _often(signal.numbers > 0)
    return Example(
        ((f"{signal.name}_on", test, remark),),
        (),
        ((f"no_{signal.name}", f"always(not {signal.name}_on)", ""),),
    )


def _distance_example(distance: DraftSignal, speed: DraftSignal | None) -> Example:
    found = distance.statistics
    near = 1.0
    if found is not None and found.p10 == found.p10 and found.p10 > 0:
        near = _nice(found.p10)
    cuts = tuple(sorted({_nice(near / 2), near, _nice(near * 2)}))
    shares = (f"<{cut:g} {_share(distance.numbers < cut)}" for cut in cuts)
    remark = f"of the time: {', '.join(shares)}" if distance.numbers.size else ""
    bins = ((distance.name, cuts, remark),)
    if speed is None:
        rule = ("keep_away", f"always(not {distance.name}<{cuts[0]:g})", "never too near")
        away = (
            "away",
            f"{distance.name} >= {cuts[-1]:g}",
            _often(distance.numbers >= cuts[-1]),
        )
        return Example((away,), bins, (rule,))
    moving, fast = _speeds(speed)
    rule = (
        "slow_when_near",
        f"always({distance.name}<{near:g} implies eventually[0:2](not fast))",
        "soon after coming near, be slow",
    )
    predicates = (_faster("moving", speed, moving), _faster("fast", speed, fast))
    return Example(predicates, bins, (rule,))


def _speed_example(speed: DraftSignal) -> Example:
    moving, fast = _speeds(speed)
    high = speed.statistics.p90 if speed.statistics else 2 * fast
    limit = _nice_below(high) if high > 1.2 * fast else 2 * fast
    return Example(
        (
            _faster("moving", speed, moving),
            _faster("fast", speed, fast),
            _faster("too_fast", speed, limit),
        ),
        (),
        (("speed_limit", "always(too_fast implies eventually[0:2](not too_fast))", ""),),
    )


def _faster(name: str, speed: DraftSignal, threshold: float) -> tuple[str, str, str]:
    """Return a predicate on the speed, forwards and backwards, and how often it was true."""
    written = f"{threshold:g}"
    remark = _often(np.abs(speed.numbers) > float(written))
    return name, f"abs({speed.name}) > {written}", remark


def _speeds(speed: DraftSignal) -> tuple[float, float]:
    """Return thresholds for moving and for fast."""
    found = speed.statistics
    top = max(abs(found.p10), abs(found.p90)) if found is not None else math.nan
    if not top > 0.05:
        return 0.1, 0.5
    return min(0.1, _nice(top / 10)), _nice(top / 2)


def _first(signals: Sequence[DraftSignal], role: Role) -> DraftSignal | None:
    """Return the signal with a role that varies most usefully: one that has values, if any."""
    found = [s for s in signals if s.proposal.role is role]
    seen = [
        s for s in found if s.statistics is not None and s.statistics.median == s.statistics.median
    ]
    return next(iter(seen or found), None)


def _is_number(signal: DraftSignal) -> bool:
    found = signal.statistics
    return found is not None and found.median == found.median


def _nice(value: float) -> float:
    """Return a number near `value` with one digit, or with a half: 0.5, 1, 1.5, 20."""
    if not math.isfinite(value) or value == 0:
        return 1.0
    step = 10.0 ** math.floor(math.log10(abs(value)))
    return round(round(value / step * 2) / 2 * step, 12)


def _nice_below(value: float) -> float:
    """Return such a number that is not above a positive `value`."""
    nice = _nice(value)
    if nice > value > 0:
        nice -= 10.0 ** math.floor(math.log10(value)) / 2
    return round(nice, 12)
