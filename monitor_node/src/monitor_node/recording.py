"""What an activation writes into its record: a full disk ends the record and not the monitor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

from forewarn.errors import ForewarnError
from forewarn.files.chain import chain_of
from forewarn.models.counts import CountModel
from forewarn.monitoring.carried import PackedTables
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.record import Packed, RecordWriter
from forewarn.monitoring.session_events import Event, Mute, PolicyChange, Start
from forewarn.monitoring.step import Monitor
from monitor_node.policies import changed_policies


class Recording:
    """The record of one activation, if it is wanted; everything may be called where it is not."""

    def __init__(self, writer: RecordWriter | None, warn: Callable[[str], None]) -> None:
        self.problem = ""  # Why the record has ended; empty if it has not
        self.model_name: str | None = None  # Name of the newest model in the record
        self._writer = writer
        self._warn = warn
        self._packed: PackedTables | None = None  # the tables in force: ticks may begin again
        self._unwritten: list[tuple[int, str, bytes]] = []

    @property
    def path(self) -> Path | None:
        """The file that is being written."""
        return None if self._writer is None else self._writer.path

    def taken(self, arrivals: list[tuple[int, str, bytes]]) -> None:
        """Take note of messages that were consumed: arrival, topic and payload."""
        if self._writer is not None:
            self._unwritten += arrivals
            self._unwritten.sort(key=itemgetter(0))

    def messages(self, until_ns: float = math.inf) -> None:
        """Write what arrived up to a moment; what came later belongs behind the next verdict."""
        written = 0
        for arrival_ns, topic, payload in self._unwritten:
            if arrival_ns > until_ns or self._writer is None:
                break
            self._try(self._writer.message, topic, arrival_ns, payload)
            written += 1
        del self._unwritten[:written]

    def risk(
        self, due_ns: int, payload: bytes, watch: LiveSession, anomaly: bytes | None = None
    ) -> None:
        """Write what was published about a tick, behind the messages that it rests on."""
        self.messages(due_ns)
        if self._writer is not None:
            self._try(self._writer.risk, due_ns, payload, watch.decided, anomaly)

    def start(self, start: Start, watch: LiveSession) -> None:
        """Write that ticks begin, and what differs from the monitor file from there on."""
        tables = self.tables(watch.monitor, self._packed)
        if self._writer is None:
            return
        bounded = watch.monitor.bounded
        self._try(self._writer.start, start, self.model_name, bounded, tables)
        for name, values in changed_policies(watch).items():
            self.event(PolicyChange(name, values))
        for name, span in watch.durations().items():
            self.event(Mute((name,), span))

    def event(self, event: Event, time_ns: int | None = None) -> None:
        """Write a command that was carried out, or what happened at a moment, behind what came."""
        if time_ns is not None:
            self.messages(time_ns)
        if self._writer is not None:
            self._try(self._writer.event, event, time_ns)

    def begin(self, model: CountModel, monitor: Monitor) -> None:
        """Put a model into the record and pack its tables: before ticks, since it takes long."""
        self.model(model)
        if self._writer is not None:
            self.keep(self._writer.pack_tables(monitor))

    def keep(self, packed: PackedTables | None) -> None:
        """Keep the tables in force ready for the next beginning of ticks."""
        self._packed = packed

    def model(self, model: CountModel, packed: Packed | None = None) -> str | None:
        """Put a model into the record and return the name of the newest one there."""
        if self._writer is not None:
            self.model_name = self._try(self._writer.model, model, packed)
        return self.model_name

    def tables(self, monitor: Monitor, packed: PackedTables | None = None) -> str | None:
        """Put the tables of a monitor into the record and return their name there."""
        if self._writer is None or monitor.model is None:
            return None
        self.keep(packed)
        name: str | None = self._try(self._writer.tables, monitor, packed)
        return name

    def pack(self, model: CountModel, monitor: Monitor) -> Packed | None:
        """Return what the record will hold of a model; may be called in another thread."""
        writer = self._writer
        return None if writer is None else writer.pack(model, monitor)

    @property
    def pack_tables(self) -> Callable[[Monitor], PackedTables] | None:
        """What packs tables, in any thread; None without a record."""
        return None if self._writer is None else self._writer.pack_tables

    def close(self) -> None:
        """Write what is left and close the file; nothing more is written."""
        self.messages()
        writer, self._writer = self._writer, None
        if writer is not None:
            self._try(writer.close)

    def _try(self, write: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return write(*arguments)
        except ForewarnError as error:
            self.problem = str(error)
            self._warn(f"the record ends here: {error}")
            self._writer = None
            return None


def free_name(path: Path) -> Path:
    """Return a name that is free: a crash, or a former activation, has left a record."""
    numbered = (path.with_name(f"{path.stem}-{i}{path.suffix}") for i in range(2, 100_000))
    candidates = itertools.chain([path], numbered)
    # What is there and no plain file, such as a FIFO, is written into.
    return next(
        (free for free in candidates if not (free.is_file() or chain_of(free).exists())), path
    )
