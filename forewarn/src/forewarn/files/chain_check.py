"""Whether a record is as its chain says: what was changed, cut, added or never finished."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from forewarn.errors import RecordingError, plural
from forewarn.files.chain import (
    CLOSED,
    FOUND,
    Entry,
    chain_of,
    digest_of,
    entry_of,
    first_digest,
    genesis,
    is_beginning,
    lines_of,
)
from forewarn.files.inputs import open_plain

LISTED = 20


@dataclass
class ChainCheck:
    """What a chain says of its record.

    `findings`: what is not as it was written, with file and line (or bytes, in a binary file).
    `remarks`: what cannot be vouched for, and need be nothing bad: a line that was never finished.
    """

    findings: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    blocks: int = 0  # blocks that are as they were written
    head: str = ""  # the last hash; empty if there is none


def check_chain(path: Path, key: bytes | None = None, head: str = "") -> ChainCheck:
    """Hold a record against its chain.

    `path`: the record; its chain is beside it.
    `key`: the key of the chain.
    `head`: a hash of the chain that was noted elsewhere, or its beginning.
    Raises RecordingError if one of both cannot be read, or the chain needs a key, or has none.
    """
    try:
        with ExitStack() as stack:
            record = stack.enter_context(open_plain(path))
            chain = stack.enter_context(open_plain(chain_of(path)))
            return _Check(path, record, chain, key).run(head)
    except OSError as error:
        raise RecordingError(f"cannot be read ({error.strerror or error})", file=path) from error


class _Check:
    def __init__(self, path: Path, record: BinaryIO, chain: BinaryIO, key: bytes | None) -> None:
        self.path, self.record, self.chain, self.key = path, record, chain, key
        self.text = path.suffix != ".mcap"
        self.result = ChainCheck()
        self.last = Entry(CLOSED, 0, first_digest(key))
        self.line = 1
        self.size = path.stat().st_size
        self.wrong = 0

    def run(self, head: str) -> ChainCheck:
        heads = []
        for number, entry in self._entries():
            self._hold(number, entry)
            heads.append(entry.digest)
        self._tail(bool(heads))
        if head and not any(each.startswith(head) for each in heads):
            self.result.findings.append(f"{self.path}: its chain does not hold the hash {head}")
        if self.wrong > LISTED:
            self.result.findings.append(f"{self.path}: {self.wrong - LISTED} more do not match")
        self.result.head = heads[-1] if heads else ""
        return self.result

    def _entries(self) -> Iterator[tuple[int, Entry]]:
        """Yield entries with their lines; stop at what is none."""
        lines = lines_of(self.chain)
        self._first(next(lines, b""))
        for number, line in enumerate(lines, 2):
            entry = entry_of(line)
            if entry is not None:
                yield number, entry
            elif is_beginning(line) and not next(lines, b""):
                self.result.remarks.append(
                    f"{chain_of(self.path)}:{number}: its writer was killed while it wrote this"
                )
            else:
                self.result.findings.append(
                    f"{chain_of(self.path)}:{number}: is no line of a chain; what comes after it "
                    "is not checked"
                )
                return

    def _first(self, line: bytes) -> None:
        if line == genesis(self.key):
            return
        if line in (genesis(b""), genesis(None)):
            raise RecordingError(
                "has a key" if self.key is None else "has no key", file=chain_of(self.path),
                accepted="--key FILE" if self.key is None else "no --key: anybody can write it",
            )  # fmt: skip
        self.result.findings.append(f"{chain_of(self.path)}:1: does not begin as a chain does")

    def _hold(self, number: int, entry: Entry) -> None:
        start, end = self.last.end, entry.end
        digest = digest_of(self.key, self.last.digest, entry.kind, self.record, start, end)
        block = self._block(start, min(end, self.size))
        here = f"{self.path}:{self._place(block, start, end)}"
        if end > self.size or not hmac.compare_digest(digest, entry.digest):
            self.wrong += 1
            if self.wrong <= LISTED:
                self.result.findings.append(f"{here}: {self._different(number, end)}")
        elif entry.kind == FOUND:
            self._found(here, block, start, end)
        else:
            self.result.blocks += entry.kind != CLOSED
        self.line += block
        self.last = entry

    def _different(self, number: int, end: int) -> str:
        entry = f"line {number} of {chain_of(self.path).name}"
        if end > self.size:
            return f"the file ends at byte {self.size}, and {entry} knows of {end}: it was cut"
        return f"is not what was written, or {entry} is not"

    def _found(self, here: str, lines: int, start: int, end: int) -> None:
        if start == 0:
            self.result.remarks.append(f"{here}: was there before the chain began")
        elif end < start:
            self.result.findings.append(
                f"{here}: {start - end} bytes were gone when its writer began again: they were "
                "cut, or the power was lost"
            )
        elif lines <= 1:
            self.result.remarks.append(
                f"{here}: was there when its writer began again, which had been killed before the "
                "chain had it; it is not vouched for"
            )
        else:
            self.result.findings.append(f"{here}: was added by another than its writer")

    def _tail(self, chained: bool) -> None:
        left = self.size - self.last.end
        if left > 0:
            lines = self._block(self.last.end, self.size)
            what = plural(left, "byte")
            if (self.last.kind == CLOSED and chained) or (self.text and lines):
                self.result.findings.append(
                    f"{self.path}:{self.line}: {what} at the end are not in the chain: they were "
                    "added, or the chain was cut"
                )
            else:
                self.result.remarks.append(
                    f"{self.path}:{self.line}: {what} at the end are not in the chain: their "
                    "writer was killed while it wrote them; they are not vouched for"
                )
        elif self.last.kind != CLOSED:
            self.result.remarks.append(
                f"{self.path}: its writer has not closed it: it still writes, it was killed, or "
                "the end is missing, which only --head tells"
            )

    def _place(self, lines: int, start: int, end: int) -> str:
        if not self.text:
            return f" bytes {start} to {end}"
        return str(self.line) if lines <= 1 else f"{self.line}-{self.line + lines - 1}"

    def _block(self, start: int, end: int) -> int:
        """Return how many lines end in a part of the record."""
        self.record.seek(start)
        lines, left = 0, end - start
        while self.text and left > 0 and (data := self.record.read(min(left, 1 << 20))):
            lines += data.count(b"\n")
            left -= len(data)
        return lines
