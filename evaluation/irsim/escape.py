"""A way out for a robot that the gate has stopped: the same worlds with and without.

    python -m evaluation.irsim.escape --model MODEL --folder DIR --seeds 5000:5060 --write

The gate stops the robot, for a contact or for the distance as well. Its planner tries to get away
then, as Nav2's recoveries do: it turns in place and backs up. The gate lets nothing of it through,
or what the monitor file's `escape` allows. With `--write` results.json and RESULTS.md have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.harness.command import Seeds, command
from evaluation.harness.control import Library
from evaluation.harness.episodes import Episodes, Pairs
from evaluation.harness.page import publish, resampled, table, told
from evaluation.irsim import closed_loop
from evaluation.irsim.closed_loop import HERE, JUDGED, NOBODY, acting, lost, share_of
from evaluation.irsim.governors import GATE, Gate, Governed
from evaluation.irsim.messages import Publisher, commanded, time_of
from evaluation.irsim.planner import Planner
from evaluation.irsim.robot import Command, Frame, Simulator, simulator
from evaluation.irsim.scenes import ANGLES, RATE
from forewarn.config import load_spec
from forewarn.config.actuators import NO_WAY, ActuatorsSpec, EscapeSpec
from forewarn.config.signals import SignalSpec
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel, load_model
from monitor_node.actuators.interface import Demand
from monitor_node.escape import Account
from monitor_node.motion import Velocity
from monitor_node.twist_gate import GateRules, GateState, receive, step

MARK = "evaluation.irsim.escape"
LEVEL = 0.2
BEHIND = "min(where(ahead < 0 and beside < 0.3, -ahead, 6), default=6) - 0.22"
"""Clearance behind the robot, in m, as `clearance_ahead` of the monitor file is before it."""

BACK = "clear_behind > 0.3"


def section(turn: str) -> EscapeSpec:
    """Return the section `escape` with an expression for turning."""
    reverse = {"when": BACK, "speed": 0.2}
    given = {"reverse": reverse, "turn": {"when": turn, "speed": 0.6}}
    return EscapeSpec.model_validate({**given, "distance": 0.5, "time": 6.0})


ONE, EACH = ", one expression", ", one for each way"
ESCAPES = {ONE: section(BACK), EACH: section("true")}
"""The first: turning asks for what backing does. The robot is round, so that it may always turn."""

STUCK, TURNING, BACKING = 10, 15, 25
"""Ticks without moving after which the planner tries to get away, and how long it tries each."""

WEDGED = 10.0
"""Seconds of standing at a stretch, at the end of an episode that is out of time."""


def compiled(escape: EscapeSpec, *, late: bool) -> CompiledSpec:
    """Return the monitor that stops, and says which ways out are clear.

    With `late` it stops as it did first: for the distance as well, and releases late.
    """
    spec = load_spec(HERE / "monitor.yaml")
    twist = GATE.model_copy(update={"escape": escape, "rate": RATE})
    signals = {**spec.signals, "clear_behind": SignalSpec(value=BEHIND, unit="m")}
    actuators = ActuatorsSpec(twist=twist)
    spec = spec.model_copy(update={"signals": signals, "actuators": actuators})
    if late:  # but for the rule that this planner breaks all the time
        stops = {"intervention": "EMERGENCY_STOP", "speed_limit": None}
        judged = {n: s.model_copy(update=stops) for n, s in spec.properties.items() if n in JUDGED}
        spec = spec.model_copy(update={"properties": {**spec.properties, **judged}})
    return acting(spec, LEVEL)


class Recovery:
    """What a planner does that does not get on: it turns to where it is free, and backs up."""

    def __init__(self) -> None:
        self._stood = 0
        self._side = 1.0

    def command(self, frame: Frame, wanted: Command) -> Command:
        """Return what the planner commands instead, while it does not move forward."""
        if frame.speed > 0.02:
            self._stood = 0
            return wanted
        self._stood += 1
        since = (self._stood - STUCK) % (TURNING + BACKING)
        if self._stood <= STUCK:
            return wanted
        if since == 1:
            reach = np.minimum(frame.ranges, 3.0)
            left, right = reach[(ANGLES > 0) & (ANGLES < 2)], reach[(ANGLES < 0) & (ANGLES > -2)]
            self._side = 1.0 if left.mean() > right.mean() else -1.0
        return (0.0, self._side * 1.0) if 0 < since <= TURNING else (-0.2, 0.0)


class Escaping(Governed):
    """A robot whose planner tries to get away from where the gate stops it."""

    def __init__(self, controller: Library, *, lets_out: bool) -> None:
        super().__init__(controller, Gate())
        twist = controller.watch.spec.actuators.twist
        assert twist is not None
        if not lets_out:
            twist = twist.model_copy(update={"escape": None})
        self._rules = GateRules.of(twist)

    def begin(self, planner: Planner) -> None:
        """Forget the last episode."""
        super().begin(planner)
        self._state, self._recovery = GateState(escape=Account()), Recovery()
        self._publisher = Publisher()
        self.stops = self.ticks_out = self.standing = 0

    def govern(self, frame: Frame, command: Command) -> Command:
        """Evaluate the tick, and let through what the gate lets through."""
        for message in self._publisher.sensed(frame):
            self._controller.accept(message)
        watch, now = self._controller.watch, frame.tick / RATE
        tick = watch.session.clock.tick_at_or_after(time_of(frame.tick))
        request = watch.tick(tick).request
        active = request is not None and request.active
        demand = Demand(request.action, request.speed_limit, 1) if request and active else Demand()
        if demand.stops:
            command = self._recovery.command(frame, command)
        else:
            self._recovery = Recovery()
        self._controller.accept(commanded(frame, command))
        self.ticks_acting += demand.moves
        velocity = Velocity(x=command[0], yaw=command[1])
        clear = NO_WAY if request is None else request.escape
        self._state = step(
            self._rules, receive(self._rules, self._state, velocity, now), demand, now, clear
        )
        self.ticks_out += self._state.escape.moving
        self.standing = 0 if abs(frame.speed) > 0.02 else self.standing + 1
        return self._state.output.x, self._state.output.yaw


def arms(model: CountModel) -> dict[str, Escaping | None]:
    """Return who intervenes in each arm; None: nobody."""
    found: dict[str, Escaping | None] = {NOBODY: None}
    for late in (False, True):
        name = "stops for contact and distance" if late else "stops for contact"
        for way, escape in ESCAPES.items():
            watching = compiled(escape, late=late)
            found.setdefault(name, Escaping(Library(watching, model), lets_out=False))
            found[name + way] = Escaping(Library(watching, model), lets_out=True)
    return found


def run_episode(world: Simulator, seed: int, governor: Escaping | None) -> dict[str, Any]:
    """Drive an episode and return how it ended."""
    found = closed_loop.run_episode(world, seed, governor)
    out, standing = (governor.ticks_out, governor.standing) if governor else (0, 0)
    return found | {"out": out / RATE, "standing": standing / RATE}


def wedged(one: Mapping[str, Any]) -> bool:
    """Tell whether the robot stood until its time was over."""
    return not one["arrived"] and not one["collided"] and one["standing"] >= WEDGED


def share(pairs: Pairs, what: str) -> float:
    """Return the share of episodes that ended so."""
    ends = {"arrived": lambda one: one["arrived"], "collided": lambda one: one["collided"]}
    return sum(ends.get(what, wedged)(one) for one, _ in pairs) / len(pairs)


def gained(pairs: Pairs) -> float:
    """Return how many goals more are reached than by the other of each pair, as a share."""
    return sum(int(one["arrived"]) - int(other["arrived"]) for one, other in pairs) / len(pairs)


def summary(pairs: Pairs) -> dict[str, Any]:
    """Return counts and figures of an arm, with intervals over whole episodes."""
    found: dict[str, Any] = {"episodes": len(pairs)}
    for what in ("arrived", "collided", "wedged"):
        found[f"{what}_count"] = round(share(pairs, what) * len(pairs))
        found |= resampled(what, lambda runs, what=what: share(runs, what), pairs, resamples=2000)
    found |= resampled("lost", lost, pairs, resamples=2000)
    return found | {f"share_{what}": share_of(pairs, what) for what in ("acting", "out")}


HEAD = (
    *("Who intervenes", "Goals reached", "More than without", "Contacts", "Wedged", "Time lost"),
    *("Intervening", "On its way out"),
)


def table_of(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures as Markdown."""
    return table(
        HEAD,
        [
            [
                name,
                f"{row['arrived_count']}: {told(row, 'arrived', '{:.0%}')}",
                told(row, "gained", "{:+.0%}") if "gained" in row else "",
                *(
                    f"{row[f'{what}_count']}: {told(row, what, '{:.0%}')}"
                    for what in ("collided", "wedged")
                ),
                f"{told(row, 'lost', '{:+.1f}')} s",
                f"{row['share_acting']:.0%}",
                f"{row['share_out']:.1%}",
            ]
            for name, row in rows.items()
        ],
    )


