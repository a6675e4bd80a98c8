"""A real run of Apollo in a simulator (LawBreaker's example), as a record and live."""

from __future__ import annotations

import json
import math
import time
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apollo_bridge.layouts import own_class, own_pool
from forewarn.config.file import load_spec
from forewarn.learning.observing import observe
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.models.file import save_model
from forewarn.recordings.registry import open_recording
from forewarn.states.inputs import open_feed

CHASSIS, POSE = "/apollo/canbus/chassis", "/apollo/localization/pose"
OBSTACLES, LIGHTS = "/apollo/perception/obstacles", "/apollo/perception/traffic_light"
STEP_NS = 430_000_000  # 68 steps in about 29 s; the run's own stamps are irregular
START_NS = 1_638_179_450_000_000_000

MONITOR = """\
version: 1
rate: 10
startup_grace: 120
signals:
  speed: {channel: /apollo/canbus/chassis, message: apollo.canbus.Chassis, value: speed_mps}
  x: {channel: /apollo/localization/pose, message: apollo.localization.LocalizationEstimate,
      value: pose.position.x}
  y: {channel: /apollo/localization/pose, message: apollo.localization.LocalizationEstimate,
      value: pose.position.y}
  object_x: {channel: /apollo/perception/obstacles, message: apollo.perception.PerceptionObstacles,
             value: "[o.position.x for o in perception_obstacle]"}
  object_y: {channel: /apollo/perception/obstacles, message: apollo.perception.PerceptionObstacles,
             value: "[o.position.y for o in perception_obstacle]"}
  red: {channel: /apollo/perception/traffic_light, message: apollo.perception.TrafficLightDetection,
        value: "any(each.color == RED for each in traffic_light)"}
  yellow: {channel: /apollo/perception/traffic_light,
           message: apollo.perception.TrafficLightDetection,
           value: "any(each.color == YELLOW for each in traffic_light)"}
  nearest: {value: "min(hypot(object_x - x, object_y - y), default=200)"}
predicates:
  moving: speed > 0.5
  near: nearest < 40
  warned: yellow or red
bins:
  speed: [3, 6, 8]
properties:
  slow_at_lights:
    formula: always(warned implies eventually[0:2](not moving or not warned))
    horizon: 2.0
    thresholds: {warn: 0.2, act: 0.5, release: 0.1}
    enter: 1
    exit: 1
    intervention: COMFORTABLE_STOP
model: monitor.model.json
mode: act
"""
STOP = 4


class Step(NamedTuple):
    """One step of the run: what it says, and the same as messages of Apollo."""

    speed: float
    nearest: float
    yellow: bool
    messages: dict[str, Any]


def steps_of(path: Path) -> list[Step]:
    found = []
    for number, step in enumerate(json.loads(path.read_text())["trace"]):
        stamp = START_NS / 1e9 + number * STEP_NS / 1e9
        car = step["ego"]["Chasis"]
        chassis = own_class("apollo.canbus.Chassis")(
            speed_mps=car["speed"],
            brake_percentage=car["brake"],
            engine_started=car["engineOn"],
            gear_location=car["gear"],
            driving_mode=1,
        )
        pose = own_class("apollo.localization.LocalizationEstimate")()
        where = step["ego"]["pose"]["position"]
        pose.pose.position.x, pose.pose.position.y = where["x"], where["y"]
        pose.pose.heading = step["ego"]["pose"]["heading"]
        seen = own_class("apollo.perception.PerceptionObstacles")()
        for obstacle in step["truth"]["obsList"]:
            it = seen.perception_obstacle.add(id=obstacle["id"], type=obstacle["type"])
            it.position.x, it.position.y = obstacle["position"]["x"], obstacle["position"]["y"]
            it.velocity.x, it.velocity.y = obstacle["velocity"]["x"], obstacle["velocity"]["y"]
        lights = own_class("apollo.perception.TrafficLightDetection")()
        told = step["traffic_lights"].get("trafficLightList", ())
        for item in told:
            lights.traffic_light.add(id=item["id"], color=item["color"], blink=item["blink"])
        messages = {CHASSIS: chassis, POSE: pose, OBSTACLES: seen, LIGHTS: lights}
        for message in messages.values():
            message.header.timestamp_sec, message.header.sequence_num = stamp, number + 1
        nearest = min(
            (
                math.hypot(o["position"]["x"] - where["x"], o["position"]["y"] - where["y"])
                for o in step["truth"]["obsList"]
            ),
            default=200.0,
        )
        speed = chassis.speed_mps  # a float of 32 bits
        found.append(Step(speed, nearest, any(e["color"] == 2 for e in told), messages))
    return found


@pytest.fixture(scope="module")
def run(shared_data: Path) -> list[Step]:
    return steps_of(shared_data / "apollo" / "lawbreaker_run.json")


def write_record(path: Path, run: list[Step], apollo: Any) -> Path:
    written = [
        apollo.Written(START_NS + number * STEP_NS, channel, message)
        for number, step in enumerate(run)
        for channel, message in step.messages.items()
    ]
    path.write_bytes(apollo.record_bytes([written[:100], written[100:]]))
    return path


