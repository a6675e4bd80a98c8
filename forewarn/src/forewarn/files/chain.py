"""A chain of hashes beside a record, which tells later whether the record is as it was written.

The chain of ``steps.jsonl`` is ``steps.jsonl.chain``. For each block that was written (a line of a
trace, a piece of an MCAP file) it has a line: kind, where the block ends, and the SHA-256 of the
hash before, kind, end and block. With a key the hashes are HMACs: without the key no other chain
can be made. It is no signature: a person who can read the robot's disk could read a private key as
well, and the standard library has HMACs.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from forewarn.errors import InputError, RecordingError
from forewarn.files.inputs import open_plain
from forewarn.files.outputs import create_output

SUFFIX = ".chain"
PLAIN, KEYED = b"forewarn chain 1 sha256\n", b"forewarn chain 1 hmac-sha256\n"
WRITTEN, FOUND, CLOSED = "written", "found", "closed"
"""Kinds: a block that was written, one that was there already, the end of a writer."""
LEAST_KEY = 16
MOST_KEY = 4096
_FILES = 3
_PIECE = 1 << 20
_LONGEST = 128
_LINE = re.compile(rb"(written|found|closed) (0|[1-9]\d{0,18}) ([0-9a-f]{64})\n")

Opened = TypeVar("Opened", bound=io.RawIOBase)
Reader = BinaryIO | io.FileIO


class Entry(NamedTuple):
    """A line of a chain."""

    kind: str  # `WRITTEN`, `FOUND` or `CLOSED`
    end: int  # bytes of the record up to the end of the block
    digest: str  # the hash, 64 hexadecimal digits


def chain_of(path: Path) -> Path:
    """Return where the chain of a record is."""
    return path.with_name(path.name + SUFFIX)


def read_key(path: Path | str | None) -> bytes | None:
    """Return the key in a file, or None without a file.

    Raises InputError if it cannot be read, or has fewer than 16 or more than 4,096 bytes.
    """
    if path is None:
        return None
    path = Path(path)
    try:
        with open_plain(path) as file:
            key = file.read(MOST_KEY + 1)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", file=path) from error
    if not LEAST_KEY <= len(key) <= MOST_KEY:
        raise InputError(
            f"has {'too many' if len(key) > MOST_KEY else len(key)} bytes", file=path,
            accepted=f"a key of {LEAST_KEY} to {MOST_KEY} bytes, as `openssl rand 32` makes one",
        )  # fmt: skip
    return key


def genesis(key: bytes | None) -> bytes:
    """Return the first line of a chain."""
    return PLAIN if key is None else KEYED


def first_digest(key: bytes | None) -> str:
    """Return the hash before the first block."""
    return _hash(key, genesis(key)).hexdigest()


def digest_of(key: bytes | None, before: str, kind: str, file: Reader, start: int, end: int) -> str:
    """Return the hash of the block of a record from one place to another."""
    made = _hash(key, f"{before} {kind} {end} ".encode())
    file.seek(start)
    while (left := end - file.tell()) > 0 and (data := file.read(min(left, _PIECE))):
        made.update(data)
    return made.hexdigest()


def _hash(key: bytes | None, data: bytes) -> hashlib._Hash | hmac.HMAC:
    return hashlib.sha256(data) if key is None else hmac.new(key, data, "sha256")


def entry_of(line: bytes) -> Entry | None:
    """Return what a line of a chain says; None if it is no such line, to the last bit."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    return Entry(found[1].decode(), int(found[2]), found[3].decode())


def is_beginning(line: bytes) -> bool:
    """Tell whether a last line is one whose writer was killed: nothing in it is wrong."""
    kind, *rest = line.split(b" ")
    kinds = (WRITTEN.encode(), FOUND.encode(), CLOSED.encode())
    if not rest:
        return any(name.startswith(kind) for name in kinds)
    end, *digest = rest
    right = not digest or re.fullmatch(rb"[0-9a-f]{0,64}", digest[0]) is not None
    return kind in kinds and end.isdigit() == bool(end) and len(digest) < 2 and right


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines, none longer than a chain can have."""
    while line := file.readline(_LONGEST):
        yield line


class ChainedFile(io.RawIOBase):
    """A record whose blocks enter a chain as they are written; several processes may append.

    `path`: the record, a plain file.
    `key`: what the chain is keyed with.
    `new`: refuse a file that is there, with FileExistsError.
    Raises RecordingError if the chain beside it is of another kind or has another key's form.
    Raises OSError if one of both cannot be opened.
    """

    def __init__(self, path: Path, key: bytes | None = None, *, new: bool = False) -> None:
        super().__init__()
        self._key = key
        self._files: list[io.RawIOBase] = []
        self._chain_path = chain_of(path)
        if new and self._chain_path.exists():
            raise FileExistsError(self._chain_path)
        self._record = self._kept(create_output(path) if new else io.FileIO(path, "ab"))
        self._reader = path.open("rb", buffering=0)
        self._chain = self._kept(io.FileIO(self._chain_path, "ab+"))
        self._kept(self._reader)
        self._known, self._last = 0, Entry(WRITTEN, 0, first_digest(key))
        with self._alone():
            pass

    def _kept(self, file: Opened) -> Opened:
        self._files.append(file)
        return file

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Append a block to the record, then to the chain."""
        with self._alone():
            taken = self._record.write(data) or 0
            self._add(WRITTEN, self._last.end + taken)
        return taken

    def close(self) -> None:
        """Say in the chain that the record has come to its end."""
        if self.closed:
            return
        try:
            if len(self._files) == _FILES:
                with self._alone():
                    self._add(CLOSED, self._last.end)
        finally:
            for file in self._files:
                file.close()
            super().close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other writers away, and take in what they have written."""
        fcntl.flock(self._chain, fcntl.LOCK_EX)
        try:
            if self._chain.seek(0, os.SEEK_END) != self._known:
                self._read_chain()
            # What is in the record and not in the chain: its writer was killed in between.
            if (size := os.fstat(self._reader.fileno()).st_size) != self._last.end:
                self._add(FOUND, size)
            yield
        finally:
            fcntl.flock(self._chain, fcntl.LOCK_UN)

    def _read_chain(self) -> None:
        with open_plain(self._chain_path) as file:
            file.seek(self._known)
            for line in lines_of(file):
                entry = entry_of(line)
                if entry is None and (self._known or line != genesis(self._key)):
                    break  # a writer was killed here
                self._last = entry or self._last
                self._known += len(line)
        if self._known == 0:
            raise RecordingError(
                "is no chain, or one of another kind", file=self._chain_path,
                accepted=f"a chain {'without a' if self._key is None else 'with this'} key",
            )  # fmt: skip
        self._chain.truncate(self._known)

    def _add(self, kind: str, end: int) -> None:
        if self._known == 0:
            self._known += self._chain.write(genesis(self._key)) or 0
        before, start = self._last.digest, self._last.end
        digest = digest_of(self._key, before, kind, self._reader, start, end)
        self._known += self._chain.write(f"{kind} {end} {digest}\n".encode()) or 0
        self._last = Entry(kind, end, digest)
