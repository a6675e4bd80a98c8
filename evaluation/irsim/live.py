"""The real node, the real gate and Nav2's topic, over DDS, with the simulator in real time.

    python -m evaluation.irsim.live --model MODEL --seeds 1000:1004 --means gate --folder DIR

For `--means gate` the planner's `/cmd_vel` passes `twist_gate_node`, and the base does what comes
out of it; for `--means nav2` the planner heeds `/speed_limit`, and nav2_msgs has to be installed.
The monitor is stepped tick by tick, a tenth of a second of wall-clock time each, because the gate
measures by a steady clock. Beside it the library evaluates the same messages: all bits have to
agree.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from geometry_msgs.msg import TwistStamped

from evaluation.closed_loop.loading import open_watch
from evaluation.closed_loop.node import Ego, monitor_process, node_process, on_domain, row_of
from evaluation.comparison import rounded
from evaluation.irsim.closed_loop import CREEP, HERE, LEVELS
from evaluation.irsim.governors import GATE, accept, tick_of
from evaluation.irsim.messages import EPOCH_NS, GOAL, Message, Publisher, commanded, time_of
from evaluation.irsim.planner import Planner
from evaluation.irsim.robot import Command, Frame, drive, ending, simulator
from evaluation.irsim.scenes import LIMIT, RATE, draw_scene
from forewarn.config import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.models import load_model
from forewarn.monitoring.risk_rows import same_bits
from forewarn.recordings import Sample

PATIENCE = 0.05
"""Seconds of wall-clock time within which the gate's answer to a command counts."""


class Robot(Ego):
    """The robot's nodes, in lock-step with the monitor; commands go out between two ticks."""

    span_ns = EPOCH_NS, time_of(int(LIMIT * RATE))
    latched = frozenset({GOAL[0]})  # as every action server's status is

    def wait(self, condition: Callable[[], bool], seconds: float) -> None:
        """Serve callbacks for so long, or until it is so."""
        end = time.monotonic() + seconds
        while not condition() and (left := end - time.monotonic()) > 0:
            self._serve(min(left, 0.01))


class Base:
    """What the base hears: the newest command, through the gate or not."""

    def __init__(self, robot: Robot, means: str) -> None:
        self._robot = robot
        self._means = means
        self.command: Command = (0.0, 0.0)
        self.count = 0
        self.limit = float("inf")
        if means == "gate":
            robot.create_subscription(TwistStamped, GATE.output, self._heard, 10)
        else:
            from nav2_msgs.msg import SpeedLimit

            robot.create_subscription(SpeedLimit, "/speed_limit", self._limited, 10)

    def _heard(self, message: Any) -> None:
        self.count += 1
        self.command = (message.twist.linear.x, message.twist.angular.z)

    def _limited(self, message: Any) -> None:
        # Zero means no limit to Nav2.
        self.limit = message.speed_limit or float("inf")


class Live:
    """The monitor's process, and the gate's, between planner and base."""

    def __init__(self, robot: Robot, base: Base, watch: Any, means: str) -> None:
        self._robot, self._base, self._watch, self._means = robot, base, watch, means
        self._publisher = Publisher()
        self._planner: Planner | None = None
        self._due = 0.0
        self.ticks = self.unlike = self.late = self.acting = 0

    def begin(self, planner: Planner) -> None:
        """Begin an episode: the clock goes back."""
        self._planner = planner
        self._publisher = Publisher()
        self._robot.begin()
        self._watch.withdraw("another episode begins")
        self._watch.restart()
        self._due = time.monotonic()

    def govern(self, frame: Frame, command: Command) -> Command:
        """Let the node decide at a tick, and return what reaches the base."""
        assert self._planner is not None
        self._due += 1 / RATE
        sensed = list(self._publisher.sensed(frame))
        self._publish(sensed)
        accept(self._watch, sensed)
        number = tick_of(self._watch, frame)
        demand = self._robot.tick(number)
        rows = self._watch.tick(number).rows
        told = tuple(map(row_of, self._robot.risk.risks))
        self.ticks += 1
        self.unlike += not same_bits(rows, told)
        self.acting += demand.moves
        self._planner.limit = self._base.limit
        before = self._base.count
        order = commanded(frame, command)
        self._publish([order])
        accept(self._watch, [order])
        self._robot.flush()
        if self._means == "gate":
            self._robot.wait(lambda: self._base.count > before, PATIENCE)
        self.late += time.monotonic() > self._due
        self._due = max(self._due, time.monotonic())
        self._robot.wait(lambda: False, self._due - time.monotonic())
        return self._base.command if self._means == "gate" else command

    def _publish(self, messages: list[Message]) -> None:
        for message in messages:
            self._robot.accept(Sample(message.time_ns, message.topic[0], message.data))


def gate_process(config: Path, domain: int, log: Path) -> AbstractContextManager[None]:
    """Run `twist_gate_node`; it is stopped at the end."""
    return node_process("monitor_node.twist_gate_node", {"config": config}, domain, log)


def acting_file(config: Path, model: Path, means: str, folder: Path) -> Path:
    """Write the monitor file as one that acts by these means."""
    text = config.read_text(encoding="utf-8").replace("mode: observe", "mode: act")
    level = LEVELS[0]
    acts = f"{{warn: {level}, act: {level}, release: {0.9 * level:g}}}"
    text = text.replace("{warn: 0.2, act: 0.3, release: 0.12}", acts)
    if means == "gate":
        section = f"twist: {{input: {GATE.input}, output: {GATE.output}, stamped: true, "
        section += f"max_speed: {GATE.max_speed}, max_turn: {GATE.max_turn}, "
        section += f"emergency_deceleration: {GATE.emergency_deceleration}}}"
    else:
        section = "nav2: {}"
        slower = f"intervention: LIMIT_SPEED\n    speed_limit: {CREEP}"
        text = text.replace("intervention: EMERGENCY_STOP", slower)
    text += f"\nmodel: {model.resolve()}\nactuators:\n  {section}\n"
    path = folder / f"acting_{means}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def main() -> None:
    """Drive live, and say what agreed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--seeds", default="1000:1004", help="first:end")
    parser.add_argument("--means", choices=("gate", "nav2"), default="gate")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    means, folder = arguments.means, arguments.folder
    config = acting_file(HERE / "monitor.yaml", arguments.model, means, folder)
    watch = open_watch(compile_spec(load_spec(config)), load_model(arguments.model))
    domain = 20 + os.getpid() % 80
    first, end = (int(part) for part in arguments.seeds.split(":"))
    rows = []
    with (
        simulator() as world,
        monitor_process(config, domain, folder / "node.log"),
        gate_process(config, domain, folder / "gate.log") if means == "gate" else nullcontext(),
        on_domain(Robot, watch.spec.topics, domain) as robot,
    ):
        base = Base(robot, means)
        for seed in range(first, end):
            live = Live(robot, base, watch, means)
            scene = draw_scene(seed)
            found = asdict(ending(scene, [frame for frame, _ in drive(world, scene, live)]))
            counts = {"ticks": live.ticks, "unlike": live.unlike, "late": live.late}
            found = {k: rounded(v) if isinstance(v, float) else v for k, v in found.items()}
            rows.append(found | counts | {"acting": live.acting / RATE})
            print(json.dumps(rows[-1]), flush=True)
    results = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    results[f"live_{means}"] = rows
    arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
