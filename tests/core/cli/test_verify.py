"""A record as the node writes it, made here without a node, replays to the same bits."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forewarn.config.file import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import MessageType
from forewarn.models.calibration_map import Recalibration
from forewarn.models.file import load_model
from forewarn.monitoring.carried import tables_of, with_tables
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.record import Names, RecordWriter
from forewarn.monitoring.session_events import Event, ModelChange, Start, UnknownEvent
from forewarn.monitoring.step import Monitor
from forewarn.recordings.registry import open_recording
from forewarn.states.vocabulary import Observation


@pytest.fixture
def write_record(
    risk_type: MessageType,
    risk_array: Callable[..., bytes],
    corridor_run: Any,
    corridor_model: Path,
    tmp_path: Path,
) -> Callable[..., Path]:
    """Return a function that records a session; a risk may be forged at one tick."""

    def write(
        forged: int | None = None,
        maps: tuple[Recalibration, ...] = (),
        tables: Callable[[Monitor], Monitor] | None = None,
        observed: Callable[[LiveSession], Observation | None] = lambda watch: watch.decided,
        events: Iterable[Event] = (),
        more: str = "",
    ) -> Path:
        path = tmp_path / f"record_{forged}.mcap"
        config = tmp_path / "monitor.yaml"
        config.write_text(corridor_run.config.read_text() + more)
        compiled = compile_spec(load_spec(config))
        model = replace(load_model(corridor_model), recalibration=maps)
        with open_recording(corridor_run.held_out) as recording:
            types = {t: i.message_type for t, i in recording.topics.items() if i.message_type}
            watch = LiveSession(compiled, model, types)
            grid = watch.monitor.clock
            writer = RecordWriter(path, Names.of("/monitor"), config.read_text(), types)
            name = writer.model(model)
            tick = grid.tick_at_or_after(recording.start_ns)
            attached = None
            if tables is not None:
                solved = tables(watch.monitor)
                attached = writer.tables(solved)
                if len(solved.properties) == len(watch.names):
                    watch.use(solved)
            start = Start("activated", tick, recording.start_ns)
            writer.start(start, name, tables=attached)
            for event in events:
                writer.event(event)
            for number, sample in enumerate(recording.read()):
                while grid.time_ns(tick) < sample.time_ns:
                    rows = watch.tick(tick).rows
                    if number == forged:
                        moved = math.nextafter(rows[0].probability, 1.0)
                        rows = (rows[0]._replace(probability=moved), *rows[1:])
                    due = grid.time_ns(tick)
                    writer.risk(due, risk_array(risk_type, rows, due), observed(watch))
                    tick += 1
                watch.accept(sample.topic, sample.time_ns, sample.data)
                writer.message(sample.topic, sample.time_ns, bytes(sample.data))
            writer.close()
        return path

    return write


def test_a_record_replays_to_the_same_bits(
    forewarn: Callable[..., Any], write_record: Callable[..., Path]
) -> None:
    result = forewarn("verify", write_record(None))
    assert result.code == 0
    assert "600 ticks, all the same bits" in result.out


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_a_record_of_calibrated_risks_replays_to_the_same_bits(
    forewarn: Callable[..., Any], write_record: Callable[..., Path], corridor_run: Any, method: Any
) -> None:
    section = load_spec(corridor_run.config).properties["slow_down"]
    mend = Recalibration(
        "slow_down", section.formula, section.horizon, method, ((0.3, 0.1),), 1.3, -0.4
    )
    result = forewarn("verify", write_record(None, (mend,)))
    assert result.code == 0
    assert "600 ticks, all the same bits" in result.out


def test_a_record_of_expected_risks_replays_to_the_same_bits(
    forewarn: Callable[..., Any], write_record: Callable[..., Path], tmp_path: Path
) -> None:
    record = write_record(None, more="observation_error: {fast: 0.05, nearest: 0.1}\n")
    result = forewarn("verify", record)
    assert result.code == 0, result.out
    assert "600 ticks, all the same bits" in result.out
    with open_recording(record) as recording:
        topic = Names.of("/monitor").risk
        mtype = recording.topics[topic].message_type
        told = [
            mtype.typestore.deserialize_cdr(sample.data, mtype.name).risks[0]
            for sample in recording.read()
            if sample.topic == topic
        ]
    later = [risk.details for risk in told[1:]]
    assert all(0.0 <= one.expected <= 1.0 and one.expected_left_out == 0.0 for one in later)
    assert sum(risk.details.expected != risk.probability for risk in told) > 300


def test_one_bit_is_enough_to_be_noticed(
    forewarn: Callable[..., Any], write_record: Callable[..., Path]
) -> None:
    result = forewarn("verify", write_record(5))  # message 5 is the first after the second tick
    assert result.code == 1
    assert "slow_down.probability" in result.out
    assert "1 differ" in result.out


def scaled(factor: float) -> Callable[[Monitor], Monitor]:
    """Return what multiplies all tables of a monitor, as another solver might."""

    def scale(monitor: Monitor) -> Monitor:
        tables = {name: array * factor for name, array in tables_of(monitor).items()}
        return with_tables(monitor, tables)[0]

    return scale


@pytest.mark.parametrize("maps", [False, True])
def test_tables_that_differ_in_last_bits_are_taken_from_the_record(
    forewarn: Callable[..., Any], write_record: Callable[..., Path], corridor_run: Any, maps: bool
) -> None:
    section = load_spec(corridor_run.config).properties["slow_down"]
    mend = Recalibration(
        "slow_down", section.formula, section.horizon, "platt", ((0.3, 0.1),), 1.3, -0.4
    )
    path = write_record(None, (mend,) if maps else (), scaled(1 + 4e-16))
    result = forewarn("verify", path)
    assert result.code == 0, result.out
    assert "600 ticks, all the same bits" in result.out
    assert "risk tables are taken from the record; those solved here differ by" in result.err
    taken = json.loads(forewarn("verify", path, "--json").out)[str(path)]["taken"]
    assert 0 < taken["difference"] < 1e-15


def test_a_record_that_was_changed_is_not_replayed(
    forewarn: Callable[..., Any], write_record: Callable[..., Path]
) -> None:
    path = write_record()
    head = json.loads(forewarn("verify", path, "--json").out)[str(path)]["chain"]["head"]
    assert forewarn("verify", path, "--head", head[:8]).code == 0
    assert forewarn("verify", path, "--head", "0" * 8).code == 1
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    result = forewarn("verify", path)
    assert result.code == 1
    assert f"{path}: bytes " in result.out and "is not what was written" in result.out
    assert "ticks" not in result.out


def test_a_key_without_a_chain_is_refused(
    forewarn: Callable[..., Any], write_record: Callable[..., Path], tmp_path: Path
) -> None:
    path = write_record()
    (tmp_path / "key").write_bytes(bytes(32))
    refused = forewarn("verify", path, "--key", tmp_path / "key")
    assert refused.code == 2 and "has no key" in refused.err
    path.with_name(path.name + ".chain").unlink()
    assert "nothing tells whether it was changed" in forewarn("verify", path).err
    assert forewarn("verify", path, "--key", tmp_path / "key").code == 2


def test_tables_that_no_processor_explains_are_a_finding(
    forewarn: Callable[..., Any], write_record: Callable[..., Path]
) -> None:
    result = forewarn("verify", write_record(tables=scaled(1.001)))
    assert result.code == 1
    assert "differ by 0.001 from those solved here" in result.out


def test_tables_of_another_monitor_are_refused(
    forewarn: Callable[..., Any], write_record: Callable[..., Path]
) -> None:
    path = write_record(tables=lambda monitor: replace(monitor, properties=monitor.properties[:1]))
    result = forewarn("verify", path)
    assert result.code == 2
    assert f"{path}: its risk tables belong to another monitor file or model" in result.err


def test_a_condition_that_no_processor_decides_must_be_what_it_was(
    forewarn: Callable[..., Any], write_record: Callable[..., Path]
) -> None:
    def other(watch: LiveSession) -> Observation | None:
        now = watch.memory.state.past.alone
        assert now is not None
        return now._replace(mask=now.mask ^ 1) if now.state == now.mask and now.mask & 1 else now

    result = forewarn("verify", write_record(observed=other))
    assert result.code == 1
    assert "predicates.fast is not what it was" in result.out


@pytest.mark.parametrize(
    ("event", "complaint"),
    [
        (UnknownEvent({"event": "zap", "power": 3}), 'holds the event {"event":"zap","power":3}, '),
        (Start("again", 3, 7), 'holds the event {"event":"start"'),  # not as records hold it
        (ModelChange(None, "12"), "changes to a model that is not in it"),
        (ModelChange("model-7.json", "12"), "lacks its model model-7.json"),
    ],
)
def test_an_event_that_cannot_be_replayed_is_an_error(
    forewarn: Callable[..., Any], write_record: Callable[..., Path], event: Event, complaint: str
) -> None:
    path = write_record(events=[event])
    result = forewarn("verify", path)
    assert result.code == 2
    assert f"{path}: {complaint}" in result.err


def test_a_record_of_nothing_shows_nothing(
    forewarn: Callable[..., Any], corridor_run: Any, risk_type: MessageType, tmp_path: Path
) -> None:
    path = tmp_path / "empty.mcap"
    RecordWriter(path, Names.of("/monitor"), corridor_run.config.read_text(), {}).close()
    result = forewarn("verify", path)
    assert result.code == 1
    assert f"{path}: 0 ticks, so nothing is shown" in result.out


def test_any_other_recording_is_no_record(forewarn: Callable[..., Any], corridor_run: Any) -> None:
    result = forewarn("verify", corridor_run.held_out)
    assert result.code == 2
    assert "held.mcap: is no record of a monitor" in result.err
