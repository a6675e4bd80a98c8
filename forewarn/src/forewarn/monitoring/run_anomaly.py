"""The anomaly of the present run at each tick, as a part of the verdict.

A monitor whose file has the section ``anomaly`` has a detector, which the wing `anomalies` makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from forewarn.errors import ConfigError
from forewarn.registry import part

if TYPE_CHECKING:
    from forewarn.logic.specification import CompiledSpec
    from forewarn.models.counts import CountModel
    from forewarn.states.interface import Observed, StateSpace

NAN = math.nan
DISTANCE = "distance"
"""The statistic of a figure that is the distance of moments from those of normal runs."""

PART_KNOWN = "known signals"
"""What a moment was judged by that had unknown signals."""


class RunVerdict(IntEnum):
    """The verdict about the present run."""

    NOT_JUDGED = 0
    NORMAL = 1
    ANOMALOUS = 2


class SurprisingStep(NamedTuple):
    """The fields of a Surprise message, in its order; see there for meanings and units."""

    tick: int = -1
    state: str = ""
    action: str = ""
    following: str = ""
    surprise: float = NAN
    p_value: float = NAN
    part: str = ""
    expected: tuple[str, ...] = ()
    expected_probabilities: tuple[float, ...] = ()


class AnomalyRow(NamedTuple):
    """The fields of an Anomaly message, in its order; see there for meanings and units."""

    tick: int
    verdict: int
    run: int
    transitions: int
    value: float
    limit: float
    p_value: float
    false_alarm_rate: float
    since: int
    test: str
    statistic: str
    normal_runs: int
    step: SurprisingStep
    worst: SurprisingStep


NO_STEP = SurprisingStep()


def in_words(row: AnomalyRow) -> str:
    """Return the anomaly of a run in one sentence for people."""
    if row.verdict == RunVerdict.NOT_JUDGED:
        lacking = (
            "judged moment" if row.statistic == DISTANCE else "transition between known states"
        )
        return f"run {row.run}: no {lacking} yet"
    sure = f"p = {row.p_value:.3g}"
    if math.isnan(row.p_value):
        sure = f"{row.value:.3g} against {row.limit:.3g}"
    judged = "anomalous" if row.verdict == RunVerdict.ANOMALOUS else "like normal ones"
    return f"run {row.run}: {judged} ({row.test}, {sure}); {worst_in_words(row)}"


def too_long_in_words(longest: int) -> str:
    """Return what it means that a run has more moments than the longest normal one."""
    return (
        f"more moments than any normal run ({longest:,}): the share of false alarms is not "
        "promised for so long a run; with `anomaly.run` another run begins after a time"
    )


def shares_in_words(step: SurprisingStep) -> str:
    """Return what was expected with its probabilities, or signals with their shares."""
    pairs = zip(step.expected, step.expected_probabilities, strict=True)
    return ", ".join(f"{name} {share:.0%}" for name, share in pairs)


def worst_in_words(row: AnomalyRow) -> str:
    """Return what was most unlike normal runs so far."""
    worst = row.worst
    likeliest = shares_in_words(worst)
    if row.statistic == DISTANCE:
        return f"farthest from normal moments: {likeliest} (of the {worst.part})"
    done = f", {worst.action!r}" if worst.action else ""
    return (
        f"most surprising: {worst.state!r}{done}, then {worst.following!r} "
        f"(p = {worst.p_value:.3g}), expected {worst.part}: {likeliest}"
    )


class RunState(Protocol):
    """What is remembered of the present run."""

    def broken(self) -> RunState:
        """Return the state when an intervention shapes what follows: that is no surprise."""


class Detector(Protocol):
    """Judges runs while they last."""

    @property
    def needs_actions(self) -> bool:
        """Tell whether surprise rests on actions."""

    @property
    def longest_normal(self) -> int | None:
        """Moments of the longest run that its promise is about; None where that is not kept."""

    def enter(
        self,
        before: Any,
        tick: int,
        observation: Observed,
        action: str | None,
        values: Sequence[Any] = (),
    ) -> tuple[RunState, AnomalyRow]:
        """Take in a tick."""

    def pack(self) -> bytes:
        """Return all that it rests on, for a record."""

    def dump(self, run: Any) -> dict[str, Any]:
        """Return how far a run is, as plain data."""

    def load(self, data: Mapping[str, Any], states: StateSpace) -> RunState | None:
        """Return what `dump` was given, None if another detector judged that run.

        Raises ValueError, TypeError or KeyError if it makes no sense.
        """


def open_detector(compiled: CompiledSpec, model: CountModel | None) -> Detector | None:
    """Return what judges runs by the file that a monitor file names; None if it names none.

    Raises InputError if there is no model, the file cannot be read or belongs to another model, or
    test and alpha do not suit it.
    """
    if compiled.spec.anomaly is None:
        return None
    found: Detector = _opening().open_detector(compiled, model)
    return found


def unpack_detector(compiled: CompiledSpec, packed: bytes) -> Detector:
    """Return the detector of a record; raises InputError."""
    found: Detector = _opening().unpack_detector(compiled, packed)
    return found


def _opening() -> Any:
    return part("anomalies", "opening", "the section anomaly")


def need_live_actions(compiled: CompiledSpec, detector: Detector | None) -> None:
    """Raise ConfigError if surprise rests on actions that only the lines of a trace can name."""
    if detector is None or compiled.abstraction.action is not None or not detector.needs_actions:
        return
    raise ConfigError(
        "normal runs were calibrated with actions, and nothing names them live",
        file=compiled.spec.file,
        key="action",
        accepted="an expression with the name of what is done, learned and calibrated with",
    )
