"""The example predicates and rules of a first monitor file, chosen by what there is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.cli.init.catalogue import Role
from forewarn.cli.init.draft import Draft, DraftSignal
from forewarn.cli.init.naming import is_place
from forewarn.signals.ticks import Grid

LAST_RESORT = "no_"
MOST_FLAGS = 2
MOST_BROKEN = 0.05
"""A rule that is broken in more of the ticks describes how the robot drives."""


class Rule(NamedTuple):
    """A property to propose.

    Attributes
    ----------
    broken : float
        Share of the ticks at which it is broken.
    """

    name: str
    formula: str
    remark: str = ""
    broken: float = 0.0


class Example(NamedTuple):
    """The example predicates, bins and properties of a file."""

    predicates: tuple[tuple[str, str, str], ...]
    bins: tuple[tuple[str, tuple[float, ...], str], ...]
    properties: tuple[Rule, ...]


def share_of(true: NDArray[np.bool_]) -> str:
    """Return how often something was true."""
    return percent(float(true.mean()) if true.size else 0.0)


def percent(share: float) -> str:
    """Return a share as a percentage that is 0 or 100 only if the share is."""
    percent = 100.0 * share
    if 0 < percent < 1 or 99 < percent < 100:
        return "less than 1 %" if percent < 1 else "more than 99 %"
    return f"{percent:.0f} %"


def often(true: NDArray[np.bool_]) -> str:
    """Return the remark to a condition: how often it was true, of the ticks with a value."""
    return f"true {share_of(true)} of the time" if true.size else "no value to measure it"


def stand_in(rule: Rule, example: Example) -> Rule:
    """Return a rule that the file can begin with where the proposed one is broken all the time."""
    names = " or ".join(name for name, _, _ in example.predicates[-1:])
    remark = "a stand-in, met by definition: a file needs a rule. Write your own"
    return Rule("write_your_own", f"always({names} or not {names})", remark)


def example_of(signals: Sequence[DraftSignal], draft: Draft) -> Example:
    """Choose examples by what there is: speed and distance, one of them, a flag, any number."""
    speed = _first(signals, Role.SPEED)
    distance = _first(signals, Role.DISTANCE)
    if distance is not None:
        return _distance_example(distance, speed, _soon(draft))
    if speed is not None:
        return _speed_example(speed, _soon(draft))
    hazards = [s for s in signals if not s.is_goal]
    numbers = [s for s in hazards if is_number(s) and s.proposal.role is Role.OTHER]
    number = next((s for s in numbers if not is_place(s.name)), next(iter(numbers), None))
    flag = next((s for s in hazards if s.proposal.role is Role.FLAG and not s.end), None)
    labelled = any(s.end or (s.label and not s.is_goal) for s in draft.signals)
    if labelled and (number is None or is_place(number.name)):
        return Example((), (), ())  # the rule against the label is enough
    if number is not None and (flag is None or not is_place(number.name)):
        found = number.statistics
        tops = (found.p90, float(np.nanquantile(number.series, 0.99)), found.high) if found else ()
        highs = [_nice_below(tops[0]), *(_nice(top) for top in tops[1:])] if tops else [1.0]
        fitting = (high for high in highs if (number.numbers > high).mean() <= MOST_BROKEN)
        high = next(fitting, highs[-1])
        true = number.numbers > high
        rule = f"{LAST_RESORT}{number.name}_high", f"always(not {number.name}_high)"
        return Example(
            ((f"{number.name}_high", f"{number.name} > {high:g}", often(true)),),
            (),
            (Rule(*rule, "", float(true.mean())),),
        )
    if not hazards:
        return _goal_example(signals[0])
    return _plain_example(flag or hazards[0])


def _soon(draft: Draft) -> int:
    """Return how many ticks the examples' two seconds, or steps, are."""
    return 2 if draft.rate == "steps" else Grid(float(draft.rate)).ticks(2.0)


def _late(trigger: NDArray[np.bool_], never: NDArray[np.bool_], ticks: int) -> float:
    """Return the share of ticks at which a response is owed and does not come in time."""
    ends = np.flatnonzero(~never)
    after = np.searchsorted(ends, np.arange(len(never)))
    next_end = np.append(ends, len(never))[after]
    late = trigger & (next_end - np.arange(len(never)) > ticks)
    return float(late.mean()) if late.size else 0.0


