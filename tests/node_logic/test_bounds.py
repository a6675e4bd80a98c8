"""Late bounds: whatever takes long about them is done in a thread."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.carried import PackedTables
from forewarn.monitoring.record import Names, RecordWriter
from forewarn.monitoring.step import Monitor
from monitor_node.background import BackgroundBounds, open_watch

TEXT = """
rate: 10
signals: {a: {timeout: never}, b: {timeout: never}}
predicates: {pa: a, pb: b}
properties: {rule: {formula: "always(not (pa and pb))", horizon: 0.5}}
"""
LIMIT = 60.0


def learned(states: list[int]) -> tuple[CompiledSpec, CountModel]:
    compiled = compile_spec(parse_spec(parse_document(TEXT)))
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    for tick, state in enumerate(states):
        counter.add(tick, state)
    return compiled, build_model(counter, rate=10.0, digest=compiled.abstraction.digest)


def late() -> tuple[Monitor, BackgroundBounds]:
    """Return a monitor without bounds, and its bounds, which are solved."""
    compiled, model = learned([0, 1, 2, 0, 3, 0, 1] * 20)
    watch, bounds = open_watch(compiled, model, {}, "", background=True)
    assert bounds is not None
    bounds._solved.result(LIMIT)
    return watch.monitor, bounds


def test_tables_are_packed_in_a_thread_before_they_come_into_force(tmp_path: Path) -> None:
    without, bounds = late()
    record = RecordWriter(tmp_path / "record.mcap", Names.of("/monitor"), TEXT, {})
    record.tables(without)
    threads: list[threading.Thread] = []

    def pack(monitor: Monitor) -> PackedTables:
        threads.append(threading.current_thread())
        return record.pack_tables(monitor)

    assert bounds.take(pack) is None
    assert bounds.status == "bounds are being computed"
    assert bounds._packed is not None
    bounds._packed.result(LIMIT)
    found = bounds.take(pack)
    assert found is not None
    monitor, packed = found
    assert monitor.bounded and not without.bounded
    assert packed == record.pack_tables(monitor)
    assert record.tables(monitor, packed) == packed.name
    assert len(threads) == 1 and threads[0] is not threading.main_thread()
    assert (bounds.take(pack), bounds.status) == (None, "")
    record.close()


def test_tables_that_cannot_be_packed_come_into_force_all_the_same() -> None:
    _, bounds = late()

    def fail(monitor: Monitor) -> PackedTables:
        raise MemoryError

    assert bounds.take(fail) is None
    assert bounds._packed is not None
    assert isinstance(bounds._packed.exception(LIMIT), MemoryError)
    found = bounds.take(fail)
    assert found is not None and found[0].bounded and found[1] is None


def test_without_a_record_nothing_is_packed() -> None:
    _, bounds = late()
    found = bounds.take()
    assert found is not None and found[0].bounded and found[1] is None


@pytest.mark.parametrize("change", ["another model", "bounds of its own"])
def test_bounds_of_a_model_that_is_not_in_force_any_more_are_left(change: str) -> None:
    compiled, model = learned([0, 1, 2, 0, 3, 0, 1] * 20)
    watch, bounds = open_watch(compiled, model, {}, "", background=True)
    assert bounds is not None
    bounds._solved.result(LIMIT)
    _, other = learned([0, 1, 3, 0] * 20)
    watch.use(watch.build(other if change == "another model" else model))
    assert bounds.take() is None
    assert bounds.status == ""
