"""``forewarn incidents``: what a black box has written, and what people say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from forewarn.assessment.replay import Replaying, replay_recordings
from forewarn.cli.common import allow_missing_option, model_option, write_report
from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.config.fields import size_text
from forewarn.errors import InputError
from forewarn.monitoring.loading import make_monitor
from forewarn.signals.clock import NANOSECONDS
from forewarn.wings.black_box.incidents import (
    VERDICTS,
    Incident,
    Label,
    find_incidents,
    labels_alone,
    read_incident,
    write_label,
)

DESCRIPTION = """\
List the incidents of a node's black box (`black_box` in the monitor file): when, trigger, property,
risk, length, size, label. `forewarn replay` and `report` take such files as any recording."""

EPILOG = """\
A label stands beside its incident, in NAME.label.json: `true` (it was right to alert),
`false-alarm` (there was no danger), or `none`, which takes it away.

exit codes: 0 all could be read, 1 some are torn or could not be read, 2 wrong usage or input.

examples: forewarn incidents /var/lib/robot/incidents
          forewarn incidents incidents/ -c monitor.yaml --reports pages/
          forewarn incidents incidents/ --label incident-20261123T011500-000Z.mcap false-alarm"""

NO_LABEL = "none"


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``incidents``."""

    folders: list[Path] = argument("a black box's folder, or files", "FOLDER")
    config: Path | None = option("the monitor file, for --reports", "FILE", "-c")
    model: Path | None = model_option()
    reports: Path | None = option(
        "write an HTML report for each, which opens on the moment", "FOLDER"
    )
    label: list[str] | None = option(
        f"say of one: {', '.join((*VERDICTS, NO_LABEL))}", ("FILE", "LABEL"), nargs=2
    )
    comment: str = option("why, with --label", "TEXT", default="")
    allow_missing: bool = allow_missing_option()


def run(options: Options, output: Output) -> int:
    """List, label, and write reports."""
    if options.comment and options.label is None:
        raise InputError("there is no label", key="--comment", accepted="it goes with --label")
    paths = find_incidents(options.folders)
    if options.label is not None:
        _label(paths, options.label, options.comment)
    found, failed = [], 0
    for path in paths:
        try:
            found.append(read_incident(path))
        except InputError as error:
            failed += 1
            output.warn(str(error.located(file=path)))
    _print(found, output)
    for line in labels_alone(options.folders):
        output.note(line)
    reports = {}
    if options.reports is not None:
        reports = _reports(found, options, output)
    output.emit([{**_record(incident), "report": reports.get(incident.path)} for incident in found])
    return 1 if failed or not all(incident.complete for incident in found) else 0


def _label(paths: Sequence[Path], label: Sequence[str], comment: str) -> None:
    name, verdict = label
    if verdict not in (*VERDICTS, NO_LABEL):
        accepted = ", ".join((*VERDICTS, NO_LABEL))
        raise InputError(f"{verdict!r} is no label", key="--label", accepted=accepted)
    chosen = [path for path in paths if name in (path.name, str(path))]
    if len(chosen) != 1:
        listed = ", ".join(path.name for path in paths) or "there is none"
        problem = "is no incident there" if not chosen else "stands for several"
        raise InputError(f"{name!r} {problem}", key="--label", accepted=listed)
    write_label(chosen[0], None if verdict == NO_LABEL else Label(verdict, comment))


def _print(found: Sequence[Incident], output: Output) -> None:
    if not found:
        output.say("no incident")
    columns = ("time (UTC)", "trigger", "property", ">risk", ">seconds", ">size", "label", "file")
    output.table(columns, [_row(incident) for incident in found])
    for incident in found:
        for remark in incident.remarks:
            output.note(f"{incident.path.name}: {remark}")


def _row(incident: Incident) -> tuple[str, ...]:
    first, label = incident.first, incident.label
    what = "" if label is None else label.verdict
    if label is not None and label.comment:
        what += f": {label.comment}"
    return (
        _time(first.time_ns),
        first.kind if incident.complete else f"{first.kind} (torn)",
        first.property or "-",
        "-" if first.risk != first.risk else f"{first.risk:.3f}",
        f"{incident.seconds:.1f}",
        size_text(incident.size),
        what or "-",
        incident.path.name,
    )


def _time(time_ns: int) -> str:
    whole, rest = divmod(time_ns, NANOSECONDS)
    moment = datetime.fromtimestamp(whole, timezone.utc)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{rest // 100_000_000}"


def _record(incident: Incident) -> dict[str, object]:
    return {
        "file": incident.path,
        "trigger": incident.first.kind,
        **incident.first._asdict(),
        "seconds": incident.seconds,
        "bytes": incident.size,
        "complete": incident.complete,
        "remarks": incident.remarks,
        "moments": [moment._asdict() for moment in incident.moments],
        "label": None if incident.label is None else asdict(incident.label),
    }


def _reports(found: Sequence[Incident], options: Options, output: Output) -> dict[Path, Path]:
    """Write a page for each incident."""
    folder, config = options.reports, options.config
    assert folder is not None
    if config is None:
        raise InputError("there is no monitor file", key="--reports", accepted="-c FILE with it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror}", file=folder) from error
    from forewarn.reports.html import render

    monitor, model = make_monitor(config, options.model)
    known = model.provenance if model else ()
    how = Replaying(monitor, known, options.allow_missing, keep_signals=True)
    pages = {}
    for incident in found:
        runs = replay_recordings(how, [incident.path], bars=output.progress)
        page = folder / f"{incident.path.stem}.html"
        write_report(page, render(monitor, model, runs, opens_ns=incident.first.time_ns), output)
        pages[incident.path] = page
    return pages
