"""Distances from the robot, where others are given in the frame of the robot's own pose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from forewarn.cli.init.catalogue import (
    OWN_FRAME,
    OWN_POSE,
    POSITIONS,
    Positions,
    Proposal,
    Role,
)
from forewarn.errors import DecodeError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.interface import Recording, Sample
from forewarn.recordings.traces import JsonTrace

MAX_SAMPLES = 2000
MAX_LINES = 50
STANDING = frozenset(
    ["map", "odom", "world", "earth", "utm", "enu", "local_map", "viewer", "base_map"]
)
"""Frames that do not move with the robot."""
OWN_NAMES = ("ego_", "own_", "robot_", "self_", "vehicle_", "ego_pose_position_", "pose_", "")
"""What the robot's own place is called in traces, before x and y."""


class Candidate(NamedTuple):
    """A proposal that fits a topic's message type, a name in a trace, or a derived signal."""

    topic: str
    msgtype: str
    proposal: Proposal


def with_relative_distances(
    recordings: Sequence[Recording], candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Return `candidates` with distances between the robot and others, and no other distances.

    The distance from the frame's origin makes sense only where that origin is the robot. Where
    others and the robot's odometry name one frame, it is replaced by their positions, the robot's
    own, and the distance between them; in another frame that stands still it is left out.
    """
    if isinstance(recordings[0], JsonTrace):
        return [*candidates, *_of_trace(recordings, candidates)]
    own = next((candidate for candidate in candidates if candidate.msgtype == OWN_POSE), None)
    wanted = {c.topic: POSITIONS[c.msgtype].frame for c in candidates if c.msgtype in POSITIONS}
    if not wanted:
        return list(candidates)
    if own is not None:
        wanted[own.topic] = OWN_FRAME
    frames = _frames(recordings, wanted)
    shared = "" if own is None else frames.get(own.topic, "")
    found: list[Candidate] = []
    derived: Candidate | None = None
    for candidate in candidates:
        positions = POSITIONS.get(candidate.msgtype)
        frame = frames.get(candidate.topic, "")
        if positions is None or candidate.proposal.name != positions.nearest:
            found.append(candidate)
        elif frame and frame == shared and derived is None:
            found += _lists(candidate, positions)
            derived = _distance(
                positions.name, "ego_x", "ego_y", f"both in the frame {frame}; between centres"
            )
        elif frame and frame != shared and frame.strip("/") not in STANDING:
            found.append(candidate)
    if derived is None or own is None:
        return found
    first = next(i for i, candidate in enumerate(found) if candidate is own)
    return [*found[: first + 1], *_own(own), *found[first + 1 :], derived]


def _distance(name: str, x: str, y: str, remark: str) -> Candidate:
    nearest = f"min(hypot({name}_x - {x}, {name}_y - {y}), default=inf)"
    return Candidate("", "", Proposal(f"nearest_{name}", nearest, "m", remark, Role.DISTANCE))


def _of_trace(
    recordings: Sequence[Recording], candidates: Sequence[Candidate]
) -> Iterator[Candidate]:
    """Yield distances from the vehicle to lists of objects in a trace: ``obj_x``, ``obj_y``."""
    names = {candidate.proposal.name for candidate in candidates}
    lists: set[str] = set()
    numbers: set[str] = set()
    for recording in recordings:
        for sample in islice(recording.read(), MAX_LINES):
            assert isinstance(sample.data, Mapping)
            for name, value in sample.data.items():
                kinds = lists if isinstance(value, (list, tuple)) else numbers
                if not isinstance(value, str):
                    kinds.add(name)
    own = next(
        (o for o in OWN_NAMES if {f"{o}x", f"{o}y"} <= names & (numbers - lists)),
        None,
    )
    if own is None:
        return
    for name in sorted(name[:-2] for name in lists & names if name.endswith("_x")):
        if f"{name}_y" in lists & names and f"nearest_{name}" not in names:
            remark = "between centres, if both are in one frame"
            yield _distance(name, f"{own}x", f"{own}y", remark)


def _own(odometry: Candidate) -> list[Candidate]:
    return [
        odometry._replace(proposal=Proposal(f"ego_{axis}", f"pose.pose.position.{axis}", "m"))
        for axis in ("x", "y")
    ]


def _lists(others: Candidate, positions: Positions) -> list[Candidate]:
    return [
        others._replace(proposal=Proposal(f"{positions.name}_{axis}", value, "m"))
        for axis, value in (("x", positions.x), ("y", positions.y))
    ]


def _frames(recordings: Sequence[Recording], wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the first frame that each of the topics names."""
    found: dict[str, str] = {}
    for recording in recordings:
        types = {t: recording.topics[t].message_type for t in wanted if t in recording.topics}
        for sample in islice(recording.read(types.keys() - found.keys()), MAX_SAMPLES):
            mtype = types[sample.topic]
            if sample.topic not in found and mtype is not None:
                frame = _frame(sample, mtype, wanted[sample.topic])
                if frame:
                    found[sample.topic] = frame
            if len(found) == len(wanted):
                return found
    return found


def _frame(sample: Sample, mtype: MessageType, expression: str) -> str:
    assert isinstance(sample.data, (bytes, memoryview))
    try:
        (value,) = compile_extractor(mtype, [parse_expression(expression)])(sample.data)
    except DecodeError:
        return ""
    return value if isinstance(value, str) else ""
