from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.config.sections import PropertySpec
from forewarn.monitoring.policy import (
    RESTING,
    Level,
    PolicyState,
    Rules,
    carried_over,
    compile_rules,
    decide,
    waits,
)
from forewarn.signals.clock_kinds import Grid

RULES = Rules(
    0.3, 0.6, 0.2, enter=2, exit=3, hold=5, out_of_model=Level.ACT, out_of_model_timeout=4
)


def levels(figures: list[float | None], rules: Rules = RULES, begin: int = 0) -> list[int]:
    """Run the policy; None stands for a state that the model does not know."""
    state, found = RESTING, []
    for tick, figure in enumerate(figures, begin):
        out_of_model = figure is None
        state = decide(
            rules, state, tick, math.nan if figure is None else figure, out_of_model=out_of_model
        )
        found.append(int(state.level))
    return found


UNSEEN, NAN = None, math.nan
BELOW = {limit: math.nextafter(limit, 0) for limit in (0.3, 0.6)}
RUNS = [
    # A noisy tick raises nothing; `enter` ticks in a row do, and a threshold counts as reached.
    ({}, [0.1, 0.9, 0.1, 0.9, 0.1], "00000"),
    ({}, [0.1, 0.9, 0.9], "002"),
    ({}, [0.1, 0.4, 0.4, 0.9, 0.9], "00112"),
    ({}, [0.6, 0.6], "02"),
    ({}, [BELOW[0.6]] * 2, "01"),
    ({}, [0.3, 0.3], "01"),
    ({}, [BELOW[0.3]] * 2, "00"),
    # An alert ends after its hold of 5 ticks, or after `exit` calm ones in a row.
    ({}, [0.9, 0.9] + [0.1] * 6, "02222200"),
    ({"hold": 0}, [0.9, 0.9] + [0.1] * 4, "022200"),
    ({"hold": 0}, [0.9, 0.9, 0.1, 0.1, 0.25, 0.1, 0.1, 0.1], "02222220"),
    # Between release and act it stays, and at the release threshold.
    ({}, [0.9, 0.9] + [0.3] * 20, "0" + "2" * 21),
    ({"hold": 0}, [0.9, 0.9] + [0.2] * 9, "0" + "2" * 10),
    ({"hold": 0}, [0.4, 0.4] + [0.2] * 9, "0" + "1" * 10),
    # It falls to a warning where one is due, for which calm ticks count anew.
    ({"hold": 0, "release": 0.5}, [0.9, 0.9, 0.4, 0.4, 0.4, 0.4], "022211"),
    ({"hold": 0, "release": 0.5}, [0.9, 0.9, 0.4, 0.4, 0.4, 0.1, 0.1, 0.1], "02221110"),
    # A warning ends below the lesser of release and warn.
    ({"hold": 0, "release": 0.1}, [0.4, 0.4] + [0.15] * 4, "011111"),
    ({"hold": 0, "release": 0.1}, [0.4, 0.4, 0.05, 0.05, 0.05], "01110"),
    ({"hold": 0, "release": 0.5}, [0.4, 0.4] + [0.35] * 6, "01111111"),
    ({"hold": 0, "release": 0.5}, [0.4, 0.4] + [0.25] * 6, "01110000"),
    # An alert may follow another at once.
    ({"hold": 0}, [0.9, 0.9] + [0.1] * 3 + [0.9] * 3, "02220022"),
    # A state never seen asks for its answer to the tick, then for a warning, and never wedges.
    ({}, [UNSEEN] * 8, "02222211"),
    ({"hold": 0, "out_of_model_timeout": 5}, [UNSEEN] * 9, "022222211"),
    ({}, [UNSEEN] * 30 + [0.0] * 10, "022222" + "1" * 26 + "0" * 8),
    ({"out_of_model": Level.NONE}, [UNSEEN] * 10, "0" * 10),
    ({"out_of_model": Level.WARN}, [UNSEEN] * 10, "0" + "1" * 9),
    # One that warns does not end an alert before its limit; one that is ignored does.
    (
        {"hold": 0, "out_of_model": Level.WARN, "out_of_model_timeout": 10},
        [0.9, 0.9] + [UNSEEN] * 13,
        "0" + "2" * 13 + "1",
    ),
    ({"hold": 0, "out_of_model": Level.NONE}, [0.9, 0.9] + [UNSEEN] * 3, "02220"),
    # A figure that is missing holds an alert, and begins none.
    ({}, [0.9, 0.9] + [NAN] * 20, "0" + "2" * 21),
    ({}, [NAN] * 5, "00000"),
]


@pytest.mark.parametrize("begin", [0, 1_000])
@pytest.mark.parametrize(("changes", "figures", "found"), RUNS)
def test_levels_of_known_runs(
    changes: dict[str, Any], figures: list[float | None], found: str, begin: int
) -> None:
    assert "".join(map(str, levels(figures, replace(RULES, **changes), begin))) == found


def test_rules_are_in_ticks() -> None:
    rules = compile_rules(
        PropertySpec(formula="p", hold=0.25, out_of_model_timeout=3.0), Grid(10.0)
    )
    assert (rules.hold, rules.out_of_model_timeout, rules.enter) == (3, 30, 2)


