"""What planning is told, and when."""

from __future__ import annotations

import math
from typing import Any

import pytest

from apollo_bridge.commander import Command, Commander
from apollo_bridge.commands import WAYS
from apollo_bridge.layouts import own_class

NOW = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
STOP, PULL_OVER, RESUME = 4, 3, 5
PAD, PLANNING = "/apollo/planning/pad", "/apollo/planning/command"


def updated(
    commander: Commander, action: str, active: bool, now_ns: int, limit: float = math.nan
) -> list[Command]:
    return commander.update(action, active, limit, now_ns)


def pad(commands: list[Command]) -> Any:
    (command,) = commands
    assert command.target == PAD and command.data is not None
    return own_class("apollo.planning.PadMessage").FromString(command.data)


def planning(command: Command) -> Any:
    assert command.target == PLANNING and command.data is not None
    return own_class("apollo.planning.PlanningCommand").FromString(command.data)


def route(target_speed: float | None = None, **fields: Any) -> bytes:
    message = own_class("apollo.planning.PlanningCommand")(
        command_id=17, lane_follow_command=b"a route", is_motion_command=True, **fields
    )
    message.header.module_name, message.header.sequence_num = "external_command", 3
    if target_speed is not None:
        message.target_speed = target_speed
    return bytes(message.SerializeToString())


def limiting(*routes: bytes) -> Commander:
    commander = Commander(WAYS["pad"], limits=True)
    assert commander.limits is not None
    for one_route in routes:
        commander.limits.heard(one_route)
    return commander


def speed_command(message: Any) -> Any:
    assert (
        message.custom_command.type_url
        == "type.googleapis.com/apollo.external_command.SpeedCommand"
    )
    kind = own_class("apollo.external_command.SpeedCommand")
    return kind.FromString(message.custom_command.value)


