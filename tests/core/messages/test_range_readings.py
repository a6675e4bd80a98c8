"""What an expression says when a range sensor is blind, too near, or sends zeros (REP-117)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_typestore

from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.messages.blocks import block_extractor
from forewarn.messages.definitions import installed_message_type
from forewarn.messages.extraction import Extractor, compile_extractor

STORE = get_typestore(Stores.ROS2_HUMBLE)
SCAN = "sensor_msgs/msg/LaserScan"
MTYPE = installed_message_type(SCAN)
assert MTYPE is not None
NAN, INF = math.nan, math.inf
RECIPE = "nearest_beam(ranges, range_min, range_max)"
OLD = "min((r for r in ranges if isfinite(r)), default=inf)"
FILTERED = "min((r for r in ranges if isfinite(r) and r >= range_min), default=inf)"
PLAIN = "min(ranges, default=inf)"
LEAST = (
    RECIPE, OLD, FILTERED, PLAIN, "min(where(isfinite(ranges), ranges, inf), default=inf)",
    "min([r if isfinite(r) else inf for r in ranges], default=inf)",
    "min((r for i, r in enumerate(ranges) if isfinite(r)), default=inf)",
    "min((r for r in ranges[0:9] if isfinite(r)), default=inf)",
)  # fmt: skip


def scan(ranges: list[float], low: float = 0.25, high: float = 8.0) -> bytes:
    types = STORE.types
    header = types["std_msgs/msg/Header"](types["builtin_interfaces/msg/Time"](0, 0), "")
    floats = np.array(ranges, np.float32)
    message = types[SCAN](header, 0.0, 1.0, 0.1, 0.0, 0.0, low, high, floats, floats[:0])
    return bytes(STORE.serialize_cdr(message, SCAN))


def said(source: str, data: bytes) -> Any:
    made = compile_extractor(MTYPE, [parse_expression(source)])
    (found,) = made(data)
    return NAN if isinstance(found, Unknown) else found


@pytest.mark.parametrize("source", LEAST)
def test_a_blind_scanner_is_unknown_and_one_that_is_too_near_is_near(source: str) -> None:
    for blind in ([], [NAN] * 3, [0.0] * 3, [NAN, 0.0]):
        assert math.isnan(said(source, scan(blind))) or (source == PLAIN and NAN in blind)
    assert said(source, scan([-INF, 3.0, INF])) <= 0.25
    assert said(source, scan([-INF])) <= 0.25
    if source not in LEAST[1:2] + LEAST[3:]:  # zeros that others keep are near
        assert said(source, scan([0.0, 3.0])) == 3.0
    assert said(source, scan([3.0, 2.0, INF])) == 2.0
    assert said(source, scan([INF, INF])) == INF


def test_what_a_filter_leaves_nothing_of_is_not_nothing_in_range() -> None:
    own_limit = "min((r for r in ranges if isfinite(r) and r > 0.3), default=inf)"
    for beams in ([0.0, 0.0], [-INF], [0.27, NAN]):
        for low in (0.0, 0.25):
            assert math.isnan(said(own_limit, scan(beams, low)))
    assert said(own_limit, scan([0.0, INF])) == INF


def test_zero_is_no_reading_unless_said_otherwise_and_unset_limits_bound_nothing() -> None:
    beams = scan([0.0, 3.0])
    for zero, expected in (("nan", 3.0), ("0", 0.0), ("inf", 3.0)):
        assert said(f"nearest_beam(ranges, range_min, range_max, {zero})", beams) == expected
    assert said("nearest_beam(ranges, range_min, range_max, inf)", scan([0.0])) == INF
    assert said(RECIPE, scan([9.0, NAN])) == INF
    assert said(RECIPE, scan([9.0, NAN], high=0.0)) == 9.0
    assert said(RECIPE, scan([0.1, 3.0])) == pytest.approx(0.1)  # nearer than it measures is near
    sector = "nearest_beam(where(range(len(ranges)) < 2, ranges, nan), range_min, range_max)"
    assert math.isnan(said(sector, scan([NAN, NAN, 3.0])))
    assert said(sector, scan([-INF, NAN, 3.0])) == 0.0


def test_what_only_counts_readings_sees_them_as_they_are() -> None:
    blind = scan([NAN, NAN])
    assert said("count(isnan(ranges)) / len(ranges)", blind) == 1.0
    assert said("count(ranges == -inf)", scan([-INF, 1.0])) in (0, 1)
    assert math.isnan(said("any(r < 0.4 for r in ranges if not isnan(r))", blind))
    assert math.isnan(said("count(r < 0.4 for r in ranges)", scan([])))


def test_it_is_told_what_an_expression_leaves_out() -> None:
    made = compile_extractor(MTYPE, [parse_expression(each) for each in LEAST[:3]])
    notes = [note for note in made.notes if "nearest_beam(ranges" in note]
    assert [OLD in note or FILTERED in note for note in notes] == [True, True]


ECHO = installed_message_type("sensor_msgs/msg/MultiEchoLaserScan")
ECHOES = "[e for beam in ranges for e in beam.echoes]"


def echoes(*beams: list[float]) -> bytes:
    types = STORE.types
    header = types["std_msgs/msg/Header"](types["builtin_interfaces/msg/Time"](0, 0), "")
    made = [types["sensor_msgs/msg/LaserEcho"](np.array(beam, np.float32)) for beam in beams]
    message = types[ECHO.name](header, 0.0, 1.0, 0.1, 0.0, 0.0, 0.25, 8.0, made, [])
    return bytes(STORE.serialize_cdr(message, ECHO.name))


@pytest.mark.parametrize(
    ("beams", "least"),
    [
        (([2.0, 5.0], [3.0]), 2.0),
        (([-INF], [5.0]), 0.0),
        (([NAN], []), NAN),
        ((), NAN),
        (([0.0],), NAN),
        (([INF], [NAN]), INF),
    ],
)
def test_a_scanner_with_several_echoes_fails_closed(
    beams: tuple[list[float], ...], least: float
) -> None:
    made = compile_extractor(
        ECHO, [parse_expression(f"nearest_beam({ECHOES}, range_min, range_max)")]
    )
    (found,) = made(echoes(*beams))
    assert (NAN if isinstance(found, Unknown) else found) == pytest.approx(least, nan_ok=True)
    assert not any("leaves readings out" in note for note in made.notes)


def test_echoes_that_are_left_out_are_named() -> None:
    filtered = parse_expression(f"min((e for e in {ECHOES} if isfinite(e)), default=inf)")
    told = [note for note in compile_extractor(ECHO, [filtered]).notes if "leaves readings" in note]
    assert len(told) == 1
    assert "write nearest_beam([e for beam in ranges for e in beam.echoes], range_min" in told[0]


BEAMS = st.sampled_from([NAN, INF, -INF, 0.0, -0.0, 0.1, 0.25, 1.0, 3.0, 9.0])


@given(
    st.sampled_from((*LEAST[:5], "any(ranges < 0.4)", "where(isfinite(ranges), ranges, 9.0)")),
    st.lists(st.lists(BEAMS, max_size=4), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.25, NAN]),
)
def test_many_at_once_have_the_bits_of_one_by_one(
    source: str, beams: list[list[float]], low: float
) -> None:
    wanted = [parse_expression(source), parse_expression("range_max")]
    one, many = compile_extractor(MTYPE, wanted), block_extractor(MTYPE, wanted)
    assert isinstance(one, Extractor)
    messages = [scan(each, low) for each in beams]
    for data, row in zip(messages, many(messages) if many else [], strict=False):
        if row is not None:
            assert list(map(repr, row)) == list(map(repr, one(data)))


@pytest.mark.parametrize("source", [RECIPE, PLAIN, "beam_ranges(ranges, range_min, range_max)"])
def test_recipes_run_on_whole_blocks(source: str) -> None:
    many = block_extractor(MTYPE, [parse_expression(source)])
    assert many is not None
    assert many([scan([1.0, 2.0]), scan([INF])])[0] is not None
