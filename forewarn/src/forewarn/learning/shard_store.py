"""Where shards are kept: a folder, or an object store.

A shard is written once, as a whole: the address says all that it depends on, so writing it
again gives the same. A killed process leaves a draft that is never read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forewarn.errors import InputError, ModelError
from forewarn.files.inputs import open_plain
from forewarn.files.outputs import write_bytes
from forewarn.files.remote import RemotePath
from forewarn.learning.recording_report import RecordingReport
from forewarn.learning.shard_files import pack, unpack
from forewarn.models.checked_json import MAX_BYTES

SUFFIX = ".shard"


@dataclass(frozen=True)
class ShardStore:
    """Shards by address; travels between processes.

    `folder`: a folder, or the address of one in an object store; it need not exist.
    """

    folder: Path

    def path(self, key: str) -> Path:
        """Return where the shard with this address lies."""
        return self.folder / key[:2] / f"{key[2:]}{SUFFIX}"

    def get(self, key: str) -> RecordingReport | None:
        """Return a shard, None if there is none; raises InputError if it cannot be used."""
        path = self.path(key)
        try:
            return unpack(_content(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror or error})", file=path) from error
        except ModelError as error:
            raise error.located(file=path) from error

    def put(self, key: str, report: RecordingReport) -> None:
        """Keep a shard; raises InputError."""
        path = self.path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error
        write_bytes(path, pack(report))


def _content(path: Path) -> bytes:
    """Return the bytes of a shard; of a longer file only enough to see that it is no shard."""
    if isinstance(path, RemotePath):
        return path.read_bytes()
    with open_plain(path) as file:
        return file.read(MAX_BYTES + 1)
