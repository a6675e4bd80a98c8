"""Incidents that a black box has written: what they tell, and what people say of them.

A label stands in a file beside the incident, so that the recording stays what it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.history import Track
from forewarn.assessment.reliability import predictions
from forewarn.assessment.replay import RecordedRun
from forewarn.errors import InputError, RecordingError
from forewarn.files.outputs import write_output
from forewarn.monitoring.record import INCIDENT_PREFIX
from forewarn.recordings.interface import Recording
from forewarn.recordings.registry import open_recording
from forewarn.signals.clock import NANOSECONDS
from forewarn.wings.black_box.box import RELEASED, LogEntry
from forewarn.wings.black_box.incident_file import LABEL_SUFFIX, SUFFIX, TABLE, label_of

Verdict = Literal["true", "false-alarm"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
TRUE, FALSE_ALARM = VERDICTS


@dataclass(frozen=True)
class Label:
    """An operator's label: ``true`` (it was right to alert) or ``false-alarm`` (no danger)."""

    verdict: str
    comment: str = ""


@dataclass(frozen=True)
class Incident:
    """One file, and the operator's label of it.

    Of a torn file (not `complete`) only the first moment is known. `table` is what else the file
    says: the node, the model's digest, what was left out.
    """

    path: Path
    first: LogEntry
    moments: tuple[LogEntry, ...]
    start_ns: int
    end_ns: int
    size: int
    complete: bool
    table: Mapping[str, str]
    label: Label | None

    @property
    def seconds(self) -> float:
        """How long the recording is."""
        return max(0, self.end_ns - self.start_ns) / NANOSECONDS

    def tells_of(self, name: str) -> bool:
        """Tell whether people say that it was right to alert for this property."""
        right = self.label is not None and self.label.verdict == TRUE
        return right and self.first.property in ("", name)

    def until_ns(self, name: str) -> int:
        """Return when its alert was over, as far as the file knows."""
        return next(
            (
                moment.time_ns
                for moment in self.moments
                if (moment.kind, moment.property) == (RELEASED, name)
                and moment.time_ns > self.first.time_ns
            ),
            self.end_ns,
        )

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
    """Read what a file tells of itself; raises InputError."""
    with open_recording(path) as recording:
        return _incident(path, recording, _table(recording))


def _table(recording: Recording) -> Mapping[str, str]:
    table = recording.metadata().get(TABLE)
    if table is None:
        raise RecordingError(
            "is no incident", file=recording.path, accepted="a file that a node's black box wrote"
        )
    return table


def labelled_incidents(paths: Sequence[Path]) -> list[Incident]:
    """Return the incidents of folders or files that have a label; no other file is opened."""
    return [read_incident(path) for path in find_incidents(paths) if label_of(path).exists()]


def _incident(path: Path, recording: Recording, table: Mapping[str, str]) -> Incident:
    try:
        first = LogEntry(
            int(table["time_ns"]),
            table["trigger"],
            table["property"],
            float(table["risk"]),
            table["text"],
        )
        recorded = json.loads(table.get("moments", "[]"))
        moments = tuple(_moment(one) for one in recorded) or (first,)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(
            f"its table {TABLE} makes no sense: {error!r}", file=path, accepted="as it was written"
        ) from error
    return Incident(
        path=path,
        first=first,
        moments=moments,
        start_ns=recording.start_ns,
        end_ns=recording.end_ns,
        size=path.stat().st_size,
        complete=table.get("complete") == "yes",
        table=table,
        label=read_label(path),
    )


def _moment(fields: Mapping[str, Any]) -> LogEntry:
    risk = math.nan if fields["risk"] is None else float(fields["risk"])
    kind, name, text = (str(fields[key]) for key in ("kind", "property", "text"))
    return LogEntry(int(fields["time_ns"]), kind, name, risk, text)


def find_incidents(paths: Sequence[Path]) -> list[Path]:
    """Return the files of incidents that paths stand for, those in folders the oldest first."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found.update(dict.fromkeys(sorted(path.glob(f"{INCIDENT_PREFIX}*{SUFFIX}"))))
        elif path.exists():
            found[path] = None
        else:
            raise InputError(
                "does not exist", file=path, accepted="a black box's folder, or a file of it"
            )
    return list(found)


def labels_alone(paths: Sequence[Path]) -> list[str]:
    """Say which labels in folders are of incidents that are no longer there."""
    return [
        f"{label}: its incident is gone, so the label counts for nothing"
        for folder in paths
        if folder.is_dir()
        for label in sorted(folder.glob(f"{INCIDENT_PREFIX}*{LABEL_SUFFIX}"))
        if not label.with_name(label.name.removesuffix(LABEL_SUFFIX) + SUFFIX).exists()
    ]


def read_label(path: Path) -> Label | None:
    """Return the operator's label of an incident; raises InputError if its file is damaged."""
    file = label_of(path)
    try:
        recorded = json.loads(file.read_text(encoding="utf-8"))
        label = Label(recorded["label"], str(recorded.get("comment", "")))
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
    """Put a label beside an incident, in place of any other, or take it away; raises InputError."""
    with open_recording(path) as recording:
        _table(recording)
    file = label_of(path)
    if label is None:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"cannot be deleted: {error.strerror}", file=file) from error
        return
    fields = {"label": label.verdict, "comment": label.comment}
    write_output(file, json.dumps(fields, ensure_ascii=False, indent=2) + "\n")


def confirmed(
    name: str, run: RecordedRun, scored: ScoredRun, incidents: Sequence[Incident]
) -> tuple[ScoredRun, int]:
    """Have alerts that people called right count as right; return the run, and how many.

    Only ``true`` says something that the recording does not: an alert that nothing follows counts
    as false already, but nothing may have followed because the operator braked.
    """
    marked = np.zeros(len(scored.ticks), dtype=bool)
    for incident in incidents:
        row = _row(run, scored, incident.first.time_ns)
        if incident.tells_of(name) and row is not None:
            marked[row] = True
    count = int(marked.sum())
    return (scored._replace(confirmed=marked) if count else scored), count


def without_prevented(run: RecordedRun, incidents: Sequence[Incident]) -> tuple[RecordedRun, int]:
    """Have what followed alerts that people called right count as unknown if nothing followed.

    The operator may have prevented the violation, so that the recording does not say what the risk
    was: no prediction is judged whose horizon meets such an alert. Alerts with a violation during
    them or within the horizon after them stay as they are. Returns the run, and how many alerts
    there are.
    """
    tracks, count = [], 0
    for track in run.tracks:
        marked = np.zeros(len(track.ticks), dtype=bool)
        for incident in incidents:
            begin = _row(run, track, incident.first.time_ns)
            if begin is None or not incident.tells_of(track.name):
                continue
            end = _row(run, track, incident.until_ns(track.name))
            last = len(marked) - 1 if end is None else end
            after = len(marked) if track.horizon is None else last + track.horizon + 1
            if not track.violation[begin:after].any():
                marked[begin : last + 1] = True
                count += 1
        tracks.append(replace(track, prevented=marked) if marked.any() else track)
    found = replace(run, tracks=tuple(tracks), predictions=tuple(map(predictions, tracks)))
    return found, count


def _row(run: RecordedRun, seen: Track | ScoredRun, time_ns: int) -> int | None:
    """Return the row of the tick at a time; None if the run has none."""
    row = round((time_ns - run.start_ns) / NANOSECONDS * seen.rate)
    return row if 0 <= row < len(seen.ticks) else None
