"""Apollo's HD maps (``base_map.bin``, ``sim_map.bin``) as layers of shapes.

Layers: ``lane`` (centre lines); ``signal``, ``stop_sign``, ``yield_sign`` (stop lines, which bear
the names of their signs); ``crosswalk``, ``junction`` and ``clear_area`` (polygons).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from apollo_bridge.layouts import own_class
from forewarn.signals.shapes import (
    LINE,
    POLYGON,
    Attribute,
    Layers,
    MapError,
    MapFormat,
    Shape,
    checked,
    pairs,
)

HALF_WIDTH = 1.75
AREAS = ("crosswalk", "junction", "clear_area")
SIGNS = {"signal": "signal", "stop_sign": "stop_sign", "yield_sign": "yield"}


def load_map(path: Path) -> Layers:
    """Read a binary map.

    Raises
    ------
    MapError
        If the file is no map, or a shape of it is none.
    """
    try:
        message = own_class("apollo.hdmap.Map").FromString(path.read_bytes())
    except DecodeError as error:
        raise MapError(f"is no map of Apollo: {error}", file=path) from error
    if not message.lane:
        raise MapError("has no lanes", file=path, accepted="a binary map: base_map.bin")
    layers: dict[str, list[Shape]] = {"lane": []}
    try:
        layers["lane"] += (_lane(each) for each in message.lane)
        for layer, field in SIGNS.items():
            layers[layer] = [line for each in getattr(message, field) for line in _lines(each)]
        for layer in AREAS:
            layers[layer] = [_area(each) for each in getattr(message, layer)]
    except ValueError as error:
        raise MapError(str(error), file=path) from error
    return layers


def _points(curve: Any) -> tuple[tuple[float, float], ...]:
    return pairs((p.x, p.y) for segment in curve.segment for p in segment.line_segment.point)


def _lane(lane: Any) -> Shape:
    attributes: dict[str, Attribute] = {
        "successors": tuple(each.id for each in lane.successor_id),
        "left_lanes": tuple(each.id for each in lane.left_neighbor_forward_lane_id),
        "right_lanes": tuple(each.id for each in lane.right_neighbor_forward_lane_id),
        "speed_limit": lane.speed_limit if lane.speed_limit > 0 else math.nan,
        "turn": float(lane.turn),
        "type": float(lane.type),
        "junction": lane.junction_id.id,
        "left": max((each.width for each in lane.left_sample), default=HALF_WIDTH),
        "right": max((each.width for each in lane.right_sample), default=HALF_WIDTH),
    }
    return checked(Shape(lane.id.id, LINE, _points(lane.central_curve), attributes))


def _lines(sign: Any) -> Iterator[Shape]:
    for curve in sign.stop_line:
        yield checked(Shape(sign.id.id, LINE, _points(curve)))


def _area(area: Any) -> Shape:
    return checked(Shape(area.id.id, POLYGON, pairs((p.x, p.y) for p in area.polygon.point)))


FORMAT = MapFormat(
    "binary maps of Apollo (base_map.bin)", lambda path: path.suffix == ".bin", load_map
)
