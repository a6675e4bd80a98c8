"""Numbers from the arrays of a trace: speeds of velocities, distances of places and of scans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from forewarn.cli.init.catalogue import Proposal, Role
from forewarn.cli.init.naming import words
from forewarn.cli.init.relative import Candidate
from forewarn.recordings.interface import Recording

MAX_LINES = 20
GRAVITY = 9.81
SCAN = "scan_nearest"
_VELOCITIES = frozenset(["vel", "velocity", "speed", "twist"])
_FORCES = frozenset(["acc", "accel", "acceleration", "accelerometer"])
_TURNS = frozenset(["ang", "angular", "yaw", "gyro", "cmd", "command", "commanded"])
_OTHERS = frozenset(["obj", "object", "obstacle", "other", "human", "person", "ped", "target"])
_PLACES = frozenset(["pos", "position", "loc", "location"])
_SCANS = frozenset(["scan", "laser", "lidar", "ranges", "beams"])


def with_array_numbers(
    recordings: Sequence[Recording], candidates: Sequence[Candidate]
) -> list[Candidate]:
    """Return `candidates`, and what the arrays of traces among them mean as numbers."""
    names = {each.proposal.name for each in candidates}
    seen: dict[str, list[Any]] = {}
    for recording in recordings[:MAX_LINES]:
        for sample in islice(recording.read(), MAX_LINES):
            assert isinstance(sample.data, Mapping)
            for name, value in sample.data.items():
                if isinstance(value, (list, tuple)) and len(value) and name in names:
                    seen.setdefault(name, []).append(value)
    found = [p for name, values in seen.items() for p in _numbers(name, values)]
    found.sort(key=lambda proposal: proposal.name == SCAN)  # what others are is surer
    taken = dict.fromkeys(names)
    more = []
    for proposal in found:
        if proposal.name not in taken:
            taken[proposal.name] = None
            more.append(Candidate("", "", proposal))
    return [*candidates, *more]


def _numbers(name: str, values: Sequence[Any]) -> Iterator[Proposal]:
    called = set(words(name))
    if all(isinstance(v, (int, float)) for v in values[0]):
        if called & _SCANS:
            text = f"min([r for r in {name} if r > 0], default=inf)"
            yield Proposal(SCAN, text, "", "0 is taken for no reading", Role.DISTANCE)
        elif len(values[0]) not in (2, 3) or called & _TURNS:
            return
        elif called & _VELOCITIES:
            yield Proposal("speed", f"norm({name})", "", "of any direction", Role.SPEED)
        elif called & _FORCES:
            usual = float(
                np.median([np.linalg.norm(v) for v in values if len(v) == len(values[0])])
            )
            gravity = 0.7 * GRAVITY < usual < 1.3 * GRAVITY
            text = f"abs(norm({name}) - {GRAVITY})" if gravity else f"norm({name})"
            yield Proposal("shock", text, "", "gravity taken off" if gravity else "")
        elif called & _OTHERS and called & _PLACES:
            told = "if it is given as seen from the robot"
            yield Proposal(f"{name}_distance", f"norm({name})", "", told, Role.DISTANCE)
    elif called & _SCANS and all(len(v) == 2 for v in values[0] if isinstance(v, (list, tuple))):
        text = f"min([beam[1] for beam in {name} if beam[1] > 0], default=inf)"
        told = "of pairs of angle and distance; 0 is taken for no reading"
        yield Proposal(SCAN, text, "", told, Role.DISTANCE)
