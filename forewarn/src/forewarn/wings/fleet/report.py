"""``forewarn report --fleet``: rates, coverage and the worst incidents of many recordings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

from forewarn.assessment.replay import Replaying, replay_recordings
from forewarn.assessment.sufficiency import Requirement
from forewarn.cli.convert_command import converted
from forewarn.cli.output import Output
from forewarn.cli.readers import Readers
from forewarn.errors import InputError
from forewarn.files.outputs import write_output
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.monitoring.step import Monitor
from forewarn.recordings.groups import Grouping
from forewarn.recordings.parts import EPOCH, Part, file_of, moment
from forewarn.recordings.registry import open_recording
from forewarn.reports.html import render
from forewarn.wings.fleet.page import fleet_page
from forewarn.wings.fleet.rates import Rate
from forewarn.wings.fleet.summary import (
    GroupSummary,
    Incident,
    RunSummary,
    Summing,
    covered_states,
    group_summaries,
    summed_up,
    worst,
)

AROUND = 10.0
"""Seconds of a clip before an incident and after it."""


@dataclass(frozen=True)
class FleetReport:
    """What a fleet's report is made with.

    `compiled`: the monitor file as the model has it.
    `page`: the file to write.
    `clips`: the folder for clips.
    `top`: how many incidents are listed.
    """

    monitor: Monitor
    model: CountModel | None
    compiled: CompiledSpec
    page: Path
    clips: Path | None
    top: int
    grouping: Grouping | None
    allow_missing: bool
    _files: dict[tuple[Path, str, float], list[Path]] = field(default_factory=dict)

    def write(self, recordings: Sequence[Path], readers: Readers) -> None:
        """Read the recordings, and write clips and page.

        Raises InputError if a recording cannot be read or a file cannot be written.
        """
        self._check()
        output = readers.output
        runs = self._read(recordings, readers)
        readers.warn()
        groups, incidents = group_summaries(runs, self.monitor), worst(runs, self.top)
        if self.clips is not None:
            with output.progress("cutting clips") as tell:
                for number, (run, one) in enumerate(incidents, 1):
                    self._cut(number, run, one, output)
                    tell(number, len(incidents))
        page = self.page.absolute().parent
        links = {
            key: [Path(os.path.relpath(file.absolute(), page)) for file in files]
            for key, files in self._files.items()
        }
        write_output(self.page, fleet_page(self.monitor, groups, incidents, links))
        self._print_groups(groups, output)
        output.emit(
            {
                "report": self.page,
                "groups": [_group_record(group) for group in groups],
                "incidents": [self._record(run, one) for run, one in incidents],
                "left_out": readers.record(),
            }
        )

    def _check(self) -> None:
        if self.clips is None:
            return
        if not self.monitor.clock.timed:
            raise InputError(
                "recordings of steps have no times to cut at", key="--clips", accepted="no clips"
            )
        try:
            self.clips.mkdir(parents=True, exist_ok=True)
            filled = any(self.clips.iterdir())
        except OSError as error:
            raise InputError(f"cannot be made: {error.strerror}", file=self.clips) from error
        if filled:
            raise InputError(
                "has files in it, and clips are never written over others", file=self.clips,
                key="--clips", accepted="a new folder, or an empty one",
            )  # fmt: skip

    @property
    def _how(self) -> Replaying:
        known = self.model.provenance if self.model else ()
        return Replaying(self.monitor, known, self.allow_missing)

    def _read(self, recordings: Sequence[Path], readers: Readers) -> list[RunSummary]:
        mask = None
        if self.model is not None:
            required = Requirement.of(None, None, self.compiled, per_transition=True)
            mask = required.judge(self.model).transitions.covered
        covered = covered_states(self.model, mask)
        summing = Summing(self._how, self.grouping, covered, self.top)
        found = readers.read(recordings, summed_up, summing, verb="replaying")
        return [run for _, run in found]

    def _cut(self, number: int, run: RunSummary, one: Incident, output: Output) -> None:
        """Write the page of an incident, and its messages where the recording has any."""
        assert self.clips is not None
        begin, end = (
            _moment(run.start_ns, seconds)
            for seconds in (max(one.begin - AROUND, 0.0), one.end + AROUND)
        )
        part = Part(begin, end).of(run.path)
        stem = self.clips / f"{number:02}-{file_of(run.path).name.partition('.')[0]}"
        page, messages = stem.with_name(f"{stem.name}.html"), stem.with_name(f"{stem.name}.mcap")
        shown = replay_recordings(replace(self._how, keep_signals=True), [part])
        opens = run.start_ns + round(one.at * 1e9)
        write_output(page, render(self.monitor, self.model, shown, opens_ns=opens))
        self._files[run.path, one.rule, one.at] = [page]
        with open_recording(part) as recording:
            has_messages = bool(recording.topics)
        if has_messages:
            for name, reason in converted(part, messages, False, ()).left_out.items():
                output.note(f"{messages.name}: left out: {name}: {reason}")
            self._files[run.path, one.rule, one.at].append(messages)

    def _print_groups(self, groups: Sequence[GroupSummary], output: Output) -> None:
        hour = self.monitor.clock.hour
        rows = [
            [group.name, str(group.recordings), name, f"{group.violations[name].hours:.3g}",
             _rate_text(group.violations[name]), _rate_text(group.near[name])]
            for name in self.monitor.spec.properties
            for group in groups
        ]  # fmt: skip
        columns = ("group", ">recordings", "property", ">hours watched", f">violations {hour}",
                   f">near ones {hour}")  # fmt: skip
        output.table(columns, rows, "with 95 % intervals over recordings")
        output.say(f"report: {self.page}")

    def _record(self, run: RunSummary, one: Incident) -> dict[str, Any]:
        files = self._files.get((run.path, one.rule, one.at), [])
        where = {"recording": run.path, "group": run.group, "start_ns": run.start_ns}
        return {**where, **one._asdict(), "clips": files}


def _moment(start_ns: int, seconds: float) -> str:
    time = EPOCH + timedelta(microseconds=start_ns // 1000 + round(seconds * 1e6))
    return moment(time.astimezone(timezone.utc).isoformat())


def _rate_text(rate: Rate) -> str:
    if not rate.hours:
        return "-"
    return f"{rate.rate:.3g} ({rate.lower:.3g} to {rate.upper:.3g})"


def _group_record(group: GroupSummary) -> dict[str, Any]:
    kinds = {"violations": group.violations, "near": group.near}
    rates = {
        kind: {name: {**rate._asdict(), "rate": rate.rate} for name, rate in found.items()}
        for kind, found in kinds.items()
    }
    return {**group._asdict(), **rates}
