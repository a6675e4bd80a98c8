"""Drive the ego through SUMO and yield what its sensors, its planner and a referee would know."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from evaluation.sumo.network import EGO, Scenario
from evaluation.sumo.surroundings import Lookout, Surroundings

STEP = 0.02  # s; 50 Hz, the odometry's rate: nothing is interpolated
SENSOR_RANGE = 60.0  # m around the ego
LIGHT_RANGE = 80.0  # m along the lane
LIGHT_KEPT = 4.0  # m past the stop line for which its light still counts as the ego's
LIGHT_REACHED = 5.0  # m before the stop line from which the next step may be beyond it
PATH_LENGTH = 40.0  # m
PATH_SPACING = 4.0  # m
COLLISION_HOLD = 0.5  # s: SUMO reports an overlap again and again, not always at every step


class Light(NamedTuple):
    """The traffic light of the ego's lane."""

    colour: str  # red, yellow or green
    distance: float  # m along the lane from the front bumper to the stop line; 0 and less past it
    age: float  # s since it shows this colour


class Signal(NamedTuple):
    """One of SUMO's signals: a set of traffic lights and the number of a connection in it."""

    lights: str
    link: int


class Body(NamedTuple):
    """Somebody near the ego: centre, heading (rad), speed (m/s), length and width (m)."""

    kind: str  # vehicle or pedestrian
    number: int
    x: float
    y: float
    yaw: float
    speed: float
    length: float
    width: float


@dataclass(frozen=True)
class Frame:
    """One simulation step.

    The pose is that of the body's centre, in the map frame; `objects`, `light` and `path` are there
    at the steps at which a robot would publish them, else None. `surroundings` are there if they
    were asked for.
    """

    step: int
    x: float
    y: float
    yaw: float
    speed: float
    lateral_speed: float
    yaw_rate: float
    acceleration: float
    collision: bool
    ran_red: bool  # the front bumper crossed a stop line at red in this step
    objects: tuple[Body, ...] | None
    light: Light | None
    path: tuple[tuple[float, float], ...] | None
    surroundings: Surroundings | None = None


@dataclass(frozen=True)
class RunOptions:
    """How one run is simulated: the seed of SUMO's drivers, and seconds before and while recording.

    With `stride`, so many steps of 0.02 s at once, odometry comes more rarely; `surroundings` has
    the ego look at the road ahead as well.
    """

    seed: int
    warm_up: float = 50.0
    duration: float = 120.0
    stride: int = 1
    surroundings: bool = False


class NoEgoError(RuntimeError):
    """The ego could not enter the network by the end of the warm-up, or left it."""


def simulate(
    scenario: Scenario, options: RunOptions, observer: Observer | None = None
) -> Iterator[Frame]:
    """Run SUMO headless and yield a frame for every step of the recording."""
    import libsumo

    libsumo.start(sumo_command(scenario, options.seed, options.stride))
    try:
        observer = observer or Observer(libsumo, options)
        first = round(options.warm_up / STEP)
        for step in range(0, first + round(options.duration / STEP), options.stride):
            libsumo.simulationStep()
            if EGO in libsumo.vehicle.getIDList():
                frame = observer.look(step - first)
                if step >= first:
                    yield frame
            elif step >= first:
                raise NoEgoError(f"seed {options.seed}: no ego in the network at step {step}")
    finally:
        libsumo.close()


def sumo_command(scenario: Scenario, seed: int, stride: int = 1) -> list[str]:
    """Return how SUMO is started for a run; `seed` is that of its drivers."""
    command = ["sumo", "--net-file", str(scenario.network)]
    command += ["--route-files", ",".join(map(str, scenario.routes))]
    command += ["--seed", str(seed), "--step-length", f"{STEP * stride:g}"]
    # Drivers look and decide ten times a second; their cars move in between.
    command += ["--default.action-step-length", "0.1", "--lanechange.duration", "2"]
    command += ["--collision.action", "warn", "--collision.check-junctions"]
    command += ["--collision.mingap-factor", "0"]
    command += ["--time-to-teleport", "-1", "--no-step-log", "--no-warnings"]
    return command


