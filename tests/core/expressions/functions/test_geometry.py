"""Shapes and paths: against shapely, against numbers by hand, and what cannot be answered."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from forewarn.config.file import load_spec
from forewarn.errors import ConfigError, FieldError
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.functions import FUNCTIONS
from forewarn.expressions.functions.geometry import Polyline, Shapes
from forewarn.expressions.functions.shapes import LINE, POLYGON, MapError, Shape, load_layer
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.messages.definitions import installed_message_type
from forewarn.messages.extraction import compile_extractor
from forewarn.states.predicates.compile import build_abstraction

SQUARE = Shape("square", POLYGON, ((10, -5), (20, -5), (20, 5), (10, 5)))
GATE = Shape("gate", LINE, ((30, -5), (30, 5)))
coordinate = st.floats(-100, 100).map(lambda value: round(value, 3))
points = st.lists(st.tuples(coordinate, coordinate), min_size=2, max_size=8, unique=True)


def call(name: str, *arguments: Any) -> Any:
    return FUNCTIONS[name](*arguments)


def is_unknown(value: Any) -> bool:
    return isinstance(value, Unknown) or value != value


@given(points, st.tuples(coordinate, coordinate))
def test_stations_within_a_path_are_those_of_shapely(
    path: list[tuple[float, float]], point: tuple[float, float]
) -> None:
    line = shapely.LineString(path)
    station, offset = Polyline(*zip(*path, strict=True)).locate(
        np.array([point[0]]), np.array([point[1]])
    )
    distance = shapely.Point(point).distance(line)
    # Beyond its ends the path goes on straight, so that it may be nearer than the line.
    assert abs(offset[0]) <= distance + 1e-9
    if 0 <= station[0] <= line.length and math.isclose(abs(offset[0]), distance, abs_tol=1e-9):
        reached = line.interpolate(station[0])
        assert reached.distance(shapely.Point(point)) == pytest.approx(distance, abs=1e-6)


def test_station_and_offset_by_hand() -> None:
    path = [np.array([0.0, 10.0, 10.0]), np.array([0.0, 0.0, 10.0])]
    x, y = np.array([4.0, -3.0, 8.0, 11.0, np.nan]), np.array([1.0, -2.0, 14.0, 5.0, 0.0])
    np.testing.assert_allclose(call("station", path, x, y), [4.0, -3.0, 24.0, 15.0, np.nan])
    np.testing.assert_allclose(call("offset", path, x, y), [1.0, -2.0, 2.0, -1.0, np.nan])
    assert call("station", path, 4.0, 1.0) == 4.0


def test_distances_to_shapes_by_hand() -> None:
    layer = Shapes([SQUARE, GATE])
    np.testing.assert_allclose(
        call("distance_to", layer, np.array([0.0, 15.0, 27.0, np.nan]), np.zeros(4)),
        [10.0, 0.0, 3.0, np.nan],
    )
    assert call("inside", layer, 15.0, 1.0) is True
    assert call("inside", layer, 9.0, 1.0) is False
    assert call("name_at", layer, 15.0, 1.0) == "square"
    assert call("name_at", layer, 0.0, 0.0) == ""
    assert call("distance_to", Shapes([]), 1.0, 2.0) == math.inf


def test_a_polygon_with_corners_in_the_wrong_order_counts_as_its_two_triangles() -> None:
    bow = Shapes([Shape("bow", POLYGON, ((0, 0), (4, 4), (4, 0), (0, 4)))])
    assert call("inside", bow, 0.5, 2.0) is True
    assert call("inside", bow, 2.0, 3.5) is False


def test_the_first_shape_along_a_path() -> None:
    path = [np.array([0.0, 50.0]), np.array([0.0, 0.0])]
    assert call("distance_along", Shapes([GATE, SQUARE]), path) == 10.0
    assert call("names_along", Shapes([GATE, SQUARE]), path) == ["square"]
    assert call("distance_along", Shapes([GATE]), path) == 30.0
    inside = [np.array([15.0, 50.0]), np.array([0.0, 0.0])]
    assert call("distance_along", Shapes([SQUARE]), inside) == 0.0
    past = [np.array([31.0, 50.0]), np.array([0.0, 0.0])]
    assert call("distance_along", Shapes([GATE]), past) == math.inf
    assert call("names_along", Shapes([GATE]), past) == []
    twin = GATE._replace(name="twin")
    assert call("names_along", Shapes([GATE, twin]), path) == ["gate", "twin"]


def test_what_is_no_path_is_unknown() -> None:
    layer = Shapes([GATE])
    for path in (1.0, [np.array([0.0]), np.array([0.0])], [np.zeros(3), np.zeros(3)], ["a", "b"]):
        assert is_unknown(call("distance_along", layer, path))
    assert is_unknown(call("distance_to", 3.0, 1.0, 2.0))
    assert is_unknown(call("distance_to", layer, math.nan, 2.0))


def test_a_path_follows_lanes_that_go_round_only_once() -> None:
    ring = Shapes(
        [
            Shape("a", LINE, ((0, 0), (10, 0)), {"successors": ("b", "absent")}),
            Shape("b", LINE, ((10, 0), (5, 8)), {"successors": ("c",)}),
            Shape("c", LINE, ((5, 8), (0, 0)), {"successors": ("a",)}),
        ]
    )
    xs, ys = call("path_ahead", ring, 5.0, 0.2, 0.1, 500.0)
    assert [(round(x), round(y)) for x, y in zip(xs, ys, strict=True)] == [
        (5, 0),
        (10, 0),
        (5, 8),
        (0, 0),
    ]


def test_geojson_layers(tmp_path: Path) -> None:
    path = tmp_path / "map.geojson"
    lane = {"layer": "lane", "name": "l1", "successors": ["l2"], "speed_limit": 8}
    path.write_text(
        json.dumps(
            {
                "type": "FeatureCollection",
                "features": [
                    {
                        "properties": lane,
                        "geometry": {"type": "LineString", "coordinates": [[0, 0, 1], [9, 0, 1]]},
                    }
                ],
            }
        )
    )
    (shape,) = load_layer(path, "lane")
    assert shape.points == ((0.0, 0.0), (9.0, 0.0))
    assert shape.attributes == {"successors": ("l2",), "speed_limit": 8}
    assert call("attribute", Shapes([shape]), "l1", "speed_limit") == 8
    assert is_unknown(call("attribute", Shapes([shape]), "l1", "turn"))
    with pytest.raises(MapError, match=r"no layer 'crosswalk' \(accepted: lane\)"):
        load_layer(path, "crosswalk")
    bad = tmp_path / "bad.geojson"
    bad.write_text('{"features": [{"properties": {}, "geometry": {"type": "Point"}}]}')
    with pytest.raises(MapError, match="is no GeoJSON map"):
        load_layer(bad, "lane")
    with pytest.raises(MapError, match="no map of a known format"):
        load_layer(tmp_path / "map.osm", "lane")


MONITOR = """\
version: 1
rate: 10
shapes:
  keep_out: {polygon: [[0, 0], [4, 0], [4, 4]]}
