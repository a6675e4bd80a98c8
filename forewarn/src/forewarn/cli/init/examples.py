"""The example predicates and rules of a first monitor file, chosen by what there is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.cli.init.catalogue import Role
from forewarn.cli.init.draft import Draft, DraftSignal
from forewarn.cli.init.naming import is_place, words

LAST_RESORT = "no_"
MOST_FLAGS = 2
SELDOM = 0.05
"""What is true at fewer of the ticks may be a hazard, where nothing else tells."""
_RUNS_OUT = frozenset(["battery", "charge", "soc", "voltage", "fuel", "energy", "percentage"])
MOST_BROKEN = 0.2
"""A rule that is broken in more of the ticks describes how the robot drives."""


class Rule(NamedTuple):
    """A property to propose.

    Attributes
    ----------
    broken : float
        Share of the ticks at which it is broken.
    horizon : float
        Seconds, or steps, that its risk looks ahead.
    intervention : str
        What it asks for; empty for the usual one.
    speed_limit : float or None
        In m/s, for a rule that limits the speed.
    """

    name: str
    formula: str
    remark: str = ""
    broken: float = 0.0
    horizon: float = 3.0
    intervention: str = ""
    speed_limit: float | None = None


class Example(NamedTuple):
    """The predicates, bins and properties of a file.

    Attributes
    ----------
    signals : dict of str to dict
        Derived signals that rules ask for.
    others : tuple
        Rules that are only a comment, each with its conditions: name and expression.
    """

    predicates: tuple[tuple[str, str, str], ...] = ()
    bins: tuple[tuple[str, tuple[float, ...], str], ...] = ()
    properties: tuple[Rule, ...] = ()
    signals: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    others: tuple[tuple[Rule, Mapping[str, str]], ...] = ()


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


def shares_of(values: NDArray[np.float64], cuts: Sequence[float]) -> str:
    """Return the remark to cuts: how often values were below each."""
    found = ", ".join(f"<{cut:g} {share_of(values < cut)}" for cut in cuts)
    return f"of the time: {found}" if values.size else ""


def stand_in(rule: Rule, example: Example) -> Rule:
    """Return a rule that the file can begin with where the proposed one is broken all the time."""
    names = " or ".join(name for name, _, _ in example.predicates[-1:])
    remark = "a stand-in, met by definition: a file needs a rule. Write your own"
    return Rule("write_your_own", f"always({names} or not {names})", remark)


def example_of(signals: Sequence[DraftSignal], draft: Draft) -> Example:
    """Choose examples where no rule of a kind can be watched: any number, a flag, or nothing."""
    hazards = [s for s in signals if not s.is_goal]
    numbers = [s for s in hazards if is_number(s) and s.proposal.role is not Role.FLAG]
    number = next((s for s in numbers if not is_place(s.name)), next(iter(numbers), None))
    flag = next((s for s in hazards if s.proposal.role is Role.FLAG and not s.end), None)
    labelled = any(s.end or (s.label and not s.is_goal) for s in draft.signals)
    if labelled and (number is None or is_place(number.name)):
        return Example()  # the rule against the label is enough
    if number is not None and (flag is None or not is_place(number.name)):
        return _number_example(number)
    if not hazards:
        return _goal_example(signals[0])
    return _plain_example(flag or hazards[0])


def _number_example(number: DraftSignal) -> Example:
    """Return a rule against what is seldom: values above, or below of what runs out."""
    runs_out = number.proposal.role is Role.DISTANCE
    runs_out = runs_out or not _RUNS_OUT.isdisjoint(words(number.name))
    side, sign = ("low", "<") if runs_out else ("high", ">")
    shares = (0.1, 0.01, 0.0) if runs_out else (0.9, 0.99, 1.0)
    finite = number.numbers[np.isfinite(number.numbers)]
    for share in shares:
        limit = _nice(float(np.quantile(finite, share))) if len(finite) else 1.0
        true = number.numbers < limit if runs_out else number.numbers > limit
        if true.mean() <= SELDOM:
            break
    cuts = (2 * limit, 4 * limit) if runs_out else (limit / 4, limit / 2)
    name = f"{number.name}_{side}"
    return Example(
        ((name, f"{number.name} {sign} {limit:g}", often(true)),),
        ((number.name, cuts, shares_of(number.numbers, cuts)),) if limit > 0 else (),
        properties=(
            Rule(f"{LAST_RESORT}{name}", f"always(not {name})", broken=float(true.mean())),
        ),
    )


def _plain_example(signal: DraftSignal) -> Example:
    flag = signal.proposal.role is Role.FLAG
    texts = signal.statistics.texts if signal.statistics else ()
    test = f"{signal.name} == {texts[-1]!r}" if texts else f"{signal.name} > 0"
    remark = "" if texts else often(signal.numbers > 0)
    # The values of a text do not show what it must not say: then the file has a stand-in.
    broken = float((signal.numbers > 0).mean()) if signal.numbers.size else 1.0
    return Example(
        ((f"{signal.name}_on", signal.name if flag else test, remark),),
        properties=(
            Rule(f"{LAST_RESORT}{signal.name}", f"always(not {signal.name}_on)", broken=broken),
        ),
    )


def _goal_example(signal: DraftSignal) -> Example:
    """Return a predicate on what says how well a run went, and a rule that forbids nothing."""
    example = _plain_example(signal)
    return example._replace(properties=(stand_in(example.properties[0], example),))


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