RULE_SETS = st.builds(
    Rules,
    warn=st.just(0.3),
    act=st.just(0.6),
    release=st.sampled_from([0.1, 0.2, 0.5]),
    enter=st.integers(1, 3),
    exit=st.integers(1, 4),
    hold=st.integers(0, 6),
    out_of_model=st.sampled_from(Level),
    out_of_model_timeout=st.integers(0, 5),
)
FIGURES = st.lists(
    st.sampled_from([0.0, 0.15, 0.25, 0.3, 0.45, 0.6, 1.0, math.nan, None]), max_size=40
)


@given(RULE_SETS, FIGURES)
def test_laws_of_every_run(rules: Rules, figures: list[float | None]) -> None:
    found = levels(figures, rules)
    for tick, level in enumerate(found):
        before = found[tick - 1] if tick else 0
        run = figures[max(0, tick - rules.enter + 1) : tick + 1]
        if level == 2 and before != 2:  # an alert begins only after `enter` ticks that ask for it
            assert len(run) == rules.enter
            assert all(f is None or f >= rules.act for f in run)
        asked = len(run) == rules.enter and all(f is not None and f >= rules.act for f in run)
        if asked:
            assert level == 2
        if before == 2 and level != 2:  # and ends only after its hold
            begin = tick
            while begin and found[begin - 1] == 2:
                begin -= 1
            assert tick - begin >= rules.hold


@given(RULE_SETS, FIGURES)
def test_there_is_always_a_way_back(rules: Rules, figures: list[float | None]) -> None:
    calm = [0.0] * (rules.exit * 2 + rules.hold * 2 + 2)
    assert levels([*figures, *calm], rules)[-1] == 0


@given(RULE_SETS, FIGURES, st.booleans(), st.booleans())
def test_where_nothing_waits_for_a_time_a_state_that_stays_goes_on_staying(
    rules: Rules, figures: list[float | None], out_of_model: bool, held: bool
) -> None:
    state, tick = RESTING, 0
    for tick, figure in enumerate([*figures, *figures[-1:] * 20]):
        before, shown = state, math.nan if figure is None else figure
        state = decide(
            rules, state, tick, shown, out_of_model=out_of_model or figure is None, held=held
        )
        if state == before and not waits(rules, state, tick):
            for later in range(tick + 1, tick + 20):
                following = decide(
                    rules,
                    state,
                    later,
                    shown,
                    out_of_model=out_of_model or figure is None,
                    held=held,
                )
                assert following == state


@given(RULE_SETS, FIGURES)
def test_a_state_at_rest_is_not_copied(rules: Rules, figures: list[float | None]) -> None:
    state = PolicyState(since=7)
    assert decide(rules, state, 9, 0.0) is state


@pytest.mark.parametrize("figure", [0.29, 0.0])
def test_leaving_the_unknown_forgets_when_it_began(figure: float) -> None:
    state = decide(RULES, RESTING, 1, math.nan, out_of_model=True)
    assert state.out_of_model_since == 1
    assert decide(RULES, state, 2, figure).out_of_model_since is None


@given(RULE_SETS, st.lists(st.sampled_from([0.0, 0.25, 0.45, 0.6, 1.0]), max_size=40))
def test_scores_add_alerts_in_states_never_seen_and_take_none(
    rules: Rules, figures: list[float]
) -> None:
    def run(shown: Callable[[float], tuple[float, bool]]) -> list[int]:
        state, found = RESTING, []
        for tick, figure in enumerate(figures):
            value, out_of_model = shown(figure)
            state = decide(rules, state, tick, value, out_of_model=out_of_model)
            found.append(int(state.level))
        return found

    scored = run(lambda figure: (figure, True))
    assert all(a >= b for a, b in zip(scored, run(lambda _: (math.nan, True)), strict=True))
    if rules.out_of_model == Level.NONE:
        assert scored == run(lambda figure: (figure, False))


def test_on_another_clock_an_alert_has_lasted_as_long_and_counts_begin_anew() -> None:
    state = PolicyState(Level.ACT, 10, 2, 2, 2, 12)
    assert carried_over(RULES, state, -7) == RESTING._replace(level=Level.ACT, since=3)
    assert carried_over(RULES, state._replace(level=Level.NONE), 5) == RESTING


@pytest.mark.parametrize("out_of_model", Level)
@pytest.mark.parametrize("excused", [False, True])
def test_a_limit_for_a_state_that_was_never_seen_is_an_alert_on_another_clock(
    out_of_model: Level, excused: bool
) -> None:
    state = PolicyState(Level.WARN, 10, out_of_model_since=4, excused=excused)
    found = carried_over(replace(RULES, out_of_model=out_of_model), state, 5)
    act = out_of_model == Level.ACT and not excused
    assert found == RESTING._replace(level=Level.ACT if act else Level.WARN, since=15)
    known = state._replace(out_of_model_since=None)
    assert carried_over(replace(RULES, out_of_model=out_of_model), known, 5).level == Level.WARN
