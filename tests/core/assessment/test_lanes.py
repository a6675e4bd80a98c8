"""Lanes of the state, and of what is asked for, against the code that runs live."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forewarn.assessment.history import Track
from forewarn.assessment.lanes import OFF, ON, TERMINAL, UNKNOWN, WARNING, StateLog, requests
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.monitoring.intervention import AdvisorState, advise, answers_of
from forewarn.monitoring.policy import RiskMeasure
from forewarn.signals.clock_kinds import Grid
from forewarn.states.vocabulary import Observation, Vocabulary

SPEC = parse_spec(
    parse_document(
        "version: 1\nrate: 10\nsignals: {a: {}}\npredicates: {p: a > 0}\nproperties:\n"
        "  one: {formula: always(p), intervention: LIMIT_SPEED, speed_limit: 2,\n"
        "        escalation: [{after: 0.3, action: COMFORTABLE_STOP}]}\n"
        "  two: {formula: always(p), intervention: REPLAN,\n"
        "        escalation: [{after: 0.2, action: EMERGENCY_STOP}]}\n"
    )
)


def track(name: str, levels: list[int]) -> Track:
    count = len(levels)
    zeros: Any = np.zeros(count)
    return Track(
        name=name, rate=10.0, horizon=30, ticks=np.arange(100, 100 + count), state=zeros,
        status=zeros, violation=zeros, possible=zeros, counted=zeros,
        broken=zeros, figure=zeros, out_of_model=zeros, held=zeros,
        probability=zeros, lower=zeros, upper=zeros,
        in_model=zeros, terminal=zeros, ambiguous=zeros,
        level=np.array(levels, dtype=np.int8), automaton=zeros,
    )  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_what_is_asked_for_is_what_the_advisor_says(pairs: list[tuple[int, int]]) -> None:
    columns = [list(one_pair) for one_pair in zip(*pairs, strict=True)]
    found = requests(SPEC, [track(n, c) for n, c in zip(SPEC.properties, columns, strict=True)])
    chains = [answers_of(section, Grid(10.0)) for section in SPEC.properties.values()]
    state, since, before = AdvisorState(), [0, 0], (-1, -1)
    for i, pair in enumerate(pairs):
        since = [s if a == b else 100 + i for s, a, b in zip(since, pair, before, strict=True)]
        before = pair
        rows: Any = [
            SimpleNamespace(
                tick=100 + i, level=level, property="x", broken=False,
                risk_measure=RiskMeasure.RISK,
                probability=0.5, upper=0.5,
                min_risk=0.5, expected=0.5, expected_restarted=False, in_model=True,
                threshold_act=0.5, threshold_warn=0.3, horizon=3.0,
                state="", automaton_state_names=(), stale_signals=(), stale_ages=(),
            )
            for level in pair
        ]  # fmt: skip
        state, request = advise(state, rows, since, chains, act=True)
        shown = [
            name
            for name, lane in zip(found.names, found.table[found.position[i]], strict=True)
            if lane == ON
        ]
        action = "NONE" if request is None else request.action
        # No rule here asks for WARN: live it says that there is a warning and no alert.
        assert action != "WARN" or max(pair) == 1
        named = WARNING if action == "WARN" else action
        assert shown == ([] if action == "NONE" else [named])


def test_a_warning_and_an_alert_that_asks_for_a_warning_have_lanes_of_their_own() -> None:
    spec = parse_spec(
        parse_document(
            "version: 1\nrate: 10\nsignals: {a: {}}\npredicates: {p: a > 0}\n"
            "properties: {one: {formula: always(p), intervention: WARN}}\n"
        )
    )
    found = requests(spec, [track("one", [0, 1, 2, 1])])
    assert found.names == (WARNING, "WARN")
    lanes = [found.table[position] for position in found.position]
    assert lanes == [(OFF, OFF), (ON, OFF), (OFF, ON), (ON, OFF)]


def test_a_lane_tells_on_off_and_unknown_apart() -> None:
    log = StateLog(Vocabulary(("p", "q", "p@-1", "q@-1"), ("hit", "done")))
    log.add(Observation(0b0001, 0b1111, 0b0001, 0, True))
    log.add(Observation(None, 0b0001, 0b0011, 0b10, True))
    log.add(Observation(-1, 0b1111, 0b0011, 0, True))
    log.add(Observation(0b0001, 0b1111, 0b0001, 0, True))
    lanes = log.lanes()
    assert lanes.names == ("p", "q", "hit", "done")
    assert lanes.position.tolist() == [0, 1, 2, 0]
    assert lanes.table == (
        (ON, OFF, OFF, OFF),
        (ON, UNKNOWN, OFF, UNKNOWN),
        (OFF, OFF, TERMINAL, OFF),
    )
