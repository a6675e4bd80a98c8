"""How fast Apollo's records are read, by Forewarn and by cyber-record.

Chassis messages at 100 Hz in 60 chunks. Forewarn yields raw messages in the order of time,
cyber-record decodes each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cyber_record.record import Record

from benchmarks._harness import Table, Target, run, take_turns
from benchmarks.bridge import load
from forewarn.recordings.registry import open_recording

CHUNKS = 60


def count(messages: Iterable[Any]) -> int:
    """Return how many messages there are."""
    return sum(1 for _ in messages)


def readers(path: Path) -> dict[str, Callable[[], int]]:
    """Return the ways to read a record."""
    return {
        "Forewarn": lambda: count(open_recording(path).read()),
        "cyber-record, which decodes each message": lambda: count(
            Record(str(path)).read_messages()
        ),
    }


def measure(seconds: int = 1200, turns: int = 5) -> list[Table]:
    """Measure a record of so many seconds."""
    helpers = load("conftest")
    messages = helpers.sawtooth(seconds)
    size = max(1, len(messages) // CHUNKS)
    chunks = [messages[at : at + size] for at in range(0, len(messages), size)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "drive.record"
        path.write_bytes(helpers.record_bytes(chunks))
        found = readers(path)
        times = take_turns(*found.values(), turns=turns)
    rates = [time_ns.result / time_ns.seconds for time_ns in times]
    targets = [Target(round(rates[1]), at_least=True), None]
    rows = list(zip(found, rates, targets, strict=True))
    return [Table(("Reader", "Messages/s", "Target"), rows)]


if __name__ == "__main__":
    sys.exit(run(measure))
