"""Incidents that a black box has written: what they tell, and what people say of them.

A label stands in a file beside the incident, so that the recording stays what it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.replay import RecordedRun
from forewarn.errors import InputError, RecordingError
from forewarn.files.outputs import write_output
from forewarn.monitoring.black_box import Moment
from forewarn.monitoring.incident_file import PREFIX, SUFFIX, TABLE, label_of
from forewarn.recordings import Recording, open_recording
from forewarn.signals.clock import NANOSECONDS

Verdict = Literal["true", "false-alarm"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
TRUE, FALSE_ALARM = VERDICTS


@dataclass(frozen=True)
class Label:
    """What somebody has found out about an incident.

    Attributes
    ----------
    verdict : str
        ``true``: it was right to alert. ``false-alarm``: there was no danger.
    comment : str
        In their own words.
    """

    verdict: str
    comment: str = ""


@dataclass(frozen=True)
class Incident:
    """One file.

    Attributes
    ----------
    path : Path
        The file.
    first : Moment
        What made it.
    moments : tuple of Moment
        All that happened; only the first one if the file is torn.
    seconds : float
        How long the recording is.
    size : int
        Bytes.
    complete : bool
        It was completed; otherwise it can be read as far as it goes.
    table : mapping of str to str
        What else the file says: the node, the model's digest, what was left out.
    label : Label or None
        What somebody has said of it.
    """

    path: Path
    first: Moment
    moments: tuple[Moment, ...]
    seconds: float
    size: int
    complete: bool
    table: Mapping[str, str]
    label: Label | None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the reader should know before it is relied upon."""
        found = [
            f"{key}: {text}"
            for key, text in self.table.items()
            if key.startswith("left out") or key == "ended"
        ]
        if self.table.get("continued") == "yes":
            found.append("it goes on where the one before ended")
        if not self.complete:
            found.insert(0, "torn: it was not completed, and can be read as far as it goes")
        return tuple(found)


def read_incident(path: Path) -> Incident:
    """Read what a file tells of itself.

    Raises
    ------
    RecordingError
        If it cannot be read, or no black box has written it.
    InputError
        If its label cannot be read.
    """
    with open_recording(path) as recording:
        table = recording.metadata().get(TABLE)
        if table is None:
            raise RecordingError(
                "is no incident", file=path, accepted="a file that a node's black box wrote"
            )
        return _incident(path, recording, table)


def _incident(path: Path, recording: Recording, table: Mapping[str, str]) -> Incident:
    try:
        first = Moment(
            int(table["time_ns"]),
            table["trigger"],
            table["property"],
            float(table["risk"]),
            table["text"],
        )
        told = json.loads(table.get("moments", "[]"))
        moments = tuple(_moment(one) for one in told) or (first,)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(
            f"its table {TABLE} makes no sense: {error!r}", file=path, accepted="as it was written"
        ) from error
    return Incident(
        path=path,
        first=first,
        moments=moments,
        seconds=max(0, recording.end_ns - recording.start_ns) / NANOSECONDS,
        size=path.stat().st_size,
        complete=table.get("complete") == "yes",
        table=table,
        label=read_label(path),
    )


def _moment(told: Mapping[str, Any]) -> Moment:
    risk = math.nan if told["risk"] is None else float(told["risk"])
    kind, name, text = (str(told[key]) for key in ("kind", "property", "text"))
    return Moment(int(told["time_ns"]), kind, name, risk, text)


def find_incidents(paths: Sequence[Path]) -> list[Path]:
    """Return the files of incidents that paths stand for, those in folders the oldest first.

    Raises
    ------
    InputError
        If there is no such file or folder.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found.update(dict.fromkeys(sorted(path.glob(f"{PREFIX}*{SUFFIX}"))))
        elif path.exists():
            found[path] = None
        else:
            raise InputError(
                "does not exist", file=path, accepted="a black box's folder, or a file of it"
            )
    return list(found)


def read_label(path: Path) -> Label | None:
    """Return what somebody has said of an incident.

    Raises
    ------
    InputError
        If the file of the label is damaged.
    """
    file = label_of(path)
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        label = Label(told["label"], str(told.get("comment", "")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"is no label: {error}", file=file, accepted='{"label": "true", "comment": "..."}'
        ) from error
    if label.verdict not in VERDICTS:
        raise InputError(f"{label.verdict!r}", file=file, key="label", accepted=", ".join(VERDICTS))
    return label


def write_label(path: Path, label: Label | None) -> None:
    """Put a label beside an incident, or take it away; raises InputError."""
    file = label_of(path)
    if label is None:
        file.unlink(missing_ok=True)
        return
    told = {"label": label.verdict, "comment": label.comment}
    write_output(file, json.dumps(told, ensure_ascii=False, indent=2) + "\n")


def confirmed(
    name: str, run: RecordedRun, scored: ScoredRun, incidents: Sequence[Incident]
) -> tuple[ScoredRun, int]:
    """Have an alert that people called right count as right, in a recording of that time.

    Only ``true`` says something that the recording does not: an alert that nothing follows counts
    as false already, but nothing may have followed because somebody braked.

    Returns
    -------
    ScoredRun
        The run, with the moments of incidents that are labelled ``true``.
    int
        How many there are.
    """
    marked = np.zeros(len(scored.ticks), dtype=bool)
    for incident in incidents:
        first, label = incident.first, incident.label
        if label is None or label.verdict != TRUE or first.property not in ("", name):
            continue
        row = round((first.time_ns - run.start_ns) / NANOSECONDS * scored.rate)
        if 0 <= row < len(marked):
            marked[row] = True
    count = int(marked.sum())
    return (scored._replace(confirmed=marked) if count else scored), count
