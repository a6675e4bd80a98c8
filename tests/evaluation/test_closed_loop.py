"""Closed loop: rules, referee and statistics, without a simulator."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any

import pytest

from evaluation.closed_loop.arms import AT_LIGHTS, CONFIG, DEMO, HOLD, adapted, load_acting
from evaluation.closed_loop.demands import (
    physical_quantities,
    stops_for_everything,
    time_to_conflict,
)
from evaluation.closed_loop.shield import (
    MARK,
    compared_arms,
    keys_of,
    packed,
    states_alone,
    summary,
    table_of,
    tried_in,
)
from evaluation.closed_loop.summary import (
    FIGURES,
    HERE,
    bootstrap,
    bounded_rate,
    counts,
    kilometres,
    plot_trade_off,
)
from evaluation.closed_loop.town import WARM_UP
from evaluation.closed_loop.trip import Brakes, Referee, role_of
from evaluation.harness.advice import learned_on
from evaluation.harness.control import QuantityRules, moving
from evaluation.harness.episodes import paired, read_lines
from evaluation.harness.page import replaced, resampled, told
from evaluation.sumo.simulation import Frame
from forewarn.config import load_spec
from forewarn.config.sections import BoundsSpec
from forewarn.logic.specification import compile_spec
from forewarn.models import load_model
from forewarn.monitoring.build import compile_for
from forewarn.monitoring.intervention import Request
from monitor_node.actuators.interface import NOTHING, Demand


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


def request(action: str, active: bool) -> Request:
    return Request(1, action, active, "p", ("p",), 0.5, math.nan, "", ())


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
    asked: Request | None, demanded: str
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


def test_adapted_policies_hold_stops_at_lights_and_end_those_before_others(
    repository: Path,
) -> None:
    spec = load_spec(CONFIG)
    policies = adapted(spec)
    assert {name for name, policy in policies.items() if policy["hold"] == HOLD} == set(AT_LIGHTS)
    watched = spec.with_thresholds("collision", policies["collision"]).properties["collision"]
    assert [(step.after, step.action) for step in watched.escalation] == [(5.0, "WARN")]
    assert watched.thresholds == spec.properties["collision"].thresholds


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
    assert rules.decide(1, values) == Demand("EMERGENCY_STOP", pytest.approx(math.nan, nan_ok=True))


@pytest.mark.parametrize(
    ("values", "action"),
    [
        ({"light": 1, "stop_line": 39.0}, "COMFORTABLE_STOP"),
        ({"light": 2, "stop_line": 40.5}, "NONE"),
        ({"light": 3, "stop_line": 10.0}, "NONE"),
        ({"light": 1, "stop_line": -0.5}, "NONE"),
        ({"obj_x": [9.9], "obj_y": [2.9]}, "COMFORTABLE_STOP"),
        ({"obj_x": [9.9], "obj_y": [3.1]}, "NONE"),
        ({"obj_x": [-1.0], "obj_y": [0.0]}, "NONE"),
    ],
)
def test_who_stops_for_everything_stops_at_lights_and_before_anybody(
    values: dict[str, Any], action: str
) -> None:
    known = {"ego_x": 0.0, "ego_y": 0.0, "heading": 0.0, **values}
    assert QuantityRules(stops_for_everything()).decide(1, known).action == action


def test_ahead_and_beside_turn_with_the_heading() -> None:
    north = {"ego_x": 5.0, "ego_y": 5.0, "heading": math.pi / 2, "obj_x": [5.0], "obj_y": [12.0]}
    assert QuantityRules(stops_for_everything()).decide(1, north).action == "COMFORTABLE_STOP"


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
        brakes.apply(Demand(action))
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
    for demand in (Demand("LIMIT_SPEED", 3.0), Demand("LIMIT_SPEED", 2.0), NOTHING, NOTHING):
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
    referee.demanded(Demand("EMERGENCY_STOP"))
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


def test_rates_are_of_the_distance_driven_and_differences_are_paired() -> None:
    crash = {"role": "struck", "other": "vehicle", "demanded": "EMERGENCY_STOP"}
    nobody = [trip(1, "a", red_lights=[1.0, 2.0]), trip(2, "a", distance=1000.0)]
    acting = [
        trip(1, "b", seconds=150.0),
        trip(2, "b", distance=500.0, end="collision", collision=crash, seconds=75.0),
    ]
    red = bootstrap(nobody, nobody, FIGURES["red_lights_per_km"])
    assert red["value"] == 1.0 and red["low"] == 0.0 and red["high"] == 2.0
    assert (red["difference_low"], red["difference_high"]) == (0.0, 0.0)
    time = bootstrap(acting, nobody, FIGURES["seconds_per_km"])
    # 225 s for 1.5 km, and 150 s/km whichever trips are drawn, against 100 s/km
    assert time["difference"] == time["difference_low"] == time["difference_high"] == 50.0
    told = counts(acting)
    assert (told["collisions"], told["struck"], told["hit"], told["during_a_stop"]) == (1, 1, 0, 1)
    assert told["km"] == 1.5
    assert told["collisions_each"] == [0, 1]
    assert counts(nobody)["red_lights_each"] == [2, 0]


def test_the_page_counts_parts_of_the_trips_as_the_figures_do(repository: Path) -> None:
    folder = repository / "evaluation"
    report = json.loads((folder / "closed_loop" / "results.json").read_text(encoding="utf-8"))

    def of(arm: str, first: int, last: int) -> tuple[int, int]:
        row, seeds = report["arms"][arm], report["seeds"][arm]
        chosen = [i for i, seed in enumerate(seeds) if first <= seed <= last]
        kinds = ("red_lights_each", "collisions_each")
        assert len(row[kinds[0]]) == len(row[kinds[1]]) == len(seeds) == row["trips"]
        red, hits = (sum(row[kind][i] for i in chosen) for kind in kinds)
        return red, hits

    later = [
        of(arm, 707, 720) for arm in ("nobody", "physical 5 m/s², 1 s, adapted", "Forewarn at 0.2")
    ]
    assert later == [(21, 6), (3, 2), (3, 0)]
    low = [of(f"Forewarn at {level}", 701, 706) for level in (0.1, 0.2, 0.3)]
    assert [sum(item) for item in zip(*low, strict=True)] == [1, 1]
    assert of("nobody", 701, 706) == (9, 3)
    page = " ".join((folder / "RESULTS.md").read_text(encoding="utf-8").split())
    assert (
        "nobody 21 red lights and 6 collisions, the physical rule 3 and 2, Forewarn at 0.2 3 and 0."
        in page
    )
    assert "from 0.1 to 0.3 one collision and one red light in eighteen trips" in page
    assert "nobody's intervening leads to three and nine in six." in page


def test_what_never_happened_may_happen_yet() -> None:
    calm = [trip(seed, "a", distance=1000.0) for seed in (1, 2, 3)]
    found = bootstrap(calm, calm, FIGURES["collisions_per_km"])
    assert (found["low"], found["high"]) == (0.0, 0.0)
    # three kilometres without any: exp(-3 * 1.23) = 0.025
    assert bounded_rate(calm, found)["high"] == pytest.approx(1.2296, abs=1e-4)
    once = {**found, "value": 0.3, "high": 0.9}
    assert bounded_rate(calm, once) == once


def test_the_plot_names_every_arm() -> None:
    figure = {"value": 1.0, "difference": 0.0}
    names = ("nobody", "physical 5", "Forewarn at 0.5")
    rows = {
        arm: {
            "seconds_per_km": {"difference": 10.0 * i},
            "red_lights_per_km": figure,
            "collisions_per_km": figure,
        }
        for i, arm in enumerate(names)
    }
    picture = plot_trade_off(rows)
    assert all(f">{arm}</text>" in picture for arm in names)


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
    assert "| somebody | 2 | 0 | 100% [" in table_of({"somebody": found})


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


def test_what_was_tried_is_logged_in_the_states_of_the_demo() -> None:
    compiled = compile_spec(load_spec(CONFIG)), states_alone(load_spec(DEMO))
    before, now = (one.abstraction.vocabulary for one in compiled)
    codes = {state for log in tried_in(read_lines(HERE / "tries.jsonl.gz")) for state, _ in log}
    known = [code for code in codes if code is not None]
    assert len(known) > 200
    assert [before.key(code) for code in known] == [now.key(code) for code in known]
    assert [before.name(code) for code in known] == [now.name(code) for code in known]


def test_a_log_of_tries_is_read_as_it_was_written() -> None:
    logs = [[(1, "a"), (1, "a"), (None, "a"), (1, "b"), (1, "b")], []]
    assert packed(logs[0]) == [(1, "a", 2), (None, "a", 1), (1, "b", 2)]
    assert tried_in([{"log": packed(log)} for log in logs]) == logs


def test_the_shield_acted_with_the_models_that_are_here() -> None:
    compiled, model = load_acting(CONFIG)
    logs = tried_in(read_lines(HERE / "tries.jsonl.gz"))
    _, demo = load_acting(DEMO)
    used = {
        file: json.loads((HERE / file).read_text(encoding="utf-8"))["model"]
        for file in ("shield.json", "shield_sooner.json", "shield_demo.json", "shield_held.json")
    }
    learned = learned_on(compiled, model, logs).fingerprint
    assert list(used.values()) == [learned, learned, demo.fingerprint, demo.fingerprint]


@pytest.mark.parametrize(
    ("file", "kept"),
    [
        ("shield.json", "trips.jsonl.gz"),
        ("shield_sooner.json", "trips.jsonl.gz"),
        ("shield_demo.json", "trips_demo.jsonl.gz"),
        ("shield_held.json", "trips_held.jsonl.gz"),
    ],
)
def test_the_figures_of_the_shield_are_those_of_what_is_kept(file: str, kept: str) -> None:
    published = json.loads((HERE / file).read_text(encoding="utf-8"))
    trips = read_lines(HERE / kept)
    trips = [trip for trip in trips if trip["seed"] in published["seeds"]]
    assert trips
    for name, pairs in paired(trips, list(published["arms"])).items():
        # Some arms were driven on the first of these seeds alone.
        assert [one["seed"] for one, _ in pairs] == published["seeds"][: len(pairs)]
        assert json.loads(json.dumps(summary(pairs))) == published["arms"][name]


def test_the_page_says_how_long_those_wait_who_run_no_light(repository: Path) -> None:
    trips = {(trip["arm"], trip["seed"]): trip for trip in read_lines(HERE / "trips.jsonl.gz")}
    nobody = [trips["nobody", seed] for seed in range(4101, 4201)]
    # Lights change every 20 s, on the simulation's clock.
    ages = [(at + WARM_UP) % 20 for trip in nobody for at in trip["red_lights"]]
    waits = sum(20 - age for age in ages)

    def longer(arm: str, lights: int) -> str:
        """Return by how much a trip takes longer if that many lights are not run."""
        found = [
            trip["seconds"] - before["seconds"]
            for (name, seed), trip in trips.items()
            if name == arm
            for before in [trips["nobody", seed]]
            if trip["end"] == before["end"] == "arrived"
            if not trip["red_lights"] and len(before["red_lights"]) == lights
        ]
        return told(resampled("longer", mean, found, resamples=2000), "longer", "{:.1f}")

    forewarn, shield = "Forewarn at 0.2", "shield each 0.5 s, Forewarn at 0.2, collision at 0.07"
    page = " ".join((repository / "evaluation" / "RESULTS.md").read_text("utf-8").split())
    for said in (
        f"runs {len(ages)} of them here, {mean(ages):.1f} s after red began",
        f"waits for the rest, {waits / len(ages):.1f} s on average",
        f"These waits are {waits / kilometres(nobody):.1f} s",
        f"lights they are {0.94 * waits / kilometres(nobody):.1f} of the 28 s",
        f"it takes {longer(forewarn, 1)} s longer",
        f"it takes {longer(forewarn, 0)} s longer, the shield here {longer(shield, 0)} s",
        f"0.8 of {len(ages) / kilometres(nobody):.2f} lights a km",
    ):
        assert said in page


@pytest.mark.parametrize(
    ("file", "mark"),
    [
        ("lights.json", "heeding lights"),
        ("shield.json", MARK),
        ("shield_first.json", f"{MARK}, first"),
        ("shield_sooner.json", f"{MARK}, sooner"),
        ("shield_demo.json", f"{MARK}, demo"),
        ("shield_held.json", f"{MARK}, held"),
    ],
)
def test_the_page_says_what_lights_and_the_shield_cost(
    repository: Path, file: str, mark: str
) -> None:
    folder = repository / "evaluation"
    found = json.loads((folder / "closed_loop" / file).read_text(encoding="utf-8"))
    page = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert replaced(page, mark, table_of(found["arms"])) == page
