"""Shapes in the plane and paths through them: what expressions know of a map.

Distances are in metres, headings in radians from the x axis, counterclockwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import shapely

from forewarn.expressions.functions.shapes import LINE, Shape
from forewarn.expressions.values import Record

Floats = npt.NDArray[np.float64]

HALF_WIDTH = 1.75
NEAR = 1.0
ALONG = math.pi / 3


class Polyline:
    """A line of straight pieces with the distance along it.

    `xs`, `ys`, shape (n,): its points, at least two different ones; repeated points are dropped.
    """

    def __init__(self, xs: Sequence[float] | Floats, ys: Sequence[float] | Floats) -> None:
        points = np.column_stack([np.asarray(xs, np.float64), np.asarray(ys, np.float64)])
        keep = np.ones(len(points), bool)
        keep[1:] = np.any(points[1:] != points[:-1], axis=1)
        self.points: Floats = points[keep]
        self._steps: Floats = np.diff(self.points, axis=0)
        self._lengths: Floats = np.hypot(self._steps[:, 0], self._steps[:, 1])
        self.stations: Floats = np.concatenate([[0.0], np.cumsum(self._lengths)])

    @property
    def length(self) -> float:
        """Length in metres."""
        return float(self.stations[-1])

    def locate(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return station and offset (left is positive) of points, as in a Frenet frame.

        The first and the last piece go on without end: what lies behind has a negative station.

        Returns shape (m,): NaN for points that are not finite.
        """
        delta = np.stack([x, y], axis=1)[:, None, :] - self.points[None, :-1, :]
        unit = self._steps / self._lengths[:, None]
        along = np.einsum("mnk,nk->mn", delta, unit)
        low = np.where(np.arange(len(unit)) == 0, -np.inf, 0.0)
        high = np.where(np.arange(len(unit)) == len(unit) - 1, np.inf, self._lengths)
        clamped = np.clip(along, low, high)
        across = unit[None, :, 0] * delta[:, :, 1] - unit[None, :, 1] * delta[:, :, 0]
        # The offset from a corner is the distance to it, on the side of the piece.
        distance = np.hypot(across, along - clamped)
        known = np.isfinite(distance).all(axis=1)
        best = np.argmin(np.where(np.isfinite(distance), distance, np.inf), axis=1)
        rows = np.arange(len(best))
        stations = self.stations[:-1][best] + clamped[rows, best]
        offsets = np.copysign(distance[rows, best], across[rows, best])
        return np.where(known, stations, np.nan), np.where(known, offsets, np.nan)

    def heading(self, station: float) -> float:
        """Return the heading at a station."""
        at = int(
            np.clip(np.searchsorted(self.stations, station, "right") - 1, 0, len(self._steps) - 1)
        )
        return math.atan2(self._steps[at, 1], self._steps[at, 0])

    def after(self, station: float) -> Floats:
        """Return the points from a station on, shape (k, 2)."""
        station = min(max(station, 0.0), self.length)
        at = int(np.searchsorted(self.stations, station, "right"))
        start = [np.interp(station, self.stations, self.points[:, k]) for k in (0, 1)]
        return np.concatenate([[start], self.points[at:]])


