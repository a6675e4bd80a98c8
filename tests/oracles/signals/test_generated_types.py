"""Messages that ROS 2 generates for actions and services: fields and bytes are those of rclpy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import installed_message_type
from forewarn.messages.extraction import compile_extractor
from forewarn.messages.schema import PLACEHOLDER

serialization = pytest.importorskip("rclpy.serialization", reason="rclpy is not installed")

from monitor_node.message_types import TypeNotInstalledError, message_class  # noqa: E402

SHARE = Path(sys.prefix) / "share"
OF_ACTION = (
    *("Goal", "Result", "Feedback", "FeedbackMessage"),
    *(f"{call}_{part}" for call in ("SendGoal", "GetResult") for part in ("Request", "Response")),
    *("SendGoal_Event", "GetResult_Event"),
)
OF_SERVICE = ("Request", "Response", "Event")


def names() -> list[str]:
    return sorted(
        f"{file.parts[-3]}/{kind}/{file.stem}_{part}"
        for kind, parts in (("action", OF_ACTION), ("srv", OF_SERVICE))
        for file in SHARE.glob(f"*/{kind}/*.{kind}")
        for part in parts
    )


@pytest.mark.parametrize("name", names())
def test_a_generated_message_has_the_fields_and_the_bytes_of_rclpy(name: str) -> None:
    mtype, kind = installed_message_type(name), message_class(name)
    fields = [field for field in mtype.struct.fields if field != PLACEHOLDER]
    assert fields == list(kind.get_fields_and_field_types())
    compile_extractor(mtype, [parse_expression("1")])(serialization.serialize_message(kind()))


def test_feedback_and_events_are_read() -> None:
    name = "lifecycle_msgs/srv/ChangeState_Event"
    event, request = (
        message_class(name)(),
        message_class("lifecycle_msgs/srv/ChangeState_Request")(),
    )
    request.transition.id, event.request, event.info.event_type = 3, [request], 1
    wanted = ["request[0].transition.id", "info.event_type == info.REQUEST_RECEIVED"]
    extract = compile_extractor(installed_message_type(name), list(map(parse_expression, wanted)))
    assert extract(serialization.serialize_message(event)) == [3, True]


@pytest.mark.parametrize(
    "name", ["lifecycle_msgs/srv/ChangeState_Feedback", "no_msgs/action/X_Event"]
)
def test_a_message_that_nobody_generates_is_named(name: str) -> None:
    with pytest.raises(TypeNotInstalledError, match=r"no message ChangeState_Feedback|no_msgs"):
        message_class(name, topic="/x")
