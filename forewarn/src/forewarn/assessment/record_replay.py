"""A record of a live session, fed to a new session: each tick, and whether it has the same bits."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from forewarn.config.actuators import NO_WAY, Ways
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ModelError, RecordingError, located, plural
from forewarn.models.counts import CountModel
from forewarn.models.file import parse_model
from forewarn.monitoring import session_events as happened
from forewarn.monitoring.bridging import divide
from forewarn.monitoring.build import compile_for
from forewarn.monitoring.carried import LARGEST, Conditions, TableReader, Taken, with_tables
from forewarn.monitoring.checkpoint import recall
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.record import (
    ANOMALY_NAME,
    FIRST_MODEL,
    FORMAT,
    PACKED,
    SPEC_NAME,
    TABLE,
    Names,
)
from forewarn.monitoring.risk_rows import RiskRow, same_bits
from forewarn.monitoring.run_anomaly import AnomalyRow, Detector, unpack_detector
from forewarn.monitoring.step import Monitor
from forewarn.recordings.interface import Recording
from forewarn.recordings.registry import open_recording
from forewarn.recordings.zstd import CutError, unpacked
from forewarn.registry import part
from forewarn.states.condition import KEY
from forewarn.states.inputs import unpacked_readers

Found = TypeVar("Found")
Row = TypeVar("Row", bound=tuple[Any, ...])


@dataclass(frozen=True)
class ReplayedTick:
    """One tick of a record: what it says now, and what was published then."""

    result: TickResult
    published: tuple[RiskRow, ...]
    stamp_ns: int
    conditions: tuple[str, ...] = ()
    anomaly: AnomalyRow | None = None
    escape: Ways = NO_WAY

    def differences(self) -> Iterator[str]:
        """Yield one line for each field that is not the same to the last bit."""
        verdict = self.result.verdict
        if verdict.time_ns != self.stamp_ns:
            yield f"stamp {self.stamp_ns}, replayed {verdict.time_ns}"
        for condition in self.conditions:
            yield f"{condition} is not what it was"
        if len(self.result.rows) != len(self.published):
            yield f"published were {plural(len(self.published), 'property', 'properties')}"
        for now, then in zip(self.result.rows, self.published, strict=False):
            for field, new, old in zip(RiskRow._fields, now, then, strict=True):
                if not same_bits(new, old):
                    yield f"{now.property}.{field}: {old!r}, replayed {new!r}"
        request = self.result.request
        escape = NO_WAY if request is None else request.escape
        if escape != self.escape:
            difference = f"{self.escape._asdict()}, replayed {escape._asdict()}"
            yield f"escape: {difference}"
        if (verdict.anomaly is None) != (self.anomaly is None):
            state = "was" if verdict.anomaly is None else "was not"
            yield f"an anomaly {state} published"
        elif verdict.anomaly is not None and self.anomaly is not None:
            for field, new, old in zip(
                AnomalyRow._fields, verdict.anomaly, self.anomaly, strict=True
            ):
                if not same_bits(new, old):
                    yield f"anomaly.{field}: {old!r}, replayed {new!r}"


def replay_record(path: Path | str, taken: Taken | None = None) -> Iterator[ReplayedTick]:
    """Feed a record to a new session and yield every tick.

    `taken`, if given, collects what came from the record.

    Raises RecordingError if the file is no record of a monitor.
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
        self.last: tuple[str, CountModel] | None = None
        self.readers = unpacked_readers(spec, self.files)
        # All models of a record have the same learned scores.
        model = (
            self._model(FIRST_MODEL) if spec.learned_score and FIRST_MODEL in self.files else None
        )
        compiled = compile_for(divide(spec).node, model)
        self.taken = taken
        taken.noun = compiled.abstraction.clock.noun
        self.space = compiled.abstraction.vocabulary
        self.conditions = Conditions(compiled.abstraction, taken.conditions)
        self.compiled = replace(compiled, abstraction=self.conditions.abstraction)
        self.tables = TableReader(self.files)
        self.types = {
            topic: info.message_type
            for topic, info in recording.topics.items()
            if info.message_type is not None
        }
        self.watch: LiveSession | None = None
        self.anomaly: AnomalyRow | None = None
        self.goals: list[str] = []
        self.shift_ns = 0

    def run(self) -> Iterator[ReplayedTick]:
        """Yield the ticks."""
        for sample in self.recording.read():
            assert not isinstance(sample.data, Mapping)
            if sample.topic == self.names.events:
                with located(file=self.recording.path):
                    self._event(happened.decode(_text(sample.data)))
            elif self.watch is None:
                raise RecordingError("begins without an event", file=self.recording.path)
            elif sample.topic == self.names.observed:
                found = json.loads(_text(sample.data))
                self.conditions.recorded = (
                    None if found is None else self.space.parse_observation(found)
                )
            elif sample.topic == self.names.anomaly:
                self.anomaly = _as_row(AnomalyRow, self._decoded(sample.topic, sample.data))
            elif sample.topic == self.names.risk:
                yield self._tick(sample.data)
            else:
                self.watch.accept(sample.topic, sample.time_ns - self.shift_ns, sample.data)
        if self.goals:
            raise RecordingError(f"{self.goals[0]} is not what it was", file=self.recording.path)

    def _tick(self, data: bytes | memoryview) -> ReplayedTick:
        assert self.watch is not None
        message = self._decoded(self.names.risk, data)
        rows = tuple(_as_row(RiskRow, risk) for risk in message.risks)
        stamp = message.header.stamp
        tick = rows[0].tick
        result = self.watch.tick(tick)
        wrong, self.goals = (*self.conditions.wrong, *self.goals), []
        anomaly, self.anomaly = self.anomaly, None
        stamp_ns = stamp.sec * 1_000_000_000 + stamp.nanosec
        # Nothing follows from it here, and another type of processor may find otherwise.
        now = NO_WAY if result.request is None else result.request.escape
        then = Ways(*(getattr(message, f"escape_{way}", False) for way in Ways._fields))
        conditions = self.watch.monitor.clear_ways.values()
        if now != then and any(one.by_platform for one in conditions):
            self.taken.conditions[KEY] += 1
            then = now
        return ReplayedTick(result, rows, stamp_ns, wrong, anomaly, then)

    def _decoded(self, topic: str, data: bytes | memoryview) -> Any:
        mtype = self.types[topic]
        return mtype.typestore.deserialize_cdr(data, mtype.name)

    def _event(self, event: happened.Event) -> None:
        """Do to the session what an event did then."""
        if isinstance(event, happened.Beginning) and self.watch is None:
            self.watch = LiveSession(
                self.compiled,
                self._model(event.model),
                self.types,
                self.names.external,
                bounds=event.bounded,
                detector=self._detector(),
                readers=self.readers,
            )
            self.watch.use(self._solved(self.watch.monitor, event.tables))
        watch = self.watch
        if watch is None:
            raise RecordingError(f"begins with the event {event.kind}", accepted="start")
        match event:
            case happened.Beginning():
                self.shift_ns = event.shift_ns
                watch.restart(event.tick)
            case happened.Recall():
                recall(watch, event.memory, event.first)
            case happened.Reset():
                watch.reset(event.properties)
            case happened.Release():
                watch.release(event.properties)
            case happened.Mute():
                watch.mute(event.properties, event.duration)
            case happened.PolicyChange():
                watch.set_policy(event.property, event.values)
            case happened.ModelChange():
                model = self._model(event.model)
                if model is None:
                    raise RecordingError("changes to a model that is not in it")
                watch.use(self._solved(watch.build(model), event.tables))
            case happened.GoalDecided():
                self.goals += part("agents", "goals", "a goal in a record").again(watch, event)
            case happened.Acknowledge():
                pass  # about a file that the replay does not need
            case (
                happened.Activate()
                | happened.ClockHeard()
                | happened.Start()
                | happened.UnknownEvent()
            ):
                raise RecordingError(
                    f"holds the event {happened.encode(event)[:200]}, which cannot be replayed",
                    accepted="events that this version of Forewarn records",
                )
            case _:
                happened.unhandled(event)

    def _solved(self, monitor: Monitor, name: str | None) -> Monitor:
        """Return the monitor with the tables of the record, if it has any."""
        if name is None:
            return monitor
        monitor, difference = with_tables(monitor, self.tables.read(name))
        self.taken.tables += 1
        self.taken.difference = max(self.taken.difference, difference)
        return monitor

    def _model(self, name: str | None) -> CountModel | None:
        if name is None:
            return None
        if self.last is None or self.last[0] != name:
            self.last = name, self._opened(name, "model", parse_model)
        return self.last[1]

    def _detector(self) -> Detector | None:
        if self.compiled.spec.anomaly is None:
            return None
        return self._opened(
            ANOMALY_NAME, "calibration", lambda data: unpack_detector(self.compiled, data)
        )

    def _opened(self, name: str, noun: str, parse: Callable[[bytes], Found]) -> Found:
        """Return what an attachment holds."""
        if name not in self.files:
            raise RecordingError(f"lacks its {noun} {name}")
        data = self.files[name]
        try:
            if name.endswith(PACKED):
                data = b"".join(unpacked(io.BytesIO(data), LARGEST))
            return parse(data)
        except CutError as error:
            raise RecordingError(f"its {noun} {name} is damaged: {error}") from error
        except ModelError as error:
            raise error.located(file=f"{self.recording.path}:{name}") from error


def _text(data: bytes | memoryview) -> str:
    length = int.from_bytes(data[4:8], "little")
    return bytes(data[8 : 8 + length - 1]).decode()


@lru_cache
def _types_of(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _as_row(kind: type[Row], message: Any) -> Row:
    """Return the row that a message and its details were made from, and those in it."""
    values = []
    for field, wanted in _types_of(kind).items():
        value: Any = getattr(message if hasattr(message, field) else message.details, field)
        if hasattr(value, "tolist"):
            value = value.tolist()
        if hasattr(wanted, "_fields"):
            value = _as_row(wanted, value)
        values.append(tuple(value) if isinstance(value, list) else value)
    return kind(*values)
