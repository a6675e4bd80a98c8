"""The exact edges of policy and intervention, each told apart from its neighbour.

evaluation/mutation shows that a change of any operator in them is noticed.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from forewarn.config.file import parse_spec
from forewarn.config.sections import PropertySpec
from forewarn.config.yaml_text import parse_document
from forewarn.monitoring.intervention import (
    AdvisorState,
    EscalationStep,
    Intervention,
    advise,
    answers_of,
    out_of_model_answers,
    withdraw,
)
from forewarn.monitoring.policy import (
    RESTING,
    Level,
    PolicyState,
    RiskMeasure,
    Rules,
    compile_rules,
    decide,
    release,
)
from forewarn.monitoring.risk_rows import RiskRow
from forewarn.signals.clock_kinds import Grid

RULES = Rules(
    0.3, 0.6, 0.2, enter=2, exit=3, hold=5, out_of_model=Level.ACT, out_of_model_timeout=4
)
SHORT = replace(RULES, hold=0)
STOP, SLOW = (EscalationStep("COMFORTABLE_STOP", None),), (EscalationStep("LIMIT_SPEED", 5.0),)


def test_all_of_a_section_becomes_rules() -> None:
    spec = PropertySpec(
        formula="p", thresholds={"warn": 0.25, "act": 0.7, "release": 0.15},
        enter=4, exit=6, hold=0.3, out_of_model="warn", out_of_model_timeout=2.5,
    )  # fmt: skip
    found = compile_rules(spec, Grid(10.0))
    assert found == Rules(0.25, 0.7, 0.15, 4, 6, 3, Level.WARN, 25, 10)


@pytest.mark.parametrize(("text", "level"), [("act", 2), ("warn", 1), ("ignore", 0)])
def test_each_answer_to_an_unknown_state_has_its_level(text: str, level: int) -> None:
    assert (
        compile_rules(PropertySpec(formula="p", out_of_model=text), Grid(1.0)).out_of_model == level
    )


@pytest.mark.parametrize(("seconds", "ticks"), [(0.0, 0), (0.1, 1), (0.11, 2), (0.3, 3), (0.7, 7)])
def test_spans_are_rounded_up_to_ticks_but_not_by_rounding_errors(
    seconds: float, ticks: int
) -> None:
    rules = compile_rules(PropertySpec(formula="p", hold=seconds), Grid(10.0))
    assert rules.hold == ticks


def test_a_noisy_tick_leaves_the_time_of_the_last_change() -> None:
    noisy = decide(RULES, PolicyState(since=7), 20, 0.9)
    assert noisy.warn_run == 1
    assert decide(RULES, noisy, 21, 0.0) == PolicyState(since=7)


def after_release(rules: Rules, figures: list[float | None], then: list[float | None]) -> list[int]:
    """Run the policy, release its alert by hand, and return the levels afterwards."""
    state, found = RESTING, []
    for tick, figure in enumerate([*figures, *then]):
        if tick == len(figures):
            state = release(state)
            assert state.level is Level.NONE
        known = figure is not None
        state = decide(rules, state, tick, figure if known else math.nan, out_of_model=not known)
        found.append(int(state.level))
    return found[len(figures) :]


@pytest.mark.parametrize("out_of_model", [Level.ACT, Level.WARN])
@pytest.mark.parametrize("lasted", [3, 12])
def test_an_unknown_state_that_is_released_asks_for_nothing_more(
    lasted: int, out_of_model: Level
) -> None:
    rules = replace(SHORT, out_of_model=out_of_model)
    assert after_release(rules, [None] * lasted, [None] * 30) == [0] * 30
    again: list[float | None] = [None, 0.0, None, None]  # a known state ends that
    assert after_release(rules, [None] * lasted, again) == [0, 0, 0, out_of_model]


def test_in_a_known_state_a_released_alert_begins_anew() -> None:
    assert after_release(SHORT, [0.9] * 5, [0.9] * 3) == [0, 2, 2]
    assert after_release(SHORT, [0.9] * 5, [None] * 3) == [0, 2, 2]
    assert release(PolicyState(Level.ACT, 3, 2, 2, 1)) == RESTING


BLANK = RiskRow(
    "", 0, 2, False, 0, False, 0.5, math.nan, math.nan, 0, math.nan, 3.0, 0.3, 0.5,
    RiskMeasure.RISK, 0, False,
    "0", "(none)", (0,), ("idle",), True, (), (), math.nan, (),
)  # fmt: skip


def row(name: str, **values: object) -> RiskRow:
    return BLANK._replace(property=name, **{"level": 2, **values})


def ask(rows: list[RiskRow], chains: list[tuple[EscalationStep, ...]]) -> Intervention:
    _, request = advise(AdvisorState(), rows, [0] * len(rows), chains, act=True)
    assert request is not None
    return request


def test_each_step_of_a_chain_has_its_own_limit() -> None:
    section = PropertySpec.model_validate(
        {
            "formula": "always(p)",
            "intervention": "REPLAN",
            "escalation": [{"after": 0.3, "action": "LIMIT_SPEED", "speed_limit": 2.5}],
        }
    )
    assert answers_of(section, Grid(10.0)) == (
        EscalationStep("REPLAN", section.speed_limit, 0),
        EscalationStep("LIMIT_SPEED", 2.5, 3),
    )


def test_of_two_steps_within_a_tick_the_last_one_counts() -> None:
    chain = (EscalationStep("LIMIT_SPEED", 2.0), EscalationStep("COMFORTABLE_STOP", None, 1))
    chain = (*chain, EscalationStep("EMERGENCY_STOP", None, 1))
    asked = []
    for tick in range(3):
        _, request = advise(AdvisorState(), [row("p", tick=tick)], [0], [chain], act=True)
        assert request is not None
        asked.append(request.action)
    assert asked == ["LIMIT_SPEED", "EMERGENCY_STOP", "EMERGENCY_STOP"]


SPEC = """
version: 1
rate: 10
signals: {{x: {{topic: /x, type: std_msgs/msg/Float32, value: data}}}}
predicates: {{p: x > 0}}
properties:
  acts: {{formula: always(p), out_of_model_speed: 0.75}}
  default: {{formula: always(p)}}
  warns: {{formula: always(p), out_of_model: warn}}
  ignores: {{formula: always(p), out_of_model: ignore}}
