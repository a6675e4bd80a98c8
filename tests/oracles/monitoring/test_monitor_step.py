"""The step against simulators written from the words of the specification.

Known runs: a list of deadlines stands for the bounded response. Runs with unknown values: every
completion is run on its own, and the monitor must say the hull of what they say.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from extent import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ModelError
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.monitoring.build import CompiledSpec, build_monitor, compile_spec
from forewarn.monitoring.policy import RESTING
from forewarn.monitoring.property_step import PropertyState
from forewarn.monitoring.risk_rows import same_bits
from forewarn.monitoring.step import Monitor, MonitorState
from forewarn.monitoring.verdict import PropertyStatus, PropertyVerdict, Verdict
from forewarn.signals.snapshots import Failure, Snapshot, StaleSignal

K = 2
TEXT = f"""
rate: 10
startup_grace: 0
signals: {{a: {{timeout: never}}, b: {{timeout: never}}, e: {{timeout: never}}}}
predicates: {{pa: a, pb: b}}
terminal: {{ended: e == 1, crashed: e == 2}}
properties:
  response: {{formula: "always(pa implies eventually[0:{K} steps](pb))", horizon: 0.5}}
  invariant: {{formula: "always(not (pa and pb))", horizon: 0.5}}
  crash: {{formula: "always(not crashed)", horizon: 0.5}}
