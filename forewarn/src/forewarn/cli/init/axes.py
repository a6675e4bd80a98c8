"""What an inertial sensor tells of its own mounting: gravity says which of its axes is up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.cli.init.catalogue import Proposal
from forewarn.cli.init.relative import Candidate
from forewarn.errors import DecodeError
from forewarn.expressions.syntax import parse_expression
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.interface import Recording

Floats = NDArray[np.float64]

IMU = "sensor_msgs/msg/Imu"
GRAVITY = 9.81
MAX_SAMPLES = 20_000
PLAIN = 0.95
"""An axis is up if gravity lies on it to this share."""
READ = ("linear_acceleration.x", "linear_acceleration.y", "linear_acceleration.z",
        "orientation.x", "orientation.y", "orientation.z", "orientation.w",
        "orientation_covariance[0]")  # fmt: skip
FORCE = "linear_acceleration"


class Mounting(NamedTuple):
    """How a sensor is mounted.

    Attributes
    ----------
    up : ndarray, shape (3,)
        The direction that is up in its axes, of unit length; its z axis where nothing tells.
    gravity : bool
        Its accelerations have gravity in them.
    oriented : bool
        It says how it is turned in the world, and its own z axis is up.
    """

    up: Floats
    gravity: bool
    oriented: bool

    @property
    def axis(self) -> str:
        """The axis that is up, ``-y`` say; empty where none of the three is."""
        at = int(np.abs(self.up).argmax())
        if abs(self.up[at]) < PLAIN:
            return ""
        return f"{'-' if self.up[at] < 0 else ''}{'xyz'[at]}"


def with_axes(recordings: Sequence[Recording], candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return `candidates` with what each inertial sensor means, by what it measured."""
    found: list[Candidate] = []
    done: set[str] = set()
    for candidate in candidates:
        if candidate.msgtype != IMU:
            found.append(candidate)
        elif candidate.topic not in done:
            done.add(candidate.topic)
            mounting = mounting_of(_samples(recordings, candidate.topic))
            found += (candidate._replace(proposal=each) for each in proposals(mounting))
    return found


def mounting_of(rows: Floats) -> Mounting:
    """Return how a sensor is mounted, by its readings, shape (n, 8), as in `READ`."""
    force, turned, refused = rows[:, :3], rows[:, 3:7], rows[:, 7:]
    usual = np.median(force, axis=0) if len(force) else np.zeros(3)
    length = float(np.linalg.norm(usual))
    gravity = 0.7 * GRAVITY < length < 1.3 * GRAVITY
    up = usual / length if gravity else np.array([0.0, 0.0, 1.0])
    norms = np.linalg.norm(turned, axis=1)
    says = len(rows) > 1 and bool((np.abs(norms - 1) < 0.1).all() and (refused != -1).all())
    says = says and bool((turned != turned[0]).any())
    return Mounting(up, gravity, says and up[2] > PLAIN)


def proposals(mounting: Mounting) -> Iterator[Proposal]:
    """Yield the signals of a sensor that is mounted so."""
    how = f"gravity lies on {mounting.axis or 'none of its axes'}"
    length = f"norm({FORCE})"
    if mounting.gravity:
        yield Proposal("shock", f"abs({length} - {GRAVITY})", "m/s2", f"{how}", within="max")
    else:
        told = "without gravity, by its values"
        yield Proposal("shock", length, "m/s2", told, within="max")
    if mounting.axis == "z":
        text = "forward, if x is" if mounting.gravity else "forward, if x is; z is taken to be up"
        yield Proposal("acceleration", f"{FORCE}.x", "m/s2", text)
    yield Proposal("turn_rate", _along("angular_velocity", mounting), "rad/s", "about what is up")
    if mounting.oriented:
        yield Proposal("tilt", "tilt(orientation)", "rad", "from upright")
        yield Proposal("roll", "roll(orientation)", "rad")
        yield Proposal("pitch", "pitch(orientation)", "rad")
    elif mounting.gravity:
        share = f"({_along(FORCE, mounting)}) / {length}"
        yield Proposal(
            "tilt", f"acos(clamp({share}, -1, 1))", "rad", "by gravity: shaking adds to it",
            within="min",
        )  # fmt: skip


def _along(vector: str, mounting: Mounting) -> str:
    """Return the part of a vector along what is up."""
    if mounting.axis:
        sign, axis = mounting.axis[:-1], mounting.axis[-1]
        return f"{sign}{vector}.{axis}"
    parts = (
        f"{share:.3g} * {vector}.{axis}" for share, axis in zip(mounting.up, "xyz", strict=True)
    )
    return " + ".join(parts).replace("+ -", "- ")


def _samples(recordings: Sequence[Recording], topic: str) -> Floats:
    """Return the first readings of a topic, shape (n, 8)."""
    found: list[Sequence[float]] = []
    for recording in recordings:
        info = recording.topics.get(topic)
        if info is None or info.message_type is None:
            continue
        extract = compile_extractor(info.message_type, [parse_expression(text) for text in READ])
        for sample in islice(recording.read([topic]), MAX_SAMPLES - len(found)):
            try:
                found.append([float(value) for value in extract(sample.data)])  # type: ignore[arg-type]
            except (DecodeError, TypeError):
                continue
    rows = np.array(found, dtype=np.float64).reshape(-1, len(READ))
    return rows[np.isfinite(rows).all(axis=1)]