def test_a_stop_is_written_once_repeated_and_ended() -> None:
    commander = Commander(WAYS["pad"])
    assert updated(commander, "NONE", False, NOW) == []
    first = pad(updated(commander, "EMERGENCY_STOP", True, NOW))
    assert first.action == STOP
    assert commander.in_force == {PAD: "STOP"}
    assert updated(commander, "EMERGENCY_STOP", True, NOW + SECOND // 2) == []
    # The same for Apollo.
    assert updated(commander, "COMFORTABLE_STOP", True, NOW + SECOND // 2) == []
    second = pad(updated(commander, "EMERGENCY_STOP", True, NOW + SECOND))
    assert second.action == STOP
    assert second.header != first.header
    assert second.header.sequence_num == first.header.sequence_num + 1
    assert pad(updated(commander, "NONE", False, NOW + 2 * SECOND)).action == RESUME
    assert updated(commander, "NONE", False, NOW + 9 * SECOND) == []
    assert commander.in_force == {}


@pytest.mark.parametrize("action", ["", "TELEPORT", "NONE"])
def test_what_is_not_understood_is_a_stop_and_ends_none(action: str) -> None:
    commander = Commander(WAYS["pad"])
    assert pad(updated(commander, action, True, NOW)).action == STOP
    assert updated(commander, "EMERGENCY_STOP", True, NOW + 1) == []
    assert updated(commander, action, True, NOW + 2) == []


def test_a_clock_that_is_set_back_ends_no_repetition() -> None:
    commander = Commander(WAYS["pad"])
    updated(commander, "EMERGENCY_STOP", True, NOW)
    assert pad(updated(commander, "EMERGENCY_STOP", True, NOW - 3600 * SECOND)).action == STOP
    assert updated(commander, "EMERGENCY_STOP", True, NOW - 3599 * SECOND - 1) == []
    assert pad(updated(commander, "EMERGENCY_STOP", True, NOW - 3599 * SECOND)).action == STOP


def test_a_stop_during_a_pull_over_says_that_it_does_not_pre_empt() -> None:
    commander = Commander(WAYS["pad"])
    assert pad(updated(commander, "PULL_OVER", True, NOW)).action == PULL_OVER
    stop = updated(commander, "EMERGENCY_STOP", True, NOW)
    assert pad(stop).action == STOP
    assert "cannot end a PULL_OVER" in stop[0].remark
    # It is said as long as it holds, and if the first attempt did not get through.
    again = updated(commander, "EMERGENCY_STOP", True, NOW + SECOND)
    commander.not_written(PAD)
    unwritten = updated(commander, "EMERGENCY_STOP", True, NOW + SECOND + 1)
    assert again[0].remark == unwritten[0].remark == stop[0].remark
    back = updated(commander, "PULL_OVER", True, NOW)
    assert back[0].remark == ""
    assert updated(commander, "EMERGENCY_STOP", True, NOW)[0].remark == stop[0].remark
    assert pad(updated(commander, "NONE", False, NOW)).action == RESUME
    assert updated(commander, "EMERGENCY_STOP", True, NOW)[0].remark == ""


def test_what_was_not_written_is_written_again_at_once() -> None:
    commander = Commander(WAYS["pad"])
    updated(commander, "PULL_OVER", True, NOW)
    commander.not_written(PAD)
    assert pad(updated(commander, "PULL_OVER", True, NOW + 1)).action == PULL_OVER
    updated(commander, "NONE", False, NOW + 2)
    commander.not_written(PAD)
    assert pad(updated(commander, "NONE", False, NOW + 3)).action == RESUME
    assert updated(commander, "NONE", False, NOW + 4) == []


def test_action_commands_have_their_own_numbers() -> None:
    commander = Commander(WAYS["action"])
    parse = own_class("apollo.external_command.ActionCommand").FromString
    (stop,) = updated(commander, "EMERGENCY_STOP", True, NOW)
    (start,) = updated(commander, "NONE", False, NOW)
    assert stop.target == "/apollo/external_command/action"
    assert (parse(stop.data).command, parse(start.data).command) == (5, 6)
    assert parse(start.data).command_id == parse(stop.data).command_id + 1


def test_a_limit_is_the_route_that_planning_has_with_a_lower_speed() -> None:
    commander = limiting(route(target_speed=12.0))
    (command,) = updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
    message = planning(command)
    assert message.target_speed == 4.0
    # Not a new motion, for that would plan the route anew; everything else is as it was.
    assert message.is_motion_command is False
    assert (message.command_id, message.lane_follow_command) == (17, b"a route")
    assert message.header.module_name == "forewarn"
    assert message.header.sequence_num > 1_000_000
    assert speed_command(message).target_speed == 4.0
    assert commander.in_force == {PLANNING: 4.0}


def test_the_end_of_a_limit_restores_the_speed_of_the_route() -> None:
    for before in (12.0, None):
        commander = limiting(route(target_speed=before))
        (limit,) = updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
        (end,) = updated(commander, "NONE", False, NOW + 1)
        message = planning(end)
        assert message.HasField("target_speed") is (before is not None)
        assert message.target_speed == (before or 0.0)
        assert speed_command(message).is_restore_target_speed is True
        assert message.header.sequence_num == planning(limit).header.sequence_num + 1
        assert commander.in_force == {}


def test_a_limit_never_raises_the_speed() -> None:
    commander = limiting(route(target_speed=2.5))
    (command,) = updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
    assert planning(command).target_speed == 2.5
    # None at all for planning.
    commander = limiting(route(target_speed=0.0))
    (command,) = updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
    assert planning(command).target_speed == 4.0


def test_ends_are_written_again_if_asked_or_not_written() -> None:
    commander = limiting(route(target_speed=12.0))
    for action, target in (("LIMIT_SPEED", PLANNING), ("EMERGENCY_STOP", PAD)):
        updated(commander, action, True, NOW, 4.0)
        (end,) = updated(commander, "NONE", False, NOW)
        assert updated(commander, "NONE", False, NOW) == []
        commander.not_written(target)
        (again,) = updated(commander, "NONE", False, NOW)
        assert (again.name, again.target) == (end.name, target)
        commander.repeat_end(target, 2)
        assert updated(commander, "NONE", False, NOW + SECOND // 2) == []
        for number in range(1, 5):
            written = updated(commander, "NONE", False, NOW + number * SECOND)
            assert [item.name for item in written] == ([end.name] if number <= 2 else [])


def test_a_new_route_gets_the_limit_at_once() -> None:
    commander = limiting(route())
    updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
    assert updated(commander, "LIMIT_SPEED", True, NOW + 1, 4.0) == []
    assert commander.limits is not None
    newer = own_class("apollo.planning.PlanningCommand")(
        lane_follow_command=b"another", is_motion_command=True
    )
    commander.limits.heard(newer.SerializeToString())
    (command,) = updated(commander, "LIMIT_SPEED", True, NOW + 2, 4.0)
    message = planning(command)
    assert (message.lane_follow_command, message.target_speed) == (b"another", 4.0)


def test_our_own_commands_and_those_of_no_motion_are_no_routes() -> None:
    commander = limiting(route(target_speed=12.0))
    (limit,) = updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
    assert commander.limits is not None and limit.data is not None
    commander.limits.heard(limit.data)
    commander.limits.heard(route(target_speed=1.0).replace(b"\x28\x01", b"\x28\x00"))
    commander.limits.heard(b"\xff\xff damaged")
    assert updated(commander, "LIMIT_SPEED", True, NOW + 1, 4.0) == []
    (end,) = updated(commander, "NONE", False, NOW + 2)
    assert planning(end).target_speed == 12.0


def test_without_a_route_a_limit_waits_and_says_so() -> None:
    commander = limiting()
    (command,) = updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
    assert command.data is None and "route that is sent while the bridge runs" in command.remark
    assert commander.in_force == {}
    commander.not_written(PLANNING)
    assert commander.limits is not None
    commander.limits.heard(route())
    (command,) = updated(commander, "LIMIT_SPEED", True, NOW + 1, 4.0)
    assert planning(command).target_speed == 4.0
    # One that never got through needs no end.
    waiting = limiting()
    updated(waiting, "LIMIT_SPEED", True, NOW, 4.0)
    assert updated(waiting, "NONE", False, NOW + 1) == []


def test_a_route_that_was_cleared_is_not_brought_back() -> None:
    commander = limiting(route())
    updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
    assert commander.limits is not None
    message = own_class("apollo.planning.PadMessage")
    commander.limits.heard_pad(message(action=STOP).SerializeToString())
    assert commander.in_force == {PLANNING: 4.0}
    commander.limits.heard_pad(message(action=6).SerializeToString())
    assert commander.in_force == {}
    (command,) = updated(commander, "LIMIT_SPEED", True, NOW + SECOND, 4.0)
    assert command.data is None
    # There is nothing to take back either; a new route has its own speed.
    assert updated(commander, "NONE", False, NOW + 2 * SECOND) == []


def test_parking_is_not_ended_by_a_limit() -> None:
    commander = limiting(route(parking_command=b"spot 3"))
    (command,) = updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
    assert command.data is None and "would end the parking" in command.remark


def test_a_limit_after_a_stop_replaces_the_one_before() -> None:
    commander = limiting(route(target_speed=12.0))
    updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
    updated(commander, "EMERGENCY_STOP", True, NOW + 1)
    resume, limit = updated(commander, "LIMIT_SPEED", True, NOW + 2, 3.0)
    assert pad([resume]).action == RESUME
    assert planning(limit).target_speed == 3.0


@pytest.mark.parametrize(
    ("way_to_stop", "number"),
    [(["PULL_OVER"], PULL_OVER), (["EMERGENCY_STOP"], STOP), (["PULL_OVER", "STOP IT"], STOP)],
)
def test_a_stop_that_may_be_refused_leaves_the_limit(way_to_stop: list[str], number: int) -> None:
    commander = limiting(route(target_speed=12.0))
    updated(commander, "LIMIT_SPEED", True, NOW, 4.0)
    for action in way_to_stop:
        stop = updated(commander, action, True, NOW + 1)
    assert pad(stop).action == number
    _, again = updated(commander, way_to_stop[-1], True, NOW + 2 * SECOND)
    assert planning(again).target_speed == 4.0
    resume, end = updated(commander, "NONE", False, NOW + 3 * SECOND)
    assert pad([resume]).action == RESUME
    assert planning(end).target_speed == 12.0


@pytest.mark.parametrize("limit", [math.nan, math.inf, 0.0, 0.05, -1.0])
def test_a_limit_that_leaves_no_speed_is_a_stop(limit: float) -> None:
    # Planning takes a target speed of 0 for none, and drives at its default.
    commander = limiting(route())
    assert pad(updated(commander, "LIMIT_SPEED", True, NOW, limit)).action == STOP
    resume, slow = updated(commander, "LIMIT_SPEED", True, NOW, 1.0)
    assert pad([resume]).action == RESUME
    assert planning(slow).target_speed == 1.0


def test_what_a_former_life_left_is_ended_by_the_next() -> None:
    commander = limiting(route())
    commander.recall({PAD: "STOP", PLANNING: 4.0})
    assert commander.described == "STOP and a limit of 4 m/s"
    resume, end = updated(commander, "NONE", False, NOW)
    assert pad([resume]).action == RESUME
    assert speed_command(planning(end)).is_restore_target_speed is True
    # Nonsense, and what this bridge cannot give, is left alone.
    other = Commander(WAYS["pad"])
    other.recall({PAD: "RESUME_CRUISE", PLANNING: 4.0, "/x": "STOP"})
    assert updated(other, "NONE", False, NOW) == []
