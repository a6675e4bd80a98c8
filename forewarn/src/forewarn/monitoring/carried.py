"""What a record carries because another type of processor computes it otherwise, to the last bit.

Two things of a session rest on the processor. BLAS and the solvers add in another order, so risk
tables differ by some 1e-16. And ``exp`` or ``atan2`` of the C library or numpy round otherwise, so
that a signal may fall on the other side of a threshold; `Abstraction.by_platform` knows which
conditions depend on that. A replay computes both itself, compares them with the record, and goes on
with
what the record says. All else has the same bits anywhere and must be equal.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import zstandard

from forewarn.checking.interface import ProcessRisk, RiskOfActions, RiskTable
from forewarn.errors import RecordingError
from forewarn.models.chain import Floats
from forewarn.recordings.zstd import CutError, unpacked

if TYPE_CHECKING:
    from forewarn.monitoring.step import Monitor
    from forewarn.monitoring.tables import CompiledProperty
    from forewarn.states.abstraction import Abstraction
    from forewarn.states.interface import Observed

TOLERANCE = 1e-6
LARGEST = 1 << 30
_HEAD = struct.Struct("<I")
Tables = Mapping[str, Floats]
Solved = TypeVar("Solved", RiskTable, ProcessRisk, RiskOfActions)


@dataclass
class Taken:
    """What a replay took from the record, also where it could be computed otherwise."""

    noun: str = "tick"
    tables: int = 0  # Sets of risk tables; 0 if the record has none and they were solved here
    # The largest difference, in probability or relative in time, to those solved here
    difference: float = 0.0
    # Ticks at which a condition is otherwise on this processor
    conditions: Counter[str] = field(default_factory=Counter)


def tables_of(monitor: Monitor) -> dict[str, Floats]:
    """Return all that was solved for a monitor, by name."""
    found: dict[str, Floats] = {}
    for prop in monitor.properties:
        found |= _arrays(f"{prop.name}.table", prop.table)
        if prop.raw is not prop.table:
            found |= _arrays(f"{prop.name}.raw", prop.raw)
        found |= _arrays(f"{prop.name}.least", prop.least)
        found |= _arrays(f"{prop.name}.of_actions", prop.of_actions)
        if prop.scored is not None:
            found |= _arrays(f"{prop.name}.scored", prop.scored.table)
            found[f"{prop.name}.weights"] = np.array(prop.scored.weights)
        if prop.outlook is not None and prop.outlook.steps is not None:
            found[f"{prop.name}.steps"] = prop.outlook.steps
    return found if monitor.shield is None else found | monitor.shield.solved()


def _arrays(name: str, table: RiskTable | ProcessRisk | None) -> dict[str, Floats]:
    if table is None:
        return {}
    return {
        f"{name}.{column.name}": value
        for column in fields(table)
        if isinstance(value := getattr(table, column.name), np.ndarray)
    }


def with_tables(monitor: Monitor, tables: Tables) -> tuple[Monitor, float]:
    """Return the monitor with tables of a record, and how far its own are from them.

    Raises RecordingError if they are not those of this monitor.
    """
    own = tables_of(monitor)
    if {k: v.shape for k, v in own.items()} != {k: v.shape for k, v in tables.items()}:
        raise RecordingError(
            "its risk tables belong to another monitor file or model",
            accepted="a record as the node wrote it",
        )
    # Among actions that are equally safe the order may be another one.
    compared = [name for name in own if name != "shield.order"]
    difference = max((_difference(own[name], tables[name]) for name in compared), default=0.0)
    properties = tuple(_with_tables(prop, tables) for prop in monitor.properties)
    shield = monitor.shield
    if shield is not None:
        shield = shield.with_solved(tables)
    return replace(monitor, properties=properties, shield=shield), difference


def _with_tables(compiled: CompiledProperty, tables: Tables) -> CompiledProperty:
    def taken(name: str, table: Solved) -> Solved:
        arrays: dict[str, Any] = {
            key.rpartition(".")[2]: tables[key] for key in _arrays(name, table)
        }
        return replace(table, **arrays)

    if compiled.table is None or compiled.raw is None:
        return compiled
    table = taken(f"{compiled.name}.table", compiled.table)
    same = compiled.raw is compiled.table
    raw = table if same else taken(f"{compiled.name}.raw", compiled.raw)
    outlook = compiled.outlook
    if outlook is not None:
        steps = tables.get(f"{compiled.name}.steps")
        outlook = replace(outlook, table=raw, steps=steps, _memo={})
    scored = compiled.scored
    if scored is not None:
        weights = tuple(tables[f"{compiled.name}.weights"].tolist())
        scored = replace(
            scored, table=taken(f"{compiled.name}.scored", scored.table), weights=weights
        )
    least, of_actions = compiled.least, compiled.of_actions
    return replace(
        compiled,
        table=table,
        outlook=outlook,
        raw=raw,
        least=None if least is None else taken(f"{compiled.name}.least", least),
        of_actions=None if of_actions is None else taken(f"{compiled.name}.of_actions", of_actions),
        scored=scored,
    )


def _difference(own: Floats, other: Floats) -> float:
    """Return the largest difference of two arrays, relative where they are above 1."""
    with np.errstate(invalid="ignore"):
        found = np.abs(own - other) / np.maximum(1.0, np.abs(own))
    found[(own == other) | (np.isnan(own) & np.isnan(other))] = 0.0
    largest = float(found.max(initial=0.0))
    return math.inf if math.isnan(largest) else largest


class PackedTables(NamedTuple):
    """Tables ready to be stored: their name, the tables that they rest on, and the bytes."""

    name: str
    base: str | None
    data: bytes


class TablePacker:
    """Packs tables for a record: by digest, and after the first ones only the rows that changed."""

    def __init__(self) -> None:
        self._newest: tuple[str | None, Tables] = None, {}
        self._stored: set[str] = set()

    def pack(self, tables: Tables, ready: PackedTables | None = None) -> tuple[str, bytes | None]:
        """Return the name of these tables, and the bytes to store under it if they are new.

        `ready` is what `prepare` gave for them; if others were stored since, it is not used.
        """
        name = _name(tables) if ready is None else ready.name
        if name in self._stored:
            return name, None
        if ready is None or ready.base != self._newest[0]:
            ready = self.prepare(tables)
        self._stored.add(name)
        self._newest = name, tables
        return name, ready.data

    def prepare(self, tables: Tables) -> PackedTables:
        """Pack tables and store nothing; may be called in another thread."""
        base, last = self._newest
        entries, parts = [], []
        for key, array in tables.items():
            rows = _changed(last.get(key), array)
            stored = array if rows is None else array[rows]
            entries.append(
                {"name": key, "shape": array.shape, "rows": None if rows is None else len(rows)}
            )
            parts += [] if rows is None else [rows.astype("<i8").tobytes()]
            parts.append(np.ascontiguousarray(stored, dtype="<f8").tobytes())
        head = json.dumps({"base": base, "arrays": entries}).encode()
        data = b"".join([_HEAD.pack(len(head)), head, *parts])
        return PackedTables(_name(tables), base, zstandard.ZstdCompressor().compress(data))


def _name(tables: Tables) -> str:
    digest = hashlib.sha256()
    for key, array in tables.items():
        digest.update(json.dumps([key, array.shape]).encode())
        digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return f"tables-{digest.hexdigest()}"


def _changed(before: Floats | None, now: Floats) -> Any:
    """Return the rows of an array whose bits changed; None if it is better stored whole."""
    if before is None or before.shape != now.shape or not now.size:
        return None
    one, other = (np.ascontiguousarray(array).view(np.int64) for array in (before, now))
    rows = np.flatnonzero((one != other).reshape(len(now), -1).any(axis=1))
    return rows if 2 * len(rows) < len(now) else None


class TableReader:
    """Reads the tables of a record."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._read: dict[str, dict[str, Floats]] = {}

    def read(self, name: str) -> Tables:
        """Return the tables of this name; raises RecordingError if they are damaged."""
        chain: list[tuple[str, dict[str, Any], memoryview]] = []
        try:
            while name not in self._read:
                if any(link[0] == name for link in chain):
                    raise ValueError("they rest on themselves")
                head, data = _opened(self._files[name])
                chain.append((name, head, data))
                if head["base"] is None:
                    break
                name = head["base"]
            found = self._read.get(name, {})
            for wanted, head, data in reversed(chain):
                found = dict(_unpacked(head["arrays"], data, found))
                if _name(found) != wanted:
                    raise ValueError("their digest is wrong")
                self._read = {wanted: found}  # later ones rest on it
        except (KeyError, ValueError, TypeError, IndexError, struct.error, CutError) as error:
            raise RecordingError(
                f"its risk tables are damaged: {error}", accepted="a record as the node wrote it"
            ) from error
        return found