actuators: {}
"""


@pytest.mark.parametrize(
    "actuators",
    ["{nav2: {}}", "{autoware: {}}", "{twist: {input: a, output: b, max_speed: 1, max_turn: 1}}"],
)
def test_after_its_limit_an_unknown_state_limits_the_speed_by_any_actuator(actuators: str) -> None:
    found = out_of_model_answers(parse_spec(parse_document(SPEC.format(actuators))))
    assert found == {
        "acts": EscalationStep("LIMIT_SPEED", 0.75),
        "default": EscalationStep("LIMIT_SPEED", 0.5),
    }


def test_without_an_actuator_an_unknown_state_only_warns() -> None:
    assert out_of_model_answers(parse_spec(parse_document(SPEC.format("{}")))) == {}


UNSEEN = {"p": EscalationStep("LIMIT_SPEED", 0.75)}


def out_of_model(
    rows: list[RiskRow], chains: list[tuple[EscalationStep, ...]]
) -> tuple[str, float]:
    _, request = advise(AdvisorState(), rows, [0] * len(rows), chains, UNSEEN, act=True)
    assert request is not None
    return request.action, request.speed_limit


def test_a_limit_for_an_unknown_state_takes_the_place_of_its_warning_and_of_nothing_else() -> None:
    assert out_of_model([row("p", level=1, in_model=False)], [STOP]) == ("LIMIT_SPEED", 0.75)
    for other in (row("p", level=1), row("q", level=1, in_model=False)):
        action, limit = out_of_model([other], [STOP])
        assert action == "WARN" and math.isnan(limit)
    assert out_of_model([row("p", level=2, in_model=False)], [SLOW]) == ("LIMIT_SPEED", 5.0)


@pytest.mark.parametrize("order", [1, -1])
def test_that_limit_stands_beside_what_others_ask_for(order: int) -> None:
    strange = row("p", level=1, in_model=False)
    for chain, asked in ((SLOW, "LIMIT_SPEED"), ((EscalationStep("REPLAN", None),), "LIMIT_SPEED")):
        rows, chains = [strange, row("q", level=2)][::order], [STOP, chain][::order]
        assert out_of_model(rows, chains) == (asked, 0.75)
    action, _ = out_of_model([strange, row("q", level=2)][::order], [STOP, STOP][::order])
    assert action == "COMFORTABLE_STOP"


def test_a_limit_beside_another_action_has_no_say() -> None:
    chains = [SLOW, (EscalationStep("REPLAN", 0.1),)]
    assert ask([row("p", level=2), row("q", level=2)], chains).speed_limit == 5.0


def test_a_withdrawal_asks_for_nothing_and_says_why() -> None:
    state, _ = advise(AdvisorState(), [row("p")], [0], [STOP], act=True)
    state, request = advise(state, [row("p", level=0)], [0], [STOP], act=True)
    assert state == AdvisorState(1, False)
    assert request is not None
    assert str(request) == str(withdraw(AdvisorState(1), "no property alerts any more"))
    for text in (request.property, request.reason):
        assert isinstance(text, str)
    assert (request.id, request.action, request.active) == (1, "NONE", False)
    assert (request.property, request.properties, request.evidence) == ("", (), ())
    assert request.reason == "no property alerts any more"
    assert math.isnan(request.risk)
    assert math.isnan(request.speed_limit)


@pytest.mark.parametrize("order", [1, -1])
def test_severity_decides_before_risk_and_risk_before_the_name(order: int) -> None:
    rows = [
        row("a", probability=0.6),
        row("z", probability=0.99),
        row("m", level=1, probability=1.0),
    ][::order]
    chains = [STOP, SLOW, STOP][::order]
    assert ask(rows, chains).property == "a"
    assert ask(rows, [STOP] * 3).property == "z"


@pytest.mark.parametrize("order", [1, -1])
def test_the_figure_that_decides_is_compared_and_an_unknown_one_is_the_worst(order: int) -> None:
    rows = [
        row("risk", probability=0.7, upper=1.0),
        row("bound", risk_measure=RiskMeasure.UPPER, probability=0.1, upper=0.8),
    ]
    request = ask(rows[::order], [STOP, STOP])
    assert (request.property, request.risk) == ("bound", 0.8)
    high = row("high", risk_measure=RiskMeasure.UPPER, probability=0.9, upper=0.65)
    assert ask([rows[0], high][::order], [STOP, STOP]).property == "risk"
    unknown = row("unknown", in_model=False, probability=math.nan)
    assert ask([*rows, unknown][::order], [STOP] * 3).property == "unknown"


def test_only_what_limits_the_speed_has_a_say_in_the_limit() -> None:
    only_warns = row("q", level=1)
    slowest = (EscalationStep("LIMIT_SPEED", 1.0),)
    assert ask([row("p"), only_warns], [SLOW, slowest]).speed_limit == 5.0
    assert math.isnan(ask([row("p"), row("q")], [STOP, SLOW]).speed_limit)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"probability": 0.5}, "p: risk 0.500 within 3 s is at least 0.5"),
        ({"probability": 0.5, "upper": 0.9}, "p: risk 0.500 within 3 s is at least 0.5"),
        ({"level": 1, "probability": 0.4}, "p: risk 0.400 within 3 s is at least 0.3"),
        (
            {"risk_measure": RiskMeasure.UPPER, "upper": 0.8},
            "p: upper bound 0.800 within 3 s is at least 0.5",
        ),
        ({"probability": 0.4}, "p: risk 0.400 within 3 s; the alert holds until it may end"),
        ({"probability": 0.9, "horizon": math.inf}, "p: risk 0.900 ever is at least 0.5"),
        (
            {"probability": 1.0, "stale_signals": ("x", "y"), "stale_ages": (1.0, math.inf)},
            "p: risk 1.000 within 3 s is at least 0.5, with 2 stale signals",
        ),
        (
            {"probability": 0.1, "stale_signals": ("x",), "stale_ages": (1.0,)},
            "p: risk 0.100 within 3 s, with 1 stale signal; the alert holds until it may end",
        ),
    ],
)
def test_reasons_word_for_word(values: dict[str, object], reason: str) -> None:
    assert ask([row("p", **values)], [STOP]).reason == reason


def test_the_evidence_names_all_automaton_states() -> None:
    alert = row("p", state="near", automaton_state_names=("idle", "waiting 2"))
    assert ask([alert], [STOP]).evidence == ("state: near", "automaton: idle or waiting 2")


def test_rows_that_do_not_fit_together_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="zip"):
        advise(AdvisorState(), [row("p")], [0], [STOP, STOP], act=True)
    with pytest.raises(ValueError, match="zip"):
        ask([row("p", stale_signals=("x",), stale_ages=())], [STOP])


ORDER = (
    "WARN", "ASK", "REPLACE", "REPLAN", "LIMIT_SPEED", "PULL_OVER", "COMFORTABLE_STOP",
    "EMERGENCY_STOP",
)  # fmt: skip


@pytest.mark.parametrize(("milder", "stronger"), list(itertools.combinations(ORDER, 2)))
def test_the_stronger_of_two_actions_wins_whatever_the_risk(milder: str, stronger: str) -> None:
    rows = [row("a", probability=0.6), row("b", probability=0.9)]
    chains = [(EscalationStep(stronger, 1.0),), (EscalationStep(milder, 1.0),)]
    assert ask(rows, chains).action == stronger
    assert ask(rows[::-1], chains[::-1]).property == "a"


@pytest.mark.parametrize(
    ("rest", "default"),
    [
        ("actuators: {}", "warn"),
        ("actuators: {}\nmode: observe", "warn"),
        ("actuators: {}\nmode: act", "act"),
        ("actuators: {nav2: {}}", "act"),
    ],
)
def test_only_a_monitor_that_cannot_act_lets_an_unknown_state_pass(rest: str, default: str) -> None:
    spec = parse_spec(parse_document(SPEC.format("{}").replace("actuators: {}", rest)))
    found = {name: section.out_of_model for name, section in spec.properties.items()}
    others = {"warns": "warn", "ignores": "ignore"}
    assert found == {"acts": default, "default": default, **others}
    again = spec.with_thresholds("ignores", {"hold": 3.0})
    assert again.properties["default"].out_of_model == default
