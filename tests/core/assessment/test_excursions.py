"""Excursions of real automata: a breach lasts while what is seen, if it went on, would violate."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.assessment.events import find_events
from forewarn.assessment.excursions import find_excursions
from forewarn.assessment.history import History, Track
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.policy import Broken

TEXT = """
rate: 10
startup_grace: 0
signals: {near: {timeout: never}, stopped: {timeout: never}}
predicates: {a: near, b: stopped}
properties:
  answered: {formula: "FORMULA", horizon: 2.0, breach_clear_time: CLEAR}
"""
ANSWER = "always(a implies eventually[0:0.5](b))"
NEVER = "always(not a)"


def text_of(formula: str, clear: float) -> str:
    return TEXT.replace("FORMULA", formula).replace("CLEAR", str(clear))


def watched(formula: str, letters: list[tuple[bool, bool]], clear: float = 0.3) -> Track:
    watch = LiveSession(compile_spec(parse_spec(parse_document(text_of(formula, clear)))), None, {})
    history, counted = History(watch.monitor), []
    for tick, (a, b) in enumerate(letters):
        watch.accept("", watch.clock.time_ns(tick), {"near": float(a), "stopped": float(b)})
        verdict = watch.tick(tick).verdict
        counted.append(verdict.properties[0].counted)
        history.add(verdict)
    (track,) = history.tracks()
    assert counted == find_excursions(track).begins.tolist()
    assert watch.memory.violations == [sum(counted)]
    return track


def test_an_obligation_that_is_never_met_is_one_breach() -> None:
    track = watched(ANSWER, [(True, False)] * 100 + [(False, True)] * 5 + [(True, False)] * 9)
    assert int(track.violation.sum()) > 10  # the automaton starts again after each
    assert [v.tick for v in find_events(track).violations] == [5, 110]


def test_an_obligation_that_is_met_clears_the_breach() -> None:
    late = [(True, False)] + [(False, False)] * 5 + [(False, True)] * 5
    track = watched(ANSWER, late * 3)
    assert [v.tick for v in find_events(track).violations] == [5, 16, 27]


@pytest.mark.parametrize(("clear", "counted"), [(0.0, 4), (0.2, 2), (0.5, 1)])
def test_flickers_are_one_breach_until_it_has_been_quiet_for_so_long(
    clear: float, counted: int
) -> None:
    facts = "..x.x...x.x...."
    track = watched(NEVER, [(fact == "x", False) for fact in facts], clear)
    assert len(find_events(track).violations) == counted


def test_an_obligation_that_is_met_clears_the_breach_however_short_the_calm() -> None:
    broken = [(True, False)] * 6
    track = watched(ANSWER, [*broken, (False, True), *broken], clear=5.0)
    assert [v.tick for v in find_events(track).violations] == [5, 12]
    toggling = [(False, True), (True, False)] * 9  # each obligation is met at the next tick
    track = watched(ANSWER, [*broken, *toggling, (False, True), *broken], clear=1.0)
    assert [v.tick for v in find_events(track).violations] == [5, 30]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30), st.sampled_from([0, 2]))
def test_a_breach_lasts_while_the_same_obligation_would_be_violated(
    letters: list[tuple[bool, bool]], clear: int
) -> None:
    """By experiment: count down an obligation at each tick, and see whether it runs out."""
    track = watched(ANSWER, letters, clear / 10)
    open_, quiet, expected, broken = False, 0, [], []
    left: int | None = None  # ticks that are left for the answer
    for a, b in letters:
        owed = left is not None
        left = None if b or left is None else left - 1
        violated = left == 0
        if violated:
            left = None
        if a and not b and left is None:
            left = 5
        expected.append(violated and not open_)
        if violated:
            open_, quiet = True, 0
        elif open_ and not (left is not None and quiet == 0):
            quiet += 1
            open_ = quiet < max(clear, 1) and not (owed and left is None)
        told = Broken.NO if not open_ else Broken.CLEARING if quiet else Broken.LASTS
        broken.append(Broken.AT_ONCE if violated and left is None else told)
    assert track.counted.tolist() == expected
    assert track.broken.tolist() == broken


def test_a_breach_is_kept_while_nobody_knows() -> None:
    """Neither cleared nor counted anew, and no alert ends."""
    watch = LiveSession(compile_spec(parse_spec(parse_document(text_of(NEVER, 0.3)))), None, {})
    found = []
    for tick, near in enumerate([1.0, math.nan, math.nan, math.nan, math.nan, 1.0, 0.0, 0.0]):
        watch.accept("", watch.clock.time_ns(tick), {"near": near, "stopped": 0.0})
        prop = watch.tick(tick).verdict.properties[0]
        found.append((prop.broken, prop.counted))
    lasts, clearing = (Broken.LASTS, False), (Broken.CLEARING, False)
    assert found == [(Broken.LASTS, True), *[lasts] * 5, clearing, clearing]
