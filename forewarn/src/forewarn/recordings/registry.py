"""Which reader opens which recording; other packages add theirs as entry points.

An entry point of the group ``forewarn.recordings`` names a `RecordingFormat`::

    [options.entry_points]
    forewarn.recordings =
        apollo = apollo_bridge.records:FORMAT
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.config.agent_signals import RUN
from forewarn.config.file import MonitorSpec
from forewarn.errors import MissingWingError, RecordingError
from forewarn.files.inputs import open_plain
from forewarn.files.remote import RemotePath, address, expanded
from forewarn.recordings import frames, rosbag1, rosbag2, tables, traces
from forewarn.recordings.bag import BagRecording
from forewarn.recordings.interface import Recording
from forewarn.recordings.mcap_records import MAGIC as MCAP_MAGIC
from forewarn.recordings.parts import (
    NamespaceRecording,
    Part,
    PartRecording,
    divided,
    find_runs,
    namespaced,
    open_run,
)
from forewarn.recordings.staging import StagedRecording
from forewarn.recordings.traces import BOM, JsonTrace
from forewarn.recordings.trajectories.recording import (
    TrajectoryPath,
    TrajectoryRecording,
    find_trajectories,
)
from forewarn.registry import part

GROUP = "forewarn.recordings"
HEAD_LENGTH = 512
PACKED = (b"\x1f\x8b", b"\x28\xb5", b"PK")
LISTED = re.compile(rb"\[\s*\{")


class RecordingFormat(NamedTuple):
    """A kind of recording.

    Attributes
    ----------
    name : str
        For people: ``Apollo record``.
    accepted : str
        What such a recording looks like (``.record files of Cyber RT``), for error messages.
    matches : callable
        Tells from the path and the first 512 bytes (none for a folder) whether this is one.
    open : callable
        Opens it; raises RecordingError.
    gather : callable, optional
        Joins the files of a folder that belong together, for formats that cut their recordings
        into several; what it returns need not exist as a file, but `matches` must accept it.
    """

    name: str
    accepted: str
    matches: Callable[[Path, bytes], bool]
    open: Callable[[Path], Recording]
    gather: Callable[[Sequence[Path]], list[Path]] | None = None


def _open_rosbag1(path: Path) -> Recording:
    return BagRecording(path, "ROS 1 bag", [rosbag1.Rosbag1File(path)])


def _is_rosbag2_file(path: Path, head: bytes) -> bool:
    return rosbag2.is_data_file(path) or head.startswith(MCAP_MAGIC)


def _is_agent_trace(path: Path, head: bytes) -> bool:
    """Ask the wing `agents` about JSON; without it, tell runs by a list of objects in a line."""
    begun = head.removeprefix(BOM).lstrip()[:1]
    if path.is_dir() or (begun not in (b"{", b"[") and head[:2] not in PACKED):
        return False
    try:
        return bool(_agent_runs().is_agent_trace(path, head))
    except MissingWingError:
        return begun == b"{" and LISTED.search(head) is not None


def _open_agent_trace(path: Path) -> JsonTrace:
    trace: JsonTrace = _agent_runs().AgentTrace(path)
    return trace


def _agent_runs() -> Any:
    return part("agents", "runs", "a recording with runs of agents")


BUILT_IN = (
    RecordingFormat(
        "rosbag2 folder", "a rosbag2 folder", lambda path, _: path.is_dir(), rosbag2.open_folder
    ),
    RecordingFormat(
        "rosbag2 file",
        ".mcap and .db3 files, each maybe with .zstd or .zst",
        _is_rosbag2_file,
        rosbag2.open_file,
    ),
    RecordingFormat(
        "ROS 1 bag",
        "ROS 1 .bag files",
        lambda path, head: (
            path.name.endswith((".bag", ".bag.active")) or head.startswith(rosbag1.MAGIC)
        ),
        _open_rosbag1,
    ),
    RecordingFormat(
        "table", "tables of values (.csv, maybe with .gz or .zst)", tables.is_table, tables.CsvTable
    ),
    RecordingFormat(
        "runs of agents",
        "runs of agents in JSON (each a list of calls, maybe with .gz or .zst), Inspect's .eval",
        _is_agent_trace,
        _open_agent_trace,
    ),
    RecordingFormat(
        "frames in JSON",
        "frames in JSON (a list of objects with times, maybe with .gz or .zst)",
        frames.is_frames,
        frames.FrameTrace,
    ),
    RecordingFormat(
        "trace",
        "traces of JSON lines (.jsonl, maybe with .gz or .zst)",
        traces.is_trace,
        traces.JsonTrace,
    ),
)


def open_recording(path: Path | str) -> Recording:
    """Open a recording of any known format.

    Parameters
    ----------
    path : Path or str
        A file, a folder of rosbag2, or the address of a run in a trace (`runs`) or of a part of
        a recording (`parts`).

    Raises
    ------
    RecordingError
        If there is none, nothing in it can be read, or its format is unknown.
    """
    path = address(path)
    try:
        if (found := divided(path)) is not None:
            whole, part = found
            return PartRecording(path, open_recording(whole), part)
        if (of_robot := namespaced(path)) is not None:
            whole, namespace = of_robot
            return NamespaceRecording(path, open_recording(whole), namespace)
        if isinstance(path, TrajectoryPath):
            return TrajectoryRecording(path)
        if (run := open_run(path, _open_lines)) is not None:
            return run
        return _open(path.parent if path.name == "metadata.yaml" else path)
    except OSError as error:
        raise RecordingError(f"cannot be read ({error.strerror or error})", file=path) from error


def _open(path: Path) -> Recording:
    head = _head(path)
    if isinstance(path, RemotePath) and not (path.is_dir() or _is_rosbag2_file(path, head)):
        return StagedRecording(path, _open)
    installed, problems = _installed()
    for candidate in (*installed, *BUILT_IN):
        if candidate.matches(path, head):
            return candidate.open(path)
    raise RecordingError(
        "; ".join((f"is no recording of a known format, it begins with {head[:16]!r}", *problems)),
        accepted="; ".join(form.accepted for form in (*BUILT_IN, *installed)),
        file=path,
    )


def find_recordings(path: Path | str, run_key: str | None = None) -> list[Path]:
    """Return the recordings that a path stands for: itself, or those in a folder of several.

    With `run_key`, a trace whose lines have that key stands for its runs.

    Raises
    ------
    RecordingError
        If there is none.
    """
    path = address(path)
    try:
        found = _find(path)
        if run_key is None:
            return found
        return [run for one_path in found for run in _runs_of(one_path, run_key)]
    except OSError as error:
        raise RecordingError(f"cannot be read ({error.strerror or error})", file=path) from error


def _runs_of(path: Path, key: str) -> list[Path]:
    if isinstance(path, RemotePath) or not path.is_file():
        return [path]
    head = _head(path)
    if _is_agent_trace(path, head):
        return find_runs(path, RUN, _open_lines)
    return find_runs(path, key, _open_lines) if traces.is_trace(path, head) else [path]


def _open_lines(path: Path) -> JsonTrace:
    """Open a file whose lines may be of several runs."""
    return _open_agent_trace(path) if _is_agent_trace(path, _head(path)) else JsonTrace(path)


def _find(path: Path) -> list[Path]:
    if not path.is_dir() or (path / "metadata.yaml").exists() or _stands_for_several(path):
        return [path]
    files = rosbag2.data_files(path)
    if files and rosbag2.one_recording(files):
        return [path]
    formats = (*BUILT_IN[1:], *_installed()[0])
    found = [
        entry
        for entry in sorted(path.iterdir())
        if (entry / "metadata.yaml").exists()
        or (entry.is_dir() and rosbag2.data_files(entry))
        or (entry.is_file() and _is_recording(entry, formats))
    ]
    if not found:
        raise RecordingError(
            "holds no recording",
            accepted="; ".join(form.accepted for form in (*BUILT_IN, *_installed()[0])),
            file=path,
        )
    return _joined(found)


def _stands_for_several(path: Path) -> bool:
    """Tell whether a folder, or a name without a file, is one recording of an installed format."""
    return any(form.gather is not None and form.matches(path, b"") for form in _installed()[0])


def _joined(found: list[Path]) -> list[Path]:
    """Join the files that are parts of one recording."""
    for form in _installed()[0]:
        if form.gather is not None:
            own = [
                p for p in found if p.is_file() and p.stat().st_size and form.matches(p, _head(p))
            ]
            if own:
                found = sorted({*found} - {*own} | {*form.gather(own)})
    return found


def _is_recording(path: Path, formats: Iterable[RecordingFormat]) -> bool:
    try:
        head = _head(path)
    except RecordingError:
        return path.name.endswith((*rosbag2.SUFFIXES, ".bag"))  # empty ones are to be reported
    one_object = _is_one_object(path, head)
    return any(
        candidate.matches(path, head) and not (one_object and candidate.open is traces.JsonTrace)
        for candidate in formats
    )


def _is_one_object(path: Path, head: bytes) -> bool:
    """Tell whether a file is one short JSON object: a note about a recording."""
    return path.suffix == ".json" and len(head) < HEAD_LENGTH and b"\n" not in head.strip()


def _head(path: Path) -> bytes:
    if not path.exists():
        if _stands_for_several(path):
            return b""
        raise RecordingError(
            "does not exist", file=path, accepted="a recording, or a folder with recordings"
        )
    if path.is_dir():
        return b""
    try:
        with open_plain(path) as file:
            head = file.read(HEAD_LENGTH)
    except OSError as error:
        raise RecordingError(f"cannot be opened ({error.strerror})", file=path) from error
    if not head:
        raise RecordingError("is an empty file", accepted="a recording", file=path)
    return head


@lru_cache(maxsize=1)
def _installed() -> tuple[tuple[RecordingFormat, ...], tuple[str, ...]]:
    """Return the formats that other packages add, and what is wrong with those that fail."""
    formats: list[RecordingFormat] = []
    problems: list[str] = []
    for point in entry_points(group=GROUP):
        try:
            loaded = point.load()
        except Exception as error:  # whatever another package's import raises
            problems.append(f"the reader {point.name!r} ({point.value}) does not load: {error}")
            continue
        if isinstance(loaded, RecordingFormat):
            formats.append(loaded)
        else:
            problems.append(f"the reader {point.name!r} ({point.value}) is no RecordingFormat")
    return tuple(formats), tuple(problems)


WHOLE = Part(None, None)


def existing_recordings(
    paths: Iterable[Path], spec: MonitorSpec | None = None, part: Part = WHOLE
) -> list[Path]:
    """Return the paths of all recordings in `paths`, with the `part` of each that is asked for.

    With a monitor file whose clock is steps, each run within a trace is one; with one that reads
    trajectories, each ego.

    Raises RecordingError if there is none, or the store of a URL does not answer.
    """
    key = None if spec is None else spec.episode_key
    found: dict[Path, None] = {}
    for pattern in paths:
        try:
            matching = expanded(pattern)
        except OSError as error:
            reason = error.strerror or error
            raise RecordingError(f"cannot be listed ({reason})", file=pattern) from error
        if not matching:
            raise RecordingError(
                "no file has such a name", file=pattern, accepted="a pattern that matches some"
            )
        for path in matching:
            if spec is not None and spec.trajectories is not None:
                found.update(dict.fromkeys(find_trajectories(path, spec.trajectories)))
            else:
                found.update(dict.fromkeys(find_recordings(path, key)))
    return [part.of(path) for path in found]
