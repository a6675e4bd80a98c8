"""What each recording gives by itself: its transitions, and what followed its moments.

A model adds them up. Separately, they show what a model without some recordings would have said:
estimates are chosen and judged by that, and recordings are what varies, not ticks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import ModelError
from forewarn.models.run_ends import RunEnd, dump_ends, judge_ends, parse_ends
from forewarn.models.score_bins import BINS, UNKNOWN_BIN

if TYPE_CHECKING:
    from forewarn.models.checked_json import Reader

Counts = NDArray[np.int64]

VIOLATED, ENDED = -1, -2
"""In place of a state: a step of several ticks ends here."""
MAX_ROWS = 1 << 24
MAX_AUTOMATON = 1 << 20
MAX_LAG = 1 << 20
MAX_COUNT = 1 << 40


class PropertyKey(NamedTuple):
    """The property that outcomes are about; those of another formula say nothing.

    `horizon`: seconds (or steps); infinite for an unbounded one.
    `automaton`: digest of its automaton (`automaton_digest`), whose states are counted.
    `scores`: signals whose value at each moment was kept, as a bin of its logit.
    """

    name: str
    formula: str
    horizon: float
    automaton: str
    scores: tuple[str, ...] = ()


class AtEnd(NamedTuple):
    """How the runs of a recording end, and what is known if violations end them (`run_ends`).

    `runs`: the stretches of the recording during which the property was monitored.
    `visits`, `lags`: those of `Outcomes` about moments whose outcome is known only then.
    """

    runs: tuple[RunEnd, ...]
    visits: Counts
    lags: Mapping[int, Counts]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What followed the moments of one recording, for one property.

    `visits` (shape (k, 4 + scores)): state, state of the automaton, moments whose outcome is known,
        how many of them a violation followed within the horizon, and the bin of each score. Rows
        differ in what they are about.
    `lags` (shape (k, 5)): for each lag in ticks: state and automaton before, state and automaton so
        many ticks later, moments. `VIOLATED` and `ENDED` stand for the later state where the step
        ended before.
    `end`: what is known beside it if violations end the runs; None if that does not matter.
    """

    visits: Counts
    lags: Mapping[int, Counts] = field(default_factory=dict)
    end: AtEnd | None = None

    @property
    def concluded(self) -> Outcomes:
        """What followed if violations end the runs."""
        if self.end is None:
            return self
        visits, lags = self.end.visits, self.end.lags
        return Outcomes(
            np.concatenate([self.visits, visits]),
            {lag: np.concatenate([rows, lags[lag]]) for lag, rows in self.lags.items()},
        )

    def moved(self, target: NDArray[np.int64]) -> Outcomes:
        """Return them with state i called ``target[i]``; -1 drops what is about it."""
        end = self.end
        if end is not None:
            moved = Outcomes(end.visits, end.lags).moved(target)
            end = AtEnd(end.runs, moved.visits, moved.lags)
        lags = {lag: _moved(rows, target, (0, 2)) for lag, rows in self.lags.items()}
        return Outcomes(_moved(self.visits, target, (0,)), lags, end)


def settled(found: Sequence[Outcomes], horizon: int | None) -> list[Outcomes]:
    """Return what followed in several recordings, once it is judged how their runs end.

    `horizon`: of the property, in ticks.
    """
    runs = [run for one in found if one.end is not None for run in one.end.runs]
    concluded = judge_ends(runs, horizon).concluded
    return [one.concluded if concluded else one for one in found]


@dataclass(frozen=True, eq=False)
class Shard:
    """What one recording gave; states are positions in the model's.

    `recording`: digest of the recording, or its name where there is none.
    `transitions` (shape (k, 3)): state, next state, count.
    `group`: name of the group of recordings that it belongs to; empty if it is in none.
    """

    recording: str
    transitions: Counts
    outcomes: Mapping[PropertyKey, Outcomes] = field(default_factory=dict)
    group: str = ""

    @property
    def cluster(self) -> str:
        """What is drawn and left out as a whole: the group, or the recording alone."""
        return self.group or self.recording

    def moved(self, target: NDArray[np.int64]) -> Shard:
        """Return the shard with state i called ``target[i]``; -1 drops what is about it."""
        return replace(
            self,
            transitions=_moved(self.transitions, target, (0, 1)),
            outcomes={judged: found.moved(target) for judged, found in self.outcomes.items()},
        )


def of_outcomes(outcomes: Mapping[PropertyKey, Outcomes]) -> Shard:
    """Return a shard that tells of outcomes alone."""
    return Shard("", np.zeros((0, 3), dtype=np.int64), outcomes)


def _moved(rows: Counts, target: NDArray[np.int64], columns: Sequence[int]) -> Counts:
    found: Counts = rows.copy()
    keep = np.ones(len(rows), dtype=bool)
    for column in columns:
        plain = rows[:, column] >= 0
        found[plain, column] = target[rows[plain, column]]
        keep &= ~plain | (found[:, column] >= 0)
    return np.asarray(found[keep])


def judged_in(shards: Sequence[Shard]) -> tuple[PropertyKey, ...]:
    """Return the properties that some recording tells about, in the order of appearance."""
    return tuple(dict.fromkeys(judged for shard in shards for judged in shard.outcomes))


