"""Files of trajectories: JSON lines, a document in JSON, or tables in CSV, maybe packed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from forewarn.config.trajectories import Column, TrajectoriesSpec
from forewarn.errors import RecordingError
from forewarn.recordings.traces import LARGEST, LONGEST, decoder, open_text, short, text_lines
from forewarn.recordings.trajectories.scene import (
    FIELDS,
    NANOSECONDS,
    Scene,
    Sighting,
    nanoseconds,
    scene,
)
from forewarn.recordings.trajectories.tables import TABLE, Files, table_scene

DOCUMENT = re.compile(r"\.json(\.gz|\.zst)?\Z", re.IGNORECASE)
LINES = re.compile(r"\.(jsonl|ndjson)(\.gz|\.zst)?\Z", re.IGNORECASE)
ENDINGS = (TABLE, DOCUMENT, LINES)
ACCEPTED = "files as the section trajectories of the monitor file says"
KEPT = 32
"""Files whose scenes are kept in memory."""


def stem(path: Path) -> str | None:
    """Return the name of a file of trajectories without its ending; None if it can be none."""
    found = next((form for form in ENDINGS if form.search(path.name)), None)
    return None if found is None else found.sub("", path.name)


def run_name(path: Path, layout: TrajectoriesSpec) -> str:
    """Return the name of the run that a table belongs to: what ``*`` stands for, or its own."""
    name = stem(path) or path.name
    for pattern in layout.files.values():
        begin, _, end = pattern.partition("*")
        if len(name) > len(begin + end) and name.startswith(begin) and name.endswith(end):
            return name[len(begin) : len(name) - len(end)]
    return name


def scenes_in(files: Files, layout: TrajectoriesSpec) -> Mapping[str, Scene]:
    """Return the scenes of a file, or of the tables of one run, by the names of the runs.

    Raises RecordingError naming file, line and key, if it does not hold what the monitor file
    says.
    """
    try:
        stats = [path.stat() for path in files.values()]
    except OSError as error:
        path = next(iter(files.values()))
        raise RecordingError(f"cannot be opened ({error.strerror})", file=path) from error
    state = tuple((one.st_mtime_ns, one.st_size) for one in stats)
    return _scenes(tuple(files.items()), layout.model_dump_json(), state)


@lru_cache(maxsize=KEPT)
def _scenes(files: tuple[tuple[str, Path], ...], text: str, state: object) -> Mapping[str, Scene]:
    del state
    layout = TrajectoriesSpec.model_validate_json(text)
    path = files[0][1]
    if TABLE.search(path.name):
        found = [table_scene(dict(files), layout, run_name(path, layout))]
    elif layout.frames is None:
        found = [_framed(path, layout)]
    else:
        found = _runs(path, layout)
    if not found:
        raise RecordingError("holds no run", file=path, accepted=ACCEPTED)
    by_name: dict[str, Scene] = {}
    for one in found:
        if by_name.setdefault(one.run, one) is not one:
            raise RecordingError(f"two runs are called {one.run!r}", file=path, accepted="one")
    return by_name


class _Lines:
    """The objects of JSON in a file: one for each line, or the document."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []

    def error(self, number: int, problem: str) -> RecordingError:
        return RecordingError(problem, accepted=ACCEPTED, file=f"{self.path}:{number}")

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, text in self._texts():
            try:
                value = decoder.decode(text)
            except json.JSONDecodeError as error:
                if text.endswith("\n") or DOCUMENT.search(self.path.name):
                    raise self.error(number, f"is no JSON ({error})") from error
                self.warnings.append(f"line {number} is cut short; it is left out")
                continue
            except (ValueError, RecursionError) as error:
                raise self.error(number, str(error) or "is nested too deeply") from error
            if not isinstance(value, dict):
                raise self.error(number, f"is {short(value)}, no object")
            yield number, value

    def _texts(self) -> Iterable[tuple[int, str]]:
        if not DOCUMENT.search(self.path.name):
            return text_lines(self.path, self.warnings.append, self.error)
        try:
            with open_text(self.path) as file:
                text = file.read(LONGEST + 1)
        except (EOFError, OSError, UnicodeDecodeError) as error:
            raise RecordingError(f"cannot be read ({error})", file=self.path) from error
        if len(text) > LONGEST:
            raise self.error(1, f"is longer than {LONGEST} characters")
        return [(1, text)]


def _runs(path: Path, layout: TrajectoriesSpec) -> list[Scene]:
    lines, found = _Lines(path), []
    for number, line in lines:
        try:
            found.append(_run(line, number, layout, stem(path) or path.name))
        except ValueError as error:
            raise lines.error(number, str(error)) from error
    facts = tuple(lines.warnings)
    return [replace(one, warnings=(*facts, *one.warnings)) for one in found] if facts else found


def _run(line: Mapping[str, Any], number: int, layout: TrajectoriesSpec, file: str) -> Scene:
    assert layout.frames is not None
    frames = line.get(layout.frames)
    if not isinstance(frames, list) or not frames:
        raise ValueError(f"{layout.frames}: {short(frames)} is no list of frames")
    run = str(number) if layout.run is None else line.get(layout.run)
    if isinstance(run, bool) or not isinstance(run, str | int):
        raise ValueError(f"{layout.run}: {short(run)} is no name of a run")
    kinds = {} if layout.kinds is None else line.get(layout.kinds)
    if not isinstance(kinds, dict):
        raise ValueError(f"{layout.kinds}: {short(kinds)} is no dictionary of kinds")
    facts = {k: v for k, v in line.items() if v is None or isinstance(v, str | int | float)}
    return _scene(str(run), frames, kinds, {"file": file, "run": str(run), **facts}, layout)


