"""The small robot's study: scenes, planner, people, approach and gate, without the simulator."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.harness.compare import markdown
from evaluation.harness.control import Library, OnSignals
from evaluation.harness.runs import halves, pass_over
from evaluation.irsim.approach import DIRECTIONS, FASTEST, Approaches
from evaluation.irsim.closed_loop import acting, shown, summary
from evaluation.irsim.governors import Gate, Governed, SpeedLimit, falling
from evaluation.irsim.messages import Publisher, commanded, write_bag
from evaluation.irsim.people import Walker
from evaluation.irsim.planner import TEMPERS, Planner, View, free_distance
from evaluation.irsim.robot import Frame, ending
from evaluation.irsim.scenes import (
    ANGLES,
    BEAMS,
    PERSON_RADIUS,
    RANGE,
    ROBOT_RADIUS,
    SIZE,
    Person,
    draw_scene,
    scene_from,
)
from evaluation.irsim.simulator import world_of
from evaluation.irsim.study import HERE
from forewarn.assessment.replay import Replaying, replay
from forewarn.config import load_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.loading import load_bare
from forewarn.recordings import open_recording
from monitor_node.actuators.interface import NOTHING, Demand


def disc_ahead(distance: float, radius: float = 0.25) -> np.ndarray:
    """Return the scan of a lone disc straight ahead, its centre at `distance`."""
    across = np.abs(distance * np.sin(ANGLES))
    hit = (across < radius) & (np.cos(ANGLES) > 0)
    depth = np.sqrt(np.maximum(radius**2 - across**2, 0.0))
    return np.where(hit, distance * np.cos(ANGLES) - depth, np.inf)


def frame(tick: int, distance: float, speed: float = 0.8, **more: bool) -> Frame:
    ended = {"collided": False, "arrived": False} | more
    return Frame(tick, (0.08 * tick, 0.0, 0.0), speed, 0.0, disc_ahead(distance), **ended)


def towards(ticks: int, start: float = 4.0, speed: float = 0.8) -> list[Frame]:
    """Drive at a disc that stands still."""
    return [frame(tick, start - 0.1 * speed * tick, speed) for tick in range(ticks)]


@pytest.mark.parametrize("seed", [0, 1, 2, 1000])
def test_a_scene_is_the_same_for_a_seed_and_leaves_people_room(seed: int) -> None:
    scene = draw_scene(seed)
    assert scene == draw_scene(seed) != draw_scene(seed + 3)
    assert scene_from(json.loads(json.dumps(scene.as_json()))) == scene
    for person in scene.people:
        for a, b in zip(person.path, person.path[1:], strict=False):
            steps = [np.add(a, np.subtract(b, a) * k / 50) for k in range(51)]
            gaps = [math.dist(p, (o.x, o.y)) - o.radius for p in steps for o in scene.boxes]
            assert min(gaps) > PERSON_RADIUS
    world = world_of(scene)
    assert len(world["obstacle"]) == 1 + len(scene.boxes) + len(scene.people)


def test_what_is_free_is_measured_to_the_body() -> None:
    view = View(disc_ahead(2.0), ANGLES, 0.0, 0.0, 0.0)
    ahead, left = free_distance(view, np.array([0.0, math.pi / 2]), ROBOT_RADIUS)
    assert ahead == pytest.approx(2.0 - 0.25 - ROBOT_RADIUS, abs=0.01)
    assert left == np.inf


def test_a_careful_planner_stops_before_a_wall_and_a_reckless_one_later() -> None:
    speeds = {}
    for kind, temper in TEMPERS.items():
        attentive = temper._replace(lapses=(0.0, 1.0))
        # A wall all around but behind, so that there is no way to steer to.
        ranges = np.where(np.cos(ANGLES) > -0.5, 0.6, np.inf)
        planner = Planner(attentive, (10.0, 0.0), seed=1)
        for _ in range(5):
            speeds[kind], _ = planner.command(View(ranges, ANGLES, 0.0, 0.0, 0.0))
    assert speeds["careful"] < speeds["hasty"] < speeds["reckless"]
    assert speeds["careful"] < 0.5 * TEMPERS["careful"].speed


def test_a_planner_heeds_nav2s_speed_limit_at_once() -> None:
    planner = Planner(TEMPERS["reckless"], (10.0, 0.0), seed=1)
    view = View(np.full(BEAMS, np.inf), ANGLES, 0.0, 0.0, 0.0)
    assert planner.command(view)[0] == pytest.approx(0.95)
    planner.limit = 0.1
    assert planner.command(view)[0] == 0.1


def test_people_step_around_a_robot_that_they_notice() -> None:
    person = Person(0.8, 0.5, ((1.0, 5.0), (9.0, 5.0)))
    standing = (4.0, 5.05, 0.0, 0.0)
    gaps = {}
    for notices in (0.5, 0.0):
        walker = Walker(Person(0.8, notices, person.path))
        x, y, nearest = 1.0, 5.0, math.inf
        for _ in range(100):
            vx, vy = walker.velocity(x, y, standing)
            x, y = x + 0.1 * vx, y + 0.1 * vy
            nearest = min(nearest, math.dist((x, y), standing[:2]))
            assert 0 < x < SIZE
        gaps[notices] = nearest - PERSON_RADIUS - ROBOT_RADIUS
    assert gaps[0.0] < 0 < gaps[0.5]


def test_approach_is_that_of_the_other_alone() -> None:
    still, coming = Approaches(), Approaches()
    ahead = int(np.argmin(np.abs(DIRECTIONS)))
    for tick in range(8):
        pose = (0.08 * tick, 0.0, 0.0)
        one = still.see(pose, disc_ahead(4.0 - 0.08 * tick))
        other = coming.see(pose, disc_ahead(4.0 - (0.08 + 0.05) * tick))
    assert one.speed[ahead] == pytest.approx(0.0, abs=0.03)
    assert other.speed[ahead] == pytest.approx(0.5, abs=0.03)
    assert other.nearest[ahead] == pytest.approx(4.0 - 0.13 * 7 - 0.25, abs=0.03)
    assert one.nearest.max() == RANGE


def test_what_comes_into_view_does_not_approach() -> None:
    approaches = Approaches()
    approaches.see((0.0, 0.0, 0.0), np.full(BEAMS, np.inf))
    found = approaches.see((0.0, 0.0, 0.0), disc_ahead(1.0))
    assert np.abs(found.speed).max() < FASTEST
    assert found.speed[np.argmin(found.nearest)] == 0.0


def test_a_gate_stops_and_a_speed_limit_slows() -> None:
    planner = Planner(TEMPERS["hasty"], (10.0, 0.0), seed=1)
    gate, limit = Gate(), SpeedLimit()
    gate.begin(planner)
    limit.begin(planner)
    assert gate.apply(NOTHING, (0.0, 0.0), 0.0) == (0.0, 0.0)
    for tick in range(1, 20):
        free = gate.apply(NOTHING, (0.7, 0.1), tick / 10)
    assert free == (0.7, 0.1)
    stop = Demand("EMERGENCY_STOP", id=1)
    speeds = [gate.apply(stop, (0.7, 0.1), 2.0 + tick / 10)[0] for tick in range(8)]
    assert all(a - b <= 0.15 + 1e-9 for a, b in zip([0.7, *speeds], speeds, strict=False))
    assert speeds[-1] == 0.0
    assert limit.apply(Demand("LIMIT_SPEED", 0.1, 1), (0.7, 0.1), 0.0) == (0.7, 0.1)
    assert planner.limit == 0.1
    limit.apply(NOTHING, (0.7, 0.1), 0.1)
    assert planner.limit == math.inf


def test_a_bag_gives_the_signals_that_the_monitor_needs(tmp_path: Path) -> None:
    way = ([0.0, 1.0], [0.0, 0.5])
    episode = [(toward, (0.8, 0.0), way) for toward in towards(30)]
    episode.append((frame(30, 0.4, collided=True), (0.0, 0.0), None))
    write_bag(tmp_path / "bag", episode)
    compiled = load_bare(HERE / "monitor.yaml")
    with open_recording(tmp_path / "bag") as recording:
        run = replay(Replaying(build_monitor(compiled, None), keep_signals=True), recording)
    signals = {signal.name: signal.values for signal in run.signals}
    assert signals["clearance"][10] == pytest.approx(4.0 - 0.8 - 0.25 - 0.22, abs=0.03)
    # Nobody moves but the robot: both times differ by the 10 cm that a meeting is early.
    both = signals["time_to_contact"][10] - signals["time_to_meet"][10]
    assert both == pytest.approx(0.10 / 0.8, abs=0.06)
    assert signals["commanded"][[0, 1]].tolist() == [0.0, 0.8]
    contact = next(track for track in run.tracks if track.name == "no_contact")
    assert np.flatnonzero(contact.violation).tolist() == [30]


def test_a_rule_acts_when_its_signal_says_so_and_not_before() -> None:
    planner = Planner(TEMPERS["hasty"], (10.0, 0.0), seed=1)
    spec = load_spec(HERE / "monitor.yaml")
    governor = Governed(OnSignals(acting(spec), [falling("clearance_ahead", 1.0)]), Gate())
    for _ in range(2):  # an episode leaves nothing behind
        governor.begin(planner)
        passed = [governor.govern(toward, (0.8, 0.0))[0] for toward in towards(40)]
        first = next(k for k, f in enumerate(towards(40)) if f.ranges.min() - 0.22 < 1.0)
        slowed = next(k for k in range(20, 40) if passed[k] < 0.8)
        assert slowed == first
        assert passed[-1] == 0.0


def test_a_monitor_without_a_model_lets_all_pass_while_no_rule_is_broken() -> None:
    planner = Planner(TEMPERS["hasty"], (10.0, 0.0), seed=1)
    compiled = acting(load_spec(HERE / "monitor.yaml"))
    governor = Governed(Library(compiled, None), Gate())
    governor.begin(planner)
    frames = towards(25)
    passed = [governor.govern(one_frame, (0.8, 0.0)) for one_frame in frames]
    assert passed[-1] == (0.8, 0.0)
    assert governor.ticks_acting == 0
    near = [frame(25 + k, 0.22 + 0.25 + 0.05) for k in range(5)]
    assert [governor.govern(item, (0.8, 0.0))[0] for item in near][-1] < 0.8
    assert governor.ticks_acting > 0


def test_an_ending_counts_metres_and_impact() -> None:
    frames = [*towards(10), frame(10, 0.4, speed=0.6, collided=True)]
    found = ending(draw_scene(3), frames)
    assert (found.collided, found.arrived, found.impact) == (True, False, 0.6)
    assert found.distance == pytest.approx(0.8)
    assert found.duration == 1.0


def test_messages_of_a_frame_have_its_time_and_the_command_the_next_ticks() -> None:
    sensed = list(Publisher().sensed(frame(7, 3.0)))
    assert len({message.time_ns for message in sensed}) == 1
    order = commanded(frame(7, 3.0), (0.5, 0.1))
    assert 0 < order.time_ns - sensed[0].time_ns < 100_000_000


def test_contacts_are_told_apart_by_whether_they_happened_before() -> None:
    def episode(seed: int, how: str, duration: float, impact: float = 0.0) -> dict[str, object]:
        ended = {"collided": how == "contact", "arrived": how == "arrived"}
        return {"seed": seed, "duration": duration, "impact": impact, "acting": 1.0, **ended}

    before = [episode(1, "contact", 5.0, 0.9), episode(2, "arrived", 10.0), episode(3, "late", 45)]
    after = [episode(1, "arrived", 12.0), episode(2, "arrived", 13.0), episode(3, "contact", 5.0)]
    found = summary(list(zip(after, before, strict=True)))
    assert (found["with_contact_before"], found["contacts_left"], found["contacts_new"]) == (
        1,
        0,
        1,
    )
    assert (found["arrived"], found["out_of_time"]) == (2, 0)
    assert found["contacts_while_driving"] == 0
    assert found["time_lost_mean"] == 3.0  # seed 2 alone reached its goal both times
    assert found["share_acting"] == pytest.approx(0.1)
    assert summary(list(zip(before, before, strict=True)))["contacts_while_driving"] == 1
    assert (
        shown({"somebody": found}).splitlines()[2].startswith("| somebody | 0 of 1 | 1 of 2 | 0 |")
    )


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "results.json").read_text(encoding="utf-8"))
    return found


def fit(found: dict[str, Any]) -> str:
    """Return how well calibrated a property's risk is, as RESULTS.md says it."""
    low, high = found["brier_interval"]
    brier = f"{found['brier']:.4f} [{low:.4f}, {high:.4f}] (skill {found['skill']:+.2f})"
    low, high = found["expected_error_interval"]
    error = f"{found['expected_error']:.3f} [{low:.3f}, {high:.3f}]"
    return f"Brier {brier}, expected calibration error {error}"


