"""How fast Apollo's records are read: with cyber-record underneath, without it, and by it alone.

Twenty minutes of chassis messages at 100 Hz in 60 chunks; processor time, best of several turns.
Forewarn yields raw messages in the order of time, cyber-record decodes each. Run it with
``python -m benchmarks.records``; ``--json`` prints the figures for machines. The exit code is 1 if
reading with cyber-record underneath is more than twice as slow as without it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from apollo_bridge import underlying
from benchmarks.bridge import load
from forewarn.recordings import open_recording

SECONDS, CHUNKS, TURNS = 1200, 60, 5


def rate(read: Callable[[], Iterable[Any]]) -> float:
    """Return messages a second of processor time."""
    best = float("inf")
    count = 0
    for _ in range(TURNS):
        begin = time.process_time()
        count = sum(1 for _ in read())
        best = min(best, time.process_time() - begin)
    return count / best


def measure(path: Path) -> dict[str, float]:
    """Return the rates of all readers that can be had."""
    with_package = underlying.load
    figures = {}
    if with_package() is not None:
        from cyber_record.record import Record

        figures["with cyber-record"] = rate(lambda: open_recording(path).read())
        figures["cyber-record, decoding"] = rate(lambda: Record(str(path)).read_messages())
    try:
        underlying.load = lambda: None  # type: ignore[assignment]
        figures["without"] = rate(lambda: open_recording(path).read())
    finally:
        underlying.load = with_package
    return figures


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    helpers = load("conftest")
    messages = helpers.sawtooth(SECONDS)
    size = len(messages) // CHUNKS
    chunks = [messages[at : at + size] for at in range(0, len(messages), size)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "drive.record"
        path.write_bytes(helpers.record_bytes(chunks))
        figures = measure(path)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name}: {figure:,.0f} messages/s")
    return 1 if figures.get("with cyber-record", figures["without"]) * 2 < figures["without"] else 0


if __name__ == "__main__":
    sys.exit(main())
