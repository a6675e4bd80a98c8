"""Transforms between frames as tf2 keeps and looks them up, at the latest common time.

What is kept, found, interpolated and refused is what tf2's BufferCore (geometry2 0.39) does; tests
compare with cases that it computed. Only memory is bounded here.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

CACHE_NS = 10_000_000_000
"""How far back transforms are kept: tf2's default."""
MOST_FRAMES = 1000
MOST_TRANSFORMS = 100_000
"""Transforms of all frames together; then the oldest of a frame makes room for its newest."""
DEEPEST = 1000
LISTED = 8

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
ORIGIN: Vector = (0.0, 0.0, 0.0)
UNTURNED: Quaternion = (0.0, 0.0, 0.0, 1.0)


class NoTransformError(Exception):
    """There is no transform between two frames; the text says why."""


class Transform(NamedTuple):
    """Where a child frame lies in its parent."""

    parent: str
    translation: Vector
    rotation: Quaternion
    arrival_ns: int  # when that was received


class Pose(NamedTuple):
    """Where a frame lies in another.

    `arrival_ns`: when the newest transform arrived of that link on the way that has been silent for
    the longest; None where all are static.
    """

    translation: Vector
    rotation: Quaternion
    stamp_ns: int  # the latest common time; 0 where all transforms on the way are static
    arrival_ns: int | None


class Link:
    """What is known of a frame's place in its parent, by stamp; one transform if it is static."""

    def __init__(self, *, static: bool) -> None:
        self.static = static
        self.stamps: list[int] = []
        self.transforms: list[Transform] = []

    def insert(self, stamp_ns: int, transform: Transform) -> bool:
        """Take a transform; return False if it is too old to be kept."""
        stamps = self.stamps
        if self.static:
            self.stamps, self.transforms = [0], [transform]
            return True
        if stamps:
            oldest = stamps[-1] - CACHE_NS
            if stamps[0] < oldest:
                first = bisect_left(stamps, oldest)
                del stamps[:first], self.transforms[:first]
            if stamp_ns < oldest:
                return False
        at = bisect_right(stamps, stamp_ns)
        same = at - 1
        while same >= 0 and stamps[same] == stamp_ns:
            if self.transforms[same][:3] == transform[:3]:
                return True
            same -= 1
        stamps.insert(at, stamp_ns)
        self.transforms.insert(at, transform)
        return True

    def at(self, time_ns: int) -> Transform | None:
        """Return the transform at a time, 0 for the newest; None if that would be extrapolated."""
        stamps, transforms = self.stamps, self.transforms
        if self.static or time_ns in (0, stamps[-1]):
            return transforms[-1]
        if time_ns == stamps[0]:
            return transforms[0]
        if not stamps[0] < time_ns < stamps[-1]:
            return None
        newer = bisect_right(stamps, time_ns)
        before, after = transforms[newer - 1], transforms[newer]
        if before.parent != after.parent:
            return before
        start, end = stamps[newer - 1], stamps[newer]
        return _between(before, after, float(time_ns - start) / float(end - start))


