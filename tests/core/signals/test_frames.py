"""Poses of frames as signals: ages, ticks, failures, and that only arrivals decide."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import Stores, get_typestore

from forewarn.config.signals import FrameSpec
from forewarn.errors import FieldError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import installed_message_type
from forewarn.signals.clock_kinds import Grid
from forewarn.signals.feed import Feed
from forewarn.signals.sources import SourceSignal

STORE = get_typestore(Stores.ROS2_HUMBLE)
TYPE = "tf2_msgs/msg/TFMessage"
DEFINITION = installed_message_type(TYPE)
TICK = 100_000_000
TOPICS = {"/tf": DEFINITION, "/tf_static": DEFINITION}


def tf(*transforms: tuple[float, str, str, float]) -> bytes:
    """Return a message of (stamp in s, parent, child, x)."""
    types = STORE.types
    vector, turned = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"]
    found = []
    for stamp, parent, child, x in transforms:
        time = types["builtin_interfaces/msg/Time"](int(stamp), round(stamp % 1 * 1e9))
        found.append(
            types["geometry_msgs/msg/TransformStamped"](
                types["std_msgs/msg/Header"](time, parent),
                child,
                types["geometry_msgs/msg/Transform"](vector(x, 0.0, 0.0), turned(0, 0, 0, 1)),
            )
        )
    return bytes(STORE.serialize_cdr(types[TYPE](found), TYPE))


def pose(name: str, of: str, inside: str, value: str = "translation.x", **more: Any) -> Any:
    frame = FrameSpec.model_validate({"of": of, "in": inside})
    expression = parse_expression(value)
    return SourceSignal(name, "/tf", TYPE, expression, 3 * TICK, None, frame=frame, **more)


def feed(*sources: SourceSignal, **options: Any) -> Feed:
    return Feed(sources, TOPICS, Grid(10.0), **options)


def test_a_pose_is_that_of_all_transforms_that_arrived_until_the_tick() -> None:
    inputs = feed(pose("x", "base", "map"), pose("h", "base", "map", "yaw(rotation)"))
    assert inputs.topics == TOPICS.keys()
    inputs.accept("/tf_static", 0, tf((0.0, "foot", "base", 1.0)))
    inputs.accept("/tf", 0, tf((1.0, "map", "odom", 10.0)))
    inputs.accept("/tf", 1, tf((1.0, "odom", "foot", 100.0)))
    inputs.accept("/tf", TICK + 1, tf((2.0, "odom", "foot", 300.0), (1.5, "map", "odom", 20.0)))
    assert inputs.snapshot(0).values == (None, None)  # the foot is not known yet
    assert inputs.snapshot(1).values == (111.0, 0.0)
    later = inputs.snapshot(2)  # half way between the transforms of the foot
    assert (later.values, later.stale, later.failures) == ((221.0, 0.0), (), ())
    inputs.reset()
    assert inputs.snapshot(3).values == (None, None)


def test_a_pose_is_stale_as_soon_as_one_link_on_the_way_is() -> None:
    inputs = feed(pose("x", "base", "map"), pose("own", "base", "odom"))
    inputs.accept("/tf", 0, tf((1.0, "map", "odom", 10.0)))
    for tick in range(8):
        inputs.accept("/tf", tick * TICK, tf((1.0 + tick, "odom", "base", float(tick))))
        snapshot = inputs.snapshot(tick)
        assert snapshot.values[1] == tick
        assert snapshot.values[0] == (10.0 if tick <= 3 else None)
        assert snapshot.stale == ((("x", tick * TICK),) if tick > 3 else ())


def test_static_transforms_never_grow_old() -> None:
    inputs = feed(pose("x", "lidar", "base"))
    inputs.accept("/tf_static", 0, tf((0.0, "base", "lidar", 1.5)))
    assert inputs.snapshot(1000).values == (1.5,)
    assert inputs.ages(1000) == [0]


def test_why_there_is_no_pose_is_a_failure_of_every_tick() -> None:
    inputs = feed(pose("x", "base", "map"))
    assert inputs.snapshot(0).failures == ()  # nothing has come at all: it is stale
    inputs.accept("/tf", TICK, tf((1.0, "odom", "base", 1.0)))
    for tick in (1, 2):
        ((where, reason),) = inputs.snapshot(tick).failures
        assert where == "base in map"
        assert reason == "nothing tells of a frame 'map', only of 'base', 'odom'"


def test_what_cannot_be_read_or_is_refused_is_told_once_at_its_tick() -> None:
    inputs = feed(pose("x", "base", "odom"))
    inputs.accept("/tf", TICK, tf((20.0, "odom", "base", 1.0)))
    inputs.accept("/tf", 2 * TICK, b"\0\1\0\0\xff\xff\xff\xff")
    inputs.accept("/tf", 2 * TICK, tf((1.0, "odom", "base", 2.0), (1.0, "odom", "base", 3.0)))
    assert inputs.snapshot(1).failures == ()
    failures = inputs.snapshot(2).failures
    assert {failure.where for failure in failures} == {"/tf"}
    assert any("8 bytes" in failure.reason for failure in failures)
    assert sum("10 s behind" in failure.reason for failure in failures) == 1
    assert inputs.snapshot(3)[1:4] == ((1.0,), (), ())
    assert (inputs.counters.decoded, inputs.counters.undecodable) == (2, 1)


def test_stamps_count_with_stamps() -> None:
    inputs = feed(pose("x", "base", "map"), stamped=True, settle_ns=TICK)
    inputs.accept("/tf_static", 10 * TICK, tf((0.0, "base", "lidar", 0.0)))
    inputs.accept("/tf", 10 * TICK, tf((1.0, "map", "odom", 10.0), (1.2, "map", "odom", 30.0)))
    inputs.accept("/tf", 10 * TICK, tf((0.9, "odom", "base", 1.0), (1.1, "odom", "base", 3.0)))
    assert inputs.snapshot(10).values == (None,)  # odom is not known as early as the base
    assert inputs.snapshot(11).values == (12.0,)
    ahead = inputs.snapshot(12)
    assert ahead.values == (23.0,)  # at 1.1 s, the latest common time
    assert inputs.ages(12) == [TICK]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_in_which_topics_are_taken_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    arrived = []
    for number in range(200):
        child = rng.choice(["odom", "foot", "base"])
        parent = {"odom": "map", "foot": "odom", "base": "foot"}[child]
        static = child == "base" or rng.random() < 0.03
        stamp = 1 + number / 20 - rng.random()
        message = tf((stamp, parent, child, rng.random()))
        arrived.append((rng.randrange(10 * TICK), "/tf_static" if static else "/tf", message))
    arrived.sort(key=lambda one: one[0])
    grid, signals = Grid(10.0), [pose("x", "base", "map"), pose("y", "odom", "map")]
    merged, apart = feed(*signals), feed(*signals)
    for tick in range(11):
        due = [one for one in arrived if grid.tick_at_or_after(one[0]) == tick]
        for time_ns, topic, message in due:
            merged.accept(topic, time_ns, message)
        for wanted in ("/tf", "/tf_static"):
            for time_ns, topic, message in due:
                if topic == wanted:
                    apart.accept(topic, time_ns, message)
        assert merged.snapshot(tick) == apart.snapshot(tick)


def test_memory_stays_flat_while_nobody_evaluates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forewarn.signals.frames.MOST_PENDING", 100)
    inputs = feed(pose("x", "base", "odom"))
    for number in range(1000):
        inputs.accept("/tf", number * TICK, tf((number / 10, "odom", "base", float(number))))
    assert len(inputs._frames[0]._pending) == 100
    assert inputs.snapshot(999).values == (999.0,)


def test_a_value_that_no_transform_has_is_an_error_at_load() -> None:
    with pytest.raises(FieldError, match=r"signals\.x\.value.*position.*translation, rotation"):
        feed(pose("x", "base", "odom", "position.x"))


def test_poses_stand_beside_messages_of_the_same_topic() -> None:
    count = SourceSignal("n", "/tf", TYPE, parse_expression("len(transforms)"), TICK, None)
    inputs = feed(pose("x", "base", "odom"), count)
    inputs.accept("/tf", 0, tf((1.0, "odom", "base", 1.0), (1.0, "odom", "arm", 1.0)))
    assert inputs.snapshot(0).values == (1.0, 2)
    assert np.isfinite(inputs.ages(0)).all()
