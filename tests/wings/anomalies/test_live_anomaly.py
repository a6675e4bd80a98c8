"""Runs judged while they last: the same numbers as when they are over, and what ends a run."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.logic.specification import compile_spec
from forewarn.models.counts import CountModel
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.run_anomaly import AnomalyRow, RunVerdict, in_words, need_live_actions
from forewarn.states.interface import terminal_code
from forewarn.wings.anomalies.calibration import LIVE_RULES, Rule, calibrate
from forewarn.wings.anomalies.live import Detector, RunState
from forewarn.wings.anomalies.surprise import Predictor, predictor_of
from forewarn.wings.anomalies.transitions import Transition

TEXT = """
rate: 10
startup_grace: 0
mode: act
bounds: {kind: none}
signals: {near: {timeout: never}, slow: {timeout: 0.2}, end: {timeout: never, default: 0.0}}
predicates: {p: near, q: slow}
terminal: {over: end == 1}
action: "'go' if near else 'stay'"
properties:
  stop:
    formula: always(p implies eventually[0:0.3](q))
    horizon: 1.0
    thresholds: {warn: 0.2, act: 0.5, release: 0.1}
    enter: 1
    exit: 1
    hold: 0
    intervention: COMFORTABLE_STOP
"""
COMPILED = compile_spec(parse_spec(parse_document(TEXT)))
OVER = terminal_code(0)


class Seen(NamedTuple):
    state: int | None
    ended: bool = False
    active: bool | None = True
    intervened: bool | None = False


def walk(chance: random.Random, length: int) -> list[tuple[int, str]]:
    """Return states and actions of a run that mostly turns in a circle of three."""
    state, found = 0, []
    for _ in range(length):
        action = chance.choice(["go", "stay"])
        found.append((state, action))
        state = (state + (chance.random() < (0.9 if action == "go" else 0.1))) % 3
    return found


def learned(runs: int = 40) -> CountModel:
    counter = TransitionCounter(COMPILED.abstraction.vocabulary)
    chance = random.Random(1)
    for _ in range(runs):
        for tick, (state, action) in enumerate(walk(chance, 25)):
            counter.add(tick, state, action=action)
        counter.end_recording()
    return build_model(counter, rate=10.0, digest=COMPILED.abstraction.digest)


MODEL = learned()
PREDICTOR = predictor_of(MODEL, "both")


def transitions(run: list[tuple[int, str]]) -> list[Transition]:
    return [
        Transition(tick, state, action, run[tick + 1][0])
        for tick, (state, action) in enumerate(run[:-1])
    ]


def surprises(predictor: Predictor, run: list[tuple[int, str]]) -> list[float]:
    return [predictor.surprise(one).of("both") for one in transitions(run)]


def detector(rule: Rule = "conformal", longest: int | None = None) -> Detector:
    chance = random.Random(2)
    runs = [surprises(PREDICTOR, walk(chance, chance.randint(12, 30))) for _ in range(60)]
    found = calibrate(
        runs,
        model=PREDICTOR.digest,
        abstraction=MODEL.digest,
        statistic="both",
        test=rule,
        period=5,
        alpha=0.1,
        recordings=["r"],
    )
    return Detector(PREDICTOR, found, longest)


def watched(judge: Detector, seen: list[tuple[int, Seen, str]]) -> list[AnomalyRow]:
    state: RunState | None = None
    rows = []
    for tick, observation, action in seen:
        state, row = judge.enter(state, tick, observation, action)
        rows.append(row)
    return rows


def plain(run: list[tuple[int, str]], first: int = 100) -> list[tuple[int, Seen, str]]:
    return [(first + i, Seen(state), action) for i, (state, action) in enumerate(run)]


@pytest.mark.parametrize("rule", LIVE_RULES)
@settings(max_examples=examples(40), deadline=None)
@given(
    run=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["go", "stay", "fly"])),
        min_size=2,
        max_size=40,
    )
)
def test_every_moment_of_a_run_is_judged_as_if_the_run_had_ended_there(rule, run):
    judge = detector(rule)
    values = surprises(PREDICTOR, run)
    rows = watched(judge, plain(run))
    assert rows[0].verdict == RunVerdict.NOT_JUDGED and math.isnan(rows[0].value)
    for row, end in zip(rows[1:], range(1, len(run)), strict=True):
        finding = judge.calibration.judge(values[:end])
        assert row.value == finding.value and row.limit == finding.limit
        assert (row.verdict == RunVerdict.ANOMALOUS) == finding.anomalous
        # It became known with the arrival at the tick after the one of the transition.
        assert row.since == (-1 if finding.since is None else 101 + finding.since)
        assert row.transitions == end and row.step.surprise == values[end - 1]
        worst = max(values[:end])
        assert row.worst.surprise == worst and row.worst.tick == 100 + values.index(worst)
        assert row.step.p_value == judge.calibration.step_p(values[end - 1 : end])[0]
        if finding.p_value is None:
            assert math.isnan(row.p_value) and math.isnan(row.false_alarm_rate)
        else:
            assert row.p_value == finding.p_value and row.false_alarm_rate == 0.1


def test_the_step_says_what_was_expected_and_words_repeat_it():
    row = watched(detector(), plain([(0, "go"), (1, "fly"), (1, "go")]))[-1]
    assert row.verdict == RunVerdict.ANOMALOUS and row.since == 102
    assert (row.worst.state, row.worst.action, row.worst.part) == ("p", "fly", "choice")
    assert row.worst.tick == 101
    assert set(row.worst.expected) == {"go", "stay"}
    expected = [PREDICTOR.choice_probability(1, name) for name in row.worst.expected]
    assert list(row.worst.expected_probabilities) == expected
    told = in_words(row)
    assert "anomalous" in told and "'fly'" in told and "expected choice: " in told


def gaps() -> dict[str, Seen]:
    return {
        "unknown": Seen(None),
        "inactive": Seen(0, active=False),
        "perhaps inactive": Seen(0, active=None),
        "intervened": Seen(0, intervened=True),
        "perhaps intervened": Seen(0, intervened=None),
    }


@pytest.mark.parametrize("kind", [*gaps(), "missed"])
def test_nothing_is_judged_across_what_is_not_known(kind):
    run = plain([(0, "go"), (1, "go"), (2, "go"), (3, "go"), (3, "go")])
    if kind == "missed":
        del run[2]
    else:
        run[2] = run[2][0], gaps()[kind], "go"
    rows = watched(detector(), run)
    assert [row.transitions for row in rows][-1] == 2
    jumped = rows[-2]
    assert jumped.step.tick == -1 and math.isnan(jumped.step.surprise)
    assert jumped.run == 0, "it is the same run"


def test_a_label_ends_a_run_and_the_next_one_begins_afresh():
    episode = plain([(0, "go"), (1, "fly"), (1, "go")])
    label = [(103, Seen(OVER, True), ""), (104, Seen(OVER, True), "")]
    rows = watched(detector(), [*episode, *label, *plain([(0, "go"), (1, "go")], 105)])
    assert [row.run for row in rows] == [0, 0, 0, 0, 0, 1, 1]
    assert rows[3].transitions == 3, "the way into the label belongs to the run"
    assert rows[4].verdict == RunVerdict.ANOMALOUS
    assert rows[5].verdict == RunVerdict.NOT_JUDGED and rows[5].worst.tick == -1
    assert rows[6].verdict == RunVerdict.NORMAL and rows[6].transitions == 1


def test_a_run_that_no_label_ends_may_end_after_a_time():
    run = walk(random.Random(3), 31)
    rows = watched(detector(longest=10), plain(run))
    assert [row.run for row in rows[1:]] == [i // 10 for i in range(30)]
    assert [row.transitions for row in rows[1:]] == [i % 10 + 1 for i in range(30)]


def tell(watch: LiveSession, tick: int, near: float, slow: float = 1.0, end: float = 0.0) -> None:
    values = {"near": near, "slow": slow, "end": end}
    watch.accept("", watch.clock.time_ns(tick), values)


def anomaly(watch: LiveSession, tick: int, *values: float) -> AnomalyRow:
    tell(watch, tick, *values)
    row = watch.tick(tick).verdict.anomaly
    assert row is not None
    return row


def test_a_session_judges_what_its_own_action_led_to_and_resets_with_all():
    watch = LiveSession(COMPILED, MODEL, {}, detector=detector())
    rows = [anomaly(watch, tick, 0.0) for tick in range(3)]
    assert [row.transitions for row in rows] == [0, 1, 2]
    assert rows[1].step.action == "stay"
    step = Transition(0, 2, "stay", 2)
    assert rows[1].step.surprise == PREDICTOR.surprise(step).of("both")
    watch.reset(())
    assert anomaly(watch, 3, 0.0).transitions == 0
    watch.use(watch.build(MODEL))
    assert anomaly(watch, 4, 0.0).transitions == 1, "another model changes nothing about a run"
    watch.restart(9)
    assert anomaly(watch, 9, 0.0).transitions == 0


def test_what_follows_an_intervention_of_ours_is_no_surprise():
    watch = LiveSession(COMPILED, MODEL, {}, detector=detector())
    rows = []
    for tick in range(8):
        tell(watch, tick, *((0.0, 1.0) if tick < 3 else (1.0, 0.0)))
        result = watch.tick(tick)
        assert result.verdict.anomaly is not None
        asked = "" if result.request is None else result.request.action
        rows.append((asked, result.verdict.anomaly.transitions))
    # A warning shapes nothing; a stop does, from the tick on that asks for it.
    first = next(i for i, (asked, _) in enumerate(rows) if asked == "COMFORTABLE_STOP")
    assert rows[first - 1][0] == "WARN" and first < 7
    assert [number for _, number in rows] == [min(i, first) for i in range(8)]


def test_live_runs_are_not_judged_by_actions_that_nothing_names():
    nameless = compile_spec(parse_spec(parse_document(TEXT.replace("action:", "# action:"))))
    need_live_actions(COMPILED, detector())
    need_live_actions(nameless, None)
    with pytest.raises(ConfigError, match="action: normal runs were calibrated with actions"):
        need_live_actions(nameless, detector())


def test_without_the_section_nothing_is_said():
    watch = LiveSession(COMPILED, MODEL, {})
    tell(watch, 0, 1.0)
    assert watch.tick(0).verdict.anomaly is None


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("{file: ''}", "anomaly.file"),
        ("{file: a.json, alpha: 0.7}", "anomaly.alpha"),
        ("{file: a.json, test: quantile}", "anomaly.test"),
        ("{file: a.json, run: 0}", "anomaly.run"),
        ("{file: a.json, model: b}", "anomaly.model"),
    ],
)
def test_a_wrong_section_is_refused_with_its_key(section, key):
    with pytest.raises(ConfigError) as caught:
        parse_spec(parse_document(f"{TEXT}\nanomaly: {section}\n"))
    assert key in str(caught.value)
