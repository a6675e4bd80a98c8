"""rosbag2: folders with and without metadata.yaml, split and compressed files, bare files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml

from forewarn.errors import RecordingError, plural
from forewarn.files.inputs import open_plain
from forewarn.files.remote import RemotePath
from forewarn.recordings.bag import BagRecording
from forewarn.recordings.interface import Storage
from forewarn.recordings.mcap import McapFile
from forewarn.recordings.sqlite import SqliteFile
from forewarn.recordings.staging import Staged
from forewarn.recordings.zstd import CutError, most, unpacked

ACCEPTED = "a folder with .mcap or .db3 files of one recording, each maybe with .zstd or .zst"
PACKED = (".zstd", ".zst")
SUFFIXES = tuple(kind + packed for kind in (".mcap", ".db3") for packed in ("", *PACKED))

_METADATA = "metadata.yaml"
_ROOT = "rosbag2_bagfile_information"
_SPLIT = re.compile(r"(?P<stem>.*)_(?P<number>\d+)\.(?P<suffix>mcap|db3)(\.zstd?)?")


class Metadata(NamedTuple):
    """What metadata.yaml says about the files of a bag."""

    files: tuple[Path, ...]
    promised: int | None
    warnings: tuple[str, ...]
    custom: Mapping[str, str] = {}


def is_data_file(path: Path) -> bool:
    """Tell by its name whether a file is one of rosbag2's."""
    return path.name.endswith(SUFFIXES)


def data_files(folder: Path) -> list[Path]:
    """Return the data files of rosbag2 in a folder, split files in the order of their numbers."""

    def order(path: Path) -> tuple[str, int]:
        match = _SPLIT.fullmatch(path.name)
        return (match["stem"], int(match["number"])) if match else (path.name, -1)

    return sorted((entry for entry in folder.iterdir() if is_data_file(entry)), key=order)


def one_recording(files: Sequence[Path]) -> bool:
    """Tell by their names and times whether files are the parts of one split recording."""
    if len(files) == 1:
        return True
    parts = [match for file in files if (match := _SPLIT.fullmatch(file.name))]
    if len(parts) < len(files) or len({(part["stem"], part["suffix"]) for part in parts}) > 1:
        return False
    return not _at_once(files)


def _at_once(files: Iterable[Path]) -> bool:
    """Tell whether a file begins before the middle of the one before: no recorder splits so.

    ``drive_1`` and ``drive_2`` are named like parts; in simulated time both begin at zero.
    """
    middle = 0
    for file in files:
        if file.suffix in PACKED:
            continue  # it would have to be unpacked
        try:
            storage = _open_storage(file, file)
        except RecordingError:
            continue  # reported when it is read
        storage.close()
        if storage.count:
            if storage.start_ns < middle:
                return True
            middle = (storage.start_ns + storage.end_ns) // 2
    return False


def open_folder(folder: Path) -> BagRecording:
    """Open a folder as `ros2 bag record` writes it; raises RecordingError."""
    metadata = _read_metadata(folder)
    files = metadata.files or tuple(data_files(folder))
    if not files:
        raise RecordingError("holds no recording", accepted=ACCEPTED, file=folder)
    if not metadata.files and not one_recording(files):
        names = ", ".join(file.name for file in files[:5]) + (", ..." if len(files) > 5 else "")
        raise RecordingError(
            f"holds {len(files)} recordings ({names})", accepted="one of them", file=folder
        )
    return _open(folder, files, metadata)


def open_file(path: Path) -> BagRecording:
    """Open a single .mcap or .db3 file; raises RecordingError."""
    return _open(path, (path,), Metadata((path,), None, ()))


