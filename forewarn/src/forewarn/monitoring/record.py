"""The record of a monitor: all its inputs and decisions, so that a replay gives the same bits.

A record is an MCAP file that other tools read as a bag. It holds every message with the time at
which it counted as arrived, every RiskArray that was published, and, as JSON texts on the topic of
events, whatever else changed the session: the first tick after a start, a clock that jumped, a
command of an operator, new thresholds, another model. The monitor file, the models and the risk
tables are attachments. The tables are there because another type of processor might compute other
last bits. For the same reason, observations that depend on functions of the platform are recorded
(`carried.py`). Log times never go back: after a jump they are shifted by what the event says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import zstandard

from forewarn.messages.definitions import MessageType, installed_message_type
from forewarn.models.counts import CountModel
from forewarn.models.file import dump_model
from forewarn.monitoring.carried import PackedTables, TablePacker, tables_of
from forewarn.monitoring.session_events import Beginning, Event, Start, encode
from forewarn.recordings.writing import RecordingWriter

if TYPE_CHECKING:
    from forewarn.monitoring.run_anomaly import Detector
    from forewarn.monitoring.step import Monitor
    from forewarn.states.interface import Observed

TABLE = "forewarn.record"
FORMAT = "1"
SPEC_NAME = "monitor.yaml"
INCIDENT_PREFIX = "incident-"
"""Beginning of the names of files that a black box writes."""
PACKED = ".zst"
ANOMALY_NAME = f"anomaly.json{PACKED}"
MODEL_NAME = f"model-{{}}.json{PACKED}"
FIRST_MODEL = MODEL_NAME.format(1)
NO_RULES: Mapping[str, bytes] = MappingProxyType({})
RISK_TYPE = "forewarn_msgs/msg/RiskArray"
ANOMALY_TYPE = "forewarn_msgs/msg/Anomaly"


class Names(NamedTuple):
    """The topics of one node."""

    node: str
    risk: str
    events: str
    external: str

    @property
    def observed(self) -> str:
        """Topic of what was observed, where the type of processor has a part in that."""
        return f"{self.node}/debug/observed"

    @property
    def intervention(self) -> str:
        """Topic of what the planner is asked to do."""
        return f"{self.node}/output/intervention"

    @property
    def state(self) -> str:
        """Topic of signals and predicates."""
        return f"{self.node}/debug/state"

    @property
    def moments(self) -> str:
        """Topic, in files of incidents only, of what happened when."""
        return f"{self.node}/incident/moments"

    @property
    def anomaly(self) -> str:
        """Topic of runs that may be unlike normal ones."""
        return f"{self.node}/output/anomaly"

    @classmethod
    def of(cls, node: str) -> Names:
        """Return the topics of the node with this full name."""
        return cls(node, f"{node}/output/risk", f"{node}/debug/events", f"{node}/input/signals")


class Packed(NamedTuple):
    """A model and its tables, ready to be written: what takes long about it is done."""

    model: bytes
    tables: PackedTables


def _packed(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


class RecordWriter:
    """Writes a record while a session runs.

    `rules`: files of rules about plans, by the attachments' names.
    `key`: what the chain of hashes beside it is keyed with.

    Raises RecordingError if the file exists or cannot be written.
    """

    def __init__(
        self,
        path: Path | str,
        names: Names,
        spec_text: str,
        types: Mapping[str, MessageType],
        detector: Detector | None = None,
        rules: Mapping[str, bytes] = NO_RULES,
        key: bytes | None = None,
    ) -> None:
        self.names = names
        self._writer = RecordingWriter(path, chained=True, key=key)
        self._types = dict(types)
        self._types[names.risk] = installed_message_type(RISK_TYPE)
        self._shift_ns = 0
        self._decided_ns = 0
        self._newest_ns = 0
        self._models = 0
        self._packer = TablePacker()
        self._observed: Observed | None = None
        self._writer.write_metadata(TABLE, {"format": FORMAT, **names._asdict()})
        self._writer.attach(SPEC_NAME, spec_text.encode(), "application/yaml")
        for name, content in rules.items():
            self._writer.attach(name, content, "text/plain")
        if detector is not None:
            self._types[names.anomaly] = installed_message_type(ANOMALY_TYPE)
            packed = _packed(detector.pack())
            self._writer.attach(ANOMALY_NAME, packed, "application/zstd")

    @property
    def path(self) -> Path:
        """The file."""
        return self._writer.path

    def message(self, topic: str, arrival_ns: int, payload: bytes) -> None:
        """Append a message that was consumed, at the time that the session got it."""
        self._write(topic, arrival_ns + self._shift_ns, payload)

    def risk(
        self,
        due_ns: int,
        payload: bytes,
        observed: Observed | None = None,
        anomaly: bytes | None = None,
    ) -> None:
        """Append the serialized RiskArray of a tick that was due at `due_ns`.

        `observed` is `Watch.decided` after that tick, `anomaly` the serialized Anomaly of it.
        """
        self._decided_ns = due_ns + self._shift_ns
        if observed != self._observed:
            text = json.dumps(observed, separators=(",", ":"))
            self._writer.write_text(self.names.observed, self._decided_ns, text)
            self._observed = observed
        if anomaly is not None:
            self._write(self.names.anomaly, self._decided_ns, anomaly)
        self._write(self.names.risk, self._decided_ns, payload)

    def start(
        self, start: Start, model: str | None, bounded: bool = True, tables: str | None = None
    ) -> None:
        """Note that ticks begin: after activation, or after the clock has jumped.

        `model` and `tables` are names of attachments; see `Beginning`.
        """
        self._shift_ns = max(0, self._newest_ns + 1 - start.time_ns)
        self._decided_ns = start.time_ns + self._shift_ns
        self.event(
            Beginning(
                **vars(start), model=model, bounded=bounded, tables=tables, shift_ns=self._shift_ns
            )
        )

    def event(self, event: Event, time_ns: int | None = None) -> None:
        """Append an event; it takes effect after the last tick that was written, or at `time_ns`.

        All that arrived until then must have been appended.
        """
        if time_ns is not None:
            self._decided_ns = time_ns + self._shift_ns
        self._newest_ns = max(self._newest_ns, self._decided_ns)
        self._writer.write_text(self.names.events, self._decided_ns, encode(event))

    def pack(self, model: CountModel, monitor: Monitor) -> Packed:
        """Pack a model and its tables and write nothing; may be called in another thread."""
        return Packed(_packed(dump_model(model).encode()), self.pack_tables(monitor))

    def pack_tables(self, monitor: Monitor) -> PackedTables:
        """Pack the tables of a monitor and write nothing; may be called in another thread."""
        return self._packer.prepare(tables_of(monitor))

    def model(self, model: CountModel, ready: Packed | None = None) -> str:
        """Attach a model, which `ready` may hold, and return the name of the attachment."""
        self._models += 1
        name = MODEL_NAME.format(self._models)
        data = _packed(dump_model(model).encode()) if ready is None else ready.model
        self._writer.attach(name, data, "application/zstd")
        return name

    def tables(self, monitor: Monitor, ready: PackedTables | None = None) -> str:
        """Attach what was solved for a monitor and return the name of the attachment."""
        name, data = self._packer.pack(tables_of(monitor), ready)
        if data is not None:
            self._writer.attach(name, data, "application/zstd")
        return name

    def close(self) -> None:
        """Write the index and close the file."""
        self._writer.close()

    def _write(self, topic: str, time_ns: int, payload: bytes) -> None:
        self._newest_ns = max(self._newest_ns, time_ns)
        self._writer.write_typed(topic, self._types[topic], time_ns, payload)
