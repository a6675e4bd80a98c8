"""What the monitor says of a run that is partly unknown, against every run that it may have been.

The oracle plays all complete runs one by one, each with its own automaton, by the words of the
specification: a violation starts the automaton again, or it waits; a terminal label is read once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pytest
from extent import examples
from formula_semantics import safety_formulas
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import FormulaError
from forewarn.logic.automaton import step
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import format_formula
from forewarn.models.counts import CountModel, Smoothing
from forewarn.monitoring.build import build_monitor, compile_spec
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import PropertyStatus, PropertyVerdict
from forewarn.signals.snapshots import Snapshot

ATOMS = ("pa", "pb", "crashed")
ENDED, CRASHED = -1, -2  # `ended` comes first in the file
STATES = (0, 1, 2, 3, ENDED, CRASHED)
HORIZON = 3
TEXT = """
rate: 1
startup_grace: 0
signals: {{a: {{timeout: never}}, b: {{timeout: never}}, e: {{timeout: never}}}}
predicates: {{pa: a, pb: b}}
terminal: {{ended: e == 1, crashed: e == 2}}
bounds: {{kind: sound}}
properties: {{p: {{formula: "{formula}", horizon: 3}}}}
"""
NAMED = (
    "always(crashed implies eventually[0:1 steps](pa))",
    "always(pa implies eventually[0:2 steps](crashed))",
    "always(not crashed)",
    "always(not (pa and pb))",
    "always(pa implies eventually[0:1 steps](pb))",
    "always(not (pa or crashed))",
)


@lru_cache(maxsize=64)
def monitor_of(formula: str, missing: int | None = None, seed: int = 0) -> Monitor:
    """Return a monitor whose model lacks one state."""
    compiled = compile_spec(parse_spec(parse_document(TEXT.format(formula=formula))))
    rng = np.random.default_rng(seed)
    states = tuple(state for state in STATES if state != missing)
    counts = rng.integers(0, 4, (len(states), len(states)))
    counts[:, 0] += 1
    counts[[i for i, state in enumerate(states) if state < 0]] = 0
    model = CountModel(
        compiled.abstraction.vocabulary,
        1.0,
        compiled.abstraction.digest,
        states,
        sparse.csr_matrix(counts),
        np.zeros(len(states), dtype=np.int64),
        Smoothing("none"),
    )
    return build_monitor(compiled, model)


@dataclass(frozen=True)
class Run:
    """One complete run so far: the automaton, and what the last tick brought.

    `breach` is the tick since which a violation lasts; `waits` tells that the automaton does not
    go on before that has cleared; `over` that a terminal label has been read, and no other is
    before the next episode.
    """

    automaton: int
    state: int = 0
    tick: int = -1
    status: PropertyStatus = PropertyStatus.SATISFIED_SO_FAR
    breach: int | None = None
    waits: bool = False
    over: bool = False
    began: bool = False

    def after(self, monitor: Monitor, state: int) -> Run:
        """Return the run after one more tick."""
        compiled = monitor.properties[0]
        automaton, tick = compiled.automaton, self.tick + 1
        calm = replace(self, state=state, tick=tick, breach=None, waits=False, began=False)
        named = "crashed" in automaton.atoms
        if state < 0 and (self.over or state == ENDED or not named):
            held = self.breach if self.over and state == self.state else None
            ended = replace(calm, automaton=automaton.initial, status=PropertyStatus.ENDED)
            return replace(ended, breach=held)
        names = {"pa"} if state in (1, 3) else set()
        names |= {"pb"} if state in (2, 3) else set()
        names = {"crashed"} if state == CRASHED else names
        letter = sum(1 << i for i, atom in enumerate(automaton.atoms) if atom in names)
        first = step(automaton, automaton.initial, letter)
        after = first if self.waits or self.over else step(automaton, self.automaton, letter)
        if after == automaton.violated:
            began = not self.waits
            return replace(
                calm,
                automaton=first,
                status=PropertyStatus.VIOLATED,
                began=began,
                breach=tick if began else self.breach,
                waits=first == automaton.violated and state >= 0,
                over=state < 0,
            )
        if state < 0:
            return replace(
                calm, automaton=automaton.initial, over=True, status=PropertyStatus.ENDED
            )
        held = after == automaton.satisfied
        status = PropertyStatus.CANNOT_BE_VIOLATED if held else PropertyStatus.SATISFIED_SO_FAR
        return replace(calm, automaton=after, over=False, status=status)


def possible(a: float | None, b: float | None, e: float | None) -> Iterator[int]:
    """Yield the states that agree with the signals."""
    if e in (None, 0.0):
        for x, y in itertools.product((0, 1), (0, 1)):
            if a in (None, x) and b in (None, y):
                yield x + 2 * y
    if e in (None, 1.0):
        yield ENDED
    if e in (None, 2.0):
        yield CRASHED


Hull = tuple[float, float, float, bool]


def hull(monitor: Monitor, runs: Sequence[Run]) -> Hull:
    """Return the worst risk of the runs whose state the model knows, with the hull of bounds.

    What a terminal label means is known without a model; but a label that merely may hold, and
    breaks nothing, is no knowledge of a state that was never seen.
    """
    assert monitor.model is not None
    table = monitor.properties[0].table
    assert table is not None and table.lower is not None and table.upper is not None
    found, complete = [], True
    for run in runs:
        row = monitor.model.index.get(run.state)
        if row is None and run.state >= 0:
            complete = False
        elif run.status in (PropertyStatus.VIOLATED, PropertyStatus.ENDED):
            found.append((float(run.status is PropertyStatus.VIOLATED),) * 3)
        else:
            at = row, run.automaton
            found.append((table.values[at], table.lower[at], table.upper[at]))
    seen = any(run.state in monitor.model.index for run in runs if run.state >= 0)
    if not found or (not complete and not seen and not any(value for value, _, _ in found)):
        return math.nan, 0.0, 1.0, False
    values, lower, upper = zip(*found, strict=True)
    return max(values), min(lower) if complete else 0.0, max(upper) if complete else 1.0, True


def status_of(runs: Sequence[Run]) -> PropertyStatus:
    found = {run.status for run in runs}
    if len(found) == 1:
        return found.pop()
    return (
        PropertyStatus.UNKNOWN
        if PropertyStatus.VIOLATED in found
        else PropertyStatus.SATISFIED_SO_FAR
    )


def compare(monitor: Monitor, ticks: Sequence[tuple[float | None, ...] | None]) -> None:
    """Play some ticks, None for one that is missed, and compare each verdict."""
    automaton = monitor.properties[0].automaton
    runs = {Run(automaton.initial)}
    state, counted, missed = monitor.start(), list[int](), False
    for tick, values in enumerate(ticks):
        options = list(possible(*(values or (None, None, None))))
        runs = {run.after(monitor, option) for run in runs for option in options}
        began = any(run.began for run in runs)
        if values is None:
            missed = missed or began
            continue
        state, verdict = monitor.step(state, Snapshot(tick, values))
        ours: PropertyVerdict = verdict.properties[0]
        told = [
            run
            for run in runs
            if run.breach is not None and any(run.breach <= at for at in counted)
        ]
        violated = PropertyStatus.VIOLATED
        if not told and all(run.status is violated or run.breach is not None for run in runs):
            # What a label began to violate counts while it holds.
            runs = {replace(run, status=violated) for run in runs}
        certain = all(run.status is violated for run in runs)
        assert ours.violation == (certain and not told)
        assert ours.possible_violation == ((began or missed) and not ours.violation)
        if ours.violation:
            counted.append(tick)
        missed = False
        assert ours.status is status_of(list(runs))
        if certain:
            assert ours[4:8] == (1.0, 1.0, 1.0, True)
        elif ours.status is PropertyStatus.ENDED:
            assert ours[4:8] == (0.0, 0.0, 0.0, True)
        else:
            assert ours[4:8] == pytest.approx(hull(monitor, list(runs)), abs=0, nan_ok=True)
        waiting = {
            automaton.violated if run.waits else run.automaton for run in runs if not run.over
        }
        over = {automaton.initial for run in runs if run.over}
        assert ours.automaton == tuple(sorted(waiting | over))
        assert state.properties[0].latched is any(
            run.waits and any(run.breach <= at for at in counted) for run in runs
        )


UNSURE = st.tuples(
    st.sampled_from([0.0, 1.0, None]),
    st.sampled_from([0.0, 1.0, None]),
    st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.0, 2.0, None]),
)
TICKS = st.tuples(UNSURE, st.lists(UNSURE | st.none(), max_size=6)).map(lambda t: [t[0], *t[1]])


@lru_cache(maxsize=1024)
def can_be_violated(formula: str) -> bool:
    try:
        automaton = compile_formula(parse_formula(formula), rate=1.0)
    except FormulaError:  # nothing satisfies it
        return False
    return automaton.violated is not None


FORMULAS = st.sampled_from(NAMED) | safety_formulas(leaves=3, longest=2, atoms=ATOMS).map(
    format_formula
).filter(can_be_violated)


KNOWN, BROKEN, MAYBE, CRASH = (0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (1.0, None, 0.0), (0.0, 0.0, 2.0)


@settings(max_examples=examples(200), deadline=None)
@given(FORMULAS, TICKS, st.sampled_from([None, None, 1, 3, CRASHED]))
@example(NAMED[3], [BROKEN, BROKEN, MAYBE, BROKEN, KNOWN, MAYBE, MAYBE], None)
@example(NAMED[3], [MAYBE, BROKEN, BROKEN, MAYBE, BROKEN], None)
@example(NAMED[4], [MAYBE, KNOWN, KNOWN, MAYBE, BROKEN], None)
@example(NAMED[5], [CRASH, CRASH, KNOWN, CRASH, BROKEN, BROKEN], None)
@example(NAMED[2], [(0.0, 0.0, None), CRASH], None)
@example(NAMED[2], [None, CRASH, CRASH, (0.0, 0.0, None), CRASH], None)
@example(NAMED[3], [(1.0, 0.0, None)], 1)
@example("pb", [MAYBE, BROKEN, KNOWN], None)
@example("pb or always(not pa)", [(0.0, None, 0.0), KNOWN, BROKEN, KNOWN], None)
@example("pb or always(not crashed)", [(0.0, 1.0, 0.0), (0.0, 1.0, None)], None)
@example("pb and always(pa or not pb)", [(1.0, None, 0.0), BROKEN, MAYBE], None)
def test_verdicts_are_those_of_all_runs_that_agree(
    formula: str, ticks: list[tuple[float | None, ...] | None], missing: int | None
) -> None:
    compare(monitor_of(formula, missing), ticks)


@settings(max_examples=examples(40), deadline=None)
@given(FORMULAS, st.integers(0, 5))
def test_the_table_is_the_share_of_paths_that_the_monitor_calls_violated(
    formula: str, seed: int
) -> None:
    monitor = monitor_of(formula, None, seed)
    compiled, model = monitor.properties[0], monitor.model
    assert model is not None and compiled.table is not None and compiled.outlook is not None
    matrix = compiled.outlook.chain.to_csr().toarray()

    def share(state: object, row: int, tick: int) -> float:
        """Return the probability that a violation follows within the horizon."""
        if tick > HORIZON:
            return 0.0
        total = 0.0
        for following in np.flatnonzero(matrix[row]).tolist():
            after, verdict = monitor.step(state, Snapshot(tick, signals(STATES[following])))
            violated = verdict.properties[0].violation
            rest = 1.0 if violated else share(after, following, tick + 1)
            total += matrix[row, following] * rest
        return total

    for row, code in enumerate(STATES):
        state, verdict = monitor.step(monitor.start(), Snapshot(0, signals(code)))
        ours = verdict.properties[0]
        if ours.status is PropertyStatus.VIOLATED:
            assert ours.probability == 1.0
            continue
        found = share(state, row, 1)
        assert ours.probability == pytest.approx(found, abs=1e-12)
        assert (ours.probability == 0.0) == (found == 0.0)


def test_a_property_that_nothing_violates_is_never_violated() -> None:
    compare(monitor_of("always(pa or not pa)"), [MAYBE, KNOWN, CRASH, None, BROKEN])


def test_a_terminal_label_is_read_once_also_where_a_formula_names_them_all() -> None:
    text = TEXT.format(formula="always(not crashed)").replace("ended: e == 1, ", "")
    monitor = build_monitor(compile_spec(parse_spec(parse_document(text))), None)
    state, found = monitor.start(), []
    for tick in range(3):
        state, verdict = monitor.step(state, Snapshot(tick, CRASH))
        found.append(verdict.properties[0].status)
    assert found == [PropertyStatus.VIOLATED, PropertyStatus.ENDED, PropertyStatus.ENDED]


def test_the_steps_of_a_long_window_take_five_bytes_each() -> None:
    live = monitor_of("always(pa implies eventually[0:50 steps](pb))").properties[0].live
    assert live.following.nbytes + live.outcome.nbytes == 5 * live.following.size


def signals(code: int) -> tuple[float, float, float]:
    """Return values of the signals that make a state."""
    if code < 0:
        return 0.0, 0.0, float(-code)
    return float(code & 1), float(code >> 1), 0.0


def test_the_obligation_of_a_terminal_label_ends_with_the_episode() -> None:
    monitor = monitor_of(NAMED[0])
    state, found = monitor.start(), []
    for tick in range(20):
        state, verdict = monitor.step(state, Snapshot(tick, (0.0, 0.0, 2.0)))
        found.append(verdict.properties[0])
    assert {item.status for item in found} == {PropertyStatus.ENDED}
    assert {item.probability for item in found} == {0.0}
    assert not any(item.violation or item.possible_violation for item in found)


def test_an_alert_that_is_on_keeps_its_hold_while_a_terminal_label_is_held() -> None:
    text = TEXT.format(formula="always(not crashed)").replace(
        "horizon: 3", "horizon: 3, enter: 1, exit: 1, hold: 4"
    )
    compiled = compile_spec(parse_spec(parse_document(text)))
    monitor = build_monitor(compiled, None)
    state, levels, statuses = monitor.start(), [], []
    for tick in range(8):
        state, verdict = monitor.step(state, Snapshot(tick, (0.0, 0.0, 2.0)))
        levels.append(int(verdict.properties[0].level))
        statuses.append(verdict.properties[0].status)
    assert statuses == [PropertyStatus.VIOLATED] + [PropertyStatus.ENDED] * 7
    assert levels[0] == 2
    assert levels.index(0) == 4


def test_a_signal_that_fails_as_a_violation_begins_hides_it_no_longer_than_it_is_away() -> None:
    monitor = monitor_of("always(not (pa and pb))")
    runs = [(0.0, 1.0, 0.0), (None, 1.0, 0.0), (1.0, 1.0, 0.0), (None, 1.0, 0.0), (1.0, 1.0, 0.0)]
    state, found = monitor.start(), []
    for tick, values in enumerate(runs):
        state, verdict = monitor.step(state, Snapshot(tick, values))
        found.append(verdict.properties[0])
    # The last may be the same violation still, or another.
    assert [item.violation for item in found] == [False, False, True, False, False]
    assert [item.possible_violation for item in found] == [False, True, False, False, True]