class Shapes(Record):
    """A layer of a map, ready to be asked.

    `shapes`: lines and polygons.
    """

    __slots__ = ("_geometries", "_lines", "_tree", "by_name", "shapes")

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self.shapes = tuple(shapes)
        self.by_name = {shape.name: shape for shape in self.shapes}
        self._geometries: list[Any] = [
            # Corners in the wrong order, as maps have them, would make an area of no meaning.
            shapely.LineString(s.points)
            if s.kind == LINE
            else shapely.make_valid(shapely.Polygon(s.points))
            for s in self.shapes
        ]
        self._tree = shapely.STRtree(self._geometries)
        self._lines: dict[str, Polyline] = {}

    def field(self, name: str) -> Any:
        """Return nothing: shapes are arguments of functions and have no fields."""
        return math.nan

    def distances(self, x: Floats, y: Floats) -> Floats:
        """Return the distance of each point to the nearest shape, shape (m,); 0 within one."""
        result = np.full(len(x), np.inf)
        known = np.isfinite(x) & np.isfinite(y)
        result[~known] = np.nan
        if self.shapes and known.any():
            points = shapely.points(x[known], y[known])
            (rows, _), found = self._tree.query_nearest(
                points, return_distance=True, all_matches=False
            )
            places = np.flatnonzero(known)[rows]
            result[places] = found
        return result

    def around(self, x: float, y: float) -> list[Shape]:
        """Return the shapes that contain a point, or touch it."""
        hits = self._tree.query(shapely.Point(x, y), predicate="intersects")
        return [self.shapes[at] for at in sorted(hits)]

    def crossings(self, path: Polyline) -> list[tuple[float, str]]:
        """Return where a path first meets each shape, nearest first; 0 if it begins in one."""
        line = shapely.LineString(path.points)
        found = []
        for at in self._tree.query(line, predicate="intersects"):
            met = shapely.get_coordinates(line.intersection(self._geometries[at]))
            found.append((min(float(line.project(shapely.Point(c))) for c in met), int(at)))
        return [(station, self.shapes[at].name) for station, at in sorted(found)]

    # Lanes

    def line(self, name: str) -> Polyline:
        """Return the centre line of a lane."""
        if name not in self._lines:
            self._lines[name] = Polyline(*zip(*self.by_name[name].points, strict=True))
        return self._lines[name]

    def lane_at(self, place: Place, route: Sequence[str] = ()) -> OnLane | None:
        """Return the lane that a vehicle drives on, or None.

        Among those whose direction is the vehicle's to 60 degrees and that are at most 1 m wider
        than given, lanes of the route come first, then the one whose centre is nearest.
        """
        reach = 2 * HALF_WIDTH + NEAR
        square = shapely.box(place.x - reach, place.y - reach, place.x + reach, place.y + reach)
        best: tuple[bool, float, str] | None = None
        station = 0.0
        for at in self._tree.query(square):
            shape = self.shapes[at]
            if shape.kind != LINE:
                continue
            line = self.line(shape.name)
            (s,), (offset,) = line.locate(np.array([place.x]), np.array([place.y]))
            side = shape.attributes.get("left" if offset >= 0 else "right", HALF_WIDTH)
            turn = _turned(line.heading(s), place.heading)
            inside = -NEAR <= s <= line.length + NEAR and abs(offset) <= _number(side) + NEAR
            if inside and abs(turn) <= ALONG:
                rank = (shape.name not in route, abs(float(offset)), shape.name)
                if best is None or rank < best:
                    best, station = rank, float(s)
        return None if best is None else OnLane(best[2], station)

    def path_ahead(self, place: Place, length: float, route: Sequence[str] = ()) -> Polyline | None:
        """Return the centre line from a vehicle on, lane after lane, or None beside all lanes.

        At a fork it follows the route, else the lane that turns least.

        `length`: metres after which the path may end; it ends where the lanes do.
        `route`: names of lanes that the vehicle means to take.
        """
        begin = self.lane_at(place, route)
        if begin is None:
            return None
        name, seen = begin.name, {begin.name}
        parts = [self.line(name).after(begin.station)]
        left = length - (self.line(name).length - begin.station)
        while left > 0:
            following = self._successor(name, seen, route)
            if following is None:
                break
            name = following
            seen.add(name)
            parts.append(self.line(name).points)
            left -= self.line(name).length
        points = np.concatenate(parts)
        if len(np.unique(points, axis=0)) < 2:
            return None
        return Polyline(points[:, 0], points[:, 1])

    def _successor(self, name: str, seen: set[str], route: Sequence[str]) -> str | None:
        named = self.by_name[name].attributes.get("successors", ())
        if not isinstance(named, tuple):
            return None
        names = [lane for lane in named if lane in self.by_name and lane not in seen]
        if not names:
            return None
        line = self.line(name)
        heading = line.heading(line.length)

        def rank(lane: str) -> tuple[bool, float, str]:
            other = self.line(lane)
            return lane not in route, abs(_turned(other.heading(other.length), heading)), lane

        return min(names, key=rank)


class Place(NamedTuple):
    """Where a vehicle is and where it points to."""

    x: float
    y: float
    heading: float


class OnLane(NamedTuple):
    """A lane and the distance along it."""

    name: str
    station: float


def _turned(angle: float, reference: float) -> float:
    return math.remainder(angle - reference, math.tau)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else HALF_WIDTH