class Observer:
    """Reads the state of a running SUMO; remembers what takes more than one step to know."""

    def __init__(self, sumo: Any, options: RunOptions | None = None) -> None:
        self._sumo = sumo
        self._period = STEP * (options.stride if options else 1)
        self._lookout = Lookout(sumo) if options and options.surroundings else None
        self._last_yaw: float | None = None
        self._collided_at = -math.inf
        self._approach: tuple[Signal, Light] | None = None
        self._colour_since: dict[Signal, tuple[str, float]] = {}
        self._shapes: dict[str, list[tuple[float, float]]] = {}
        self._numbers: dict[str, int] = {}
        self._crossed: tuple[Signal, float] | None = None

    def look(self, step: int) -> Frame:
        """Return the frame of this step (0 is the first of the recording)."""
        vehicle = self._sumo.vehicle
        x, y, yaw = self._centre(vehicle, EGO)
        if self._lookout is not None:
            self._watch_lights()
        last = yaw if self._last_yaw is None else self._last_yaw
        self._last_yaw = yaw
        light, ran_red = self._light()
        return Frame(
            step=step,
            x=x,
            y=y,
            yaw=yaw,
            speed=vehicle.getSpeed(EGO),
            lateral_speed=vehicle.getLateralSpeed(EGO),
            yaw_rate=math.remainder(yaw - last, math.tau) / self._period,
            acceleration=vehicle.getAcceleration(EGO),
            collision=self._collision(),
            ran_red=ran_red,
            objects=self._objects(x, y) if step % 5 == 0 else None,
            light=light,
            path=self._path(x, y) if step % 10 == 0 else None,
            surroundings=self._lookout.look() if self._lookout and step % 5 == 0 else None,
        )

    def _centre(self, domain: Any, name: str) -> tuple[float, float, float]:
        # SUMO gives the front bumper (of a pedestrian the centre), and the angle clockwise from
        # north.
        x, y = domain.getPosition(name)
        yaw = math.remainder(math.radians(90.0 - domain.getAngle(name)), math.tau)
        if domain is self._sumo.person:
            return x, y, yaw
        half = domain.getLength(name) / 2
        return x - half * math.cos(yaw), y - half * math.sin(yaw), yaw

    def _objects(self, x: float, y: float) -> tuple[Body, ...]:
        found: list[tuple[float, Body]] = []
        for kind, domain in (("vehicle", self._sumo.vehicle), ("pedestrian", self._sumo.person)):
            for name in domain.getIDList():
                if name == EGO:
                    continue
                px, py = domain.getPosition(name)
                if math.hypot(px - x, py - y) > SENSOR_RANGE + 5.0:
                    continue
                cx, cy, yaw = self._centre(domain, name)
                distance = math.hypot(cx - x, cy - y)
                if distance > SENSOR_RANGE:
                    continue
                number = self._numbers.setdefault(name, len(self._numbers))
                size = domain.getLength(name), domain.getWidth(name)
                found.append(
                    (distance, Body(kind, number, cx, cy, yaw, domain.getSpeed(name), *size))
                )
        return tuple(body for _, body in sorted(found))

    def _collision(self) -> bool:
        now = self._sumo.simulation.getTime()
        if any(EGO in (c.collider, c.victim) for c in self._sumo.simulation.getCollisions()):
            self._collided_at = now
        return bool(now - self._collided_at <= COLLISION_HOLD)

    def _light(self) -> tuple[Light | None, bool]:
        vehicle = self._sumo.vehicle
        on_junction = vehicle.getRoadID(EGO).startswith(":")
        ran_red = False
        if on_junction and self._approach is not None:
            signal, light = self._approach
            self._approach = None
            # Not the junction with that light: one without lights, before it.
            if light.distance <= LIGHT_REACHED:
                ran_red = light.colour == "red"
                self._crossed = signal, vehicle.getDistance(EGO)
        if self._crossed is not None:
            signal, start = self._crossed
            past = vehicle.getDistance(EGO) - start
            if past <= LIGHT_KEPT:
                states = self._sumo.trafficlight.getRedYellowGreenState(signal.lights)
                return self._aged(signal, states[signal.link], -past), ran_red
            self._crossed = None
        lights = vehicle.getNextTLS(EGO)
        if on_junction or not lights:
            return None, ran_red
        name, index, distance, state = lights[0]
        signal = Signal(name, index)
        light = self._aged(signal, state, distance)
        self._approach = signal, light
        return (light if distance <= LIGHT_RANGE else None), ran_red

    def _aged(self, signal: Signal, state: str, distance: float) -> Light:
        now = self._sumo.simulation.getTime()
        colour = {"r": "red", "y": "yellow", "u": "red"}.get(state.lower(), "green")
        known = self._colour_since.get(signal)
        if known is None or known[0] != colour:
            known = self._colour_since[signal] = (colour, now)
        return Light(colour, distance, now - known[1])

    def _watch_lights(self) -> None:
        """Keep the ages of all lights, also of those that the ego does not see at the moment."""
        domain = self._sumo.trafficlight
        for name in domain.getIDList():
            for link, state in enumerate(domain.getRedYellowGreenState(name)):
                self._aged(Signal(name, link), state, 0.0)

    def _path(self, x: float, y: float) -> tuple[tuple[float, float], ...]:
        points = [(x, y)]
        for lane, start in self._lanes_ahead():
            shape = self._shape(lane)
            points += [
                p for at, p in zip(_distances(shape), shape, strict=True) if at > start + 0.1
            ]
        along, (xs, ys) = _distances(points), zip(*points, strict=True)
        wanted = np.arange(0.0, min(PATH_LENGTH, along[-1]) + 1e-12, PATH_SPACING)
        ahead = zip(np.interp(wanted, along, xs), np.interp(wanted, along, ys), strict=True)
        return tuple((float(px), float(py)) for px, py in ahead)

    def _lanes_ahead(self) -> Iterator[tuple[str, float]]:
        vehicle, lane_domain = self._sumo.vehicle, self._sumo.lane
        lane = vehicle.getLaneID(EGO)
        start = vehicle.getLanePosition(EGO)
        left = PATH_LENGTH + 10.0
        route, index = vehicle.getRoute(EGO), vehicle.getRouteIndex(EGO)
        while left > 0 and lane:
            yield lane, start
            left -= lane_domain.getLength(lane) - start
            start = 0.0
            lane, index = self._next_lane(lane, route, index)

    def _next_lane(self, lane: str, route: Any, index: int) -> tuple[str, int]:
        links = self._sumo.lane.getLinks(lane)
        if lane.startswith(":"):
            return (links[0][4] or links[0][0], index) if links else ("", index)
        if index + 1 >= len(route):
            return "", index
        target = route[index + 1]
        fitting = [link for link in links if re.sub(r"_\d+$", "", link[0]) == target]
        if not fitting:  # a lane change is still to come: the path ends where this lane does
            return "", index
        return fitting[0][4] or fitting[0][0], index + 1

    def _shape(self, lane: str) -> list[tuple[float, float]]:
        if lane not in self._shapes:
            self._shapes[lane] = [(p[0], p[1]) for p in self._sumo.lane.getShape(lane)]
        return self._shapes[lane]


def _distances(points: list[tuple[float, float]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    steps = np.diff(np.array(points), axis=0)
    return np.concatenate([[0.0], np.cumsum(np.hypot(steps[:, 0], steps[:, 1]))])