def main(
    model: Path,
    folder: Path,
    seeds: Seeds = range(5000, 5060),
    only_summary: bool = False,
    write: bool = False,
) -> None:
    """Drive what is missing, and sum up."""
    learned = load_model(model)
    compared = arms(learned)
    episodes = Episodes(folder, dict.fromkeys(compared, learned.fingerprint))
    if not only_summary:
        with simulator() as world:
            for seed in seeds:
                episodes.drive(
                    seed, compared, lambda arm, seed=seed: run_episode(world, seed, compared[arm])
                )
    # An arm that was not driven to its end has no row.
    found = episodes.by_arm(seeds)
    pairs = {name: mine for name, mine in found.items() if len(mine) == len(seeds)}
    rows = {name: summary(mine) for name, mine in pairs.items()}
    for name, mine in pairs.items():
        for way in (way for way in ESCAPES if name.removesuffix(way) in {*pairs} - {name}):
            others = pairs[name.removesuffix(way)]
            both = [(one, other) for (one, _), (other, _) in zip(mine, others, strict=True)]
            rows[name] |= resampled("gained", gained, both, resamples=2000)
    driven = [episode["seed"] for episode, _ in pairs[NOBODY]]
    made = {"seeds": driven, "arms": rows}
    publish(MARK, table_of(rows), made, HERE / "results.json", write=write, within="escape")


if __name__ == "__main__":
    command(main)
