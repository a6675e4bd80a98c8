"""Derived signals of recorded moments, computed many moments at a time.

What remembers, and what is derived from that, is left to the step: there a moment must be judged
before the next one is known. Everything else gives the same whatever the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.expressions.blocks import Column, Lifted, Signature, column_of, lift, reads_of
from forewarn.expressions.values import vector
from forewarn.signals.snapshots import ABSENT, Ahead, Snapshot

if TYPE_CHECKING:
    from forewarn.states.abstraction import DerivedSignal


Place = tuple[int, int | None]
"""The slot of a signal, and one of its elements or None for all of it."""


class DerivedSignalBatch:
    """Computes derived signals ahead of the step.

    `first`: the slot of the first derived signal.
    `derived`: the derived signals in order of evaluation.
    """

    def __init__(self, first: int, derived: Sequence[DerivedSignal]) -> None:
        self._first = first
        self._derived = tuple(derived)
        self._reads = [reads_of(one.expression.tree, one.expression.names) for one in self._derived]
        self._waits = set[int]()
        for slot, signal in enumerate(self._derived, first):
            if signal.memory is not None or self._waits & {*signal.arguments}:
                self._waits.add(slot)
        self._lifted: dict[
            tuple[int, tuple[Signature, ...]], Lifted | tuple[Lifted, ...] | None
        ] = {}

    def over(self, blocks: Iterable[Sequence[Snapshot]]) -> Iterator[Snapshot]:
        """Yield the snapshots of blocks with what could be computed ahead."""
        idle = len(self._waits) == len(self._derived)
        for block in blocks:
            yield from block if idle else self.filled(block)

    def filled(self, block: Sequence[Snapshot]) -> list[Snapshot]:
        """Return the snapshots of a block with what could be computed ahead."""
        rows = [list(snapshot.values) for snapshot in block]
        columns: dict[Place, Column | None] = {}
        failed: list[dict[int, str]] = [{} for _ in block]
        for place, signal in enumerate(self._derived):
            slot = self._first + place
            if slot in self._waits:
                for row in rows:
                    row.append(ABSENT)
                continue
            found = self._at_once(place, rows, columns)
            missing = _extend(rows, found)
            for at in missing:
                rows[at][slot], reason = signal.computed(rows[at])
                if reason:
                    failed[at][place] = reason
            if isinstance(found, Column) and all(rows[at][slot] is None for at in missing):
                columns[slot, None] = found
        return [
            snapshot._replace(ahead=Ahead(row[self._first :], reasons))
            for snapshot, row, reasons in zip(block, rows, failed, strict=True)
        ]

    def _at_once(
        self, place: int, rows: Sequence[Sequence[Any]], columns: dict[Place, Column | None]
    ) -> Column | Lists | None:
        """Return what a signal is at the moments of a block, as far as columns tell."""
        signal = self._derived[place]
        reads = self._reads[place]
        # Slots follow the names in order, unless a constant or a map stands among them.
        slots = dict(zip(sorted(signal.expression.names), signal.arguments, strict=False))
        if not reads or len(slots) != len(signal.expression.names):
            return None
        given: list[Column] = []
        for read in reads:
            key = slots[read.signal], read.place
            if key not in columns:
                columns[key] = column_of([read.of(row[key[0]]) for row in rows])
            column = columns[key]
            if column is None:
                return None
            given.append(column)
        names = [read.parameter for read in reads]
        signatures = tuple(column.signature for column in given)
        asked = place, signatures
        if asked not in self._lifted:
            self._lifted[asked] = lift(signal.expression, names, signatures)
        lifted = self._lifted[asked]
        if lifted is None:
            return None
        return lifted.apply(given) if isinstance(lifted, Lifted) else _listed(lifted, given)


class Lists(NamedTuple):
    """Lists at the moments that are `known`."""

    values: Sequence[Any]
    known: NDArray[np.bool_]

    def each(self) -> Sequence[Any]:
        """Return the lists."""
        return self.values


def _listed(lifted: tuple[Lifted, ...], given: Sequence[Column]) -> Lists | None:
    """Return lists whose elements are computed one by one, each for all moments."""
    parts: list[Column] = []
    for one in lifted:
        part = one.apply(given)
        if part is None:
            return None
        parts.append(part)
    known = np.logical_and.reduce([part.known for part in parts])
    elements = [part.some(known) for part in parts]
    return Lists(list(map(vector, zip(*elements, strict=True))), known)


def _extend(rows: Sequence[list[Any]], column: Column | Lists | None) -> Sequence[int]:
    """Append the values of a column, None where there is none; return where that is."""
    if column is None:
        for row in rows:
            row.append(None)
        return range(len(rows))
    if column.known.all():
        for row, value in zip(rows, column.each(), strict=True):
            row.append(value)
        return ()
    values = iter(column.each())
    missing = []
    for at, (row, known) in enumerate(zip(rows, column.known.tolist(), strict=True)):
        row.append(next(values) if known else None)
        if not known:
            missing.append(at)
    return missing
