"""A scene: where all objects of one run were at each frame, and what one of them saw.

Lengths are in metres, times in nanoseconds, headings in radians counterclockwise from the x axis.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from forewarn.config.trajectories import ContactSpec, HeadingSpec, Size, TrajectoriesSpec
from forewarn.expressions.functions.encounters import gaps_to
from forewarn.recordings.interface import TIME_LIMIT_NS, Sample

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

FIELDS = ("x", "y", "heading", "vx", "vy", "speed", "length", "width")
"""What is read of an object at a frame; NaN where the file does not say it."""

NANOSECONDS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}

STANDS = 0.1
"""Speed in m/s below which the direction of a velocity is no heading."""


TURNS, SEEN = 2, 0.6
"""Turns of a heading, and share of frames in which an object is seen, that are doubted beyond."""


class Sighting(NamedTuple):
    """One object at one frame: number of the frame, its name, kinds, and `FIELDS`."""

    frame: int
    name: str
    kinds: tuple[str, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Scene:
    """One run.

    `frame`, `object`, shape (n,): frame and number of the object of each row; frames rise.
    `rows`, shape (n, 7): x, y, yaw, vx, vy, length and width. A yaw is continuous: it goes beyond
    pi.
    `names`, `kinds`: of the objects, by number.
    `facts`: what else the run says: texts, numbers and truth values.
    """

    run: str  # its name
    times_ns: Numbers  # shape (f,): times of the frames, rising
    frame: Numbers
    object: Numbers
    rows: Floats
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # what was worked around

    def egos(self, layout: TrajectoriesSpec) -> list[str]:
        """Return the objects of the kinds that are monitored in turn, seen for long enough."""
        found = []
        for number, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True)):
            if kind in layout.each:
                seen = self.times_ns[self.frame[self.object == number]]
                if seen[-1] - seen[0] >= layout.min_duration * 1e9:
                    found.append(name)
        return found

    def view(self, ego: int, layout: TrajectoriesSpec) -> View:
        """Return what an object sees, until the run ended."""
        own = np.flatnonzero(self.object == ego)
        starts = np.searchsorted(self.frame, self.frame[own], "left")
        ends = np.searchsorted(self.frame, self.frame[own], "right")
        others = [
            np.r_[start:row, row + 1 : end]
            for row, start, end in zip(own.tolist(), starts.tolist(), ends.tolist(), strict=True)
        ]
        ended = any(self.facts[key] not in (None, "", False) for key in layout.ending)
        if not (ended and layout.contact):
            return View(self, own, others, layout.ending)
        last = self.times_ns[-1] if layout.each else self.times_ns[self.frame[own[-1]]]
        count = self._contact(own, others, layout.contact, int(last))
        about = count is not None or not layout.each
        return View(self, own[:count], others[:count], layout.ending, about)

    def _contact(
        self, own: Numbers, others: Sequence[Numbers], contact: ContactSpec, end_ns: int
    ) -> int | None:
        """Return how many frames there are until an object is in contact with the ego.

        None if none is in the time before the end.
        """
        times = self.times_ns[self.frame[own]]
        first = int(np.searchsorted(times, end_ns - contact.within * 1e9, "right"))
        for place in range(first, len(own)):
            x, y, yaw, _, _, *size = self.rows[own[place]].tolist()
            boxes = self.rows[others[place]].T[[0, 1, 2, 5, 6]]
            sizes = np.repeat(np.array(size)[:, None], boxes.shape[1], axis=1)
            if (gaps_to((x, y, yaw), sizes, boxes) <= contact.gap).any():
                return place + 1
        return None


@dataclass(frozen=True, eq=False)
class View:
    """What one object of a scene sees.

    `others`, shape (n,): for each of them the rows of the other objects at that frame.
    """

    scene: Scene
    own: Numbers  # shape (k,): the rows of the scene at which it was seen, until the run ended
    others: Sequence[Numbers]
    ending: Sequence[str]  # keys that the scene tells at the end
    about: bool = True  # whether the ending is about this object

    @property
    def times_ns(self) -> Numbers:
        """Times of its frames."""
        return self.scene.times_ns[self.scene.frame[self.own]]

    def samples(self) -> Iterator[Sample]:
        """Yield what it sees at each frame, as signals by name."""
        scene = self.scene
        before = {key: blank(scene.facts[key]) for key in self.ending}
        after = {key: _ending(scene.facts[key]) for key in self.ending} if self.about else before
        times = self.times_ns.tolist()
        for time, row, others in zip(times, self.own.tolist(), self.others, strict=True):
            x, y, yaw, vx, vy, length, width = scene.rows[row].tolist()
            last = row == self.own[-1]
            values = {
                "pose": [x, y, yaw],
                "speed": vx * math.cos(yaw) + vy * math.sin(yaw),
                "velocity": [vx, vy],
                "size": [length, width],
                "objects": list(np.ascontiguousarray(scene.rows[others].T)),
                "kinds": [scene.kinds[number] for number in scene.object[others].tolist()],
                "last": last,
            }
            yield Sample(time, "", values | (after if last else before))

    def digest(self) -> str:
        """Return the SHA-256 of what it sees, in hex; names do not enter."""
        facts = [self.scene.facts[key] for key in self.ending if self.about]
        found = hashlib.sha256(repr(facts).encode())
        for part in (self.times_ns, self.scene.rows[self.own]):
            found.update(part.tobytes())
        for others in self.others:
            kinds = [self.scene.kinds[number] for number in self.scene.object[others].tolist()]
            found.update(self.scene.rows[others].tobytes() + repr(kinds).encode())
        return found.hexdigest()


def blank(value: Any) -> Any:
    """Return what a value that tells of the end is before it: false, 0 or an empty text."""
    return type(value)() if isinstance(value, bool | int | float) else ""


def _ending(value: Any) -> Any:
    return "" if value is None else value


def nanoseconds(time: float, unit: float) -> int:
    """Return a time as nanoseconds, where one of it has `unit` of them; raises ValueError."""
    if not 0 <= time * unit < TIME_LIMIT_NS:
        raise ValueError(f"{time:g} is no time; accepted: numbers from 0, before the year 2262")
    return round(time * unit)


def scene(
    run: str, times_ns: Sequence[int], seen: Sequence[Sighting], layout: TrajectoriesSpec,
    facts: Mapping[str, Any], warnings: Sequence[str] = (),
) -> Scene:  # fmt: skip
    """Return the scene of a run from what is seen of its objects.

    Raises ValueError if the times do not rise, an object is seen twice in a frame, or its size is
    not known.
    """
    if any(after <= before for before, after in pairwise(times_ns)):
        raise ValueError("the times of frames do not rise")
    seen = sorted(seen, key=lambda one: one.frame)
    numbers: dict[str, int] = {}
    kinds: dict[str, tuple[str, ...]] = {}
    for one in seen:
        numbers.setdefault(one.name, len(numbers))
        kinds.setdefault(one.name, one.kinds)
    frame = np.array([one.frame for one in seen], np.int64)
    number = np.array([numbers[one.name] for one in seen], np.int64)
    values = np.array([one.values for one in seen], np.float64).reshape(-1, len(FIELDS))
    _check_once(frame, number, list(numbers))
    sizes = [_size(name, kinds[name], layout) for name in numbers]
    times = np.array(times_ns, np.int64)
    rows = _derived(values, times[frame], number, np.array(sizes).reshape(-1, 2), layout.heading)
    named = tuple(kinds[name][-1] if kinds[name] else "" for name in numbers)
    doubts = (*warnings, *_doubts(frame, number, values[:, 2], layout.heading))
    return Scene(run, times, frame, number, rows, tuple(numbers), named, facts, doubts)


def _doubts(
    frame: Numbers, number: Numbers, heading: Floats, convention: HeadingSpec
) -> Iterator[str]:
    """Say what looks as if a file were read in the wrong way."""
    if convention.unit == "radians" and (np.abs(heading) > TURNS * math.tau).any():
        yield "headings go beyond two turns: if they are in degrees, say heading: {unit: degrees}"
    order = np.argsort(number, kind="stable")
    begins = np.flatnonzero(np.diff(number[order], prepend=-1))
    spans = np.diff(np.append(begins, len(order)))  # sightings, and frames that they extend over
    extents = frame[order][begins + spans - 1] - frame[order][begins] + 1
    if spans.sum() < SEEN * extents.sum():
        yield (
            f"objects are missing in {1 - spans.sum() / extents.sum():.0%} of the frames between "
            "their first and last: what has not the same time as the ego is not seen"
        )


def _check_once(frame: Numbers, number: Numbers, names: Sequence[str]) -> None:
    pairs, counts = np.unique(np.stack([frame, number]), axis=1, return_counts=True)
    if (counts > 1).any():
        at, which = pairs[:, counts.argmax()]
        raise ValueError(f"{names[which]}: stands twice in frame {at}")


def _size(name: str, kinds: Sequence[str], layout: TrajectoriesSpec) -> Size:
    found = next((layout.sizes[k] for k in (*kinds, "default") if k in layout.sizes), None)
    if found is None:
        if layout.columns.length is not None:
            return math.nan, math.nan
        what = f"{kinds[-1]!r}" if kinds else "without a kind"
        raise ValueError(f"{name} is {what}, and trajectories.sizes has no size for it")
    return found


def _derived(
    values: Floats, times: Numbers, number: Numbers, sizes: Floats, convention: HeadingSpec
) -> Floats:
    """Return x, y, yaw, vx, vy, length and width of each row, shape (n, 7)."""
    order = np.argsort(number, kind="stable")  # by object, and frames rise
    x, y, heading, vx, vy, speed, length, width = values[order].T
    begins = np.ones(len(order), bool)
    begins[1:] = np.diff(number[order]) != 0
    heading = _counterclockwise(heading, convention)
    vx, vy = _velocity(np.stack([x, y]), heading, np.stack([vx, vy]), speed, times[order], begins)
    moved = np.where(np.hypot(vx, vy) > STANDS, np.arctan2(vy, vx), np.nan)
    yaw = _kept(np.where(np.isnan(heading), moved, heading), begins)
    length, width = (
        np.where(np.isnan(given), sizes[number[order], side], given)
        for side, given in enumerate((length, width))
    )
    # Which way it lies is not known before it has moved: a square is at least as large.
    unknown = np.isnan(yaw)
    width = np.where(unknown, np.maximum(length, width), width)
    length = np.where(unknown, width, length)
    yaw = _continuous(np.where(unknown, 0.0, yaw), begins)
    rows = np.empty((len(order), 7))
    rows[order] = np.stack([x, y, yaw, vx, vy, length, width], axis=1)
    return rows


def _counterclockwise(heading: Floats, convention: HeadingSpec) -> Floats:
    turned = np.radians(heading) if convention.unit == "degrees" else heading
    turned = -turned if convention.turn == "clockwise" else turned
    return turned + math.pi / 2 if convention.zero == "y" else turned


def _velocity(
    place: Floats, heading: Floats, velocity: Floats, speed: Floats, times: Numbers,
    begins: npt.NDArray[np.bool_],
) -> Floats:  # fmt: skip
    """Return the velocity: as given, by speed and heading, or from the last two places."""
    moved = np.full_like(place, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved[:, 1:] = np.diff(place) / (np.diff(times) / 1e9)
    moved[:, begins] = np.nan
    along = speed * np.stack([np.cos(heading), np.sin(heading)])
    found = np.where(np.isnan(velocity), along, velocity)
    result: Floats = np.where(np.isnan(found), moved, found)
    return result


def _kept(values: Floats, begins: npt.NDArray[np.bool_]) -> Floats:
    """Return values with the last known one of the same object where one is not known."""
    known = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(len(values))))
    return np.where(known >= _first(begins), values[known], np.nan)


def _continuous(yaw: Floats, begins: npt.NDArray[np.bool_]) -> Floats:
    """Return headings without jumps of whole turns."""
    turns = np.zeros(len(yaw))
    turns[1:] = np.round(np.diff(yaw) / math.tau)
    turns[begins] = 0.0
    total = np.cumsum(turns)
    result: Floats = yaw - math.tau * (total - total[_first(begins)])
    return result


def _first(begins: npt.NDArray[np.bool_]) -> Numbers:
    """Return for each row the number of the first one of its object."""
    found: Numbers = np.maximum.accumulate(np.where(begins, np.arange(len(begins)), 0))
    return found