@pytest.mark.parametrize("name", ["no_contact", "keep_distance", "slow_when_near"])
def test_the_page_shows_what_is_foreseen(
    repository: Path, published: dict[str, Any], name: str
) -> None:
    page = (repository / "evaluation" / "RESULTS.md").read_text(encoding="utf-8")
    found = published["prediction"][name]
    first, now = found["first_attempt"], found["rows"]
    # For the rule that is broken all the time neither tuned thresholds nor quantities are shown.
    shown = [*first["rows"], *now] if name != "slow_when_near" else [first["rows"][0], *now[:3]]
    assert "\n".join(markdown(shown).splitlines()[2:]) + "\n\n" in page
    said = f"{fit(found['calibration'])}; scan only: {fit(first['calibration'])}."
    assert said in " ".join(page.split())


def test_the_page_shows_who_intervened(repository: Path, published: dict[str, Any]) -> None:
    page = (repository / "evaluation" / "RESULTS.md").read_text(encoding="utf-8")
    assert shown(published["closed_loop"]["arms"]) + "\n\n" in page
    live = [*published["live_gate"], *published["live_nav2"]]
    assert {item["unlike"] for item in live} == {0}
    said = "all six episodes every risk of all {:,} ticks agreed with the library's to the last bit"
    assert said.format(sum(item["ticks"] for item in live)) in page
    assert f"; {sum(item['late'] for item in live)} ticks were late" in page


