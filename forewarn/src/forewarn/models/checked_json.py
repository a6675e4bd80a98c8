"""Checked access to the JSON of a model file: every error names its key path and value."""

from __future__ import annotations

import json
import math
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.errors import ModelError, located
from forewarn.files.inputs import NotPlainFileError, open_plain
from forewarn.states.kinds import parse_states

if TYPE_CHECKING:
    from forewarn.states.interface import StateSpace

MAX_BYTES = 256 * 1024 * 1024
SMALL, RATIO = 1 << 22, 64
"""What is packed may become as many bytes, or as many times its own: models shrink to a tenth."""
GZIP, PACKED = b"\x1f\x8b", zlib.MAX_WBITS | 16
MAX_NAMES = 4096
MAX_CHILDREN = 1 << 16
MAX_FORBIDDEN = 1 << 25
MAX_MASKS = 1 << 28
"""Bytes of the masks of successors: one of all states for each kind of forbidden transitions."""

Choice = TypeVar("Choice", bound=str)


def read_json(path: Path | str, most: int = MAX_BYTES) -> Any:
    """Return the JSON document in `path`, of `most` bytes; raises ModelError if none is sound.

    The file may be packed by gzip; its contents, too, have `most` bytes then.
    """
    file = Path(path)
    try:
        with open_plain(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size <= most:
                raw = stream.read(most + 1)
                size = max(size, len(raw))  # it may have grown
        if size > most:
            raise ModelError(f"{size} bytes", accepted=f"at most {most} bytes", file=file)
    except NotPlainFileError as error:
        raise ModelError(
            "is no plain file", accepted="a model file (JSON text)", file=file
        ) from error
    except OSError as error:
        raise ModelError(
            f"cannot be read: {error.strerror}", accepted="a model file (JSON text)", file=file
        ) from error
    except ValueError as error:  # a NUL in the name
        raise ModelError(
            f"cannot be read: {error}", accepted="a model file (JSON text)", file=file
        ) from error
    with located(ModelError, file=file):
        return parse_json(unpacked(raw, most))


def most_unpacked(packed: int, most: int = MAX_BYTES) -> int:
    """Return how many bytes so many packed ones may become, at most `most`.

    A few bytes can stand for gigabytes, and what is read of them takes twenty times as many.
    """
    return min(most, max(SMALL, RATIO * packed))


def unpacked(raw: bytes, most: int) -> bytes:
    """Return `raw`, or what gzip has packed in it; raises ModelError.

    `most`: bytes that may come of it.
    """
    if not raw.startswith(GZIP):
        return raw
    unpacking, most = zlib.decompressobj(PACKED), most_unpacked(len(raw), most)
    accepted = "a complete model file, plain or packed by gzip"
    try:
        found = unpacking.decompress(raw, most)
    except zlib.error as error:
        raise ModelError(f"cannot be unpacked: {error}", accepted=accepted) from error
    if unpacking.unconsumed_tail:
        limit = f"at most {most} bytes from {len(raw)} packed ones"
        raise ModelError("too large when unpacked", accepted=limit)
    if not unpacking.eof:
        raise ModelError("cannot be unpacked: it is cut short", accepted=accepted)
    return found


def begin_of(raw: bytes) -> bytes:
    """Return `raw`, the beginning of a file, or as much as it tells of what gzip has packed."""
    if raw.startswith(GZIP):
        with suppress(zlib.error):
            return zlib.decompressobj(PACKED).decompress(raw)
    return raw


def parse_json(raw: bytes) -> Any:
    """Return the JSON document in `raw`; raises ModelError if it is not sound."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"byte {error.start} is not UTF-8", accepted="a model file (JSON text)"
        ) from error
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ModelError(
            f"not valid JSON, cut short perhaps: {error.msg} in line {error.lineno}",
            accepted="a complete model file",
            key=f"line {error.lineno}, column {error.colno}",
        ) from error
    except ModelError:
        raise
    except RecursionError as error:
        raise ModelError("nested too deeply", accepted="a model file") from error
    except ValueError as error:
        raise ModelError(str(error), accepted="a model file") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"key {twice!r} occurs twice", accepted="each key once", key=twice)
    return result


def _no_constant(text: str) -> Any:
    raise ModelError(f"{text} is no JSON number", accepted="finite numbers")


class Reader:
    """One JSON object of a model file, with the key path that leads to it."""

    def __init__(self, value: Any, path: str) -> None:
        self.path = path
        if not isinstance(value, dict):
            raise self.wrong("", value, "an object")
        self.value: dict[str, Any] = value

    def _key(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path and key else self.path or key

    def wrong(self, key: str, value: Any, accepted: str) -> ModelError:
        """Return the error that says what is wrong with the value of a key."""
        shown = repr(value)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        return ModelError(f"{shown} is not accepted", accepted=accepted, key=self._key(key))

    def get(self, key: str, accepted: str) -> Any:
        """Return the value of a required key."""
        if key not in self.value:
            raise ModelError("missing", accepted=accepted, key=self._key(key))
        return self.value[key]

    def expect(self, key: str, constant: str) -> None:
        """Check that `key` has the value `constant`."""
        value = self.get(key, repr(constant))
        if value != constant:
            raise self.wrong(key, value, repr(constant))

    def text(self, key: str) -> str:
        """Return a string."""
        value = self.get(key, "text")
        if not isinstance(value, str):
            raise self.wrong(key, value, "text")
        return value

    def number(self, key: str) -> float:
        """Return a finite number."""
        value = self.get(key, "a finite number")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(key, value, "a finite number")
        if not math.isfinite(value):
            raise self.wrong(key, value, "a finite number")
        return float(value)

    def horizon(self) -> float:
        """Return `horizon`: seconds above 0, infinite where it is null."""
        accepted = "seconds above 0, or null"
        if self.get("horizon", accepted) is None:
            return math.inf
        seconds = self.number("horizon")
        if not seconds > 0:
            raise self.wrong("horizon", seconds, accepted)
        return seconds

    def integer(self, key: str, low: int, high: int) -> int:
        """Return a whole number within ``low..high``."""
        accepted = f"a whole number from {low} to {high}"
        return self.whole(key, self.get(key, accepted), low, high)

    def whole(self, key: str, value: Any, low: int, high: int) -> int:
        """Return `value`, which stands at `key`, if it is a whole number within ``low..high``."""
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(key, value, f"a whole number from {low} to {high}")
        return value

    def truth(self, key: str) -> bool:
        """Return true or false."""
        value = self.get(key, "true or false")
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def choice(self, key: str, options: tuple[Choice, ...]) -> Choice:
        """Return one of `options`."""
        value = self.text(key)
        for option in options:
            if value == option:
                return option
        raise self.wrong(key, value, " or ".join(repr(option) for option in options))

    def items(self, key: str, limit: int) -> list[Any]:
        """Return a list of at most `limit` items."""
        value = self.get(key, "a list")
        if not isinstance(value, list) or len(value) > limit:
            raise self.wrong(key, value, f"a list of at most {limit} items")
        return value

    def numbers(self, key: str, limit: int, least: float | None = None) -> tuple[float, ...]:
        """Return a list of at most `limit` finite numbers, none below `least`."""
        items = self.items(key, limit)
        accepted = "a finite number" if least is None else f"a finite number >= {least:g}"
        low = -sys.float_info.max if least is None else least
        for i, value in enumerate(items):
            plain = isinstance(value, int | float) and not isinstance(value, bool)
            if not plain or not low <= value <= sys.float_info.max:
                raise self.wrong(f"{key}[{i}]", value, accepted)
        return tuple(map(float, items))

    def whole_numbers(self, key: str, low: int, high: int, limit: int) -> tuple[int, ...]:
        """Return a list of at most `limit` whole numbers within ``low..high``."""
        items = self.items(key, limit)
        return tuple(self.whole(f"{key}[{i}]", value, low, high) for i, value in enumerate(items))

    def texts(self, key: str, limit: int) -> tuple[str, ...]:
        """Return a list of at most `limit` texts."""
        items = self.items(key, limit)
        for i, value in enumerate(items):
            if not isinstance(value, str):
                raise self.wrong(f"{key}[{i}]", value, "text")
        return tuple(items)

    def child(self, key: str) -> Reader:
        """Return a nested object."""
        return Reader(self.get(key, "an object"), self._key(key))

    def children(self, key: str, most: int = MAX_CHILDREN) -> list[Reader]:
        """Return a list of at most `most` nested objects."""
        items = self.items(key, most)
        return [Reader(part, self._key(f"{key}[{i}]")) for i, part in enumerate(items)]

    def names(self, key: str) -> tuple[str, ...]:
        """Return a list of distinct, non-empty names."""
        items = self.items(key, MAX_NAMES)
        for i, text in enumerate(items):
            if not isinstance(text, str) or not text or items.index(text) != i:
                raise self.wrong(f"{key}[{i}]", text, "distinct names")
        return tuple(items)

    def space(self, kind: str, content: Reader | None = None) -> StateSpace:
        """Return the states, of a kind that has `content` in the file."""
        names = self.names("predicates"), self.names("terminals")
        try:
            return parse_states(kind, *names, {} if content is None else content.value)
        except ModelError as error:
            where = "states" if content is None else content.path
            raise ModelError(
                error.problem, accepted=error.accepted, key=f"{where}.{error.key}"
            ) from error

    def states(self, vocabulary: StateSpace, limit: int) -> tuple[int, ...]:
        """Return the state codes."""
        codes: dict[int, None] = {}
        for i, key in enumerate(self.items("states", limit)):
            path = f"states[{i}]"
            code = self.state(path, key, vocabulary)
            if code in codes:
                raise self.wrong(path, key, "each state once")
            codes[code] = None
        return tuple(codes)

    def state(self, path: str, key: Any, vocabulary: StateSpace) -> int:
        """Return the code of the state whose text `key` stands at `path`."""
        if not isinstance(key, str):
            raise self.wrong(path, key, "a state's text")
        with located(ModelError, key=self._key(path)):
            return vocabulary.parse_key(key)

    def pairs(self, key: str, n: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield ``[index, count]`` items with distinct indices below `n`."""
        seen: set[int] = set()
        for i, entry in enumerate(self.items(key, n)):
            path = f"{key}[{i}]"
            if not isinstance(entry, list) or len(entry) != 2:
                raise self.wrong(path, entry, "[state index, count]")
            index = self.whole(path, entry[0], 0, n - 1)
            if index in seen:
                raise self.wrong(path, entry, "each state once")
            seen.add(index)
            yield index, self.whole(path, entry[1], 0, high)

    def counts(self, key: str, n: int, high: int) -> sparse.csr_matrix:
        """Return the count matrix from ``[row, [columns], [counts]]`` items."""
        rows: list[int] = []
        columns: list[int] = []
        values: list[int] = []
        seen: set[int] = set()
        for i, entry in enumerate(self.items(key, n)):
            path = f"{key}[{i}]"
            if not isinstance(entry, list) or len(entry) != 3:
                raise self.wrong(path, entry, "[state index, [successors], [counts]]")
            row = self.whole(f"{path}[0]", entry[0], 0, n - 1)
            if row in seen:
                raise self.wrong(f"{path}[0]", row, "each state once")
            seen.add(row)
            targets = self._indices(f"{path}[1]", entry[1], n)
            if not isinstance(entry[2], list) or len(entry[2]) != len(targets):
                raise self.wrong(f"{path}[2]", entry[2], f"{len(targets)} counts")
            for k, count in enumerate(entry[2]):
                values.append(self.whole(f"{path}[2][{k}]", count, 1, high))
            columns.extend(targets)
            rows.extend([row] * len(targets))
        return sparse.csr_matrix((values, (rows, columns)), shape=(n, n), dtype=np.int64)

    def columns(self, key: str, ranges: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
        """Return a table of whole numbers, stored by columns, each of which has its range.

        Returns an array of shape (rows, columns).
        """
        items = self.items(key, len(ranges))
        rows = len(items[0]) if items and isinstance(items[0], list) else 0
        if len(items) != len(ranges) or rows > MAX_FORBIDDEN:
            raise self.wrong(key, items, f"{len(ranges)} lists")
        found = np.zeros((rows, len(ranges)), dtype=np.int64)
        for i, (column, (low, high)) in enumerate(zip(items, ranges, strict=True)):
            if not isinstance(column, list) or len(column) != rows:
                raise self.wrong(f"{key}[{i}]", column, "lists of equal length")
            if rows and (
                set(map(type, column)) - {int} or not low <= min(column) <= max(column) <= high
            ):
                for k, value in enumerate(column):  # this names what is wrong
                    self.whole(f"{key}[{i}][{k}]", value, low, high)
            found[:, i] = column
        return found

    def forbidden(self, key: str, n: int) -> sparse.csr_matrix:
        """Return the forbidden transitions from ``[[rows], [columns]]`` items."""
        items = self.items(key, n)
        if len(items) * n > MAX_MASKS:
            accepted = f"at most {MAX_MASKS // n} kinds of rows for {n} states"
            raise self.wrong(key, len(items), accepted)
        lengths = np.zeros(n, dtype=np.int64)
        groups = [self._forbidden(f"{key}[{i}]", entry, lengths) for i, entry in enumerate(items)]
        ends = np.cumsum(lengths)
        columns = np.empty(int(lengths.sum()), dtype=np.int32)
        for rows, targets in groups:
            for row in rows:
                columns[ends[row] - len(targets) : ends[row]] = targets
        found = np.ones(len(columns), dtype=bool), columns, np.concatenate([[0], ends])
        return sparse.csr_matrix(found, shape=(n, n), dtype=bool)

    def _forbidden(
        self, path: str, entry: Any, lengths: NDArray[np.int64]
    ) -> tuple[list[int], NDArray[np.int32]]:
        """Return the rows and the columns of an item, and note how many columns its rows have."""
        if not isinstance(entry, list) or len(entry) != 2:
            raise self.wrong(path, entry, "[[states], [successors]]")
        rows = self._indices(f"{path}[0]", entry[0], len(lengths))
        targets = self._indices(f"{path}[1]", entry[1], len(lengths))
        if lengths[rows].any():
            raise self.wrong(f"{path}[0]", entry[0], "each state once")
        lengths[rows] = len(targets)
        if (entries := int(lengths.sum())) > MAX_FORBIDDEN:
            raise self.wrong(path, entries, f"at most {MAX_FORBIDDEN} forbidden transitions")
        return rows, np.sort(np.array(targets, dtype=np.int32))

    def _indices(self, key: str, value: Any, n: int) -> list[int]:
        if not isinstance(value, list):
            raise self.wrong(key, value, "a list of state indices")
        for k, index in enumerate(value):
            self.whole(f"{key}[{k}]", index, 0, n - 1)
        if len(set(value)) != len(value):
            raise self.wrong(key, value, "distinct state indices")
        return value
