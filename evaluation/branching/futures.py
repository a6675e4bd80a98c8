"""Futures of a moment: forked copies of the simulator go on with other random numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from evaluation.branching.generators import Generators
from evaluation.closed_loop.town import STEPS
from evaluation.sumo.network import EGO
from evaluation.sumo.simulation import Frame, Observer

NO_OBJECTS = 1  # a step number at which the observer need not look for anybody else


class Future(NamedTuple):
    """The tick, counted from the moment, at which the monitor sees a violation; None: not."""

    red_light: int | None
    collision: int | None


class Glance(NamedTuple):
    """What matters of a frame."""

    collision: bool
    ran_red: bool


def futures(
    sumo: Any,
    generators: Generators,
    observer: Observer,
    frame: Frame,
    seeds: Sequence[int],
    horizons: Future,
) -> Iterator[Future]:
    """Yield one future of the present moment for each seed of all that is random from now on.

    This process's libsumo stays as it is; `observer` looked at it so far, and saw `frame` last.
    `horizons` are the ticks to look ahead, for each property.
    """
    for seed in seeds:

        def live(seed: int = seed) -> Future:
            generators.seed(seed)
            return follow(_glances(sumo, observer, frame), horizons)

        yield Future(*in_a_copy(live))


def in_a_copy(work: Callable[[], Any]) -> Any:
    """Return what `work` returns in a forked copy of this process; it has to fit into JSON.

    Raises
    ------
    RuntimeError
        If the copy died.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writing, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)  # no clean-up: files and the simulation belong to the parent
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if status != 0 or not told:
        raise RuntimeError(f"a copy of the simulation died with status {status}")
    return json.loads(told)


def _glances(sumo: Any, observer: Observer, first: Frame) -> Iterator[Glance]:
    """Yield what is published at each tick, the present one first."""
    yield Glance(first.collision, ran_red(first))
    while True:
        touched = False
        for _ in range(STEPS):
            sumo.simulationStep()
            touched |= any(EGO in (c.collider, c.victim) for c in sumo.simulation.getCollisions())
        if EGO not in sumo.vehicle.getIDList():
            return
        frame = observer.look(NO_OBJECTS)
        yield Glance(frame.collision or touched, ran_red(frame))


def ran_red(frame: Frame) -> bool:
    """Tell whether the predicate `ran_red` of the monitor file holds for what a frame shows."""
    light = frame.light
    return (
        light is not None
        and light.colour == "red"
        and -0.2 - 0.15 * frame.speed < light.distance <= 0
    )


def follow(glances: Iterator[Glance], horizons: Future) -> Future:
    """Return when a monitor sees violations.

    It sees at tick j + 1 what is published at tick j, for messages take some milliseconds: even the
    present glance can be a violation to come. A collision ends the future, as it ends the episode
    for the monitor.
    """
    red_light: int | None = None
    assert horizons.red_light is not None and horizons.collision is not None
    for tick, glance in enumerate(glances, start=1):
        if glance.collision:
            return Future(red_light, tick if tick <= horizons.collision else None)
        if glance.ran_red and red_light is None and tick <= horizons.red_light:
            red_light = tick
        waiting = red_light is None and tick < horizons.red_light
        if not waiting and tick >= horizons.collision:
            break
    return Future(red_light, None)
