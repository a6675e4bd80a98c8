"""Distances from the robot, where others are given in the frame of the robot's own pose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forewarn.cli.drafting.catalogue import (
    OWN_FRAME,
    OWN_POSE,
    POSITIONS,
    Positions,
    Proposal,
    Role,
)
from forewarn.errors import DecodeError
from forewarn.expressions import parse_expression
from forewarn.messages import MessageType, compile_extractor
from forewarn.recordings import Recording, Sample

MAX_SAMPLES = 2000


class Candidate(NamedTuple):
    """A proposal that fits a topic's message type, a name in a trace, or a derived signal."""

    topic: str
    msgtype: str
    proposal: Proposal


def with_relative_distances(
    recording: Recording, candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Return `candidates` with distances between the robot and others, where frames agree.

    The distance from the frame's origin makes sense only where that origin is the robot. Where
    others and the robot's odometry name one frame, it is replaced by their positions, the robot's
    own, and the distance between them.
    """
    own = next((candidate for candidate in candidates if candidate.msgtype == OWN_POSE), None)
    others = next((candidate for candidate in candidates if candidate.msgtype in POSITIONS), None)
    if own is None or others is None:
        return list(candidates)
    positions = POSITIONS[others.msgtype]
    frames = _frames(recording, {own.topic: OWN_FRAME, others.topic: positions.frame})
    if len(frames) < 2 or len(set(frames.values())) > 1:
        return list(candidates)
    found: list[Candidate] = []
    for candidate in candidates:
        if candidate.topic == others.topic and candidate.proposal.name == positions.nearest:
            found += _lists(candidate, positions)
        else:
            found.append(candidate)
        if candidate is own:
            found += _own(candidate)
    nearest = f"min(hypot({positions.name}_x - ego_x, {positions.name}_y - ego_y), default=inf)"
    remark = f"both in the frame {frames[own.topic]}; between centres"
    derived = Proposal(positions.nearest, nearest, "m", remark, Role.DISTANCE)
    return [*found, Candidate("", "", derived)]


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


def _frames(recording: Recording, wanted: dict[str, str]) -> dict[str, str]:
    """Return the first frame that each of the topics names."""
    types = {topic: recording.topics[topic].message_type for topic in wanted}
    found: dict[str, str] = {}
    for number, sample in enumerate(recording.read(wanted.keys())):
        mtype = types[sample.topic]
        if sample.topic not in found and mtype is not None:
            frame = _frame(sample, mtype, wanted[sample.topic])
            if frame:
                found[sample.topic] = frame
        if len(found) == len(wanted) or number >= MAX_SAMPLES:
            break
    return found


def _frame(sample: Sample, mtype: MessageType, expression: str) -> str:
    assert isinstance(sample.data, (bytes, memoryview))
    try:
        (value,) = compile_extractor(mtype, [parse_expression(expression)])(sample.data)
    except DecodeError:
        return ""
    return value if isinstance(value, str) else ""
