"""One life of a monitor under simulated time, watched by a process until somebody kills it.

That process ends without tidying up: to destroy a node whose peer was killed has crashed Fast DDS.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from forewarn_msgs.msg import RiskArray
from live_ros import Probe, Stepper
from rclpy.duration import Duration
from small_world import DISTANCE, ODOMETRY, serialized

from monitor_node.lockstep import prompt_acknowledgements

WORLD = {"speed": ODOMETRY, "distance": DISTANCE}


def measured(tick: int) -> dict[str, float]:
    """Return what is measured at a tick, by its number alone: each life goes on with the same."""
    dice = random.Random(tick // 4)
    return {"speed": dice.choice([3.0, 3.0, 0.0]), "distance": dice.choice([5.0, 5.0, 12.0, 30.0])}


def unsigned(message: RiskArray) -> str:
    """Return a risk array as text, without what differs from life to life."""
    message.session, message.sequence = "", 0
    return repr(message)


class Life:
    """Steps a monitor as fast as it goes.

    Parameters
    ----------
    probe : Probe
        A node of this life alone: a reader that was killed never acknowledges anything.
    pid : int
        The monitor.
    tick : int
        Its first tick.
    """

    def __init__(self, probe: Probe, pid: int, tick: int) -> None:
        self.probe = probe
        self.stepper = Stepper(probe, start=tick)
        self._state = Path(f"/proc/{pid}/stat")

    def over(self) -> bool:
        """Tell whether the monitor is dead, if not buried."""
        try:
            return self._state.read_text().rpartition(")")[2].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True

    def begin(self) -> None:
        """Let ticks begin."""
        probe, stepper = self.probe, self.stepper
        probe.wait(lambda: probe._publishers_of_risk() or self.over())
        while not self.over() and not probe.starts:
            stepper.tell(stepper.tick - 1, lambda: probe.starts or self.over(), later_ns=1)

    def run(self) -> dict[int, str]:
        """Step until it is over; return what was published at which tick."""
        probe = self.probe
        while not self.over():
            self._step(measured(self.stepper.tick))
        known = -1
        while len(probe.risks) > known:  # what was published may still be on its way
            known = len(probe.risks)
            probe.executor.spin_once(timeout_sec=0.2)
        return {risk.risks[0].tick: unsigned(risk) for risk in probe.risks}

    def _step(self, values: dict[str, float]) -> None:
        stepper = self.stepper
        for name, value in values.items():
            publisher = self.probe.publisher(WORLD[name])
            self.probe.wait(lambda p=publisher: p.get_subscription_count() or self.over())
            publisher.publish(serialized(WORLD[name], value))
            while not self.over() and not publisher.wait_for_all_acked(Duration(seconds=0.05)):
                pass
        stepper.tell(stepper.tick, lambda: stepper.verdict() or self.over())
        stepper.tick += stepper.verdict() is not None


def main() -> None:
    """Say when ticks have begun, and in the end what was published."""
    domain, pid, tick = (int(item) for item in sys.argv[1:])
    with prompt_acknowledgements():
        life = Life(Probe(domain), pid, tick)
    life.begin()
    print("begun", flush=True)
    print(json.dumps({"told": life.run(), "tick": life.stepper.tick}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
