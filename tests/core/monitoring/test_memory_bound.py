"""What grows in a monitor takes no more than is said before it runs: filled, and measured."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import CountModel
from forewarn.monitoring import memory_bound as bound
from forewarn.monitoring.alerts import Alert
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.memory_bound import MOST_ALERTS, MOST_COUNTED, growing_parts, memory_bound
from forewarn.monitoring.online_learning import OnlineLearner
from forewarn.signals.frame_tree import MOST_TRANSFORMS, FrameTree, Transform
from forewarn.wings.black_box.box import OVERHEAD, Kept, Ring
from forewarn.wings.black_box.section import MEGABYTE
from forewarn.wings.trees.remembered import RememberedRuns

TEXT = """\
rate: 10
startup_grace: 0
signals:
  a: {timeout: 1}
  b: {timeout: 1}
  c: {timeout: 1}
  d: {value: "mean_over(a, 100) + highest(b, 100) + lowest(c, 100) + rate(a, 50)"}
  e: {value: "for_how_long(a > 1) + since(b > 1) + previous(c)"}
predicates: {%s}
states: {kind: tree, tree: all}
action: "'go' if a > 1 else 'stay'"
properties:
  keep: {formula: always(not p0), horizon: 1}
learning: {online: true, regrow: 60, remember: 2000}
black_box: {folder: incidents, memory: 3 MB}
"""
PREDICATES = ", ".join(f"p{i}: floor(a / {2**i}) % 2 > 0.5" for i in range(12))
LONGEST = "\N{PILE OF POO}" * 1000


@pytest.fixture(scope="module")
def compiled() -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(TEXT % PREDICATES, Path("m.yaml"))))


def allowed(compiled: CompiledSpec, name: str) -> int:
    parts = growing_parts(compiled.spec, compiled.abstraction)
    return {part.name: part.bytes for part in parts}[name]


def measured(fill: Callable[[], Any]) -> int:
    """Return the most bytes that were in use at a time while something was filled."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = fill()
        _, peak = tracemalloc.get_traced_memory()
        del kept
        return peak
    finally:
        tracemalloc.stop()


def test_the_ring_of_the_black_box(compiled: CompiledSpec) -> None:
    spec = compiled.spec.black_box
    assert spec is not None

    def fill() -> Ring:
        ring = Ring(10**12, spec.ring)
        for i in range(4000):
            ring.add(Kept(i, "/a", "t", bytes(1000), 1000 + OVERHEAD))
        return ring

    assert spec.ring // 2 < measured(fill) <= spec.ring * 1.1
    assert allowed(compiled, "black box") == 3 * MEGABYTE


def test_transforms_of_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    pose = "f: {frame: {of: base_link, in: map}, value: translation.x, timeout: 1}"
    text = TEXT.replace("  a: ", f"  {pose}\n  a: ", 1) % PREDICATES
    compiled = compile_spec(parse_spec(parse_document(text, Path("m.yaml"))))
    most = 5000
    monkeypatch.setattr("forewarn.signals.frame_tree.MOST_TRANSFORMS", most)

    def fill() -> FrameTree:
        tree = FrameTree()
        for i in range(2 * most):
            turned = (0.1 + i, 0.2 + i, 0.3 + i, 0.4 + i)
            move = Transform("map", (i + 0.1, i + 0.2, i + 0.3), turned, i + 10**9)
            assert not tree.insert(i * 1000, move, "base_link", static=False)
        assert tree.kept == most
        return tree

    assert most * bound.TRANSFORM / 4 < measured(fill) <= most * bound.TRANSFORM
    assert allowed(compiled, "frames") == MOST_TRANSFORMS * bound.TRANSFORM


