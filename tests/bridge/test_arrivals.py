"""Disorder and loss, as Cyber's readers bring them, in numbers."""

from __future__ import annotations

import random
from typing import Any

from apollo_bridge.derivation import Sorter, Stamp, stamp_reader
from apollo_bridge.layouts import own_class, own_pool
from apollo_bridge.transport import Arrival

CHANNEL = "/apollo/canbus/chassis"


def message(number: int, seconds: float) -> Arrival:
    chassis = own_class("apollo.canbus.Chassis")(speed_mps=1.0)
    chassis.header.sequence_num, chassis.header.timestamp_sec = number, seconds
    return Arrival(CHANNEL, round(seconds * 1e9), chassis.SerializeToString())


def sorter() -> Sorter:
    return Sorter(stamp_reader(own_pool(), "apollo.canbus.Chassis"))


def numbers(taken: list[Arrival]) -> list[int]:
    parse = own_class("apollo.canbus.Chassis").FromString
    return [parse(item.data).header.sequence_num for item in taken]


def test_the_header_is_found_wherever_the_message_has_it() -> None:
    for name in ("apollo.canbus.Chassis", "apollo.perception.PerceptionObstacles"):
        built: Any = own_class(name)()
        built.header.timestamp_sec, built.header.sequence_num = 12.5, 7
        assert stamp_reader(own_pool(), name)(built.SerializeToString()) == Stamp(12.5, 7)
    assert stamp_reader(own_pool(), "apollo.localization.Pose")(b"") == Stamp(0.0, -1)


def test_a_batch_is_put_in_order() -> None:
    batch = [message(k, 100 + k / 100) for k in range(1, 50)]
    random.Random(1).shuffle(batch)
    found = sorter()
    assert numbers(found.take(batch)) == list(range(1, 50))
    assert (found.traffic.received, found.traffic.late, found.traffic.lost) == (49, 0, 0)


def test_what_comes_after_a_younger_one_is_dropped_and_not_lost() -> None:
    found = sorter()
    for number in (1, 2, 5, 3, 6):
        taken = found.take([message(number, 100 + number / 100)])
        assert numbers(taken) == ([] if number == 3 else [number])
    # 3 and 4 were missed when 5 came; 3 came late, 4 never.
    assert (found.traffic.late, found.traffic.lost) == (1, 1)


def test_a_restarted_publisher_begins_anew() -> None:
    found = sorter()
    found.take([message(number, 100 + number) for number in (500, 501, 502)])
    taken = found.take([message(1, 700.0), message(2, 700.1)])
    assert numbers(taken) == [1, 2]
    assert (found.traffic.restarts, found.traffic.late, found.traffic.lost) == (1, 0, 0)
    # A clock that was set back does not silence the channel.
    assert numbers(found.take([message(1, 600.0)])) == [1]
    assert found.traffic.restarts == 2


def test_messages_without_numbers_are_taken_as_they_come() -> None:
    found = sorter()
    bare = Arrival(CHANNEL, 5, own_class("apollo.canbus.Chassis")().SerializeToString())
    damaged = Arrival(CHANNEL, 6, b"\xff\xff")
    assert found.take([bare, damaged, bare]) == [bare, damaged, bare]
    assert found.traffic.lost == 0