def _opened(packed: bytes) -> tuple[dict[str, Any], memoryview]:
    data = memoryview(b"".join(unpacked(io.BytesIO(packed), LARGEST)))
    (length,) = _HEAD.unpack_from(data)
    end = _HEAD.size + length
    return json.loads(bytes(data[_HEAD.size : end])), data[end:]


def _unpacked(
    entries: Sequence[Mapping[str, Any]], data: memoryview, base: Tables
) -> Iterator[tuple[str, Floats]]:
    for entry in entries:
        shape, count = tuple(entry["shape"]), entry["rows"]
        if count is None:
            size = 8 * math.prod(shape)
            # Copied: it may begin anywhere, and a look-up wants its numbers aligned.
            array = np.frombuffer(data[:size], "<f8").astype(np.float64).reshape(shape)
            yield entry["name"], array
        else:
            rows = np.frombuffer(data[: 8 * count], "<i8")
            data = data[8 * count :]
            array = base[entry["name"]].copy()
            size = 8 * count * math.prod(shape[1:])
            array[rows] = np.frombuffer(data[:size], "<f8").reshape(count, *shape[1:])
            yield entry["name"], array
        data = data[size:]


class Conditions:
    """Observations of a replay: those of the record where the processor has a part in them."""

    def __init__(self, abstraction: Abstraction, taken: Counter[str]) -> None:
        self._own = abstraction
        # What was observed at the next tick; None if the record does not say
        self.recorded: Observed | None = None
        self.wrong: list[str] = []  # Conditions of the last tick that differ and should not
        self.taken = taken

    @property
    def abstraction(self) -> Abstraction:
        """The abstraction with which a replay observes."""
        return replace(self._own, evaluate=self._evaluate)

    def _evaluate(self, values: Sequence[Any]) -> Observed:
        own: Observed = self._own.evaluate(values)
        recorded = self.recorded
        self.wrong = []
        if recorded is None or own == recorded:
            return own
        free = self._own.by_platform
        for names in self._own.differing(own, recorded):
            if names & free:
                self.taken.update(names & free)
            else:
                self.wrong += sorted(names)
        return recorded
