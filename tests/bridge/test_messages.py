"""Expressions over protobuf fields: constants, presence, what is unknown, what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from apollo_bridge.layouts import own_pool
from apollo_bridge.messages import Pool
from forewarn.errors import DecodeError, FieldError
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.messages.extraction import compile_extractor


def evaluate(message: Any, *expressions: str) -> list[Any]:
    mtype = own_pool().message_type(message.DESCRIPTOR.full_name)
    extract = compile_extractor(mtype, [parse_expression(expression) for expression in expressions])
    return extract(message.SerializeToString())


def unknown(value: Any) -> bool:
    return isinstance(value, Unknown) or (isinstance(value, float) and math.isnan(value))


def test_enumeration_names_are_constants(apollo: Any) -> None:
    plan = apollo.own_class("apollo.planning.ADCTrajectory")()
    plan.decision.main_decision.stop.reason_code = 100
    assert evaluate(
        plan,
        "decision.main_decision.stop.reason_code == STOP_REASON_SIGNAL",
        "decision.main_decision.stop.reason_code in (STOP_REASON_CROSSWALK, STOP_REASON_SIGNAL)",
        "decision.main_decision.stop.reason_code == STOP_REASON_STOP_SIGN",
    ) == [True, True, False]


def test_a_name_with_two_numbers_belongs_to_its_message() -> None:
    # STOP is 4 in PadMessage and 5 in ActionCommand; here UNKNOWN is 0 in both of its enumerations.
    layout = own_pool().message_type("apollo.prediction.PredictionObstacles").struct
    assert layout.constants["VEHICLE"] == 5
    assert layout.constants["UNKNOWN"] == 0


def test_a_part_that_is_not_set_is_unknown_and_has_tells(apollo: Any) -> None:
    plan = apollo.own_class("apollo.planning.ADCTrajectory")()
    plan.decision.main_decision.cruise.SetInParent()
    stop, cruise, reason, both, points, flag = evaluate(
        plan,
        "has(decision.main_decision.stop)",
        "has(decision.main_decision.cruise)",
        "decision.main_decision.stop.reason_code",  # C++ would read 1: HEAD_VEHICLE
        "has(decision.main_decision.stop) and "
        "decision.main_decision.stop.reason_code == STOP_REASON_SIGNAL",
        "has(trajectory_point)",
        "has(is_replan)",
    )
    assert (stop, cruise, both, points, flag) == (False, True, False, False, False)
    assert unknown(reason)


def test_has_below_a_part_that_is_not_set_is_false(apollo: Any) -> None:
    empty = apollo.own_class("apollo.planning.ADCTrajectory")()
    assert evaluate(empty, "has(decision.main_decision.stop)") == [False]


def test_scalars_that_are_not_set_have_their_declared_default(apollo: Any) -> None:
    speed, engine, mode = evaluate(
        apollo.own_class("apollo.canbus.Chassis")(),
        "speed_mps",
        "engine_started",
        "driving_mode == COMPLETE_MANUAL",
    )
    assert unknown(speed)  # Apollo declares NaN
    assert (engine, mode) == (False, True)


def test_repeated_fields_are_vectors_and_lists(apollo: Any) -> None:
    obstacles = apollo.own_class("apollo.perception.PerceptionObstacles")()
    for number, kind in enumerate((5, 3, 5)):
        each = obstacles.perception_obstacle.add(id=number, type=kind)
        each.position.x = 1.5 * number
    xs, kinds, count, nearest = evaluate(
        obstacles,
        "[o.position.x for o in perception_obstacle if o.type == VEHICLE]",
        "[o.type for o in perception_obstacle]",
        "len(perception_obstacle)",
        "min([o.position.x for o in perception_obstacle if o.type == o.PEDESTRIAN], default=inf)",
    )
    np.testing.assert_array_equal(xs, [0.0, 3.0])
    np.testing.assert_array_equal(kinds, [5, 3, 5])
    assert (count, nearest) == (3, 1.5)


def test_maps_are_lists_of_key_and_value(apollo: Any) -> None:
    # As in apollo.monitor.SystemStatus: what the components and the modules are like, by name.
    file = apollo.FileDescriptorProto(name="status.proto", package="demo", syntax="proto2")
    file.message_type.add(name="Part").field.add(name="status", number=1, type=5, label=1)
    status = file.message_type.add(name="Status")
    for number, (name, kind) in enumerate((("components", ".demo.Part"), ("loads", "")), 1):
        entry = status.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=9, label=1)
        entry.field.add(
            name="value", number=2, type=11 if kind else 1, label=1, type_name=kind or None
        )
        status.field.add(
            name=name, number=number, type=11, label=3, type_name=f".demo.Status.{entry.name}"
        )
    pool = Pool([file])
    message = pool.message_class("demo.Status")(loads={"planning": 0.5, "control": 0.25})
    for name, number in (("planning", 3), ("localization", 1)):
        message.components[name].status = number
    expressions = (
        "[c.key for c in components]",
        "[c.value.status for c in components if c.key == 'planning']",
        "components[0].value.status",
        "max([each.value for each in loads])",
        "has(loads) and has(components[0].value) and has(components[0].value.status)",
        "len(components)",
    )
    extract = compile_extractor(
        pool.message_type("demo.Status"),
        [parse_expression(expression) for expression in expressions],
    )
    names, planning, first, load, present, count = extract(message.SerializeToString())
    assert list(names) == ["localization", "planning"]
    assert list(planning) == [3]
    assert (first, load, present, count) == (1, 0.5, True, 2)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("speed", r"apollo\.canbus\.Chassis has no field 'speed'; did you mean 'speed_mps'"),
        ("signal", r"no value of its own.*turn_signal"),
        ("signal.turn", r"apollo\.common\.VehicleSignal has no field 'turn'"),
        ("has(speed_mps + 1)", r"has\(\) of a value that is no field"),
        ("driving_mode == GEAR_DRIFT", r"no field 'GEAR_DRIFT'; did you mean 'GEAR_DRIVE'"),
    ],
)
def test_what_is_not_there_is_named(expression: str, text: str) -> None:
    mtype = own_pool().message_type("apollo.canbus.Chassis")
    with pytest.raises(FieldError, match=text):
        compile_extractor(mtype, [parse_expression(expression)])


def test_bytes_that_do_not_fit_are_an_error() -> None:
    extract = compile_extractor(
        own_pool().message_type("apollo.canbus.Chassis"), [parse_expression("speed_mps")]
    )
    with pytest.raises(DecodeError, match=r"are no apollo\.canbus\.Chassis"):
        extract(b"\xff\xff\xff")


def test_has_of_a_ros_field_is_refused() -> None:
    from forewarn.messages.definitions import installed_message_type

    with pytest.raises(FieldError, match=r"all fields of .*Header are always set"):
        compile_extractor(
            installed_message_type("std_msgs/msg/Header"), [parse_expression("has(frame_id)")]
        )


def test_text_that_is_no_utf_8_is_text_all_the_same(apollo: Any) -> None:
    # A closed set of names in Apollo's maps, but a damaged record or a simulator may hold anything.
    lights = apollo.own_class("apollo.perception.TrafficLightDetection")()
    lights.traffic_light.add(id="abcd", color=1)
    data = lights.SerializeToString().replace(b"abcd", b"a\xffcd")
    extract = compile_extractor(
        own_pool().message_type("apollo.perception.TrafficLightDetection"),
        [parse_expression(item) for item in ("traffic_light[0].id", "traffic_light[0].id == 'x'")],
    )
    assert extract(data) == ["a\ufffdcd", False]


def test_what_a_layout_does_not_know_is_skipped(apollo: Any) -> None:
    car = apollo.chassis(3.0, driving_mode=1)
    # Field 2000, a text of three bytes, as a later version of Apollo might have it.
    data = car.SerializeToString() + b"\x82\x7d\x03new"
    extract = compile_extractor(
        own_pool().message_type("apollo.canbus.Chassis"),
        [parse_expression("speed_mps"), parse_expression("driving_mode == COMPLETE_AUTO_DRIVE")],
    )
    assert extract(data) == [3.0, True]
