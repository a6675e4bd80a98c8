"""SUMO's town in step with a monitor: what was published by a tick is there before the tick."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evaluation.harness.messages import EPOCH_NS, Message
from evaluation.sumo.messages import publish
from evaluation.sumo.network import EGO, Scenario, Town, build_scenario
from evaluation.sumo.simulation import STEP, Frame, Observer, sumo_command
from forewarn.signals.clock import Grid

WARM_UP = 50.0  # s
RATE = 10.0  # Hz: a frame with objects and lights for each tick of the monitor
STEPS = 5  # of SUMO between two ticks


def town_scenario(seed: int, duration: float, folder: Path) -> Scenario:
    """Generate the traffic and the ego's route of a seed; the folder keeps them."""
    # The network depends on the town alone, and is shared by all seeds.
    return build_scenario(Town(), seed, WARM_UP + duration, folder / f"{seed:04d}", folder)


class NoEgoError(RuntimeError):
    """The ego could not enter the network, or left it."""


class Run:
    """One run of libsumo through the town, of so many seconds after the warm-up at the most.

    The seed is that of drivers and latencies, as in a recording; `observer` looks at the ego.
    """

    def __init__(self, sumo: Any, scenario: Scenario, seed: int, duration: float) -> None:
        self.sumo, self.scenario, self.seed, self.duration = sumo, scenario, seed, duration
        self.observer = Observer(sumo)

    def play(
        self,
        accept: Callable[[Message], None] | None,
        tick: Callable[[int, Frame], bool],
        watch: Callable[[Frame], None] = lambda frame: None,
    ) -> None:
        """Drive until the time is up or `tick` returns False.

        Parameters
        ----------
        accept
            Is given what the ego publishes, in the order of arrival; None: nothing is published.
        tick
            Told the number of the tick and its frame, after everything that arrived by then; SUMO
            stands still meanwhile, so what is asked of the ego counts from this moment on.
        watch
            Told every frame.

        Raises
        ------
        NoEgoError
            If there is no ego to look at.
        """
        self.sumo.start(sumo_command(self.scenario, self.seed))
        try:
            frames = self._frames(tick, watch)
            if accept is None:
                for _ in frames:
                    pass
                return
            for message in publish(frames, self.seed):
                accept(message)
        finally:
            self.sumo.close()

    def _frames(
        self, tick: Callable[[int, Frame], bool], watch: Callable[[Frame], None]
    ) -> Iterator[Frame]:
        grid = Grid(RATE)
        first = round(WARM_UP / STEP)
        for step in range(first + round(self.duration / STEP)):
            self.sumo.simulationStep()
            if EGO not in self.sumo.vehicle.getIDList():
                if step >= first:
                    raise NoEgoError(f"seed {self.seed}: no ego at step {step}")
                continue
            frame = self.observer.look(step - first)
            if step < first:
                continue
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
