"""``forewarn verify``: hold records to their chains, and a node's own to the same bits."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from forewarn.assessment.record_replay import replay_record
from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.errors import RecordingError, plural
from forewarn.files.chain import chain_of, read_key
from forewarn.files.chain_check import check_chain
from forewarn.monitoring.carried import TOLERANCE, Taken
from forewarn.recordings.registry import existing_recordings
from forewarn.recordings.traces import SUFFIXES

DESCRIPTION = """\
Tell whether the record of a node or of an agent's guard is as it was written, by the chain of
hashes beside it (RECORD.chain). The record of a live session (the node's parameter `record`) is
then replayed, and every field that it published compared, to the last bit. Where processors round
differently (risk tables, functions such as exp), the record's values are used and compared."""

EPILOG = """\
A chain without a key finds accidents, but a person can write another chain: a key finds that, and
so does a hash that was noted elsewhere (--head), which also finds a record that was cut.

exit codes: 0 the same bits, 1 something differs, 2 wrong usage or input.

examples: forewarn verify /var/log/robot/monitor_record.mcap
          forewarn verify steps.jsonl --key record.key --head 5b1f0c88"""

LISTED = 20


def _head(text: str) -> str:
    if re.fullmatch("[0-9a-f]{8,64}", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} (accepted: 8 to 64 digits of 0-9 and a-f)")
    return text


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``verify``."""

    records: list[Path] = argument("a file written by the node or a guard", "RECORD")
    key: Path | None = option("the key of the chain", "FILE")
    head: str | None = option(
        "a hash of the chain that was noted elsewhere, or 8 digits of it: the record must hold it",
        "HASH",
        of=_head,
    )


def run(options: Options, output: Output) -> int:
    """Hold every record to its chain, replay it, and list what differs."""
    key = read_key(options.key)
    document: dict[str, Any] = {}
    for path in _records(options.records):
        held = _held(path, key, options, output)
        if held is not None and (held["findings"] or path.name.endswith(SUFFIXES)):
            document[str(path)] = held
        else:
            document[str(path)] = _replayed(path, output) | ({"chain": held} if held else {})
    output.emit(document)
    return 1 if any(result["findings"] for result in document.values()) else 0


def _records(paths: list[Path]) -> Iterator[Path]:
    """Yield the records: those with a chain as they are, for a changed one may be unreadable."""
    for path in paths:
        yield from [path] if chain_of(path).is_file() else existing_recordings([path])


def _held(path: Path, key: bytes | None, options: Options, output: Output) -> dict[str, Any] | None:
    """Return what the chain of a record says; None without one."""
    if not chain_of(path).is_file():
        if key is not None or options.head:
            what = f"there is no {chain_of(path).name}"
            raise RecordingError(what, file=path, accepted="a record with the chain beside it")
        output.note(f"{path}: without {chain_of(path).name} nothing tells whether it was changed")
        return None
    found = check_chain(path, key, options.head or "")
    for line in found.findings:
        output.say(line)
    for line in found.remarks:
        output.note(line)
    how = plural(len(found.findings), "finding") if found.findings else "nothing changed"
    output.say(f"{path}: {plural(found.blocks, 'block')} of the chain, {how}; head {found.head}")
    return vars(found)


def _replayed(path: Path, output: Output) -> dict[str, Any]:
    """Return what a replay of a node's record gives."""
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
    output.say(f"{path}: {plural(ticks, taken.noun)}, {', '.join(findings) or 'all the same bits'}")
    for line in _remarks(differing, taken):
        output.note(f"{path}: {line}")
    return {
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
