"""The functions of expressions that ask about maps and paths.

A map is one of the monitor file's ``shapes``; a path is a list of its xs and its ys, from
``path_ahead`` or from a message (``[xs, ys]``). The place and the geometry behind them are loaded
only where a monitor file has shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.operators import number, numbers
from forewarn.expressions.values import NAN, Notes, Record, is_unknown, kind

SAME_PLACE = 0.5  # metres: signals that share a stop line


def _shapes(notes: Notes, name: str, value: Any) -> Any:
    """Return the value if it is a layer of a map, else None with a note."""
    if isinstance(value, Record) and hasattr(value, "crossings"):
        return value
    notes.unknown(f"{name}() needs one of the monitor file's shapes, not {kind(value)}")
    return None


def _pointwise(notes: Notes, x: Any, y: Any, function: Callable[[Any, Any], Any]) -> Any:
    """Apply a function of arrays to numbers or vectors."""
    operands = numbers(notes, x, y)
    if operands is None:
        return NAN
    single = not any(isinstance(operand, np.ndarray) for operand in operands)
    if single and any(operand != operand for operand in operands):
        return NAN
    xs, ys = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(operand, np.float64)) for operand in operands)
    )
    result = function(xs, ys)
    return result[0].item() if single else result


def distance_to(notes: Notes, shapes: Any, x: Any, y: Any) -> Any:
    """Return the distance to the nearest shape: 0 within a polygon, inf without shapes."""
    layer = _shapes(notes, "distance_to", shapes)
    return NAN if layer is None else _pointwise(notes, x, y, layer.distances)


def inside(notes: Notes, shapes: Any, x: Any, y: Any) -> Any:
    """Tell whether points lie within a shape."""
    distance = distance_to(notes, shapes, x, y)
    if isinstance(distance, np.ndarray):
        known = ~np.isnan(distance)
        return (distance == 0.0) if known.all() else np.where(known, distance == 0.0, np.nan)
    return NAN if is_unknown(distance) else distance == 0.0


def name_at(notes: Notes, shapes: Any, x: Any, y: Any) -> Any:
    """Return the name of the first shape that contains a point; empty if there is none."""
    layer = _shapes(notes, "name_at", shapes)
    place = _scalars(notes, "name_at", x, y)
    if layer is None or place is None:
        return NAN
    found = layer.around(*place)
    return found[0].name if found else ""


def attribute(notes: Notes, shapes: Any, name: Any, key: Any) -> Any:
    """Return what the map says about a named shape; unknown if it says nothing."""
    layer = _shapes(notes, "attribute", shapes)
    if layer is None or not isinstance(name, str) or not isinstance(key, str):
        return NAN
    shape = layer.by_name.get(name)
    if shape is None:
        return notes.unknown(f"no shape is named {name!r}")
    value = shape.attributes.get(key)
    if value is None:
        return notes.unknown(f"the map does not tell {key!r} of {name!r}")
    return list(value) if isinstance(value, tuple) else value


def lane_at(notes: Notes, shapes: Any, x: Any, y: Any, heading: Any, route: Any = ()) -> Any:
    """Return the name of the lane that a vehicle drives on; empty beside all lanes."""
    layer = _shapes(notes, "lane_at", shapes)
    place = _scalars(notes, "lane_at", x, y, heading)
    names = _names(notes, "lane_at", route)
    if layer is None or place is None or names is None:
        return NAN
    found = layer.lane_at(_place(place), names)
    return "" if found is None else found.name


def path_ahead(
    notes: Notes, shapes: Any, x: Any, y: Any, heading: Any, length: Any, route: Any = ()
) -> Any:
    """Return the path along lanes from a vehicle on; unknown beside all lanes."""
    layer = _shapes(notes, "path_ahead", shapes)
    place = _scalars(notes, "path_ahead", x, y, heading, length)
    names = _names(notes, "path_ahead", route)
    if layer is None or place is None or names is None:
        return NAN
    path = layer.path_ahead(_place(place), place[3], names)
    if path is None:
        return notes.unknown("path_ahead(): there is no lane here in this direction")
    return [path.points[:, 0].copy(), path.points[:, 1].copy()]


def distance_along(notes: Notes, shapes: Any, path: Any) -> Any:
    """Return how far along a path the first shape is met; inf if none is."""
    first = _first(notes, "distance_along", shapes, path)
    if first is None:
        return NAN
    return first[0]


def names_along(notes: Notes, shapes: Any, path: Any) -> Any:
    """Return the names of the shapes that a path meets first, all at one place; maybe none."""
    first = _first(notes, "names_along", shapes, path)
    return NAN if first is None else first[1]


def station(notes: Notes, path: Any, x: Any, y: Any) -> Any:
    """Return how far along a path points are; negative behind its beginning."""
    line = _line(notes, "station", path)
    return NAN if line is None else _pointwise(notes, x, y, lambda xs, ys: line.locate(xs, ys)[0])


def offset(notes: Notes, path: Any, x: Any, y: Any) -> Any:
    """Return how far to the left of a path points are; negative to the right."""
    line = _line(notes, "offset", path)
    return NAN if line is None else _pointwise(notes, x, y, lambda xs, ys: line.locate(xs, ys)[1])


def _first(notes: Notes, name: str, shapes: Any, path: Any) -> tuple[float, list[str]] | None:
    layer, line = _shapes(notes, name, shapes), _line(notes, name, path)
    if layer is None or line is None:
        return None
    found = layer.crossings(line)
    nearest = found[0][0] if found else math.inf
    names = [value for where, value in found if where - nearest <= SAME_PLACE]
    return nearest, list(dict.fromkeys(names))


def _line(notes: Notes, name: str, path: Any) -> Any:
    """Return a path as a Polyline, or None with a note."""
    from forewarn.expressions.functions.geometry import Polyline

    if is_unknown(path):
        return None
    parts = [number(notes, part) for part in path] if isinstance(path, (list, tuple)) else []
    if len(parts) != 2 or not all(isinstance(part, np.ndarray) for part in parts):
        notes.unknown(f"{name}() needs a path: [xs, ys]")
        return None
    xs, ys = parts
    if len(xs) != len(ys) or not np.isfinite(xs).all() or not np.isfinite(ys).all():
        notes.unknown(f"{name}(): the path has points that are not known")
        return None
    if len({*zip(xs.tolist(), ys.tolist(), strict=True)}) < 2:
        notes.unknown(f"{name}(): the path has fewer than two points")
        return None
    return Polyline(xs, ys)


def _scalars(notes: Notes, name: str, *values: Any) -> list[float] | None:
    found = [number(notes, value) for value in values]
    if any(isinstance(number, np.ndarray) for number in found):
        notes.unknown(f"{name}() takes one place at a time")
        return None
    return None if any(not math.isfinite(number) for number in found) else found


def _names(notes: Notes, name: str, value: Any) -> list[str] | None:
    if is_unknown(value):
        return None
    items = list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]
    if all(isinstance(element, str) for element in items):
        return items
    notes.unknown(f"{name}() needs names of lanes")
    return None


def _place(values: list[float]) -> Any:
    from forewarn.expressions.functions.geometry import Place

    return Place(*values[:3])


def _function(call: Callable[..., Any], low: int, high: int, summary: str) -> Function:
    return Function(call, low, high, summary, by_platform=True, needs="shapes")


register(
    {
        "distance_to": _function(
            distance_to, 3, 3, "distance of a point to the nearest of some shapes"
        ),
        "inside": _function(inside, 3, 3, "whether a point is within one of some shapes"),
        "name_at": _function(
            name_at, 3, 3, "name of the shape around a point; empty if there is none"
        ),
        "attribute": _function(
            attribute, 3, 3, "what a map says about a shape: attribute(lanes, name, 'turn')"
        ),
        "lane_at": _function(
            lane_at, 4, 5, "name of the lane at x, y in direction heading (of a route)"
        ),
        "path_ahead": _function(
            path_ahead, 5, 6, "path along lanes from x, y, heading on, of a length"
        ),
        "distance_along": _function(
            distance_along, 2, 2, "distance along a path to the first of some shapes"
        ),
        "names_along": _function(
            names_along, 2, 2, "names of the first of some shapes along a path"
        ),
        "station": _function(station, 3, 3, "distance along a path of points; negative behind"),
        "offset": _function(offset, 3, 3, "distance to the left of a path; negative to the right"),
    }
)