def test_as_a_record_every_step_is_seen_as_it_was(
    run: list[Step], tmp_path: Path, apollo: Any
) -> None:
    record = write_record(tmp_path / "run.record", run, apollo)
    config = tmp_path / "monitor.yaml"
    config.write_text(MONITOR)
    spec = load_spec(config)
    abstraction = compile_spec(spec).abstraction
    names = abstraction.signals
    seen: dict[float, Any] = {}
    with open_recording(record) as recording:
        for _, shown, *_ in observe(recording, spec, abstraction):
            assert not shown.failures
            values = dict(zip(names, shown.values, strict=True))
            seen[values["speed"]] = values
    # Ticks come every 100 ms, steps every 430 ms: each step is the newest at one tick at least.
    for step in run:
        values = seen[step.speed]
        if sum(one_run.speed == step.speed for one_run in run) == 1:
            assert values["nearest"] == pytest.approx(step.nearest, abs=1e-6)
            assert values["yellow"] == step.yellow
    model = learn([record], spec, abstraction).model
    assert model.counts.sum() == math.ceil((len(run) - 1) * STEP_NS / 1e8)


def test_the_nearest_vehicle_is_the_one_that_lawbreaker_found(
    run: list[Step], repository: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another town's map: the nearest vehicle does not depend on it.
    path = shared_data / "apollo" / "borregas_ave.base_map.bin"
    monkeypatch.setenv("APOLLO_MAP", str(path))
    spec = load_spec(repository / "config" / "apollo.yaml")
    abstraction = compile_spec(spec).abstraction
    types = {c: own_pool().message_type(name) for c, name in spec.topics.items()}
    theirs = json.loads((shared_data / "apollo" / "lawbreaker_run.json").read_text())["trace"]
    feed = open_feed(spec, abstraction, types)
    compared = agreed = 0
    for number, (step, told) in enumerate(zip(run, theirs, strict=True)):
        time_ns = START_NS + number * STEP_NS
        for channel, message in step.messages.items():
            feed.accept(channel, time_ns, message.SerializeToString())
        tick = feed.clock.tick_at_or_after(time_ns)
        values = abstraction.complete(feed.snapshot(tick).values)[0]
        found = dict(zip(abstraction.signals, values, strict=True))
        name = told["truth"]["NearestNPC"]
        if name is None:
            assert found["nearest_npc"] == math.inf
            continue
        it = next(obstacle for obstacle in told["truth"]["obsList"] if obstacle["name"] == name)
        distance = math.hypot(
            it["position"]["x"] - found["ego_x"], it["position"]["y"] - found["ego_y"]
        )
        compared += 1
        agreed += distance == pytest.approx(found["nearest_npc"], abs=1e-6)
    # Theirs was found at another moment than the positions; once another vehicle was nearer then.
    assert (compared, agreed) == (29, 28)


def stopped(car: Any) -> bool:
    """Tell whether planning was told to stop; what it was told is dropped."""
    told = []
    while not car.lines.empty():
        told.append(car.lines.get().get("pad"))
    return STOP in told


@pytest.mark.ros
@pytest.mark.timeout(900)
def test_live_every_step_reaches_the_monitor_as_it_was_and_a_light_that_is_ignored_ends_in_a_stop(
    run: list[Step], world: Any, listener: Any, apollo: Any, pycyber: None
) -> None:
    from forewarn_msgs.msg import Signals

    record = write_record(world.folder / "run.record", run, apollo)
    config = world.folder / "monitor.yaml"
    config.write_text(MONITOR)
    spec = load_spec(config)
    learned = learn([record], spec, compile_spec(spec).abstraction).model
    save_model(learned, world.folder / "monitor.model.json")
    car = world.apollo(0)
    world.bridge()
    world.monitor()
    latest: dict[str, float] = {}

    def take(message: Signals) -> None:
        latest.update(zip(message.names, message.values, strict=True))

    topic = "/monitor/input/signals"
    subscription = listener.node.create_subscription(Signals, topic, take, 50)
    ignored = next(i for i, step in enumerate(run) if step.yellow and step.speed > 0.5)
    sent, end = count(1), time.monotonic() + 200.0
    for number, step in enumerate(run):
        wanted = {"speed": step.speed, "nearest": step.nearest, "yellow": float(step.yellow)}
        while True:  # Cyber's discovery takes its time; later one is enough
            attempt = next(sent)
            for channel, message in step.messages.items():
                message.header.sequence_num, message.header.timestamp_sec = attempt, time.time()
                car.tell(
                    publish=channel,
                    message=message.DESCRIPTOR.full_name,
                    data=message.SerializeToString().hex(),
                )
            listener.executor.spin_once(timeout_sec=0.2)
            same = {name: latest.get(name) for name in wanted} == pytest.approx(wanted, abs=1e-6)
            if same and (number != ignored or stopped(car)):
                break
            assert time.monotonic() < end, f"step {number}: {wanted} wanted, {latest} came"
    listener.node.destroy_subscription(subscription)