def _framed(path: Path, layout: TrajectoriesSpec) -> Scene:
    lines = _Lines(path)
    frames = [line for _, line in lines]
    name = stem(path) or path.name
    try:
        return _scene(name, frames, {}, {"file": name, "run": name}, layout, lines.warnings)
    except ValueError as error:
        raise RecordingError(str(error), file=path, accepted=ACCEPTED) from error


def _scene(
    run: str, frames: Sequence[Any], kinds: Mapping[str, Any], facts: Mapping[str, Any],
    layout: TrajectoriesSpec, warnings: Sequence[str] = (),
) -> Scene:  # fmt: skip
    missing = [key for key in layout.ending if key not in facts]
    if missing:
        raise ValueError(f"{missing[0]}: the run does not say it, and trajectories.ending asks it")
    seen: list[Sighting] = []
    times = [_time_ns(frame, at, layout, facts) for at, frame in enumerate(frames)]
    of = {name: _texts(name, value) for name, value in kinds.items()}
    columns = [getattr(layout.columns, field) for field in FIELDS]
    for at, frame in enumerate(frames):
        for name, values in _objects(frame, at, layout):
            try:
                read = _fields(values, columns)
                if math.isnan(read[0]) or math.isnan(read[1]):
                    raise ValueError("x or y is not known")
                kind = _at(values, layout.columns.kind)
            except (ValueError, LookupError) as error:
                raise ValueError(f"frames[{at}].{name}: {error}") from error
            own = of.get(name, ()) if kind is None else (str(kind),)
            seen.append(Sighting(at, name, own, read))
    return scene(run, times, seen, layout, facts, warnings)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{name}: {short(value)} is no kind; accepted: a text or a list of texts")
    return tuple(texts)


def _time_ns(frame: Any, at: int, layout: TrajectoriesSpec, facts: Mapping[str, Any]) -> int:
    if layout.time is not None:
        time = frame.get(layout.time) if isinstance(frame, dict) else None
        try:
            return nanoseconds(_number(time), NANOSECONDS[layout.time_unit])
        except ValueError as error:
            raise ValueError(f"frames[{at}].{layout.time}: {error}") from error
    return nanoseconds(at * _period(layout, facts), 1e9)


def _period(layout: TrajectoriesSpec, facts: Mapping[str, Any]) -> float:
    if not isinstance(layout.period, str):
        return layout.period or 0.0
    period = _number(facts.get(layout.period))
    if not 0 < period < math.inf:
        raise ValueError(f"{layout.period}: {short(facts.get(layout.period))} is no period in s")
    return period


def _objects(frame: Any, at: int, layout: TrajectoriesSpec) -> Iterator[tuple[str, Any]]:
    """Yield name and values of each object of a frame."""
    found = frame
    if layout.objects is not None:
        found = frame.get(layout.objects) if isinstance(frame, dict) else None
    elif isinstance(frame, dict) and layout.time is not None:
        found = {name: values for name, values in frame.items() if name != layout.time}
    where = f"frames[{at}]" + (f".{layout.objects}" if layout.objects else "")
    if isinstance(found, dict):
        yield from found.items()
    elif isinstance(found, list):
        for place, values in enumerate(found):
            name = _at(values, layout.columns.object)
            if isinstance(name, bool) or not isinstance(name, str | int):
                raise ValueError(f"{where}[{place}]: {short(name)} is no name (columns.object)")
            yield str(name), values
    else:
        raise ValueError(f"{where}: {short(found)} holds no objects")


def _at(values: Any, column: Column | None) -> Any:
    """Return what stands at a place of a list or under a key; None if no column is asked for."""
    if column is None:
        return None
    if isinstance(column, int):
        if not isinstance(values, list):
            raise ValueError(f"{short(values)} is no list, and column {column} is asked for")
        if column >= len(values):
            raise LookupError(
                f"has {len(values)} values, and column {column} (from 0) is asked for"
            )
        return values[column]
    for key in (column,) if isinstance(values, dict) and column in values else column.split("."):
        if not isinstance(values, dict) or key not in values:
            raise LookupError(f"has no {column}")
        values = values[key]
    return values


def _fields(values: Any, columns: Sequence[Any]) -> tuple[float, ...]:
    """Return the `FIELDS` of an object, NaN where there is none; raises ValueError, LookupError."""
    if type(values) is list:
        try:  # nearly always a list of plain numbers, and there are a million of them
            read = [math.nan if place is None else values[place] for place in columns]
        except (IndexError, TypeError):
            pass
        else:
            if {*map(type, read)} == {float} and not any(map(math.isinf, read)):
                return tuple(read)
    return tuple(_number(_at(values, column)) for column in columns)


def _number(value: Any) -> float:
    """Return a number, NaN for one that is not known; raises ValueError."""
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
        raise ValueError(f"{short(value)} is no number")
    return float(value)
