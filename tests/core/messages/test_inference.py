"""Expressions are checked against the definition of the message before any message arrives."""

from __future__ import annotations

import pytest

from forewarn.errors import FieldError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import installed_message_type, message_type
from forewarn.messages.extraction import compile_extractor

ODOMETRY = installed_message_type("nav_msgs/msg/Odometry")
MARKERS = installed_message_type("visualization_msgs/msg/MarkerArray")


@pytest.mark.parametrize(
    ("source", "problem", "accepted"),
    [
        ("twist.linear.x", "TwistWithCovariance has no field 'linear'", "twist, covariance"),
        ("twst", "no field 'twst'; did you mean 'twist'?", "header, child_frame_id, pose, twist"),
        ("msg.speed", "Odometry has no field 'speed'", "header, child_frame_id, pose, twist"),
        ("header.stamp.secs", "no field 'secs'; did you mean 'sec'?", "sec, nanosec"),
        (
            "pose.pose",
            "a message of type geometry_msgs/msg/Pose is no value",
            "position, orientation",
        ),
        ("msg", "Odometry is no value", "header"),
        ("child_frame_id + 1", "arithmetic of text", "numbers"),
        ("-child_frame_id", "negation of text", "numbers"),
        ("child_frame_id > 1", "text compared with a number", "text with text"),
        ("child_frame_id in (1, 2)", "'in' between text and an array of numbers", "('a', 'b')"),
        ("1 in child_frame_id", "'in' between a number and text", ""),
        ("pose.pose.position.x.y", "a number has no field 'y'", ""),
        ("pose.covariance.x", "an array of numbers has no field 'x'", ""),
        ("pose.pose.position[0]", "cannot be indexed", "arrays and text"),
        ("pose.covariance['a']", "an index that is text", "whole number"),
        ("[x for x in header]", "'for' over a message", "an array"),
        ("[x for x in pose.covariance if child_frame_id]", "a filter of text", ""),
        (
            "[x for x in pose.covariance if pose.covariance > 1]",
            "a filter that is an array",
            "any(",
        ),
        ("min(header)", "min() of a message", "stamp, frame_id"),
        ("min(twist.twist.linear.x)", "min() of one number", "an array"),
        ("hypot(header.frame_id)", "hypot() of text", ""),
        ("len(twist.twist.linear.x)", "len() of a number", "arrays and text"),
        ("yaw(pose.pose.position)", "no field 'w'", "x, y, z"),
        ("yaw(twist.twist.linear.x)", "yaw() of a number", "x, y, z, w"),
        ("1 if header else 2", "a condition of a message", "stamp"),
        ("1 if true else child_frame_id", "a choice between a number and text", "one kind"),
        ("(1, child_frame_id)", "a list of different kinds", ""),
        ("[a for a, b in zip(pose.covariance, header)]", "zip() over a message", "arrays"),
        ("header and true", "'and' or 'or' of a message", ""),
        ("words(pose.covariance)", "words() of an array of numbers", "text or an array of text"),
        ("without(words(child_frame_id), child_frame_id)", "without() of text", "an array of text"),
        ("sum(words(child_frame_id))", "sum() of an array of text", "numbers"),
    ],
)
def test_misuse_of_a_field(source: str, problem: str, accepted: str) -> None:
    with pytest.raises(FieldError) as caught:
        compile_extractor(ODOMETRY, [parse_expression(source)])
    assert problem in str(caught.value)
    assert accepted in caught.value.accepted
    assert repr(source) in str(caught.value)
    assert str(caught.value).startswith("column ")


@pytest.mark.parametrize(
    ("source", "problem", "accepted"),
    [
        (
            "markers.id",
            "an array of visualization_msgs/msg/Marker has no",
            "[each.id for each in markers]",
        ),
        ("markers", "an array of visualization_msgs/msg/Marker is no value", "header, ns, id"),
        ("[m for m in markers]", "is no value", "header, ns, id"),
        ("[m.pose for m in markers]", "is no value", "position"),
        ("markers + 1", "arithmetic of an array of visualization_msgs/msg/Marker", "each.field"),
        ("[m.name for m in markers]", "Marker has no field 'name'", "CUBE"),
        ("markers[0].id == CUBE", "MarkerArray has no field 'CUBE'", "markers"),
    ],
)
def test_misuse_of_an_array_of_messages(source: str, problem: str, accepted: str) -> None:
    with pytest.raises(FieldError) as caught:
        compile_extractor(MARKERS, [parse_expression(source)])
    assert problem in str(caught.value)
    assert accepted in caught.value.accepted


def test_the_column_is_that_of_the_field() -> None:
    with pytest.raises(FieldError, match=r"column 11: .*no field 'z'"):
        compile_extractor(ODOMETRY, [parse_expression("1 + 2 + 3+pose.pose.z")])


def test_numbers_that_cannot_be_read_are_refused() -> None:
    text = "module a_msgs { module msg { struct A { long double big; double x; }; }; };"
    mtype = message_type("a_msgs/msg/A", text, "ros2idl")
    with pytest.raises(FieldError, match="float128"):
        compile_extractor(mtype, [parse_expression("big > 1")])
    compile_extractor(mtype, [parse_expression("x > 1")])


def test_functions_of_texts_give_lists_and_numbers() -> None:
    sources = (
        "len(without(words(name), identifiers(name[0])))",
        "max(order_strength(words(name), header.frame_id), default=0)",
        "len(taken(lower(name), words('arm')))",
        "len(taken(lower(name), words('arm'), name))",
    )
    joints = installed_message_type("sensor_msgs/msg/JointState")
    compile_extractor(joints, [parse_expression(source) for source in sources])