def matching_outcomes(outcomes: Iterable[PropertyKey], judged: PropertyKey) -> PropertyKey | None:
    """Return the one of `outcomes` that tells of a property, and of all its scores at least."""
    for one in outcomes:
        same = one._replace(scores=()) == judged._replace(scores=())
        if same and {*judged.scores} <= {*one.scores}:
            return one
    return None


def digest_of(shards: Sequence[Shard]) -> str:
    """Return the SHA-256 of shards."""
    digest = hashlib.sha256()
    for shard in shards:
        digest.update(shard.recording.encode() + b"\0")
        if shard.group:
            digest.update(shard.group.encode(errors="surrogateescape") + b"\0")
        digest.update(_bytes(shard.transitions))
        for judged, found in shard.outcomes.items():
            digest.update(repr(tuple(judged)).encode())
            digest.update(_bytes(found.visits))
            for lag, rows in found.lags.items():
                digest.update(str(lag).encode())
                digest.update(_bytes(rows))
            if found.end is not None:
                digest.update(repr(_dumped_end(found.end)).encode())
    return digest.hexdigest()


def _bytes(rows: Counts) -> bytes:
    return repr(rows.shape).encode() + np.ascontiguousarray(rows, dtype="<i8").tobytes()


def dump_judged(found: Sequence[PropertyKey]) -> list[dict[str, Any]]:
    """Return the properties as JSON can hold them."""
    return [
        {**one._asdict(), "horizon": None if math.isinf(one.horizon) else one.horizon}
        for one in found
    ]


def dump(shard: Shard, judged: Sequence[PropertyKey]) -> dict[str, Any]:
    """Return a shard as JSON can hold it: tables are lists of columns."""
    return {
        "recording": shard.recording,
        **({"group": shard.group} if shard.group else {}),
        "transitions": shard.transitions.T.tolist(),
        "outcomes": [
            {
                "property": judged.index(one),
                **_dumped_counts(found.visits, found.lags),
                **({} if found.end is None else {"end": _dumped_end(found.end)}),
            }
            for one, found in shard.outcomes.items()
        ],
    }


def _dumped_counts(visits: Counts, lags: Mapping[int, Counts]) -> dict[str, Any]:
    return {
        "visits": visits.T.tolist(),
        "lags": [{"ticks": lag, "steps": rows.T.tolist()} for lag, rows in lags.items()],
    }


def _dumped_end(end: AtEnd) -> dict[str, Any]:
    return {"runs": dump_ends(end.runs), **_dumped_counts(end.visits, end.lags)}


def read_property(reader: Reader) -> dict[str, Any]:
    """Return the keys that say which property something is about."""
    return {
        "name": reader.text("name"),
        "formula": reader.text("formula"),
        "horizon": reader.horizon(),
        "automaton": reader.text("automaton"),
        "scores": reader.names("scores"),
    }


def parse(readers: Sequence[Reader], heads: Sequence[Reader], n: int) -> tuple[Shard, ...]:
    """Return shards over `n` states from JSON; raises ModelError naming what is wrong."""
    judged = tuple(PropertyKey(**read_property(head)) for head in heads)
    found = []
    for reader in readers:
        outcomes: dict[PropertyKey, Outcomes] = {}
        for part in reader.children("outcomes"):
            head = judged[part.integer("property", 0, len(judged) - 1)]
            if head in outcomes:
                raise ModelError(
                    "a property occurs twice", key=part.path, accepted="each property once"
                )
            outcomes[head] = _outcomes(part, len(head.scores), n)
        transitions = reader.columns("transitions", ((0, n - 1), (0, n - 1), (1, MAX_COUNT)))
        group = reader.text("group") if "group" in reader.value else ""
        found.append(Shard(reader.text("recording"), transitions, outcomes, group))
    return tuple(found)


def _outcomes(reader: Reader, scores: int, n: int) -> Outcomes:
    visits, lags = _counted(reader, scores, n)
    if "end" not in reader.value:
        return Outcomes(visits, lags)
    child = reader.child("end")
    end = AtEnd(parse_ends(child, "runs"), *_counted(child, scores, n))
    if end.lags.keys() != lags.keys():
        raise child.wrong("lags", [*end.lags], f"the lags of {reader.path}: {[*lags]}")
    return Outcomes(visits, lags, end)


def _counted(reader: Reader, scores: int, n: int) -> tuple[Counts, dict[int, Counts]]:
    state, automaton = (0, n - 1), (0, MAX_AUTOMATON)
    visits = reader.columns(
        "visits",
        (state, automaton, (1, MAX_COUNT), (0, MAX_COUNT), *[(UNKNOWN_BIN, BINS - 1)] * scores),
    )
    wrong = np.flatnonzero(visits[:, 3] > visits[:, 2])
    if wrong.size:
        raise ModelError(
            f"{visits[wrong[0], 3]} violations after {visits[wrong[0], 2]} moments",
            key=f"{reader.path}.visits",
            accepted="at most as many violations as moments",
        )
    later = (ENDED, n - 1)
    columns = state, automaton, later, automaton, (1, MAX_COUNT)
    lags = {
        part.integer("ticks", 1, MAX_LAG): part.columns("steps", columns)
        for part in reader.children("lags")
    }
    return visits, lags