class FrameTree:
    """The frames of which a transform has arrived."""

    def __init__(self) -> None:
        self.links: dict[str, Link] = {}
        self.kept = 0
        self.version = 0

    def insert(self, stamp_ns: int, transform: Transform, child: str, *, static: bool) -> str:
        """Take a transform and return why it is refused, if it is."""
        child, parent = child.removeprefix("/"), transform.parent.removeprefix("/")
        refused = _refusal(child, parent, transform)
        if refused:
            return refused
        link = self.links.pop(child, None)
        if link is None or link.static != static:
            self.kept -= 0 if link is None else len(link.stamps)
            link = Link(static=static)
        self.links[child] = link  # the last one heard of is the last one here
        before = len(link.stamps)
        turned = _unit(transform.rotation)
        taken = link.insert(stamp_ns, transform._replace(parent=parent, rotation=turned))
        self.kept += len(link.stamps) - before
        if not taken:
            return f"{child!r} in {parent!r}: its stamp is more than 10 s behind the newest"
        self.version += 1
        self._make_room(link)
        return ""

    def _make_room(self, link: Link) -> None:
        if self.kept > MOST_TRANSFORMS and len(link.stamps) > 1:
            del link.stamps[0], link.transforms[0]
            self.kept -= 1
        if len(self.links) > MOST_FRAMES:
            moving = (name for name, one in self.links.items() if not one.static)
            gone = next(moving, next(iter(self.links)))
            self.kept -= len(self.links.pop(gone).stamps)

    def lookup(self, of: str, inside: str) -> Pose:
        """Return the pose of the frame `of` in the frame `inside` at the latest common time.

        Raises NoTransformError if a frame is unknown, they are not connected, or it would be an
        extrapolation.
        """
        for name in (of, inside):
            parents = (link.transforms[-1].parent for link in self.links.values())
            if name not in self.links and name not in parents:
                known = {*self.links, *(x.transforms[-1].parent for x in self.links.values())}
                raise NoTransformError(
                    f"nothing tells of a frame {name!r}, only of {_listed(known)}"
                )
        time_ns, way = self._common_time(of, inside)
        moving = [link for link in way if not link.static]
        arrival = min((link.transforms[-1].arrival_ns for link in moving), default=None)
        translation, rotation = self._walk(of, inside, time_ns)
        return Pose(translation, rotation, time_ns, arrival)

    def _common_time(self, of: str, inside: str) -> tuple[int, list[Link]]:
        """Return the newest stamp that all links on the way have reached, and these links."""
        rising: list[tuple[str, Link]] = []
        for parent, link in self._above(of):
            rising.append((parent, link))
            if parent == inside:
                way = [one for _, one in rising]
                return _oldest(way), way
        parents = [parent for parent, _ in rising]
        falling: list[Link] = []
        for parent, link in self._above(inside):
            falling.append(link)
            if parent in parents:
                way = falling + [one for _, one in rising[: parents.index(parent) + 1]]
                return _oldest(way), way
            if parent == of:
                return _oldest(falling), falling
        raise NoTransformError(
            f"{of!r} and {inside!r} are not connected: the tree of {of!r} ends at "
            f"{self._top(of)!r}, that of {inside!r} at {self._top(inside)!r}"
        )

    def _above(self, name: str) -> Iterator[tuple[str, Link]]:
        """Yield the frames above one by the newest transforms, each with the link to it."""
        first = name
        for _ in range(DEEPEST):
            link = self.links.get(name)
            if link is None:
                return
            name = link.transforms[-1].parent
            yield name, link
        raise _loop(first)

    def _top(self, name: str) -> str:
        return [name, *(parent for parent, _ in self._above(name))][-1]

    def _walk(self, of: str, inside: str, time_ns: int) -> tuple[Vector, Quaternion]:
        """Add up the transforms from a frame to the root, and those from the other one to there."""
        frame, moved, turned, torn = of, ORIGIN, UNTURNED, False
        for _ in range(DEEPEST):
            link = self.links.get(frame)
            step = None if link is None else link.at(time_ns)
            if step is None:
                torn = link is not None
                break
            if frame == inside:
                return moved, turned
            moved, turned = _onto(step, moved, turned)
            frame = step.parent
        else:
            raise _loop(of)
        top, frame, back, unturned = frame, inside, ORIGIN, UNTURNED
        for _ in range(DEEPEST):
            link = self.links.get(frame)
            if frame == top or link is None:
                break
            step = link.at(time_ns)
            if step is None:
                raise _extrapolated(frame, link)
            if frame == of:
                inverse = _inverse(unturned)
                return _rotate(inverse, _negative(back)), inverse
            back, unturned = _onto(step, back, unturned)
            frame = step.parent
        else:
            raise _loop(inside)
        if frame != top:
            if torn:
                raise _extrapolated(top, self.links[top])
            raise NoTransformError(f"{of!r} and {inside!r} were not connected at that time")
        inverse = _inverse(unturned)
        start = _rotate(inverse, _negative(back))
        return _sum(_rotate(inverse, moved), start), _product(inverse, turned)


