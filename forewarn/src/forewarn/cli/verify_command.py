"""``forewarn verify``: hold a node's own record to the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from forewarn.assessment.record_replay import replay_record
from forewarn.cli.options import argument
from forewarn.cli.output import Output
from forewarn.errors import plural
from forewarn.monitoring.carried import TOLERANCE, Taken
from forewarn.recordings.given import existing_recordings

DESCRIPTION = """\
Replay the record of a live session (the node's parameter `record`) and compare every field that
it published, to the last bit. Processors round differently in the last bits: risk tables, and
conditions on functions such as exp or atan2, are computed here, compared, and taken from the
record."""

EPILOG = """\
exit codes: 0 the same bits, 1 something differs, 2 wrong usage or input.

example: forewarn verify /var/log/robot/monitor_record.mcap"""

LISTED = 20


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``verify``."""

    records: list[Path] = argument("a file written by the node", "RECORD")


def run(options: Options, output: Output) -> int:
    """Replay every record and list what differs."""
    document = {}
    for path in existing_recordings(options.records):
        ticks, differing, listed, taken = 0, 0, list[str](), Taken()
        for tick in replay_record(path, taken):
            ticks += 1
            found = list(islice(tick.differences(), LISTED))
            differing += bool(found)
            here = f"{taken.noun} {tick.result.verdict.tick}"
            listed += [f"{here}: {line}" for line in found[: LISTED - len(listed)]]
        for line in listed:
            output.say(f"{path}: {line}")
        findings = list(_findings(ticks, differing, taken))
        output.say(
            f"{path}: {plural(ticks, taken.noun)}, {', '.join(findings) or 'all the same bits'}"
        )
        for line in _remarks(differing, taken):
            output.note(f"{path}: {line}")
        document[str(path)] = {
            "ticks": ticks,
            "differing": differing,
            "differences": listed,
            "findings": findings,
            "taken": {
                "tables": taken.tables,
                "difference": taken.difference,
                "conditions": dict(taken.conditions),
            },
        }
    output.emit(document)
    return 1 if any(result["findings"] for result in document.values()) else 0


def _findings(ticks: int, differing: int, taken: Taken) -> Iterator[str]:
    if not ticks:
        yield "so nothing is shown"
    if differing:
        yield f"{differing} differ"
    if not taken.difference <= TOLERANCE:
        yield (
            f"and its risk tables differ by {taken.difference:.2g} from those solved here: no "
            f"processor explains more than {TOLERANCE:g}"
        )


def _remarks(differing: int, taken: Taken) -> Iterator[str]:
    if taken.tables:
        yield (
            "risk tables are taken from the record; those solved here "
            + (f"differ by {taken.difference:.2g} at most" if taken.difference else "are the same")
        )
    elif differing:
        yield (
            "the record has no risk tables (older versions wrote none): on another type of "
            "processor than the node's, last bits may differ"
        )
    for name, number in sorted(taken.conditions.items()):
        yield (
            f"{name} is otherwise on this processor at {plural(number, taken.noun)}, "
            "and taken from the record"
        )