"""
COMPILED = compile_spec(parse_spec(parse_document(TEXT)))


def learned(compiled: CompiledSpec = COMPILED) -> Monitor:
    rng = np.random.default_rng(7)
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    for _ in range(40):
        for tick in range(20):
            counter.add(tick, int(rng.choice([0, 1, 2, 3], p=[0.4, 0.35, 0.2, 0.05])))
        counter.add(20, int(rng.choice([-1, -2])))
        counter.end_recording()
    model = build_model(counter, rate=10.0, digest=compiled.abstraction.digest)
    return build_monitor(compiled, model)


MONITOR = learned()
TICKS = st.tuples(
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.0] * 4 + [1.0, 2.0]),
)


def play(ticks: list[tuple[float | None, ...]], start: int = 0) -> list[Verdict]:
    state, verdicts = MONITOR.start(), []
    for tick, values in enumerate(ticks, start):
        state, verdict = MONITOR.step(state, Snapshot(tick, tuple(values)))
        verdicts.append(verdict)
    return verdicts


def expected_violations(ticks: list[tuple[float, ...]]) -> dict[str, list[int]]:
    """Say from the words alone when each property is violated."""
    found: dict[str, list[int]] = {"response": [], "invariant": [], "crash": []}
    deadlines: list[int] = []
    holding = crashed = False
    for tick, (a, b, e) in enumerate(ticks):
        if e == 2 and not crashed:
            found["crash"].append(tick)
        crashed = bool(e) and (crashed or e == 2)
        if e:
            deadlines, holding = [], False
            continue
        if b:
            deadlines = []
        elif tick in deadlines:
            found["response"].append(tick)
            deadlines = []
        if a and not b:
            deadlines.append(tick + K)
        if a and b and not holding:
            found["invariant"].append(tick)
        holding = bool(a and b)
    return found


@given(st.lists(TICKS, max_size=30))
def test_violations_of_known_runs(ticks: list[tuple[float, ...]]) -> None:
    verdicts = play(ticks)
    for index, (name, expected) in enumerate(expected_violations(ticks).items()):
        assert [v.tick for v in verdicts if v.properties[index].violation] == expected, name


class Forgetting(dict[object, object]):
    """Keeps nothing."""

    def __setitem__(self, key: object, value: object) -> None:
        del key, value


def forgetful() -> Monitor:
    """Return the monitor that judges each tick anew."""
    monitor = learned()
    for compiled in monitor.properties:
        object.__setattr__(compiled, "steady", Forgetting())
    return monitor


ANEW = forgetful()
LONG = st.lists(
    st.tuples(st.sampled_from([1, 1, 1, 1, 1, 4]), TICKS | st.just((None, 1.0, 0.0))), max_size=60
)


@given(LONG)
def test_what_is_remembered_of_ticks_changes_nothing(
    run: list[tuple[int, tuple[float | None, ...]]],
) -> None:
    one, other, tick = MONITOR.start(), ANEW.start(), 0
    for gap, values in run:
        tick += gap
        one, verdict = MONITOR.step(one, Snapshot(tick, values))
        other, anew = ANEW.step(other, Snapshot(tick, values))
        assert repr(verdict) == repr(anew)
        assert repr(one) == repr(other)
    assert not any(compiled.steady for compiled in ANEW.properties)


def test_ticks_of_rest_are_remembered() -> None:
    play([(0.0, 0.0, 0.0)] * 3)
    assert all(compiled.steady for compiled in MONITOR.properties)


@given(st.lists(TICKS, min_size=1, max_size=30))
def test_an_episode_starts_afresh_after_a_terminal_label(ticks: list[tuple[float, ...]]) -> None:
    before = [(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)]
    later = play(before + ticks)[2:]
    fresh = play(ticks, start=2)
    assert [v.properties[0][:9] for v in later] == [v.properties[0][:9] for v in fresh]


def test_a_terminal_label_that_the_formula_does_not_name_ends_the_obligation() -> None:
    verdicts = play([(1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0), (0.0, 0.0, 1.0)])
    assert [v.properties[0].status for v in verdicts[1:]] == [PropertyStatus.ENDED] * 3
    assert [v.properties[0].probability for v in verdicts[1:]] == [0.0] * 3


def test_an_invariant_is_counted_once_and_armed_when_its_condition_clears() -> None:
    bad, good = (1.0, 1.0, 0.0), (0.0, 0.0, 0.0)
    verdicts = [v.properties[1] for v in play([bad, bad, bad, good, bad])]
    assert [v.violation for v in verdicts] == [True, False, False, False, True]
    assert [v.status is PropertyStatus.VIOLATED for v in verdicts] == [
        True,
        True,
        True,
        False,
        True,
    ]
    assert [v.probability for v in verdicts[:3]] == [1.0] * 3


UNSURE = st.tuples(
    st.sampled_from([0.0, 1.0, None]),
    st.sampled_from([0.0, 1.0, None]),
    st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.0, None]),
)


def completions(ticks: list[tuple[float | None, ...]]):
    options = [
        [(0.0, 1.0) if x is None else (x,) for x in pair]
        + [(0.0, 1.0, 2.0) if end is None else (end,)]
        for *pair, end in ticks
    ]
    for choice in itertools.product(*(itertools.product(*o) for o in options)):
        yield list(choice)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(UNSURE, min_size=1, max_size=4))
def test_unknown_values_give_the_hull_of_all_completions(
    ticks: list[tuple[float | None, ...]],
) -> None:
    verdicts = play(ticks)
    runs = [play(run) for run in completions(ticks)]
    for index in range(len(MONITOR.properties)):
        for tick, verdict in enumerate(verdicts):
            ours = verdict.properties[index]
            theirs = [run[tick].properties[index] for run in runs]
            if any(t.violation for t in theirs):
                certain = all(t.violation for t in theirs)
                assert ours.violation == certain
                assert ours.possible_violation == (not certain)
                break  # from here on the monitor leaves out the completions that are over
            assert not ours.violation
            assert not ours.possible_violation
            assert set(ours.automaton) == {q for t in theirs for q in t.automaton}
            assert ours.probability == max(t.probability for t in theirs)
            assert ours.lower == min(t.lower for t in theirs)
            assert ours.upper == max(t.upper for t in theirs)
            assert ours.lower <= ours.probability <= ours.upper


BAD = (1.0, 1.0, 0.0)


@given(st.lists(TICKS, max_size=5), st.integers(1, 12), st.lists(TICKS, min_size=1, max_size=3))
@example([BAD, BAD], 1, [BAD])
@example([(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)], 1, [(0.0, 0.0, 0.0)])
def test_a_missed_tick_is_one_about_which_nothing_is_known(
    before: list[tuple[float, ...]], gap: int, after: list[tuple[float, ...]]
) -> None:
    filled = play(before + [(None, None, None)] * gap + after) if before else []
    state, last = MONITOR.start(), []
    for tick, values in enumerate(before):
        state, _ = MONITOR.step(state, Snapshot(tick, values))
    for tick, values in enumerate(after, len(before) + gap):
        state, verdict = MONITOR.step(state, Snapshot(tick, values))
        last.append(verdict)
    for ours, theirs in zip(last, filled[len(before) + gap :], strict=bool(before)):
        for p, q in zip(ours.properties, theirs.properties, strict=True):
            assert p.automaton == q.automaton
            assert (p.status, p.violation) == (q.status, q.violation)
            assert same_bits(p[4:8], q[4:8])
    if before and any(
        p.possible_violation for v in filled[len(before) :][:gap] for p in v.properties
    ):
        assert any(p.possible_violation or p.violation for p in last[0].properties)


def test_before_the_first_tick_nothing_is_remembered() -> None:
    assert MONITOR.start() == MonitorState(
        tick=None,
        first=0,
        seen=False,
        properties=tuple(
            PropertyState((prop.automaton.initial,), False, RESTING) for prop in MONITOR.properties
        ),
        past=None,
    )


def test_after_a_missed_tick_what_was_before_is_not_known() -> None:
    spec = parse_spec(
        parse_document(TEXT.replace("startup_grace: 0", "startup_grace: 0\nhistory: 2"))
    )
    monitor = build_monitor(compile_spec(spec), None)
    state, _ = monitor.step(monitor.start(), Snapshot(0, (1.0, 0.0, 0.0)))
    for tick, known in ((1, True), (2, False), (3, False)):
        _, verdict = monitor.step(state, Snapshot(tick, (0.0, 1.0, 0.0)))
        assert (verdict.observation.state is not None) is known
    _, second = monitor.step(state, Snapshot(1, (0.0, 1.0, 0.0)))
    _, first = monitor.step(monitor.start(), Snapshot(1, (0.0, 1.0, 0.0)))
    assert second.observation.state != first.observation.state


def test_a_state_that_was_never_seen_has_no_probability_and_full_bounds() -> None:
    counter = TransitionCounter(COMPILED.abstraction.vocabulary)
    for tick, state in enumerate([0, 1, 2, 0, 1, 2]):
        counter.add(tick, state)
    model = build_model(counter, rate=10.0, digest=COMPILED.abstraction.digest)
    monitor = build_monitor(COMPILED, model)
    state = monitor.start()
    found = []
    for tick in range(3):
        state, verdict = monitor.step(state, Snapshot(tick, (1.0, 1.0, 0.0)))
        found.append(verdict.properties[0])
    assert all(math.isnan(v.probability) for v in found)
    assert [(v.lower, v.upper, v.in_model) for v in found] == [(0.0, 1.0, False)] * 3
    assert [int(v.level) for v in found] == [0, 1, 1]  # a warning: it has no actuator


@pytest.mark.parametrize("kind", ["none", "credible", "sound"])
def test_bounds_are_of_the_kind_that_the_file_asks_for(kind: str) -> None:
    bounds = f"bounds: {{kind: {kind}, confidence: 0.9}}\n"
    monitor = learned(compile_spec(parse_spec(parse_document(TEXT + bounds))))
    for prop in monitor.properties:
        assert prop.table is not None
        assert prop.table.kind == kind
        assert prop.table.confidence == (None if kind == "none" else 0.9)
    _, verdict = monitor.step(monitor.start(), Snapshot(0, (1.0, 0.0, 0.0)))
    response = verdict.properties[0]
    assert response.in_model is True
    if kind == "none":
        assert math.isnan(response.lower)
        assert math.isnan(response.upper)
    else:
        assert response.lower < response.probability < response.upper


def test_an_ignored_gap_leaves_alerts_as_they_are() -> None:
    danger, gap = (1.0, 0.0, 0.0), (None, None, 0.0)
    state = MONITOR.start()
    for tick in range(2):
        state, verdict = MONITOR.step(state, Snapshot(tick, danger))
    level = verdict.properties[0].level
    for tick in range(2, 6):
        state, verdict = MONITOR.step(state, Snapshot(tick, gap, suspended=True))
        assert verdict.properties[0].status is PropertyStatus.UNKNOWN
        assert math.isnan(verdict.properties[0].probability)
        assert verdict.properties[0].level == level


def test_an_ignored_gap_that_leaves_the_state_known_hides_nothing() -> None:
    text = TEXT.replace("predicates: {pa: a,", "predicates: {pa: a > 0 or c > 0,").replace(
        "signals: {", "signals: {c: {timeout: never}, "
    )
    monitor = learned(compile_spec(parse_spec(parse_document(text))))
    dark, known = (None, None, None, 0.0), (None, 1.0, 0.0, 0.0)
    state, _ = monitor.step(monitor.start(), Snapshot(0, dark))
    _, ours = monitor.step(state, Snapshot(1, known, suspended=True))
    _, theirs = monitor.step(state, Snapshot(1, known))
    assert ours.observation.state is not None and len(ours.properties[0].automaton) > 1
    assert 0 < ours.properties[0].probability < 1
    assert ours.properties == theirs.properties


@pytest.mark.parametrize(("risk_measure", "level"), [("risk", 0), ("upper", 2)])
def test_the_figure_that_the_file_names_is_held_against_its_thresholds(
    risk_measure: str, level: int
) -> None:
    text = TEXT + "bounds: {kind: credible, confidence: 0.9}\n"

    def response(text: str) -> PropertyVerdict:
        monitor = learned(compile_spec(parse_spec(parse_document(text))))
        return monitor.step(monitor.start(), Snapshot(0, (1.0, 0.0, 0.0)))[1].properties[0]

    told = response(text)
    between = round((told.probability + told.upper) / 2, 6)
    assert told.probability < between < told.upper
    levels = f"{{warn: {between}, act: {between}, release: 0.01}}"
    rule = f"horizon: 0.5, risk_measure: {risk_measure}, enter: 1, thresholds: {levels}}}"
    found = response(text.replace("horizon: 0.5}", rule, 1))
    assert (int(found.level), found.probability) == (level, told.probability)


@pytest.mark.parametrize("startup", [0, 5])
def test_a_violation_is_counted_once_while_the_state_is_awaited(startup: int) -> None:
    text = TEXT.replace("pb: b}", "pb: b, pc: c}").replace(
        "startup_grace: 0", f"startup_grace: {startup}"
    )
    text = text.replace("e: {timeout: never}", "e: {timeout: never}, c: {timeout: never}")
    monitor = build_monitor(compile_spec(parse_spec(parse_document(text))), None)
    state, found = monitor.start(), []
    for tick, held in enumerate([1.0, None, 1.0]):
        state, verdict = monitor.step(state, Snapshot(tick, (held, 1.0, 0.0, None)))
        found.append(verdict.properties[1])
    # The last may be the same violation still, or another.
    assert [v.violation for v in found] == [True, False, False]
    assert [v.possible_violation for v in found] == [False, False, True]


def test_inactive_phases_are_not_monitored() -> None:
    spec = parse_spec(
        parse_document(TEXT.replace("predicates:", "active_when: e != 1\npredicates:"))
    )
    monitor = build_monitor(compile_spec(spec), None)
    state, found = monitor.start(), []
    for tick, e in enumerate([0.0, 1.0, 1.0, 0.0]):
        state, verdict = monitor.step(state, Snapshot(tick, (1.0, 0.0, e)))
        found.append(verdict.properties[0].status)
    assert found == [
        PropertyStatus.SATISFIED_SO_FAR,
        PropertyStatus.INACTIVE,
        PropertyStatus.INACTIVE,
        PropertyStatus.SATISFIED_SO_FAR,
    ]


@pytest.mark.parametrize("startup", [0.0, 0.5])
def test_missing_signals_raise_no_alert_before_startup_is_over(startup: float) -> None:
    spec = parse_spec(parse_document(TEXT.replace("startup_grace: 0", f"startup_grace: {startup}")))
    monitor = learned(compile_spec(spec))
    state, found = monitor.start(), []
    for tick in range(8):
        state, verdict = monitor.step(state, Snapshot(tick, (None, None, None)))
        found.append(int(verdict.properties[0].level))
    first = 1 if startup == 0 else 6
    # From then on the worst that is compatible with knowing nothing counts, on `enter` ticks.
    assert found == [0] * first + [2] * (8 - first)


def test_a_model_without_states_is_refused() -> None:
    counter = TransitionCounter(COMPILED.abstraction.vocabulary)
    model = build_model(counter, rate=10.0, digest=COMPILED.abstraction.digest)
    with pytest.raises(ModelError, match="nothing was learned"):
        build_monitor(COMPILED, model)


def test_a_verdict_says_when_it_is_and_what_was_wrong_with_the_inputs() -> None:
    failure = Failure("a", "no number")
    said = Snapshot(7, (1.0, 0.0, 0.0), stale=(StaleSignal("b", None),), failures=(failure,))
    state, verdict = MONITOR.step(MONITOR.start(), said)
    assert (verdict.tick, verdict.time_ns, state.tick, state.first) == (7, 700_000_000, 7, 7)
    assert (verdict.observation.state, list(verdict.values)) == (1, [1.0, 0.0, 0.0])
    _, told = MONITOR.step(MONITOR.start(), said._replace(time_ns=712_345_678))
    assert told.time_ns == 712_345_678
    assert verdict.stale == said.stale
    assert verdict.failures == (failure,)


@pytest.mark.parametrize("start", [0, 100])
def test_waiting_ends_with_startup_and_with_the_first_known_state(start: int) -> None:
    spec = parse_spec(parse_document(TEXT.replace("startup_grace: 0", "startup_grace: 0.5")))
    monitor = learned(compile_spec(spec))

    def statuses(*ticks: tuple[float | None, ...]) -> list[bool]:
        state, found = monitor.start(), []
        for tick, values in enumerate(ticks, start):
            state, verdict = monitor.step(state, Snapshot(tick, values))
            found.append(verdict.properties[0].status is PropertyStatus.UNKNOWN)
        return found

    dark = (0.0, None, 0.0)
    assert statuses(*[dark] * 7) == [True] * 5 + [False] * 2
    assert statuses(dark, (0.0, 1.0, 0.0), dark) == [True, False, False]


def test_after_an_inactive_phase_nothing_is_owed_or_remembered() -> None:
    text = TEXT.replace("predicates:", "active_when: e != 1\npredicates:")
    monitor = build_monitor(compile_spec(parse_spec(parse_document(text))), None)
    state, found = monitor.start(), []
    ask, off, bad = (1.0, 0.0, 0.0), (1.0, 1.0, 1.0), (1.0, 1.0, 0.0)
    for tick, values in enumerate([ask, off, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), bad, off, bad]):
        state, verdict = monitor.step(state, Snapshot(tick, values))
        found.append(verdict.properties)
        if values is off:
            assert state.properties == monitor.start().properties
    assert not any(response.violation for response, _, _ in found)
    assert [v.violation for _, v, _ in found] == [False] * 4 + [True, False, True]
    asleep = found[5][1]
    assert asleep.automaton == (monitor.properties[1].automaton.initial,)
    assert asleep.possible_violation is False
    assert math.isnan(asleep.probability) and math.isnan(asleep.lower) and math.isnan(asleep.upper)
    assert asleep.in_model
    assert not asleep.possible_violation
    assert int(asleep.level) == 0


def test_without_a_model_a_violation_alerts_and_its_end_releases() -> None:
    monitor = build_monitor(COMPILED, None)
    state, found = monitor.start(), []
    for tick in range(40):
        state, verdict = monitor.step(state, Snapshot(tick, (1.0, 1.0 * (tick < 2), 0.0)))
        found.append(verdict.properties[1])
    assert [v.probability for v in found[:2]] == [1.0, 1.0]
    assert all(math.isnan(v.probability) and v.in_model for v in found[2:])
    assert (int(found[1].level), int(found[-1].level)) == (2, 0)
    changed = [0] + [t for t in range(1, 40) if found[t].level != found[t - 1].level]
    assert len(changed) > 2
    for now, v in enumerate(found):
        assert v.alert_since == max(t for t in changed if t <= now)


def test_a_gap_of_years_takes_no_time_and_names_what_may_have_happened() -> None:
    state, _ = MONITOR.step(MONITOR.start(), Snapshot(0, (0.0, 0.0, 0.0)))
    _, verdict = MONITOR.step(state, Snapshot(10**10, (0.0, 0.0, 0.0)))
    assert [v.possible_violation for v in verdict.properties] == [True] * 3
    assert not any(v.violation for v in verdict.properties)
    _, next_one = MONITOR.step(state, Snapshot(1, (0.0, 0.0, 0.0)))
    assert not any(v.possible_violation for v in next_one.properties)
    _, certain = MONITOR.step(state, Snapshot(3, (1.0, 1.0, 0.0)))
    invariant = certain.properties[1]
    assert invariant.violation != invariant.possible_violation
