"""The monitor's own record: all that it took in and decided, so that replaying gives the same bits.

A record is an MCAP file that other tools read as a bag. It holds every message with the time at
which it counted as arrived, every RiskArray that was published, and, as JSON texts on the topic of
events, whatever else changed the session: the first tick after a start, a clock that jumped, a
command of an operator, new thresholds, another model. Monitor file and models travel along as
attachments, and so do the risk tables; for another type of processor might compute them otherwise,
and for the same reason (`carried.py`) what was observed, where functions of the platform have a
part in it. Log times never go back: after a jump they are shifted by what the event says.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from forewarn.config import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ModelError, RecordingError
from forewarn.messages import MessageType, installed_message_type
from forewarn.models import CountModel, dump_model, parse_model
from forewarn.monitoring.bridging import divide
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.carried import (
    LARGEST,
    Conditions,
    PackedTables,
    TablePacker,
    TableReader,
    Taken,
    tables_of,
    with_tables,
)
from forewarn.monitoring.checkpoint import recall
from forewarn.monitoring.live_session import TickResult, Watch
from forewarn.monitoring.risk_rows import RiskRow, same_bits
from forewarn.monitoring.step import Monitor
from forewarn.recordings import Recording, RecordingWriter, open_recording
from forewarn.recordings.zstd import CutError, unpacked
from forewarn.states.predicates import Observation

TABLE = "forewarn.record"
FORMAT = "1"
SPEC_NAME = "monitor.yaml"
PACKED = ".zst"
RISK_TYPE = "forewarn_msgs/msg/RiskArray"


class Names(NamedTuple):
    """The topics of one node.

    Attributes
    ----------
    node : str
        Full name of the node.
    risk, events, external : str
        Its topics for risk, events and signals by name.
    """

    node: str
    risk: str
    events: str
    external: str

    @property
    def observed(self) -> str:
        """Topic of what was observed, where the type of processor has a part in that."""
        return f"{self.node}/debug/observed"

    @classmethod
    def of(cls, node: str) -> Names:
        """Return the topics of the node with this full name."""
        return cls(node, f"{node}/output/risk", f"{node}/debug/events", f"{node}/input/signals")


class Packed(NamedTuple):
    """A model and its tables, ready to be written: what takes long about it is done."""

    model: bytes
    tables: PackedTables


def _packed(model: CountModel) -> bytes:
    return zstandard.ZstdCompressor().compress(dump_model(model).encode())


class RecordWriter:
    """Writes a record while a session runs.

    Parameters
    ----------
    path : Path or str
        The file; must not exist.
    names : Names
        The node's topics.
    spec_text : str
        The monitor file.
    types : mapping of str to MessageType
        Definition of each topic that may be consumed.

    Raises
    ------
    RecordingError
        If the file exists or cannot be written.
    """

    def __init__(
        self, path: Path | str, names: Names, spec_text: str, types: Mapping[str, MessageType]
    ) -> None:
        self.names = names
        self._writer = RecordingWriter(path)
        self._types = dict(types)
        self._types[names.risk] = installed_message_type(RISK_TYPE)
        self._definitions: dict[str, str] = {}
        self._shift_ns = 0
        self._decided_ns = 0
        self._newest_ns = 0
        self._models = 0
        self._packer = TablePacker()
        self._observed: Observation | None = None
        self._writer.write_metadata(TABLE, {"format": FORMAT, **names._asdict()})
        self._writer.attach(SPEC_NAME, spec_text.encode(), "application/yaml")

    @property
    def path(self) -> Path:
        """The file."""
        return self._writer.path

    def message(self, topic: str, arrival_ns: int, payload: bytes) -> None:
        """Append a message that was consumed, at the time that the session was told."""
        self._write(topic, arrival_ns + self._shift_ns, payload)

    def risk(self, due_ns: int, payload: bytes, observed: Observation | None = None) -> None:
        """Append the serialized RiskArray of a tick that was due at `due_ns`.

        `observed` is `Watch.decided` after that tick.
        """
        self._decided_ns = due_ns + self._shift_ns
        if observed != self._observed:
            text = json.dumps(observed, separators=(",", ":"))
            self._writer.write_text(self.names.observed, self._decided_ns, text)
            self._observed = observed
        self._write(self.names.risk, self._decided_ns, payload)

    def start(self, time_ns: int, details: Mapping[str, Any]) -> None:
        """Note that ticks begin at `time_ns`: after activation, or after the clock has jumped."""
        self._shift_ns = max(0, self._newest_ns + 1 - time_ns)
        self._decided_ns = time_ns + self._shift_ns
        self.event({**details, "shift_ns": self._shift_ns})

    def event(self, details: Mapping[str, Any]) -> None:
        """Append an event; it takes effect after the last tick that was written."""
        self._newest_ns = max(self._newest_ns, self._decided_ns)
        self._writer.write_text(self.names.events, self._decided_ns, encode(details))

    def pack(self, model: CountModel, monitor: Monitor) -> Packed:
        """Pack a model and its tables and write nothing; may be called in another thread."""
        return Packed(_packed(model), self._packer.prepare(tables_of(monitor)))

    def model(self, model: CountModel, ready: Packed | None = None) -> str:
        """Attach a model, which `ready` may hold, and return the name of the attachment."""
        self._models += 1
        name = f"model-{self._models}.json{PACKED}"
        data = _packed(model) if ready is None else ready.model
        self._writer.attach(name, data, "application/zstd")
        return name

    def tables(self, monitor: Monitor, ready: Packed | None = None) -> str:
        """Attach what was solved for a monitor and return the name of the attachment."""
        tables = tables_of(monitor)
        name, data = self._packer.pack(tables, None if ready is None else ready.tables)
        if data is not None:
            self._writer.attach(name, data, "application/zstd")
        return name

    def close(self) -> None:
        """Write the index and close the file."""
        self._writer.close()

    def _write(self, topic: str, time_ns: int, payload: bytes) -> None:
        mtype = self._types[topic]
        definition = self._definitions.get(topic)
        if definition is None:
            definition, _ = mtype.typestore.generate_msgdef(mtype.name, ros_version=2)
            self._definitions[topic] = definition
        self._newest_ns = max(self._newest_ns, time_ns)
        self._writer.write(topic, mtype.name, definition, time_ns, payload)


def encode(details: Mapping[str, Any]) -> str:
    """Return an event as JSON; an infinite number becomes a text that `float` reads."""
    plain = {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in details.items()
    }
    return json.dumps(plain, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class ReplayedTick:
    """One tick of a record: what it says now, and what was published then."""

    result: TickResult
    published: tuple[RiskRow, ...]
    stamp_ns: int
    conditions: tuple[str, ...] = ()

    def differences(self) -> Iterator[str]:
        """Yield one line for each field that is not the same to the last bit."""
        verdict = self.result.verdict
        if verdict.time_ns != self.stamp_ns:
            yield f"tick {verdict.tick}: stamp {self.stamp_ns}, replayed {verdict.time_ns}"
        for condition in self.conditions:
            yield f"tick {verdict.tick}: {condition} is not what it was"
        if len(self.result.rows) != len(self.published):
            yield f"tick {verdict.tick}: {len(self.published)} properties were published"
        for now, then in zip(self.result.rows, self.published, strict=False):
            for field, new, old in zip(RiskRow._fields, now, then, strict=True):
                if not same_bits(new, old):
                    yield f"tick {verdict.tick}: {now.property}.{field}: {old!r}, replayed {new!r}"


def replay_record(path: Path | str, taken: Taken | None = None) -> Iterator[ReplayedTick]:
    """Feed a record to a new session and yield every tick.

    `taken`, if given, is told what came from the record.

    Raises
    ------
    RecordingError
        If the file is no record of a monitor.
    """
    with open_recording(path) as recording:
        yield from _Replay(recording, Taken() if taken is None else taken).run()


class _Replay:
    def __init__(self, recording: Recording, taken: Taken) -> None:
        self.recording = recording
        table = recording.metadata().get(TABLE)
        self.files = recording.attachments()
        if table is None or SPEC_NAME not in self.files:
            raise RecordingError(
                "is no record of a monitor",
                file=recording.path,
                accepted="a file that the node wrote because of its parameter `record`",
            )
        if table.get("format") != FORMAT:
            raise RecordingError(
                f"is a record of format {table.get('format')}",
                file=recording.path,
                accepted=f"format {FORMAT}",
            )
        self.names = Names(**{key: table[key] for key in Names._fields})
        spec = parse_spec(parse_document(self.files[SPEC_NAME].decode()))
        compiled = compile_spec(divide(spec).node)
        self.taken = taken
        self.conditions = Conditions(compiled.abstraction, taken.conditions)
        self.compiled = replace(compiled, abstraction=self.conditions.abstraction)
        self.tables = TableReader(self.files)
        self.types = {
            topic: info.message_type
            for topic, info in recording.topics.items()
            if info.message_type is not None
        }
        self.watch: Watch | None = None
        self.shift_ns = 0

    def run(self) -> Iterator[ReplayedTick]:
        """Yield the ticks."""
        for sample in self.recording.read():
            assert not isinstance(sample.data, Mapping)
            if sample.topic == self.names.events:
                self._event(json.loads(_text(sample.data)))
            elif self.watch is None:
                raise RecordingError("begins without an event", file=self.recording.path)
            elif sample.topic == self.names.observed:
                found = json.loads(_text(sample.data))
                self.conditions.recorded = None if found is None else Observation(*found)
            elif sample.topic == self.names.risk:
                yield self._tick(sample.data)
            else:
                self.watch.accept(sample.topic, sample.time_ns - self.shift_ns, sample.data)

    def _tick(self, data: bytes | memoryview) -> ReplayedTick:
        assert self.watch is not None
        mtype = self.types[self.names.risk]
        message: Any = mtype.typestore.deserialize_cdr(data, mtype.name)
        rows = tuple(_published(risk) for risk in message.risks)
        stamp = message.header.stamp
        tick = rows[0].tick
        result = self.watch.tick(tick)
        wrong = tuple(self.conditions.wrong)
        return ReplayedTick(result, rows, stamp.sec * 1_000_000_000 + stamp.nanosec, wrong)

    def _event(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if self.watch is None:
            name = event.get("model") if kind == "start" else None
            self.watch = Watch(
                self.compiled,
                self._model(name),
                self.types,
                self.names.external,
                bounds=event.get("bounded", True),
            )
            self.watch.use(self._solved(self.watch.monitor, event))
        if kind == "start":
            self.shift_ns = event["shift_ns"]
            self.watch.restart()
        elif kind == "recall":
            recall(self.watch, event["memory"], event["first"])
        elif kind == "reset":
            self.watch.reset(event["properties"])
        elif kind == "release":
            self.watch.release(event["properties"])
        elif kind == "mute":
            self.watch.mute(event["properties"], float(event["duration"]))
        elif kind == "policy":
            self.watch.set_policy(event["property"], event["values"])
        elif kind == "model":
            model = self._model(event["model"])
            assert model is not None
            self.watch.use(self._solved(self.watch.build(model), event))

    def _solved(self, monitor: Monitor, event: Mapping[str, Any]) -> Monitor:
        """Return the monitor with the tables of the record, if it has any."""
        name = event.get("tables")
        if name is None:
            return monitor
        try:
            monitor, difference = with_tables(monitor, self.tables.read(name))
        except RecordingError as error:
            raise error.located(file=self.recording.path) from error
        self.taken.tables += 1
        self.taken.difference = max(self.taken.difference, difference)
        return monitor

    def _model(self, name: str | None) -> CountModel | None:
        if name is None:
            return None
        data = self.files[name]
        try:
            if name.endswith(PACKED):
                data = b"".join(unpacked(io.BytesIO(data), LARGEST))
            return parse_model(data)
        except CutError as error:
            raise RecordingError(
                f"its model {name} is damaged: {error}", file=self.recording.path
            ) from error
        except ModelError as error:
            raise error.located(file=f"{self.recording.path}:{name}") from error


def _text(data: bytes | memoryview) -> str:
    length = int.from_bytes(data[4:8], "little")
    return bytes(data[8 : 8 + length - 1]).decode()


def _published(message: Any) -> RiskRow:
    values = []
    for field in RiskRow._fields:
        value: Any = getattr(message, field)
        if hasattr(value, "tolist"):
            value = value.tolist()
        values.append(tuple(value) if isinstance(value, list) else value)
    return RiskRow._make(values)
