"""What laws ask about the road ahead: junction, direction, leader, room behind it, who crosses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from evaluation.sumo.network import EGO

RANGE = 60.0  # m along the lanes
STRAIGHT, LEFT, RIGHT = 0, 1, 2
DIRECTIONS = {"s": STRAIGHT, "l": LEFT, "L": LEFT, "r": RIGHT, "R": RIGHT}
TURNAROUND = "t"
# States of a link whose driver has to give way: green without priority, minor road, stop, red.
MINOR = frozenset("gmswru")
EGO_GAP = 2.5  # m: SUMO's minGap, which its distance to a leader leaves out
STANDING = 0.5  # m/s: below, an arrival cannot be foretold from the speed


class Surroundings(NamedTuple):
    """The road ahead of the ego, in metres, m/s and seconds; infinite where there is nothing."""

    junction: float = math.inf  # from the front bumper, 0 inside; dead ends do not count
    direction: int = STRAIGHT  # planned there
    lead_distance: float = math.inf  # the vehicle ahead in the lanes of the route
    lead_speed: float = math.inf
    # Room behind the last vehicle in the lane beyond the junction that those already in the
    # junction will leave, and the speed of that vehicle.
    exit_space: float = math.inf
    exit_speed: float = math.inf
    # Until the ego and a vehicle on a crossing lane would be in the same place of the junction if
    # both kept their speeds.
    crossing_time: float = math.inf
    # Until a vehicle that the ego has to give way to reaches the ego's lane in the junction.
    yield_gap: float = math.inf


class Link(NamedTuple):
    """The connection that the ego will take, or is on."""

    junction: float
    direction: str
    minor: bool
    target: str
    inside: tuple[str, ...]


class Lookout:
    """Reads the ego's surroundings from a running SUMO; remembers the link it entered by."""

    def __init__(self, sumo: Any) -> None:
        self._sumo = sumo
        self._link: Link | None = None

    def look(self) -> Surroundings:
        """Return the surroundings at the present step."""
        link = self._next_link()
        lead_distance, lead_speed = self._leader()
        if link is None:
            return Surroundings(lead_distance=lead_distance, lead_speed=lead_speed)
        turn = DIRECTIONS.get(link.direction, STRAIGHT)
        lead = lead_distance, lead_speed
        return Surroundings(link.junction, turn, *lead, *self._exit(link), *self._foes(link))

    def _next_link(self) -> Link | None:
        vehicle = self._sumo.vehicle
        lane = vehicle.getLaneID(EGO)
        if lane.startswith(":"):
            if self._link is not None:
                self._link = self._link._replace(junction=0.0)
            return self._link
        self._link = None
        route, index = vehicle.getRoute(EGO), vehicle.getRouteIndex(EGO)
        distance = self._sumo.lane.getLength(lane) - vehicle.getLanePosition(EGO)
        if index + 1 >= len(route) or distance > RANGE:
            return None
        for target, _, _, _, via, state, direction, _ in self._sumo.lane.getLinks(lane):
            if re.sub(r"_\d+$", "", target) == route[index + 1] and direction != TURNAROUND:
                minor = state in MINOR
                self._link = Link(distance, direction, minor, target, tuple(self._inner(via)))
        return self._link

    def _inner(self, via: str) -> Iterator[str]:
        while via.startswith(":"):
            yield via
            links = self._sumo.lane.getLinks(via)
            via = links[0][4] if links else ""

    def _leader(self) -> tuple[float, float]:
        leader = self._sumo.vehicle.getLeader(EGO, RANGE)
        if not leader or not leader[0]:
            return math.inf, math.inf
        return max(leader[1] + EGO_GAP, 0.0), self._sumo.vehicle.getSpeed(leader[0])

    def _exit(self, link: Link) -> tuple[float, float]:
        vehicle = self._sumo.vehicle
        backs = [
            (vehicle.getLanePosition(name) - vehicle.getLength(name), name)
            for name in self._sumo.lane.getLastStepVehicleIDs(link.target)
            if name != EGO
        ]
        if not backs:
            return math.inf, math.inf
        space, last = min(backs)
        inside = (
            name
            for lane in link.inside
            for name in self._sumo.lane.getLastStepVehicleIDs(lane)
            if name != EGO
        )
        taken = sum(vehicle.getLength(name) + EGO_GAP for name in inside)
        return space - taken, vehicle.getSpeed(last)

    def _foes(self, link: Link) -> tuple[float, float]:
        vehicle = self._sumo.vehicle
        own = max(vehicle.getSpeed(EGO), STANDING)
        crossing = gap = math.inf
        for name, mine, theirs, my_exit, their_exit, *_ in vehicle.getJunctionFoes(EGO, RANGE):
            if my_exit <= 0 or their_exit <= 0:
                continue
            speed = vehicle.getSpeed(name)
            if speed < STANDING and theirs > 0:
                continue
            speed = max(speed, STANDING)
            if link.minor:
                gap = min(gap, max(theirs, 0.0) / speed)
            begin = max(mine / own, theirs / speed, 0.0)
            if begin < min(my_exit / own, their_exit / speed):
                crossing = min(crossing, begin)
        return crossing, gap
