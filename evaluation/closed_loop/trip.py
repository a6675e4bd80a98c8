"""One trip of the ego through the town, and what the referee knows of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from evaluation.closed_loop.town import Run
from evaluation.harness.control import Library
from evaluation.sumo.network import EGO, Scenario
from evaluation.sumo.simulation import STEP, Frame
from forewarn.monitoring.intervention import NOTHING, Intervention

LENGTH = 1000.0  # m
LIMIT = 240.0  # s
COMFORTABLE = 3.0  # m/s^2, what a comfortable stop brakes with
EMERGENCY = 8.0
UNCOMFORTABLE = -3.05  # m/s^2
STANDING = 0.3  # m/s
PERIOD = 0.1  # s between two decisions
ALL_CHECKS = 31  # SUMO's default speed mode
NO_LEAST_DECELERATION = 27  # brake harder than the driver would
HALF_LENGTH = 2.3  # m


class Collision(NamedTuple):
    """The end of a trip, in seconds since it began; `speed` is the ego's, in m/s."""

    time: float
    other: str  # vehicle or pedestrian
    role: str  # hit: the ego ran into somebody; struck: somebody ran into it, standing or behind
    speed: float
    demanded: str  # of the ego at that time


@dataclass
class Trip:
    """What happened, in seconds since the trip began, and metres."""

    end: str = "late"  # or arrived, or collision
    seconds: float = 0.0
    distance: float = 0.0
    red_lights: list[float] = field(default_factory=list)  # when a stop line was crossed at red
    collision: Collision | None = None
    interventions: int = 0
    intervened: float = 0.0  # for how long something was demanded
    hard_brakings: int = 0
    uncomfortable: float = 0.0  # for how long it braked hard
    standing: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return it for a file."""
        told = asdict(self)
        told["collision"] = None if self.collision is None else self.collision._asdict()
        return told


class Referee:
    """Sees every step of the simulation and keeps the record of the trip."""

    def __init__(self, sumo: Any) -> None:
        self.trip = Trip()
        self._sumo = sumo
        self._braking = False
        self._demand = NOTHING

    def watch(self, frame: Frame) -> None:
        """Take a step of the simulation."""
        trip = self.trip
        trip.seconds = round(frame.step * STEP, 2)
        trip.distance += frame.speed * STEP
        trip.standing += STEP * (frame.speed < STANDING)
        hard = frame.acceleration < UNCOMFORTABLE
        trip.uncomfortable += STEP * hard
        trip.hard_brakings += hard and not self._braking
        self._braking = hard
        if frame.ran_red:
            trip.red_lights.append(trip.seconds)
        if frame.collision and trip.collision is None:
            trip.collision = self._describe(frame)
            trip.end = "collision"
        elif trip.distance >= LENGTH and trip.collision is None:
            trip.end = "arrived"

    @property
    def over(self) -> bool:
        """The ego has arrived or collided."""
        return self.trip.end != "late"

    def demanded(self, demand: Intervention) -> None:
        """Take what is demanded of the ego until the next tick."""
        self.trip.interventions += demand.moves and not self._demand.moves
        self.trip.intervened += PERIOD * demand.moves
        self._demand = demand

    def _describe(self, frame: Frame) -> Collision:
        kind, role = "vehicle", "hit"
        for contact in self._sumo.simulation.getCollisions():
            if EGO in (contact.collider, contact.victim):
                other = contact.victim if contact.collider == EGO else contact.collider
                walks = other in self._sumo.person.getIDList()
                kind = "pedestrian" if walks else "vehicle"
                domain = self._sumo.person if walks else self._sumo.vehicle
                role = role_of(frame, *domain.getPosition(other)[:2])
                break
        return Collision(self.trip.seconds, kind, role, frame.speed, self._demand.action)


def role_of(frame: Frame, x: float, y: float) -> str:
    """Return `struck` if the ego stood or was met behind its middle, else `hit`.

    `x` and `y` are the other's front, or a pedestrian's centre.
    """
    along = (x - frame.x) * math.cos(frame.yaw) + (y - frame.y) * math.sin(frame.yaw)
    return "struck" if frame.speed < STANDING or along < -HALF_LENGTH / 2 else "hit"


class Brakes:
    """Makes SUMO's ego do what is demanded; its own driver may brake harder, and drives on."""

    def __init__(self, sumo: Any) -> None:
        self._vehicle = sumo.vehicle
        self._present = NOTHING
        self._top_speed: float | None = None

    def apply(self, demand: Intervention) -> None:
        """Do it until the next tick."""
        if demand.stops:
            emergency = demand.hard
            self._mode(NO_LEAST_DECELERATION if emergency else ALL_CHECKS)
            self._vehicle.setAcceleration(EGO, -(EMERGENCY if emergency else COMFORTABLE), PERIOD)
        elif self._present.stops:
            self._mode(ALL_CHECKS)
        self._limit(demand.speed_limit if demand.limits else None)
        self._present = demand

    def _mode(self, mode: int) -> None:
        self._vehicle.setSpeedMode(EGO, mode)

    def _limit(self, speed: float | None) -> None:
        if speed is not None:
            if self._top_speed is None:
                self._top_speed = self._vehicle.getMaxSpeed(EGO)
            self._vehicle.setMaxSpeed(EGO, max(speed, 0.01))
        elif self._top_speed is not None:
            self._vehicle.setMaxSpeed(EGO, self._top_speed)
            self._top_speed = None


def drive(
    sumo: Any,
    scenario: Scenario,
    seed: int,
    controller: Library | None,
    limit: float = LIMIT,
    beyond: int = 0,
) -> Trip:
    """Return what becomes of a trip if `controller`, None for nobody, may intervene.

    `limit` are the seconds after which the trip is given up. For so many ticks `beyond` its end the
    controller goes on, to see how it ended.
    """
    run = Run(sumo, scenario, seed, limit)
    referee, brakes = Referee(sumo), Brakes(sumo)

    left = beyond

    def tick(number: int, frame: Frame) -> bool:
        nonlocal left
        if referee.over:
            left -= 1
            if left < 0:
                return False
        if controller is not None:
            demand = controller.tick(number)
            referee.demanded(demand)
            brakes.apply(demand)
        return True

    run.play(None if controller is None else controller.accept, tick, referee.watch)
    return referee.trip
