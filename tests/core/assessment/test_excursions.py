"""Excursions of real automata: a breach lasts while what is seen, if it went on, would violate."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_runs import track as written

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.events import find_events
from forewarn.assessment.excursions import find_excursions
from forewarn.assessment.history import History, Track
from forewarn.config import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.live_session import Watch

TEXT = """
rate: 10
startup: 0
signals: {near: {timeout: never}, stopped: {timeout: never}}
predicates: {a: near, b: stopped}
properties:
  answered: {formula: "FORMULA", horizon: 2.0, clear: CLEAR}
"""
ANSWER = "always(a implies eventually[0:0.5](b))"
NEVER = "always(not a)"


def watched(formula: str, letters: list[tuple[bool, bool]], clear: float = 0.3) -> Track:
    text = TEXT.replace("FORMULA", formula).replace("CLEAR", str(clear))
    watch = Watch(compile_spec(parse_spec(parse_document(text))), None, {})
    history, counted = History(watch.monitor), []
    for tick, (a, b) in enumerate(letters):
        watch.accept("", watch.session.clock.time_ns(tick), {"near": float(a), "stopped": float(b)})
        verdict = watch.tick(tick).verdict
        counted.append(verdict.properties[0].counted)
        history.add(verdict)
    (track,) = history.tracks()
    assert counted == find_excursions(track).begins.tolist()
    assert watch.violations == [sum(counted)]
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


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30), st.sampled_from([0, 2]))
def test_a_breach_lasts_while_the_same_letter_would_violate(
    letters: list[tuple[bool, bool]], clear: int
) -> None:
    """By experiment: go on with the letter from each tick, and see whether it violates."""
    track = watched(ANSWER, letters, clear / 10)
    open_, quiet, expected = False, 0, []
    pending: int | None = None  # ticks that are left for the answer
    for a, b in letters:
        pending = None if b or pending is None else pending - 1
        violated = pending == 0
        if violated:
            pending = None
        if a and not b and pending is None:
            pending = 5
        if violated:
            expected.append(not open_)
            open_, quiet = True, 0
        else:
            expected.append(False)
            if pending is not None:  # without an answer it runs out
                quiet = 0
            else:
                quiet += 1
                open_ = open_ and quiet < max(clear, 1)
    assert find_excursions(track).begins.tolist() == expected


@settings(deadline=None)
@given(st.text("...VvE-", max_size=20), st.integers(0, 4))
def test_a_monitor_that_tells_nothing_but_its_status_has_the_same_excursions(
    facts: str, clear: int
) -> None:
    run = written("." * len(facts), facts, clear=clear)
    bare = ScoredRun(
        run.rate, run.horizon, run.ticks, run.probability, run.violation, run.status, clear=clear
    )
    for ours, theirs in zip(find_excursions(bare), find_excursions(run), strict=True):
        assert ours.tolist() == theirs.tolist()
