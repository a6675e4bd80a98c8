"""What one object of a scene saw, as a recording; its address is ``file.jsonl::run=17,object=a``.

The address carries what the monitor file says of the files, so that a reader needs nothing
else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from forewarn.config.trajectories import SIGNALS, TrajectoriesSpec
from forewarn.errors import RecordingError
from forewarn.recordings.interface import Sample, TopicInfo
from forewarn.recordings.parts import MARK
from forewarn.recordings.traces import JsonTrace
from forewarn.recordings.trajectories.reading import ACCEPTED, run_name, scenes_in, stem
from forewarn.recordings.trajectories.tables import TABLE, Files

Posix = type(Path())


class TrajectoryPath(Posix):  # type: ignore[misc, valid-type]
    """The address of what one object of a scene saw."""

    layout: TrajectoriesSpec  # what the monitor file says of the file

    def with_name(self, name: str) -> Path:
        """Return the address with another name, of a part of the recording say."""
        return _address(Path(str(super().with_name(name))), self.layout)

    def __reduce__(self) -> tuple[Any, ...]:
        return _address, (Path(str(self)), self.layout)


def _address(path: Path, layout: TrajectoriesSpec) -> TrajectoryPath:
    found = TrajectoryPath(path)
    found.layout = layout
    return found


def find_trajectories(path: Path, layout: TrajectoriesSpec) -> list[Path]:
    """Return the recordings in a file of trajectories, in the files of a folder, or of an address.

    Raises RecordingError if there is none, or a file does not hold what the monitor file says.
    """
    if MARK in path.name and not path.exists():
        return [_address(path, layout)]
    files = [path] if not path.is_dir() else sorted(one for one in path.iterdir() if one.is_file())
    found: dict[Path, None] = {}
    for file in files:
        if stem(file) is None or (path.is_dir() and not _matches(file, layout)):
            continue
        first, members = _members(file, layout)
        for run, scene in scenes_in(members, layout).items():
            address = f"{first.name}{MARK}run={quote(run, safe='')}"
            egos = [""] if layout.ego is not None else scene.egos(layout)
            for ego in egos:
                name = f"{address},object={quote(ego, safe='')}" if ego else address
                found[_address(first.with_name(name), layout)] = None
    if not found:
        what = f"no object of kind {' or '.join(layout.each)}" if layout.each else "no run"
        raise RecordingError(
            f"holds {what}", file=path, accepted=f".jsonl, .json, .csv: {ACCEPTED}"
        )
    return list(found)


def _matches(file: Path, layout: TrajectoriesSpec) -> bool:
    """Tell whether a file of a folder is meant: a table of one of the names, where there are."""
    return not layout.files or (TABLE.search(file.name) is not None and _kind(file, layout) != "")


def _kind(file: Path, layout: TrajectoriesSpec) -> str:
    """Return the kind of the objects in a table by its name, empty if no pattern matches."""
    name = stem(file) or ""
    for kind, pattern in layout.files.items():
        if name == pattern.replace("*", run_name(file, layout)):
            return kind
    return ""


def _members(file: Path, layout: TrajectoriesSpec) -> tuple[Path, Files]:
    """Return the file that names a run, and the files of that run by kind."""
    kind = _kind(file, layout)
    if not kind:
        if layout.files:
            patterns = ", ".join(layout.files.values())
            raise RecordingError("has another name", file=file, accepted=f"names like {patterns}")
        return file, {"": file}
    run, found = run_name(file, layout), dict[str, Path]()
    for other, pattern in layout.files.items():
        name = pattern.replace("*", run)
        for beside in (file.with_name(name + ending) for ending in (".csv", ".csv.gz", ".csv.zst")):
            if beside.exists():
                found.setdefault(other, beside)
    return next(iter(found.values())), found


class TrajectoryRecording(JsonTrace):
    """What one object of a scene saw; see `Recording` for the members."""

    def __init__(self, path: TrajectoryPath) -> None:
        layout = path.layout
        name, _, rest = path.name.partition(MARK)
        asked = dict(part.partition("=")[::2] for part in rest.split(","))
        file = Path(str(path)).with_name(name)
        scenes = scenes_in(_members(file, layout)[1], layout)
        run = unquote(asked.get("run", ""))
        if run not in scenes:
            known = ", ".join(list(scenes)[:5])
            raise RecordingError(f"there is no run {run!r}", file=path, accepted=known)
        self._scene = scenes[run]
        ego = layout.ego if layout.ego is not None else unquote(asked.get("object", ""))
        if ego not in self._scene.names:
            known = ", ".join(self._scene.names[:5])
            raise RecordingError(f"there is no object {ego!r} (ego)", file=path, accepted=known)
        self._view = self._scene.view(self._scene.names.index(ego), layout)
        own = self._view.times_ns
        self.path, self.kind, self.size = path, "trajectories", file.stat().st_size
        self.topics: Mapping[str, TopicInfo] = {}
        self.timed = True
        self.signals = (*SIGNALS, *layout.ending)
        self.warnings = list(self._scene.warnings)
        self.start_ns, self.end_ns, self.count = int(own[0]), int(own[-1]), len(own)

    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield one sample for each frame that the ego is in; topics do not matter."""
        del topics
        return self._view.samples()

    def digest(self) -> str:
        """Return the SHA-256 of the poses that the ego saw, in hex."""
        return self._view.digest()

    def metadata(self) -> Mapping[str, Mapping[str, str]]:
        """Return what the run says of itself: texts and numbers."""
        return {"run": {key: str(value) for key, value in self._scene.facts.items()}}

    def close(self) -> None:
        """Do nothing: scenes are kept for the other egos."""
