"""Maps: named lines and polygons in the plane, from the monitor file or from map files.

GeoJSON is read here; other packages add their formats as entry points of the group
``forewarn.maps``, each a `MapFormat`. Coordinates are metres in the map's frame.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from forewarn.errors import InputError
from forewarn.files.inputs import open_plain

GROUP = "forewarn.maps"
LINE, POLYGON = "line", "polygon"
Attribute: TypeAlias = "float | str | tuple[str, ...]"


class MapError(InputError):
    """A map cannot be read, or has no such layer."""


class Shape(NamedTuple):
    """A line or a polygon.

    Attributes
    ----------
    name : str
        Its id on the map.
    kind : str
        ``line`` or ``polygon``.
    points : tuple of (float, float)
        Two or more for a line, three or more for a polygon, whose last point need not repeat
        the first.
    attributes : mapping
        What the map says about it. Lanes, which are their centre lines, have ``successors``
        (names), ``speed_limit`` in m/s (NaN: none), ``left`` and ``right`` (half widths in m).
    """

    name: str
    kind: str
    points: tuple[tuple[float, float], ...]
    attributes: Mapping[str, Attribute] = {}


Layers: TypeAlias = "Mapping[str, Sequence[Shape]]"


class MapFormat(NamedTuple):
    """A kind of map file.

    Attributes
    ----------
    accepted : str
        What such a file looks like, for error messages.
    matches : callable
        Tells from the path whether this is one.
    load : callable
        Returns the shapes of each layer; raises MapError.
    """

    accepted: str
    matches: Callable[[Path], bool]
    load: Callable[[Path], Layers]


def load_layer(path: Path, layer: str) -> tuple[Shape, ...]:
    """Read one layer of a map file.

    Raises
    ------
    MapError
        If the file cannot be read, its format is unknown, or it has no such layer.
    """
    layers = _load(path)
    if layer not in layers:
        raise MapError(
            f"there is no layer {layer!r}", file=path, accepted=", ".join(layers) or "an other map"
        )
    return tuple(layers[layer])


@lru_cache(maxsize=4)
def _load(path: Path) -> Layers:
    formats = (*_installed(), MapFormat(".geojson files", _is_geojson, load_geojson))
    for file_format in formats:
        if file_format.matches(path):
            try:
                return file_format.load(path)
            except OSError as error:
                raise MapError(f"cannot be read ({error.strerror})", file=path) from error
    raise MapError(
        "is no map of a known format",
        file=path,
        accepted="; ".join(file_format.accepted for file_format in formats),
    )


def _installed() -> tuple[MapFormat, ...]:
    return tuple(point.load() for point in entry_points(group=GROUP))


def _is_geojson(path: Path) -> bool:
    return path.suffix in (".geojson", ".json")


def load_geojson(path: Path) -> Layers:
    """Read a FeatureCollection whose features have the properties ``layer`` and ``name``.

    All other properties that are numbers or texts become attributes; coordinates count as metres.

    Raises
    ------
    MapError
        If it is no such file.
    """
    try:
        with open_plain(path) as file:
            features = json.load(file)["features"]
        layers: dict[str, list[Shape]] = {}
        for number, feature in enumerate(features):
            layer, shape = _feature(feature, number)
            layers.setdefault(layer, []).append(shape)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MapError(
            f"is no GeoJSON map: {type(error).__name__} {error}",
            file=path,
            accepted="a FeatureCollection of LineStrings and Polygons with layer and name",
        ) from error
    return layers


def _feature(feature: Any, number: int) -> tuple[str, Shape]:
    properties, geometry = feature["properties"], feature["geometry"]
    kind = {"LineString": LINE, "Polygon": POLYGON}[geometry["type"]]
    points = geometry["coordinates"] if kind == LINE else geometry["coordinates"][0]
    attributes = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in properties.items()
        if key not in ("layer", "name")
    }
    name = str(properties.get("name", number))
    return str(properties["layer"]), checked(Shape(name, kind, pairs(points), attributes))


def pairs(points: Iterable[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    """Return the x and y of points that may have more coordinates."""
    return tuple((float(point[0]), float(point[1])) for point in points)


def checked(shape: Shape) -> Shape:
    """Return a shape that has enough points, all finite; raises ValueError."""
    least = 2 if shape.kind == LINE else 3
    if len(set(shape.points)) < least:
        raise ValueError(f"the {shape.kind} {shape.name!r} needs {least} different points")
    if not all(math.isfinite(c) for point in shape.points for c in point):
        raise ValueError(f"the {shape.kind} {shape.name!r} has a coordinate that is not finite")
    return shape