def test_alerts_with_the_longest_texts(compiled: CompiledSpec) -> None:
    def fill() -> list[Alert]:
        # Texts of their own, as operators write them.
        return [
            Alert(*(i,), "keep", *(i,) * 4, 0.5, 1, f"{i}" + "state " * 80,
                  f"released by {LONGEST}{i}: {LONGEST}", f"{LONGEST}{i}", i, f"{LONGEST}{i}",
                  "/" * 4000 + f"{i}")
            for i in range(MOST_ALERTS + 1)
        ]  # fmt: skip

    most = allowed(compiled, "alerts")
    assert most / 4 < measured(fill) <= most


def test_what_expressions_remember(compiled: CompiledSpec) -> None:
    def fill() -> list[Any]:
        cells = [*compiled.abstraction.memories]
        state = [memory.start for memory in cells]
        for i in range(1200):
            for k, memory in enumerate(cells):
                # Falling for one extreme, rising for the other: a window that is full.
                value = float(i) * 1e300 if k % 2 else -float(i) / 3
                _, state[k] = memory.advance(state[k], value > 0 if memory.judges else value)
        return state

    most = allowed(compiled, "expressions")
    assert most / 20 < measured(fill) <= most


def test_moments_that_are_kept_to_grow_a_tree(compiled: CompiledSpec, tmp_path: Path) -> None:
    spec = compiled.spec.learning

    def fill() -> RememberedRuns:
        runs = RememberedRuns(compiled.abstraction, spec.remember)
        for i in range(2 * spec.remember):
            runs.observe(i, (i + 0.1, i + 0.2, i + 0.3), ended=False)
        return runs

    most = allowed(compiled, "regrowing")
    assert most / 20 < measured(fill) <= most


class Seen(NamedTuple):
    """A state that is fully known."""

    state: int
    ended: bool = False
    active: bool = True
    intervened: bool = False


@pytest.fixture(scope="module")
def model(compiled: CompiledSpec, tmp_path_factory: pytest.TempPathFactory) -> CountModel:
    path = tmp_path_factory.mktemp("runs") / "a.jsonl"
    lines = [{"t": i / 10, "a": float(i % 7), "b": 1.0, "c": 2.0} for i in range(50)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return learn([path], compiled.spec, compiled.abstraction).model


def test_learning_while_watching_ends_where_it_said(
    compiled: CompiledSpec, model: CountModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 20_000
    monkeypatch.setattr("forewarn.monitoring.online_learning.MOST_COUNTED", most)
    learner = OnlineLearner(compiled, model)
    state = 1

    def fill() -> Any:
        nonlocal state
        for tick in range(most):
            state = (state * 1103515245 + 12345) % 2**31
            learner.observe(tick, Seen(state >> 12 & 0xFFF), intervened=False)
        return learner.model()

    assert most * bound.COUNTED / 10 < measured(fill) <= most * bound.COUNTED
    counted = learner.model().counts.sum()
    assert learner.full
    learner.observe(10 * most, Seen(0), intervened=False)
    learner.observe(10 * most + 1, Seen(0), intervened=False)
    assert not learner.pending
    assert learner.model().counts.sum() == counted


def test_risk_tables_with_bounds_and_once_more(compiled: CompiledSpec, model: CountModel) -> None:
    monitor = build_monitor(compiled, model)
    parts = growing_parts(compiled.spec, compiled.abstraction, monitor)
    (table,) = (prop.table for prop in monitor.properties)
    assert table is not None
    arrays = (table.values, table.lower, table.upper, table.expected)
    assert 2 * sum(one.nbytes for one in arrays if one is not None) <= parts[-1].bytes
    assert parts[-1].bytes == 64 * table.values.size


def test_the_bound_names_each_part_and_the_sum(compiled: CompiledSpec) -> None:
    parts = growing_parts(compiled.spec, compiled.abstraction)
    names = [part.name for part in parts]
    assert names == ["black box", "alerts", "expressions", "regrowing", "online learning"]
    said = memory_bound(parts)
    assert all(f"{name} " in said for name in names)
    assert f"{MOST_COUNTED:,}" in said and "2,000 moments" in said
    assert (
        len(growing_parts(compiled.spec, compiled.abstraction, build_monitor(compiled, None))) == 6
    )
