"""Closed loop: rules, referee and statistics, without a simulator."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from evaluation.closed_loop.arms import DEMO, physical_quantities, time_to_conflict
from evaluation.closed_loop.shield import (
    HERE,
    compared_arms,
    keys_of,
    packed,
    row_of,
    states_alone,
    summary,
    tried_in,
)
from evaluation.closed_loop.trip import Brakes, Referee, role_of
from evaluation.harness.control import QuantityRules, moving
from evaluation.harness.episodes import paired, read_lines
from evaluation.sumo.simulation import Frame
from forewarn.config.file import load_spec
from forewarn.config.sections import BoundsSpec
from forewarn.models.file import load_model
from forewarn.monitoring.build import compile_for
from forewarn.monitoring.intervention import NOTHING, Intervention


def frame(step: int = 0, **changes: Any) -> Frame:
    """Return a frame of an ego that goes east at 10 m/s."""
    values = {
        "x": 0.0,
        "y": 0.0,
        "yaw": 0.0,
        "speed": 10.0,
        "lateral_speed": 0.0,
        "yaw_rate": 0.0,
        "acceleration": 0.0,
        "collision": False,
        "ran_red": False,
        "objects": None,
        "light": None,
        "path": None,
    }
    return Frame(step=step, **{**values, **changes})


def request(action: str, active: bool) -> Intervention:
    return Intervention(action, id=1, active=active)


@pytest.mark.parametrize(
    ("asked", "demanded"),
    [
        (None, "NONE"),
        (request("EMERGENCY_STOP", True), "EMERGENCY_STOP"),
        (request("LIMIT_SPEED", True), "LIMIT_SPEED"),
        (request("EMERGENCY_STOP", False), "NONE"),
        (request("WARN", True), "NONE"),
        (request("REPLAN", True), "NONE"),
    ],
)
def test_only_active_requests_that_move_the_ego_are_demands(
    asked: Intervention | None, demanded: str
) -> None:
    assert moving(asked).action == demanded
    assert moving(asked).moves == (demanded != "NONE")


def test_a_quantity_holds_its_demand_for_half_a_second_and_until_five_calm_ticks() -> None:
    rules = QuantityRules(physical_quantities(5.0, 1.0))
    needed = [4.9, 5.0, 3.1, 2.9, 2.9, 2.9, 2.9, 2.9, 2.9]
    actions = [
        rules.decide(tick, {"brake_needed": value}).action for tick, value in enumerate(needed)
    ]
    # calm (below 0.6 * 5) from the fourth tick on: the fifth calm tick is the eighth
    assert actions == ["NONE", *["EMERGENCY_STOP"] * 6, "NONE", "NONE"]


def test_a_stop_before_others_may_end_though_they_stay() -> None:
    rules = QuantityRules(physical_quantities(5.0, 1.0, most=3))
    actions = [rules.decide(tick, {"conflict_car": 0.2}).action for tick in range(5)]
    assert actions == ["EMERGENCY_STOP"] * 3 + ["NONE"] * 2


def test_the_nearest_conflict_counts_and_unknown_ones_do_not() -> None:
    values = {
        "conflict_car": None,
        "conflict_walker": 0.7,
        "conflict_flank": 2.0,
        "conflict_kerb": 0.2,
        "speed": 0.1,
    }
    assert time_to_conflict(values) == 0.7
    assert time_to_conflict({"conflict_car": math.nan}) == math.inf
    rules = QuantityRules(physical_quantities(5.0, 0.8))
    assert rules.decide(1, values) == Intervention(
        "EMERGENCY_STOP", pytest.approx(math.nan, nan_ok=True)
    )


class Sumo:
    """The few calls of libsumo that referee and brakes make; it notes what was set."""

    def __init__(
        self, other: tuple[float, float] = (4.0, 0.0), people: tuple[str, ...] = ()
    ) -> None:
        self.calls: list[tuple[Any, ...]] = []
        position = (*other,)
        contact = SimpleNamespace(collider="ego", victim="b")
        self.simulation = SimpleNamespace(getCollisions=lambda: [contact])
        self.person = SimpleNamespace(getIDList=lambda: people, getPosition=lambda name: position)
        self.vehicle = SimpleNamespace(
            getPosition=lambda name: position,
            getMaxSpeed=lambda name: 55.0,
            **{
                name: lambda *values, name=name: self.calls.append((name, *values[1:]))
                for name in ("setSpeedMode", "setAcceleration", "setMaxSpeed")
            },
        )


def test_brakes_are_renewed_at_each_tick_and_let_go_once() -> None:
    sumo = Sumo()
    brakes = Brakes(sumo)
    for action in ("EMERGENCY_STOP", "COMFORTABLE_STOP", "NONE", "NONE"):
        brakes.apply(Intervention(action))
    assert sumo.calls == [
        ("setSpeedMode", 27),
        ("setAcceleration", -8.0, 0.1),
        ("setSpeedMode", 31),
        ("setAcceleration", -3.0, 0.1),
        ("setSpeedMode", 31),
    ]


def test_a_speed_limit_is_taken_back() -> None:
    sumo = Sumo()
    brakes = Brakes(sumo)
    for demand in (
        Intervention("LIMIT_SPEED", 3.0),
        Intervention("LIMIT_SPEED", 2.0),
        NOTHING,
        NOTHING,
    ):
        brakes.apply(demand)
    assert sumo.calls == [("setMaxSpeed", 3.0), ("setMaxSpeed", 2.0), ("setMaxSpeed", 55.0)]


@pytest.mark.parametrize(
    ("speed", "x", "role"),
    [(5.0, 4.0, "hit"), (5.0, -3.0, "struck"), (0.1, 4.0, "struck"), (5.0, -1.0, "hit")],
)
def test_who_hit_whom(speed: float, x: float, role: str) -> None:
    assert role_of(frame(speed=speed), x, 0.0) == role


def test_the_referee_ends_a_trip_at_the_first_collision() -> None:
    referee = Referee(Sumo(people=("b",)))
    referee.demanded(Intervention("EMERGENCY_STOP"))
    referee.watch(frame(1, ran_red=True, acceleration=-4.0))
    referee.watch(frame(2, acceleration=-4.0))
    assert not referee.over
    referee.watch(frame(3, collision=True))
    trip = referee.trip
    assert referee.over and trip.end == "collision"
    assert trip.collision == (0.06, "pedestrian", "hit", 10.0, "EMERGENCY_STOP")
    assert (trip.red_lights, trip.hard_brakings, trip.interventions) == ([0.02], 1, 1)
    assert trip.distance == pytest.approx(0.6) and trip.uncomfortable == pytest.approx(0.04)


def test_the_referee_knows_when_the_ego_has_arrived() -> None:
    referee = Referee(Sumo())
    referee.watch(frame(1, speed=50_000.0))
    assert referee.trip.end == "arrived"


def trip(seed: int, arm: str, **changes: Any) -> dict[str, Any]:
    values = {
        "end": "arrived",
        "seconds": 100.0,
        "distance": 1000.0,
        "red_lights": [],
        "collision": None,
        "interventions": 0,
        "intervened": 0.0,
        "hard_brakings": 0,
    }
    return {"seed": seed, "arm": arm, **values, **changes}


def test_arms_are_compared_with_the_first_one_on_their_own_seeds() -> None:
    trips = [trip(2, "a"), trip(1, "a"), trip(1, "b"), trip(2, "b", failed="jam"), trip(3, "b")]
    grouped = paired(trips, ["a", "b", "c"])
    seeds = {arm: [(a["seed"], b["seed"]) for a, b in pairs] for arm, pairs in grouped.items()}
    assert seeds == {"a": [(1, 1), (2, 2)], "b": [(1, 1)]}


def test_what_a_shield_avoids_is_rarer_for_each_kilometre_than_with_nobody() -> None:
    hit = {"end": "collision", "collision": {}}
    nobody = [trip(1, "a", red_lights=[1.0, 2.0]), trip(2, "a", distance=500.0, **hit)]
    ours = [trip(1, "b", red_lights=[5.0], seconds=130.0), trip(2, "b", seconds=110.0)]
    pairs = list(zip(ours, nobody, strict=True))
    found = summary(pairs)
    # 1 in 2 km against 2 in 1.5 km, and 120 s/km against 200 s in 1.5 km
    assert found["fewer_red_lights"] == pytest.approx(1 - 0.5 / (2 / 1.5))
    assert (found["fewer_collisions"], found["arrived"]) == (1.0, 1.0)
    assert found["lost_per_km"] == pytest.approx(120.0 - 200.0 / 1.5, abs=0.01)
    assert summary(list(zip(nobody, nobody, strict=True)))["lost_per_km"] == 0.0
    assert summary(pairs[:1])["fewer_collisions"] is None
    row = row_of("somebody", found, "1 to 2")
    assert row.answer.startswith("collisions 0 (-100%), red lights 1 (-")
    assert row.data == "seeds 1 to 2"


def test_the_town_has_a_shield_that_knows_what_was_tried() -> None:
    spec = load_spec(DEMO)
    spec = spec.model_copy(update={"mode": "act", "bounds": BoundsSpec(kind="none")})
    assert spec.model_path is not None
    model = load_model(spec.model_path)
    compiled = compile_for(spec, model)
    near = model.states[1]
    logs = [[*[(near, "EMERGENCY_STOP")] * 5, (model.states[0], "drive on")]]
    compared = compared_arms(compiled, model, logs)
    assert next(iter(compared.values())) is None
    # What was tried makes other trips of those with a shield, and of no others.
    keys = [keys_of(compared, compiled, model, tried) for tried in (logs, logs * 2)]
    shield = "Forewarn, shield each 0.5 s"
    assert {name for name in compared if keys[0][name] != keys[1][name]} == {shield}
    # With and without a shield the same is demanded at the same risk, and a stop at a light lasts.
    arms = [compared[name] for name in ("Forewarn", shield)]
    assert arms[0] is not None and arms[1] is not None
    assert arms[0].policies == arms[1].policies
    asked = {
        name: (policy["warn"], policy["act"], policy["release"], policy["hold"])
        for name, policy in arms[0].policies.items()
    }
    assert asked == {
        "red_light": (0.4, 0.4, 0.2, 1.0),
        "brake_for_red": (0.4, 0.4, 0.2, 1.0),
        "collision": (0.25, 0.25, 0.125, 0.5),
    }
    held = {name: prop.hold_while for name, prop in compiled.spec.properties.items()}
    assert held == {"red_light": "must_stop", "brake_for_red": "must_stop", "collision": None}
    let_go = {
        name: prop.model_copy(update={"hold_while": None})
        for name, prop in compiled.spec.properties.items()
    }
    other = compile_for(spec.model_copy(update={"properties": let_go}), model)
    changed = keys_of(compared_arms(other, model, logs), other, model, logs)
    assert {name for name in compared if keys[0][name] != changed[name]} == {"Forewarn", shield}


def test_a_log_of_tries_is_read_as_it_was_written() -> None:
    logs = [[(1, "a"), (1, "a"), (None, "a"), (1, "b"), (1, "b")], []]
    assert packed(logs[0]) == [(1, "a", 2), (None, "a", 1), (1, "b", 2)]
    assert tried_in([{"log": packed(log)} for log in logs]) == logs


def test_what_was_tried_is_logged_in_the_states_of_the_demo() -> None:
    compiled = states_alone(load_spec(DEMO))
    codes = {state for log in tried_in(read_lines(HERE / "tries.jsonl.gz")) for state, _ in log}
    names = [compiled.abstraction.vocabulary.name(code) for code in codes if code is not None]
    assert len(set(names)) > 200
