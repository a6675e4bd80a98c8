"""Bring the stretches of a bag file into log-time order without reading all of it first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from forewarn.errors import plural
from forewarn.recordings.interface import Row

_by_time = itemgetter(0)


class Segment(NamedTuple):
    """A stretch of a file that is read and decoded in one go: a chunk, or a run of records.

    `start_ns`, `end_ns`: range of the log times within.
    `offset`, `length`: where it lies in the file, in bytes.
    """

    start_ns: int
    end_ns: int
    offset: int
    length: int
    channels: frozenset[int]  # channels with messages in it; empty if that is not known
    cut: bool = False  # whether the file ends within it


class Disorder:
    """How far log times go back in the order of the file."""

    def __init__(self) -> None:
        self.times = 0
        self.worst_ns = 0

    def note(self, back_ns: int) -> None:
        """Count one step back by `back_ns` nanoseconds."""
        self.times += 1
        self.worst_ns = max(self.worst_ns, back_ns)

    def warning(self) -> str | None:
        """Return what to tell the user, if anything."""
        if not self.times:
            return None
        return (
            f"log times go backwards {plural(self.times, 'time')}, by up to "
            f"{self.worst_ns / 1e9:.9g} s; messages are read in log-time order"
        )


def segment_disorder(segments: Iterable[Segment]) -> Disorder:
    """Find the segments that begin before an earlier one in the file has ended."""
    disorder = Disorder()
    latest = 0
    for segment in sorted(segments, key=lambda segment: segment.offset):
        if segment.start_ns < latest:
            disorder.note(latest - segment.start_ns)
        latest = max(latest, segment.end_ns)
    return disorder


def sort_rows(rows: list[Row], disorder: Disorder) -> list[Row]:
    """Return `rows` in time order, simultaneous ones in file order, noting every step back."""
    latest = rows[0][0] if rows else 0
    for time_ns, _, _ in rows:
        if time_ns < latest:
            disorder.note(latest - time_ns)
        else:
            latest = time_ns
    return sorted(rows, key=_by_time)


def in_time_order(
    segments: Iterable[Segment], load: Callable[[Segment], list[Row]], late: Callable[[int], None]
) -> Iterator[list[Row]]:
    """Yield batches of rows in log-time order; simultaneous rows come in file order.

    Only segments whose time ranges overlap are held at once.

    `segments`: in any order.
    `load`: returns the rows of a segment, sorted by time.
    `late`: called with the number of rows that had to be dropped because they are older than the
    range that their segment declares, when later ones had been handed out already.
    """
    pending: list[tuple[int, list[Row]]] = []
    handed_out = 0
    for segment in sorted(segments, key=lambda segment: (segment.start_ns, segment.offset)):
        if pending:
            ready, pending = _split(pending, segment.start_ns)
            if ready:
                handed_out = segment.start_ns
                yield ready
        rows = load(segment)
        if rows and rows[0][0] < handed_out:
            first = bisect_left(rows, handed_out, key=_by_time)
            late(first)
            rows = rows[first:]
        if rows:
            pending.append((segment.offset, rows))
    if pending:
        yield _merge(pending)


def _split(
    pending: list[tuple[int, list[Row]]], limit: int
) -> tuple[list[Row], list[tuple[int, list[Row]]]]:
    """Part the pending rows into those before `limit`, merged, and the rest."""
    early: list[tuple[int, list[Row]]] = []
    rest: list[tuple[int, list[Row]]] = []
    for offset, rows in pending:
        if rows[-1][0] < limit:
            early.append((offset, rows))
        elif rows[0][0] >= limit:
            rest.append((offset, rows))
        else:
            first = bisect_left(rows, limit, key=_by_time)
            early.append((offset, rows[:first]))
            rest.append((offset, rows[first:]))
    return _merge(early), rest


def _merge(parts: list[tuple[int, list[Row]]]) -> list[Row]:
    if len(parts) < 2:
        return parts[0][1] if parts else []
    return sorted((row for _, rows in sorted(parts, key=_by_time) for row in rows), key=_by_time)