def _open(path: Path, files: tuple[Path, ...], metadata: Metadata) -> BagRecording:
    warnings = list(metadata.warnings)
    storages: list[Storage] = []
    copies: dict[Path, Path] = {}
    with ExitStack() as stack:
        folder = (
            Path(stack.enter_context(TemporaryDirectory(prefix="forewarn-")))
            if any(file.suffix in PACKED for file in files)
            else None
        )
        staged = Staged() if any(_is_staged(file) for file in files) else None
        if staged is not None:
            stack.callback(staged.close)
        for number, file in enumerate(files):
            try:
                source = file
                if folder is not None and file.suffix in PACKED:
                    source = folder / f"{number}_{file.stem}"
                    _unpack(file, source, warnings)
                elif staged is not None and isinstance(file, RemotePath) and _is_staged(file):
                    source = copies[file] = staged.copy(file)
                storage = _open_storage(file, source)
            except RecordingError as error:
                if len(files) == 1:
                    raise
                warnings.append(f"{file.name} {error.problem}; it is left out")
                continue
            stack.callback(storage.close)
            storages.append(storage)
        if not storages:
            raise RecordingError(
                f"none of its {len(files)} files can be read: {'; '.join(warnings)}",
                accepted=ACCEPTED,
                file=path,
            )
        kept = stack.pop_all()
    kind = "rosbag2 (mcap)" if ".db3" not in storages[0].path.suffixes else "rosbag2 (sqlite3)"
    recording = BagRecording(
        path,
        kind,
        storages,
        warnings=warnings,
        cleanup=kept.close,
        custom=metadata.custom,
        copies=copies,
    )
    if metadata.promised is not None and metadata.promised > recording.count:
        recording.warnings.append(
            f"{_METADATA} promises {plural(metadata.promised, 'message')}, "
            f"the files hold {recording.count}"
        )
    return recording


def _is_staged(path: Path) -> bool:
    """Tell whether SQLite has to read a copy of a file."""
    return isinstance(path, RemotePath) and path.suffix == ".db3"


def _open_storage(path: Path, source: Path) -> Storage:
    return McapFile(path, source) if source.suffix != ".db3" else SqliteFile(path, source)


def _unpack(packed: Path, target: Path, warnings: list[str]) -> None:
    """Unpack a file compressed by rosbag2, as far as it goes."""
    try:
        with open_plain(packed) as source, target.open("wb") as sink:
            for block in unpacked(source, most(packed.stat().st_size)):
                sink.write(block)
    except CutError as error:
        if not target.stat().st_size:
            raise RecordingError(
                f"cannot be unpacked: {error}", accepted="zstd, as rosbag2 writes it", file=packed
            ) from error
        warnings.append(f"{packed.name}: {error}; the part before the damage is used")
    except OSError as error:
        raise RecordingError(f"cannot be unpacked ({error.strerror})", file=packed) from error


def _read_metadata(folder: Path) -> Metadata:
    """Read metadata.yaml as far as it can be trusted; without one, the files speak."""
    path = folder / _METADATA
    if not path.exists():
        return Metadata((), None, (f"{_METADATA} is missing; the files themselves were read",))
    try:
        with open_plain(path) as file:
            document = yaml.safe_load(file.read().decode("utf-8"))
        table: Mapping[str, Any] = document[_ROOT]
        names = [
            PurePosixPath(relative_file_path).name
            for relative_file_path in table["relative_file_paths"]
        ]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError, RecursionError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Metadata(
            (), None, (f"{_METADATA} cannot be used ({text}); the files themselves were read",)
        )
    _check_formats(table, path)
    files = tuple(folder / name for name in names)
    missing = [file.name for file in files if not file.is_file()]
    present = tuple(file for file in files if file.is_file())
    if files and not present:
        raise RecordingError(
            f"names files that do not exist: {', '.join(missing)}",
            accepted="the files in the same folder",
            file=path,
            key=f"{_ROOT}.relative_file_paths",
        )
    count = table.get("message_count")
    warnings = (f"{', '.join(missing)} named by {_METADATA} is missing",) if missing else ()
    custom = table.get("custom_data")
    tables = {str(k): str(v) for k, v in custom.items()} if isinstance(custom, dict) else {}
    return Metadata(present, count if isinstance(count, int) else None, warnings, tables)


def _check_formats(table: Mapping[str, Any], path: Path) -> None:
    """Refuse storages and compressions for which there is no reader here."""
    storage = table.get("storage_identifier")
    if storage not in ("mcap", "sqlite3"):
        raise RecordingError(
            f"storage {storage!r} is unknown",
            accepted="mcap or sqlite3",
            file=path,
            key=f"{_ROOT}.storage_identifier",
        )
    mode = str(table.get("compression_mode") or "none").lower()
    form = table.get("compression_format")
    if mode != "none" and form != "zstd":
        raise RecordingError(
            f"compression {form!r} is unknown",
            accepted="zstd",
            file=path,
            key=f"{_ROOT}.compression_format",
        )