def _plain_example(signal: DraftSignal) -> Example:
    flag = signal.proposal.role is Role.FLAG
    texts = signal.statistics.texts if signal.statistics else ()
    test = f"{signal.name} == {texts[-1]!r}" if texts else f"{signal.name} > 0"
    remark = "" if texts else often(signal.numbers > 0)
    broken = float((signal.numbers > 0).mean()) if signal.numbers.size else 0.0
    return Example(
        ((f"{signal.name}_on", signal.name if flag else test, remark),),
        (),
        (Rule(f"{LAST_RESORT}{signal.name}", f"always(not {signal.name}_on)", "", broken),),
    )


def _goal_example(signal: DraftSignal) -> Example:
    """Return a predicate on what says how well a run went, and a rule that forbids nothing."""
    told = _plain_example(signal)
    return told._replace(properties=(stand_in(told.properties[0], told),))


def _distance_example(distance: DraftSignal, speed: DraftSignal | None, ticks: int) -> Example:
    found = distance.statistics
    near = 1.0
    if found is not None and found.p10 == found.p10 and found.p10 > 0:
        near = _nice(found.p10)
    examples = [_near_example(distance, speed, _nice(near / part), ticks) for part in (1, 2, 4, 8)]
    kept = (each for each in examples if each.properties[0].broken <= MOST_BROKEN)
    return next(kept, examples[0])


def _near_example(
    distance: DraftSignal, speed: DraftSignal | None, near: float, ticks: int
) -> Example:
    cuts = tuple(sorted({_nice(near / 2), near, _nice(near * 2)}))
    shares = (f"<{cut:g} {share_of(distance.numbers < cut)}" for cut in cuts)
    remark = f"of the time: {', '.join(shares)}" if distance.numbers.size else ""
    bins = ((distance.name, cuts, remark),)
    if speed is None:
        closer = distance.numbers < cuts[0]
        broken = float(closer.mean()) if closer.size else 0.0
        formula = f"always(not {distance.name}<{cuts[0]:g})"
        beyond = often(distance.numbers >= cuts[-1])
        away = ("away", f"{distance.name} >= {cuts[-1]:g}", beyond)
        return Example((away,), bins, (Rule("keep_away", formula, "never too near", broken),))
    moving, fast = _speeds(speed)
    rule = Rule(
        "slow_when_near",
        f"always({distance.name}<{near:g} implies eventually[0:2](not fast))",
        "soon after coming near, be slow",
        _late(distance.series < near, np.abs(speed.series) > fast, ticks),
    )
    predicates = (_faster("moving", speed, moving), _faster("fast", speed, fast))
    return Example(predicates, bins, (rule,))


def _speed_example(speed: DraftSignal, ticks: int) -> Example:
    moving, fast = _speeds(speed)
    high = speed.statistics.p90 if speed.statistics else 2 * fast
    limit = _nice_below(high) if high > 1.2 * fast else 2 * fast
    over = np.abs(speed.series) > limit
    rule = Rule(
        "speed_limit",
        "always(too_fast implies eventually[0:2](not too_fast))",
        "",
        _late(over, over, ticks),
    )
    if rule.broken > MOST_BROKEN:  # then it is what the robot drives at, and no limit
        top = float(np.nanquantile(np.abs(speed.series), 0.99))
        limit = _nice(top) if _nice(top) > limit else 1.5 * limit
        over = np.abs(speed.series) > limit
        rule = rule._replace(broken=_late(over, over, ticks))
    return Example(
        (
            _faster("moving", speed, moving),
            _faster("fast", speed, fast),
            _faster("too_fast", speed, limit),
        ),
        (),
        (rule,),
    )


def _faster(name: str, speed: DraftSignal, threshold: float) -> tuple[str, str, str]:
    """Return a predicate on the speed, forwards and backwards, and how often it was true."""
    written = f"{threshold:g}"
    remark = often(np.abs(speed.numbers) > float(written))
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
    # What a known type says is surer than what a name does.
    return next(iter(sorted(seen or found, key=lambda s: s.msgtype.startswith("std_msgs/"))), None)


def is_number(signal: DraftSignal) -> bool:
    """Tell whether a signal had numbers as values in the recording."""
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


def with_flags(example: Example, signals: Sequence[DraftSignal]) -> Example:
    """Return the examples with the truth values that change and are no end of a run."""
    flags = [
        (f"is_{signal.name}", signal.name, often(signal.numbers > 0))
        for signal in signals
        if signal.proposal.role is Role.FLAG
        and not (signal.topic or signal.end or signal.ends_well)
        and 0 < signal.numbers.mean() < 1
    ]
    return example._replace(predicates=(*example.predicates, *flags[:MOST_FLAGS]))
