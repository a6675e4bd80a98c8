"""A large model is put together beside the ticks: nothing holds the interpreter for long.

Measured is the processor time that a thread spends before another one that wants to run has its
turn. What a task does by itself it does every time. A busy machine that lets the other thread
wait, or a collection of all the garbage of the tests before, comes once in a while. So the least
of a few tries counts.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extent import WHOLE
from scipy import sparse

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.models.file import dump_model
from forewarn.monitoring.build import build_monitor, compile_spec
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.online_learning import OnlineLearner
from forewarn.monitoring.record import Names, RecordWriter
from forewarn.states.vocabulary import Observation

STATES, SUCCESSORS, PREDICATES = 1 << (15 if WHOLE else 13), 20, 40
LONGEST, IN_TICK = 0.1, 0.05
"""Seconds of processor time: a tick at 10 Hz, and half of one."""
TRIES = 5

pytestmark = [
    pytest.mark.clocked,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the clocks of threads"),
]


def compiled() -> CompiledSpec:
    names = range(PREDICATES)
    signals = "".join(f"  s{i}: {{timeout: never}}\n" for i in names)
    predicates = "".join(f"  p{i}: s{i}\n" for i in names)
    text = (
        "rate: 10\nstartup_grace: 0\nbounds: {kind: none}\n"
        f"signals:\n{signals}predicates:\n{predicates}"
        "properties:\n  stop: {formula: 'always(p0 implies eventually[0:0.3](p1))', horizon: 1}\n"
    )
    return compile_spec(parse_spec(parse_document(text)))


@pytest.fixture(scope="module")
def large() -> tuple[CompiledSpec, CountModel]:
    """Return a monitor file, and a model that belongs to it: 9 MB, or a quarter of that."""
    spec, draw = compiled(), np.random.default_rng(0)
    rows = np.repeat(np.arange(STATES), SUCCESSORS)
    where = (rows, draw.integers(0, STATES, len(rows)))
    model = CountModel(
        vocabulary=spec.abstraction.vocabulary,
        rate=10.0,
        digest=spec.abstraction.digest,
        states=tuple(range(STATES)),
        counts=sparse.csr_matrix(
            (np.ones(len(rows), dtype=np.int64), where), shape=(STATES, STATES)
        ),
        starts=np.ones(STATES, dtype=np.int64),
    )
    return spec, model


def longest_hold(task: Callable[[], Any]) -> float:
    """Return the longest time that a task keeps other threads of the interpreter waiting."""
    ended, read = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            task()
        except BaseException as error:
            failures.append(error)
        ended.set()
        read.wait()  # the clock of a thread ends with it

    thread = threading.Thread(target=work)
    thread.start()
    assert thread.ident is not None
    clock = time.pthread_getcpuclockid(thread.ident)
    longest, before, going_on = 0.0, 0.0, True
    while going_on:
        going_on = not ended.wait(0.001)
        now = time.clock_gettime(clock)
        longest, before = max(longest, now - before), now
    read.set()
    thread.join()
    assert not failures, failures
    return longest


def least(measure: Callable[[], float], limit: float) -> float:
    """Return the first of a few measurements that is below a limit, or the least of them."""
    found = float("inf")
    for _ in range(TRIES):
        found = min(found, measure())
        if found < limit:
            break
    return found


def test_the_measure_sees_what_holds_the_interpreter() -> None:
    assert least(lambda: longest_hold(lambda: sum(range(30_000_000))), LONGEST) > 2 * LONGEST
    assert least(lambda: longest_hold(lambda: sum(i for i in range(1_000_000))), LONGEST) < LONGEST


@pytest.mark.parametrize("what", ["build", "write", "pack", "learn"])
def test_other_threads_have_their_turns(
    large: tuple[CompiledSpec, CountModel], tmp_path: Path, what: str
) -> None:
    spec, model = large
    with_record = RecordWriter(tmp_path / "a.mcap", Names.of("/monitor"), "", {})
    tasks: dict[str, Callable[[], Callable[[], Any]]] = {
        "build": lambda: lambda: build_monitor(spec, model),
        "write": lambda: lambda: dump_model(model),
        "pack": lambda: partial(with_record.pack, model, build_monitor(spec, model)),
        "learn": lambda: OnlineLearner(spec, model).later(),
    }
    task = tasks[what]()
    assert least(lambda: longest_hold(task), LONGEST) < LONGEST
    with_record.close()


def test_what_is_left_for_the_tick_takes_a_part_of_it(
    large: tuple[CompiledSpec, CountModel], tmp_path: Path
) -> None:
    spec, model = large
    watch = LiveSession(spec, None, {})
    monitor = watch.build(model)
    record = RecordWriter(tmp_path / "a.mcap", Names.of("/monitor"), "", {})
    packed = record.pack(model, monitor)

    def in_tick() -> float:
        begun = time.thread_time()
        watch.use(monitor)
        record.model(model, packed)
        record.tables(watch.monitor, packed.tables)
        assert monitor.model is not None
        monitor.model.compatible(Observation(None, 1, 1, 0, True))
        return time.thread_time() - begun

    assert least(in_tick, IN_TICK) < IN_TICK
    record.close()