signals:
  x: {topic: /odom, type: nav_msgs/msg/Odometry, value: pose.pose.position.x}
  y: {topic: /odom, type: nav_msgs/msg/Odometry, value: pose.pose.position.y}
  gap: {value: "distance_to(keep_out, x, y)"}
predicates:
  near: gap < 1
properties:
  away: {formula: always(not near)}
"""


def abstraction(folder: Path, text: str) -> Any:
    path = folder / "monitor.yaml"
    path.write_text(text)
    return build_abstraction(load_spec(path))


def test_a_derived_signal_asks_about_shapes_of_the_monitor_file(tmp_path: Path) -> None:
    found = abstraction(tmp_path, MONITOR)
    values, failures, _ = found.complete([7.0, 4.0])
    assert (values[-1], failures) == (3.0, [])
    assert found.complete([None, 4.0])[0][-1] is None


def test_shapes_written_in_the_file_belong_to_the_digest(tmp_path: Path) -> None:
    digest = abstraction(tmp_path, MONITOR).digest
    assert abstraction(tmp_path, MONITOR.replace("[4, 4]", "[4, 5]")).digest != digest
    assert abstraction(tmp_path, MONITOR.replace("keep_out", "zone")).digest != digest


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("keep_out, x", "keepout, x", "unknown name 'keepout'"),
        ("polygon: [[0, 0], [4, 0], [4, 4]]", "polygon: [[0, 0], [4, 0], [4, 0]]", "3 different"),
        ("{polygon: [[0, 0], [4, 0], [4, 4]]}", "{file: a.geojson}", "file and layer go together"),
        (
            "{polygon: [[0, 0], [4, 0], [4, 4]]}",
            "{file: $NO_SUCH_VARIABLE/a.geojson, layer: x}",
            "the environment has no variable NO_SUCH_VARIABLE",
        ),
        ("  near: gap", "  gap: gap", "already one of the signals"),
    ],
)
def test_what_is_wrong_with_shapes_is_named(tmp_path: Path, old: str, new: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        abstraction(tmp_path, MONITOR.replace(old, new))


def test_messages_cannot_be_asked_about_shapes() -> None:
    with pytest.raises(FieldError, match="shapes are not part of its messages"):
        compile_extractor(
            installed_message_type("nav_msgs/msg/Odometry"),
            [parse_expression("distance_to(keep_out, 1, 2)")],
        )


def test_a_number_in_place_of_shapes_says_so() -> None:
    function = compile_expression(parse_expression("distance_to(a, 1, 2)"), ["a"])
    assert "needs one of the monitor file's shapes, not a number" in str(function([1.0]))
