"""Transforms are kept, found, interpolated and refused as tf2's BufferCore does it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.signals import frame_tree
from forewarn.signals.frame_tree import FrameTree, NoTransformError, Pose, Transform

CASES = Path(__file__).with_name("tf2_cases.txt")
SECOND = 1_000_000_000
UNTURNED = (0.0, 0.0, 0.0, 1.0)


def buffers() -> Iterator[list[list[str]]]:
    lines = CASES.read_text(encoding="utf-8").splitlines()
    for part in "\n".join(line for line in lines if line[0] != "#").split("C\n")[1:]:
        yield [line.split() for line in part.splitlines()]


def found(tree: FrameTree, of: str, inside: str) -> Pose | str:
    try:
        return tree.lookup(of, inside)
    except NoTransformError as error:
        return str(error)


@pytest.mark.parametrize("case", list(buffers()))
def test_every_lookup_is_what_tf2_answers(case: list[list[str]]) -> None:
    tree, now = FrameTree(), Pose((0.0, 0.0, 0.0), UNTURNED, 0, None)
    answer: Pose | str = now
    for kind, *fields in case:
        if kind == "T":
            static, seconds, nanoseconds, parent, child, *numbers = fields
            x, y, z, *turned = map(float, numbers)
            transform = Transform(parent, (x, y, z), tuple(turned), 0)
            stamp_ns = int(seconds) * SECOND + int(nanoseconds)
            tree.insert(stamp_ns, transform, child, static=static == "1")
        elif kind == "Q":
            inside, of = fields
            answer = found(tree, of, inside)
        elif fields[0] in ("LOOKUP", "CONNECTIVITY"):
            assert isinstance(answer, str)
            assert "extrapolated" not in answer
        elif fields[0] == "EXTRAPOLATION":
            assert isinstance(answer, str)
            assert "extrapolated" in answer
        else:
            assert isinstance(answer, Pose), answer
            assert answer.stamp_ns == int(fields[0]) * SECOND + int(fields[1])
            expected = [float(number) for number in fields[2:]]
            assert answer.translation == pytest.approx(expected[:3], abs=1e-9)
            # A quaternion and its negative are the same rotation.
            size = math.hypot(*answer.rotation)
            along = sum(a * b for a, b in zip(answer.rotation, expected[3:], strict=True))
            assert abs(along) / size == pytest.approx(1.0, abs=1e-11)


def placed(parent: str, x: float = 0.0, arrival_ns: int = 0) -> Transform:
    return Transform(parent, (x, 0.0, 0.0), UNTURNED, arrival_ns)


def test_a_pose_is_as_old_as_the_link_that_has_been_silent_for_the_longest() -> None:
    tree = FrameTree()
    tree.insert(5, placed("map", 1.0, 100), "odom", static=False)
    tree.insert(5, placed("odom", 2.0, 101), "base_link", static=False)
    tree.insert(5, placed("base_link", 3.0, 7), "lidar", static=True)
    tree.insert(9, placed("odom", 4.0, 300), "base_link", static=False)
    tree.insert(5, placed("base_link", 0.0, 50), "arm", static=False)  # not on the way
    pose = tree.lookup("lidar", "map")
    assert (pose.translation[0], pose.stamp_ns, pose.arrival_ns) == (6.0, 5, 100)
    assert tree.lookup("lidar", "base_link").arrival_ns is None
    tree.insert(5, placed("map", 1.0, 400), "odom", static=False)  # the same: no news
    assert tree.lookup("lidar", "map").arrival_ns == 100
    tree.insert(8, placed("map", 1.0, 400), "odom", static=False)
    pose = tree.lookup("lidar", "map")
    assert (pose.translation[0], pose.stamp_ns, pose.arrival_ns) == (7.5, 8, 300)


@pytest.mark.parametrize(
    ("of", "inside", "said"),
    [
        ("lidar", "map", "nothing tells of a frame 'lidar', only of 'arm', 'base', 'map', 'odom'"),
        ("arm", "map", "'arm' and 'map' are not connected: the tree of 'arm' ends at 'base'"),
    ],
)
def test_why_there_is_no_pose_is_said(of: str, inside: str, said: str) -> None:
    tree = FrameTree()
    tree.insert(1, placed("map"), "odom", static=False)
    tree.insert(1, placed("base"), "arm", static=False)
    assert said in str(found(tree, of, inside))


def test_nothing_is_extrapolated() -> None:
    tree = FrameTree()
    tree.insert(1, placed("map"), "odom", static=False)
    tree.insert(2, placed("odom"), "base", static=False)
    assert "'base' in 'odom' would be extrapolated" in str(found(tree, "base", "map"))
    tree.insert(3, placed("map"), "odom", static=False)
    assert isinstance(found(tree, "base", "map"), Pose)


@pytest.mark.parametrize(
    ("transform", "child", "said"),
    [
        (placed("map"), "", "has no name"),
        (placed("/map"), "map", "its own parent"),
        (placed("map", math.nan), "odom", "NaN"),
        (Transform("map", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), 0), "odom", "no rotation"),
        (Transform("map", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, math.inf), 0), "odom", "no rotation"),
    ],
)
def test_what_is_no_transform_is_refused(transform: Transform, child: str, said: str) -> None:
    tree = FrameTree()
    assert said in tree.insert(0, transform, child, static=False)
    assert not tree.links


def test_what_is_too_late_is_refused() -> None:
    tree = FrameTree()
    assert tree.insert(20 * SECOND, placed("map"), "odom", static=False) == ""
    assert tree.insert(10 * SECOND, placed("map"), "odom", static=False) == ""
    assert "10 s behind" in tree.insert(10 * SECOND - 1, placed("map"), "odom", static=False)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_tree, "MOST_FRAMES", 5)
    monkeypatch.setattr(frame_tree, "MOST_TRANSFORMS", 50)
    tree = FrameTree()
    tree.insert(0, placed("base"), "lidar", static=True)
    for number in range(400):
        tree.insert(number, placed("map", number), f"object_{number // 40}", static=False)
        assert tree.kept == sum(len(link.stamps) for link in tree.links.values()) <= 55
    assert list(tree.links) == ["lidar", *(f"object_{n}" for n in range(6, 10))]
    assert tree.lookup("object_9", "map").translation[0] == 399
    assert tree.lookup("lidar", "base").stamp_ns == 0
