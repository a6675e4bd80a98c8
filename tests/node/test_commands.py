"""Parameters and services of a running monitor. One process serves the whole file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from forewarn_msgs.msg import Intervention, Risk
from forewarn_msgs.srv import Explain, LoadModel, Mute, Release, Reset
from live_ros import Probe, Process, Stepper, alert, calm, of, stepped
from small_world import MONITOR

pytestmark = pytest.mark.ros
DEFAULTS = {
    "properties__brake__warn": 0.2,
    "properties__brake__act": 0.4,
    "properties__brake__release": 0.15,
}


@pytest.fixture(scope="module")
def monitor(world: Path) -> Iterator[tuple[Process, Probe, Stepper]]:
    config = world / "acting.yaml"
    config.write_text(MONITOR + "mode: act\n")
    with stepped(world, config=str(config), mode="act") as found:
        yield found


@pytest.fixture
def probe(monitor: tuple[Process, Probe, Stepper]) -> Probe:
    return monitor[1]


@pytest.fixture
def stepper(monitor: tuple[Process, Probe, Stepper]) -> Stepper:
    """Begin anew, twenty seconds later, with the thresholds of the file and nothing muted."""
    _, probe, stepper = monitor
    stepper.begin(stepper.tick + 200)
    assert probe.set(**DEFAULTS).successful
    assert probe.call(Mute, "mute", duration=0.0).success
    probe.interventions.clear()
    return stepper


def test_parameters_are_described_with_their_ranges(stepper: Stepper, probe: Probe) -> None:
    act = probe.describe("properties.brake.act")
    assert "intervention is asked for" in act.description
    (limits,) = act.floating_point_range
    assert (limits.from_value, limits.to_value) == (0.0, 1.0)
    assert probe.describe("executor").read_only
    for name in ("config", "model", "record", "queue_depth", "max_clock_step"):
        assert probe.describe(name).description


def test_thresholds_take_effect_at_the_next_tick(stepper: Stepper, probe: Probe) -> None:
    assert of(stepper.step(speed=3.0, distance=5.0), "brake").threshold_act == 0.4
    assert probe.set(properties__brake__act=0.9, properties__brake__warn=0.8).successful
    risk = of(stepper.step(speed=3.0, distance=5.0), "brake")
    assert (risk.threshold_act, risk.threshold_warn) == (0.9, 0.8)
    assert {"event": "policy", "property": "brake"}.items() <= probe.events[-1].items()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"properties__brake__act": 1.5}, "properties.brake.act"),
        ({"properties__brake__act": 0.05}, "release 0.15 must be below act 0.05"),
        ({"properties__brake__warn": 0.6}, "warn 0.6 must not be above act 0.4"),
        ({"properties__brake__enter": 0}, "properties.brake.enter"),
        ({"properties__brake__out_of_model": "panic"}, "properties.brake.out_of_model"),
        ({"properties__brake__act": "high"}, "Wrong parameter type"),
        ({"executor": "events"}, "read-only"),
    ],
)
def test_a_bad_value_is_refused_and_nothing_changes(
    stepper: Stepper, probe: Probe, values: dict[str, object], told: str
) -> None:
    result = probe.set(**values)
    assert not result.successful
    assert told in result.reason
    assert of(stepper.step(), "brake").threshold_act == 0.4


def test_values_that_only_fit_together_are_set_together(stepper: Stepper, probe: Probe) -> None:
    low = {
        "properties__brake__warn": 0.04,
        "properties__brake__act": 0.05,
        "properties__brake__release": 0.01,
    }
    assert probe.set(**low).successful
    assert of(stepper.step(), "brake").threshold_act == 0.05


def test_an_intervention_has_one_number_from_beginning_to_withdrawal(
    stepper: Stepper, probe: Probe
) -> None:
    assert probe.set(properties__no_collision__act=1.0).successful
    alert(stepper)
    probe.wait(lambda: probe.interventions, "an intervention")
    calm(stepper)
    probe.wait(lambda: probe.interventions[-1].action == Intervention.NONE, "its withdrawal")
    asked = [
        intervention
        for intervention in probe.interventions
        if intervention.action != Intervention.NONE
    ]
    assert {intervention.id for intervention in probe.interventions} == {asked[0].id}
    acting = next(item for item in asked if item.action == Intervention.COMFORTABLE_STOP)
    assert acting.active
    assert acting.property == "brake"
    assert "is at least 0.4" in acting.reason
    assert any("moving & close" in fact for fact in acting.evidence)
    assert not probe.interventions[-1].active
    probe.interventions.clear()
    stepper.begin(stepper.tick + 100)
    alert(stepper)
    probe.wait(lambda: probe.interventions, "another intervention")
    assert probe.interventions[-1].id == asked[0].id + 1
    assert probe.set(properties__no_collision__act=0.3).successful


def test_an_alert_is_an_error_for_the_diagnostic_graph(stepper: Stepper, probe: Probe) -> None:
    alert(stepper)
    probe.wait_for_status("risk brake", "ERROR", "ACT")
    calm(stepper)
    probe.wait_for_status("risk brake", "OK", "no alert")


def test_reset_sets_one_automaton_back_and_keeps_the_samples(
    stepper: Stepper, probe: Probe
) -> None:
    before = [of(r, "brake") for r in stepper.steps(4, speed=3.0, distance=5.0)]
    response = probe.call(Reset, "reset", properties=["brake"])
    assert response.success
    after = of(stepper.step(speed=3.0, distance=5.0), "brake")
    assert after.details.automaton_states == before[0].details.automaton_states
    assert after.stale_signals == []
    assert after.level == Risk.LEVEL_NONE or after.level == before[0].level
    refused = probe.call(Reset, "reset", properties=["brakes"])
    assert not refused.success
    assert "brake, no_collision" in refused.message


def test_release_ends_an_alert_by_hand(
    stepper: Stepper, probe: Probe, monitor: tuple[Process, Probe, Stepper]
) -> None:
    alert(stepper)
    assert probe.set(properties__brake__act=0.999, properties__brake__warn=0.998).successful
    reason = "seen\x1b[2J\nand \u202eheard"
    response = probe.call(Release, "release", requester="operator", reason=reason)
    assert response.success
    assert "brake" in response.released
    assert of(stepper.step(speed=3.0, distance=5.0), "brake").level == Risk.LEVEL_NONE
    again = probe.call(Release, "release", properties=["brake"])
    assert again.success and again.released == []
    spelled = r"seen\x1b[2J\nand \u202eheard"
    line = f"released: {', '.join(response.released)} (by operator: {spelled})"
    assert line in monitor[0].output
    told = [event for event in probe.events if event["event"] == "release"]
    assert (told[0]["requester"], told[0]["reason"]) == ("operator", spelled)


@pytest.mark.parametrize("duration", [math.inf, 3600.1])
def test_a_mute_lasts_mute_limit_at_the_most_and_needs_a_reason_to(
    stepper: Stepper, probe: Probe, duration: float
) -> None:
    refused = probe.call(Mute, "mute", properties=["brake"], duration=duration)
    assert not refused.success
    assert "needs a reason (accepted: a reason, or at most 3600 s: mute_limit)" in refused.message
    answer = probe.call(Mute, "mute", properties=["brake"], duration=duration, reason="works")
    assert answer.success
    assert answer.message.startswith("muted for 3600 s, which is mute_limit: brake")
    assert [e for e in probe.events if e["event"] == "mute"][-1]["duration"] == 3600.0


def test_mute_silences_alerts_and_not_figures(
    stepper: Stepper, probe: Probe, monitor: tuple[Process, Probe, Stepper]
) -> None:
    loud = alert(stepper)
    response = probe.call(Mute, "mute", properties=["brake"], duration=0.3, requester="operator")
    assert response.success
    muted = [of(stepper.step(speed=3.0, distance=5.0), "brake") for _ in range(3)]
    assert [item.muted for item in muted] == [True, True, False]
    assert [item.level for item in muted] == [Risk.LEVEL_NONE, Risk.LEVEL_NONE, Risk.LEVEL_ACT]
    assert muted[0].probability > loud.threshold_act
    for duration in (-1.0, math.nan):
        assert not probe.call(Mute, "mute", duration=duration).success
    line = "muted for 0.3 s: brake (by operator: no reason given)"
    assert line in monitor[0].output
    told = [event for event in probe.events if event["event"] == "mute"][-1]
    assert (told["properties"], told["duration"]) == (["brake"], 0.3)


def test_a_good_model_replaces_the_old_one_and_a_bad_one_does_not(
    stepper: Stepper, probe: Probe, world: Path, tmp_path: Path
) -> None:
    first = stepper.step(speed=3.0, distance=20.0)
    other = world / "other.json"
    response = probe.call(LoadModel, "load_model", path=str(other))
    assert response.success, response.message
    assert response.states > 0
    second = stepper.step(speed=3.0, distance=20.0)
    assert second.model_digest == response.model_digest != first.model_digest
    cut = tmp_path / "cut.json"
    cut.write_bytes(other.read_bytes()[:200])
    foreign = tmp_path / "foreign.json"
    foreign.write_text("{}")
    for path in (cut, foreign, tmp_path / "absent.json"):
        refused = probe.call(LoadModel, "load_model", path=str(path))
        assert not refused.success
        assert path.name in refused.message
        assert refused.model_digest == response.model_digest
    assert stepper.step(speed=3.0, distance=20.0).model_digest == response.model_digest
    back = probe.call(LoadModel, "load_model", path=str(world / "model.json"))
    assert back.model_digest == first.model_digest


def test_thresholds_survive_a_new_model(stepper: Stepper, probe: Probe, world: Path) -> None:
    assert probe.set(properties__brake__act=0.77).successful
    assert probe.call(LoadModel, "load_model", path=str(world / "other.json")).success
    assert of(stepper.step(), "brake").threshold_act == 0.77
    assert probe.call(LoadModel, "load_model", path=str(world / "model.json")).success


def test_explain_shows_what_the_risk_rests_on(stepper: Stepper, probe: Probe) -> None:
    risk = of(stepper.step(speed=3.0, distance=5.0), "brake")
    response = probe.call(Explain, "explain", property="brake")
    assert response.success
    assert str(response.risk) == str(risk)  # NaN is not equal to itself
    truths = dict(zip(response.predicates, response.predicate_values, strict=True))
    assert truths == {"moving": 1, "close": 1, "ttc<1": 0, "ttc<2": 1}
    values = dict(zip(response.signals, response.signal_values, strict=True))
    assert values == pytest.approx({"speed": 3.0, "distance": 5.0, "ttc": 5 / 3})
    assert list(response.signal_ages) == [0.0, 0.0, 0.0]
    assert "moving & close & ttc<2" in response.text
    assert "likeliest path" in response.text
    assert "if 'moving' became false" in response.text
    assert response.risk.most_likely_path[0] == "moving & close & ttc<2"
    assert len(response.step_probabilities) == len(response.risk.most_likely_path) - 1
    riskiest = probe.call(Explain, "explain")
    assert riskiest.success
    assert not probe.call(Explain, "explain", property="none").success


def test_the_state_is_published_for_plots(stepper: Stepper, probe: Probe) -> None:
    from forewarn_msgs.msg import Signals

    states: list[Signals] = []
    subscription = probe.node.create_subscription(
        Signals, "/monitor/debug/state", states.append, 10
    )
    probe.wait(subscription.get_publisher_count, "a publisher of states")

    def stepped() -> bool:
        stepper.step(speed=3.0, distance=5.0)
        return bool(states)

    probe.wait(stepped, "a state")
    values = dict(zip(states[-1].names, states[-1].values, strict=True))
    assert values["speed"] == 3.0
    assert values["predicates.close"] == 1.0
    assert values["terminal.collision"] == 0.0
    probe.node.destroy_subscription(subscription)
