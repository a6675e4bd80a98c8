"""SUMO's town in step with a monitor: what was published by a tick is there before the tick."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from evaluation.harness.messages import EPOCH_NS, Message
from evaluation.sumo.messages import publish
from evaluation.sumo.network import EGO_TYPE, Scenario, Town, build_scenario
from evaluation.sumo.simulation import STEP, Frame, Observer, RunOptions, simulate
from forewarn.signals.clock_kinds import Grid

WARM_UP = 50.0  # s
RATE = 10.0  # Hz: a frame with objects and lights for each tick of the monitor
STEPS = 5  # of SUMO between two ticks


def town_scenario(
    seed: int, duration: float, folder: Path, ego_type: Mapping[str, str] = EGO_TYPE
) -> Scenario:
    """Generate the traffic and the ego's route of a seed; the folder keeps them."""
    # The network depends on the town alone, and is shared by all seeds.
    kept = folder / f"{seed:04d}"
    return build_scenario(Town(), seed, WARM_UP + duration, kept, folder, ego_type)


class Run:
    """One run of libsumo through the town, of so many seconds after the warm-up at the most.

    The seed is that of drivers and latencies, as in a recording; `observer` looks at the ego.
    """

    def __init__(self, sumo: Any, scenario: Scenario, seed: int, duration: float) -> None:
        self.scenario, self.seed, self.duration = scenario, seed, duration
        self.observer = Observer(sumo)

    def play(
        self,
        accept: Callable[[Message], None] | None,
        tick: Callable[[int, Frame], bool],
        watch: Callable[[Frame], None] = lambda frame: None,
    ) -> None:
        """Drive until the time is up or `tick` returns False.

        `accept` is given what the ego publishes, in the order of arrival, if anybody listens;
        `tick` is told its number and frame after everything that arrived by then. SUMO stands still
        meanwhile, so what is asked of the ego counts from this moment on. `watch` sees every frame.
        """
        options = RunOptions(self.seed, WARM_UP, self.duration)
        with closing(simulate(self.scenario, options, self.observer)) as frames:
            driven = _in_step(frames, tick, watch)
            if accept is None:
                deque(driven, maxlen=0)
                return
            for message in publish(driven, self.seed):
                accept(message)


def _in_step(
    frames: Iterator[Frame], tick: Callable[[int, Frame], bool], watch: Callable[[Frame], None]
) -> Iterator[Frame]:
    grid = Grid(RATE)
    for frame in frames:
        watch(frame)
        # Of the odometry only the newest before a tick counts; the rest is not published.
        if frame.step % STEPS not in (0, STEPS - 1):
            continue
        yield frame
        # The next frame is asked for once all that arrived by this one has been delivered.
        stamp = EPOCH_NS + round(frame.step * STEP * 1e9)
        number = grid.tick_at_or_after(stamp)
        # Nothing has arrived by the first frame: replay, too, begins at the tick after it.
        on_grid = frame.step > 0 and grid.time_ns(number) == stamp
        if on_grid and not tick(number, frame):
            return
