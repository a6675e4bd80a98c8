"""Where shards are kept: a folder, or an object store.

A shard is written once, as a whole: the address says all that it depends on, so whoever writes it
again writes the same. What a killed process leaves is a draft that nobody reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forewarn.errors import InputError, ModelError
from forewarn.files.outputs import write_bytes
from forewarn.learning.recording_report import RecordingReport
from forewarn.learning.shard_files import pack, unpack

SUFFIX = ".shard"


@dataclass(frozen=True)
class ShardStore:
    """Shards by address; travels between processes.

    Parameters
    ----------
    folder : Path
        A folder, or the address of one in an object store; it need not exist.
    """

    folder: Path

    def path(self, key: str) -> Path:
        """Return where the shard with this address lies."""
        return self.folder / key[:2] / f"{key[2:]}{SUFFIX}"

    def get(self, key: str) -> RecordingReport | None:
        """Return a shard, None if there is none; raises InputError if it cannot be used."""
        path = self.path(key)
        try:
            return unpack(path.read_bytes())
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