def _refusal(child: str, parent: str, transform: Transform) -> str:
    if not child or not parent:
        return f"{child!r} in {parent!r}: a frame has no name"
    if child == parent:
        return f"{child!r} in {parent!r}: a frame is its own parent"
    if any(math.isnan(one) for one in transform.translation):
        return f"{child!r} in {parent!r}: the translation is NaN"
    # tf2 normalises before it checks the length: only what has no direction is refused.
    if not 0.0 < _dot(transform.rotation, transform.rotation) < math.inf:
        return f"{child!r} in {parent!r}: the quaternion is no rotation"
    return ""


def _listed(names: set[str]) -> str:
    shown = [repr(name) for name in sorted(names)]
    more = [f"{len(shown) - LISTED} more"] if len(shown) > LISTED else []
    return ", ".join([*shown[:LISTED], *more]) or "none"


def _oldest(way: list[Link]) -> int:
    stamps = (link.stamps[-1] for link in way if not link.static)
    return min((stamp for stamp in stamps if stamp), default=0)


def _loop(frame: str) -> NoTransformError:
    return NoTransformError(f"the transforms above {frame!r} are a loop")


def _extrapolated(frame: str, link: Link) -> NoTransformError:
    parent = link.transforms[-1].parent
    return NoTransformError(
        f"{frame!r} in {parent!r} would be extrapolated: its transforms do not reach back to the "
        "latest common time"
    )


def _between(before: Transform, after: Transform, ratio: float) -> Transform:
    rest = 1.0 - ratio
    (x, y, z), (u, v, w) = before.translation, after.translation
    moved = (rest * x + ratio * u, rest * y + ratio * v, rest * z + ratio * w)
    return before._replace(
        translation=moved, rotation=_slerp(before.rotation, after.rotation, ratio)
    )


def _slerp(a: Quaternion, b: Quaternion, ratio: float) -> Quaternion:
    size = math.sqrt(_dot(a, a) * _dot(b, b))
    along = _dot(a, b)
    if along < 0:
        b = (-b[0], -b[1], -b[2], -b[3])
        along = -along
    theta = math.acos(min(along / size, 1.0))
    if theta == 0.0:
        return a
    scale = 1.0 / math.sin(theta)
    s, t = math.sin((1.0 - ratio) * theta), math.sin(ratio * theta)
    x, y, z, w = ((p * s + q * t) * scale for p, q in zip(a, b, strict=True))
    return (x, y, z, w)


def _dot(a: Quaternion, b: Quaternion) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3]


def _unit(q: Quaternion) -> Quaternion:
    size = math.sqrt(_dot(q, q))
    return (q[0] / size, q[1] / size, q[2] / size, q[3] / size)


def _product(a: Quaternion, b: Quaternion) -> Quaternion:
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by + ay * bw + az * bx - ax * bz,
        aw * bz + az * bw + ax * by - ay * bx,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def _inverse(q: Quaternion) -> Quaternion:
    return (-q[0], -q[1], -q[2], q[3])


def _rotate(q: Quaternion, v: Vector) -> Vector:
    x, y, z, _ = _product(_product(q, (*v, 0.0)), _inverse(q))
    return (x, y, z)


def _negative(v: Vector) -> Vector:
    return (-v[0], -v[1], -v[2])


def _sum(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def _onto(step: Transform, moved: Vector, turned: Quaternion) -> tuple[Vector, Quaternion]:
    return (_sum(_rotate(step.rotation, moved), step.translation), _product(step.rotation, turned))