def test_halves_are_predicted_by_the_other_half_alone(tmp_path: Path) -> None:
    near, also_near, far, also_far = bags = [tmp_path / f"episode_{at}" for at in range(4)]
    for bag, start in zip(bags, (0.4, 0.4, 3.0, 3.0), strict=True):
        write_bag(bag, [(toward, (0.8, 0.0), None) for toward in towards(3, start + 0.47)])
    compiled = load_bare(HERE / "monitor.yaml")

    def unseen(training: list[Path]) -> float:
        tracks = [
            run.tracks[0]
            for run in halves(compiled, [pass_over(compiled, bag) for bag in training])
        ]
        assert sum(len(track.ticks) for track in tracks) == 16  # the last command comes a tick on
        return 1.0 - float(np.mean(np.concatenate([track.in_model for track in tracks])))

    assert unseen([near, also_near, far, also_far]) == 0.0
    assert unseen([near, far, also_near, also_far]) == 1.0


def test_the_page_says_what_finer_bins_gave(repository: Path, published: dict[str, Any]) -> None:
    page = (repository / "evaluation" / "RESULTS.md").read_text(encoding="utf-8")
    figures = published["sets"]
    for rule in ("no_contact", "keep_distance", "slow_when_near"):
        areas = [figure["areas"][rule] for figure in figures.values()]
        assert max(areas) - min(areas) < 0.05
    present, finer = figures["monitor.yaml"], figures["finer bins"]
    said = (
        f"there are {present['states']} states, {100 * present['unseen']:.1f} % of ticks were in a "
        "state never seen, and the area for the distance is "
        f"{present['areas']['keep_distance']:.2f} there; with finer bins there are "
        f"{finer['states']}, {100 * finer['unseen']:.1f} %, and "
        f"{finer['areas']['keep_distance']:.2f}."
    )
    assert said in " ".join(page.split())
