"""Runs of agents: one JSON object a run, which holds the calls of tools in a list.

Such a file is JSON lines, or one JSON list of runs. What tells it from other traces is its
structure: a list of objects that are calls. Known are

- ``{"action": "send", "args": {...}, "observation": ..., "error": ...}``, where the arguments may
  be JSON as text, and all but the action may be missing;
- ``{"action": {"tool": "send", "input": ...}, "observation": ...}``;
- messages of a chat, ``{"role": ..., "content": ..., "tool_calls": [...]}``: see `agent_chats`.

A list may mix calls and messages.

Each call is a step: its line holds what is known before the call is made, the call's name as
``action`` and the call's arguments. A last line follows the last call, without an action. Only
there the run's other fields are known: outcomes and labels cannot leak into the states before.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from forewarn.errors import RecordingError
from forewarn.recordings.interface import Sample
from forewarn.recordings.traces import BOM, LONGEST, JsonTrace, decoder, open_text
from forewarn.recordings.zstd import CutError
from forewarn.wings.agents.calls import ACCEPTED, Run, WrongRunError, key_of_calls, parse_run
from forewarn.wings.agents.inspect_files import is_inspect_file
from forewarn.wings.agents.logs import Log, read_log
from forewarn.wings.agents.steps import Progress, bounded

MOST_WARNINGS = 10
MOST_LOOKED_AT = 100
UNPACKING = (zlib.error, CutError)


def is_agent_trace(path: Path, head: bytes) -> bool:
    """Tell by its first runs whether a file holds runs of agents."""
    begun = head.removeprefix(BOM).lstrip()[:1]
    if is_inspect_file(path, head):
        return True
    if path.is_dir() or (begun not in (b"{", b"[") and head[:2] not in (b"\x1f\x8b", b"\x28\xb5")):
        return False
    stat = path.stat()
    return _holds_runs(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=64)
def _holds_runs(path: Path, changed_ns: int, size: int) -> bool:
    """Look at the first runs: once, though a file is asked about on the way to it and opened."""
    del changed_ns, size
    empty = False
    try:
        if read_log(path) is not None:
            return True
        for record in islice(_first_records(path), MOST_LOOKED_AT):
            key = key_of_calls(record) if isinstance(record, dict) else None
            if key is None:
                return False
            if record[key]:
                return True
            empty = True
    except (ValueError, OSError, EOFError, RecursionError, RecordingError, *UNPACKING):
        return empty
    return empty


class AgentTrace(JsonTrace):
    """Runs of agents as one trace; see `Recording` for the members."""

    def __init__(self, path: Path) -> None:
        self._cuts: dict[str, None] = {}
        self._calls = 0
        super().__init__(path)
        self.kind = "runs of agents"
        if self.count and not self._calls:
            raise RecordingError("no run has an action", accepted=ACCEPTED, file=path)

    def _lines(self) -> Iterator[Sample]:
        self.timed = False
        count = 0
        for number, (line, record) in enumerate(self._records()):
            try:
                run = parse_run(record)
                self._calls += len(run.calls)
                for values in self._steps(number, run):
                    yield Sample(count * 1_000_000_000, "", values)
                    count += 1
            except WrongRunError as error:
                raise RecordingError(
                    f"run {number}: {error}",
                    accepted=error.accepted,
                    file=f"{self.path}:{line}",
                    key=f"[{number}].{error.key}" if self._is_list else error.key,
                ) from error

    _is_list = False

    def _records(self) -> Iterator[tuple[int, Any]]:
        log = self._log()
        if log is not None:
            yield from ((1, run) for run in log.runs)
            if log.broken and not log.is_cut:
                raise self._error(log.broken, "is no JSON, and lines before it are a log")
            if log.broken:
                self._warn(f"line {log.broken} is cut short; it is left out")
            return
        texts = self._texts()
        first = next(texts, None)
        if first is None:
            return
        self._is_list = first[1].lstrip().startswith("[")
        if not self._is_list:
            texts.close()  # type: ignore[attr-defined]
            yield from self._parsed(_decoded)
            return
        parts, length = [first[1]], len(first[1])
        for _, line in texts:
            parts.append(line)
            length += len(line)
            if length > LONGEST:
                raise self._error(first[0], f"the list is longer than {LONGEST} characters")
        yield from self._listed("".join(parts), first[0])

    def _log(self) -> Log | None:
        """Return a framework's log; None if the file is no log, or cannot be read."""
        try:
            return read_log(self.path)
        except (ValueError, OSError, EOFError, RecursionError, *UNPACKING):
            return None  # reading line by line says what is wrong

    def _listed(self, text: str, line: int) -> Iterator[tuple[int, Any]]:
        """Yield the elements of a list; where its end is missing, those that are whole."""
        seen = 0
        try:
            for at, record in _elements(text):
                line += text.count("\n", seen, at)
                seen = at
                yield line, record
        except BrokenElementError as error:
            line += text.count("\n", seen, error.at)
            if text.rstrip().endswith("]"):
                raise self._error(line, f"is no list of runs ({error})") from error
            self._warn(f"line {line} begins a run that is cut short; it is left out")

    def _steps(self, number: int, run: Run) -> Iterator[dict[str, Any]]:
        progress = Progress(task=run.task)
        for step, call in enumerate(run.calls):
            note = partial(self._tell, number, step)
            progress = progress.with_user_message(call.user_message, note)
            signals = progress.proposing(number, call, note)
            yield signals
            args = signals["args"]
            progress = progress.made(call.action, signals["arguments"], note, args=args)
            progress = progress.answered(call.observation, call.failed, note)
        note = partial(self._tell, number, len(run.calls))
        progress = progress.with_user_message(run.user_message, note)
        fields = {
            name: bounded(value, name, note) if isinstance(value, str) else value
            for name, value in run.fields.items()
        }
        yield {**fields, **progress.closing(number)}

    def _tell(self, run: int, step: int, cut: str) -> None:
        """Warn of what is cut; where that is a lot, say so once."""
        text = f"run {run}, step {step}: {cut}"
        if len(self._cuts) < MOST_WARNINGS:
            self._cuts[text] = None
            self._warn(text)
        elif text not in self._cuts:
            self._warn(f"more than {MOST_WARNINGS} texts are too long; the others are not listed")


_SPACE = re.compile(r"[\s,]*")


def _decoded(line: str) -> Any:
    try:
        return decoder.decode(line)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def _first_records(path: Path) -> Iterator[Any]:
    with open_text(path) as file:
        line = file.readline(LONGEST + 1)
        while line and not line.strip():
            line = file.readline(LONGEST + 1)
        if not line.lstrip().startswith("["):
            while line:
                if line.strip():
                    yield _decoded(line)
                line = file.readline(LONGEST + 1)
            return
        text = line + file.read(LONGEST)
    for _, record in _elements(text):
        yield record


class BrokenElementError(ValueError):
    """An element of a list that begins at `at` cannot be read."""

    def __init__(self, at: int, reason: object) -> None:
        super().__init__(str(reason))
        self.at = at


def _elements(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a JSON list, each with its place; raises BrokenElementError."""
    end = text.index("[") + 1
    while True:
        at = _SPACE.match(text, end).end()  # type: ignore[union-attr]
        if text.startswith("]", at):
            return
        try:
            record, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise BrokenElementError(at, error) from error
        yield at, record
