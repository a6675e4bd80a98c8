"""Apollo's HD maps (``base_map.bin``, ``sim_map.bin``) as layers of shapes.

Layers: ``lane`` (centre lines, with turn, speed limit, neighbours, and how many lanes there are);
``signal``, ``stop_sign``, ``yield_sign`` (stop lines, which bear the names of their signs);
``crosswalk``, ``junction`` and ``clear_area`` (polygons).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from apollo_bridge.layouts import own_class
from apollo_bridge.messages import DAMAGE
from forewarn.expressions.functions.shapes import (
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
    """Read a binary map."""
    try:
        message = own_class("apollo.hdmap.Map").FromString(path.read_bytes())
    except DAMAGE as error:
        raise MapError(f"is no map of Apollo: {error}", file=path) from error
    if not message.lane:
        raise MapError("has no lanes", file=path, accepted="a binary map: base_map.bin")
    layers: dict[str, list[Shape]] = {"lane": []}
    try:
        counts = _lane_counts(message)
        rights = {
            lane.id.id: [right.id for right in lane.right_neighbor_forward_lane_id]
            for lane in message.lane
        }
        for lane in message.lane:
            name = lane.id.id
            layers["lane"].append(
                _lane(lane, lanes=counts.get(name, math.nan), number=_number(name, rights))
            )
        for layer, field in SIGNS.items():
            layers[layer] = [
                line for boundary in getattr(message, field) for line in _lines(boundary)
            ]
        for layer in AREAS:
            layers[layer] = [_area(area) for area in getattr(message, layer)]
    except ValueError as error:
        raise MapError(str(error), file=path) from error
    return layers


def _points(curve: Any) -> tuple[tuple[float, float], ...]:
    return pairs((p.x, p.y) for segment in curve.segment for p in segment.line_segment.point)


def _lane_counts(world: Any) -> dict[str, float]:
    """Return how many lanes of one direction the road has where each lane is."""
    sections = (section for road in world.road for section in road.section)
    return {
        lane.id: float(len(section.lane_id)) for section in sections for lane in section.lane_id
    }


def _number(name: str, rights: Mapping[str, Sequence[str]]) -> float:
    """Return the number of a lane, counted from the right, which is 1."""
    seen = {name}
    while beside := [right for right in rights.get(name, ()) if right not in seen]:
        name = beside[0]
        seen.add(name)
    return float(len(seen))


def _lane(lane: Any, **counted: float) -> Shape:
    attributes: dict[str, Attribute] = {
        **counted,
        "successors": tuple(other.id for other in lane.successor_id),
        "left_lanes": tuple(other.id for other in lane.left_neighbor_forward_lane_id),
        "right_lanes": tuple(other.id for other in lane.right_neighbor_forward_lane_id),
        "speed_limit": lane.speed_limit if lane.speed_limit > 0 else math.nan,
        "turn": float(lane.turn),
        "type": float(lane.type),
        "junction": lane.junction_id.id,
        "left": max((sample.width for sample in lane.left_sample), default=HALF_WIDTH),
        "right": max((sample.width for sample in lane.right_sample), default=HALF_WIDTH),
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
