"""``forewarn verify``: hold a node's own record to the same bits."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from forewarn.cli.common import existing_recordings
from forewarn.cli.output import Output
from forewarn.monitoring.record import replay_record

DESCRIPTION = """\
Replay the record that a node wrote of a live session (its parameter `record`): every message it
consumed, every command, clock jump and model it was given. Every field that it published then is
compared with what comes out now, to the last bit."""

EPILOG = """\
exit codes: 0 the same bits, 1 something differs, 2 wrong usage or input.

example: forewarn verify /var/log/robot/monitor_record.mcap"""

LISTED = 20


@dataclass(frozen=True)
class Options:
    """The arguments of ``verify``."""

    records: list[Path]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "records", nargs="+", type=Path, metavar="RECORD", help="a file written by the node"
    )


def run(options: Options, output: Output) -> int:
    """Replay every record and list what differs."""
    document = {}
    for path in existing_recordings(options.records):
        ticks, differing, listed = 0, 0, list[str]()
        for tick in replay_record(path):
            ticks += 1
            found = list(islice(tick.differences(), LISTED))
            differing += bool(found)
            listed += found[: LISTED - len(listed)]
        for line in listed:
            output.say(f"{path}: {line}")
        verdict = f"{differing} differ" if differing else "all the same bits"
        output.say(f"{path}: {ticks} ticks, {verdict}")
        document[str(path)] = {"ticks": ticks, "differing": differing, "differences": listed}
    output.emit(document)
    return 1 if any(each["differing"] for each in document.values()) else 0
