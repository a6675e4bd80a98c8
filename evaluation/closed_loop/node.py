"""The real node in the loop: SUMO stands still at each tick until the node has decided.

    python -m evaluation.closed_loop.node --folder /tmp/trips --seeds 701:704

Every trip is driven with the node in command and the library beside it, then by the library alone:
verdicts have to agree to the bit, and both trips have to end alike.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import rclpy
from rclpy.context import Context
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile

from evaluation.closed_loop.arms import Monitored, as_shipped
from evaluation.closed_loop.controllers import Library
from evaluation.closed_loop.demands import NOTHING, Demand
from evaluation.closed_loop.loading import CONFIG, open_watch
from evaluation.closed_loop.page import put, table
from evaluation.closed_loop.town import NoEgoError, town_scenario
from evaluation.closed_loop.trip import LIMIT, Trip, drive
from evaluation.sumo.messages import EPOCH_NS, Published
from forewarn.monitoring.risk_rows import RiskRow, same_bits
from forewarn.recordings import Sample
from monitor_node import conversions
from monitor_node.acknowledgement import prompt_acknowledgements
from monitor_node.bag_player import LOCK_STEP_DEPTH, BagPlayer
from monitor_node.conversions import Intervention
from monitor_node.lockstep import LockStep, Step
from monitor_node.message_types import message_class
from monitor_node.outputs import KEPT_EVENTS
from monitor_node.qos import Quality, profile

HERE = Path(__file__).resolve().parent
ACTIONS = {
    value: name
    for name, value in vars(Intervention).items()
    if re.fullmatch("[A-Z][A-Z_]+", name) and isinstance(value, int)
}


class Ego(BagPlayer):
    """Publishes what the ego publishes, in lock-step, and hears what the monitor demands.

    Parameters
    ----------
    topics : mapping of str to str
        Topics that the monitor wants, and their types.
    arguments
        For the node.

    Attributes
    ----------
    span_ns : tuple of int
        When a trip begins, and when it ends at the latest.
    latched : frozenset of str
        Topics whose last message is kept for those who come late.
    """

    span_ns = EPOCH_NS + 1, EPOCH_NS + round(LIMIT * 1e9)
    latched: frozenset[str] = frozenset()

    def __init__(self, topics: Mapping[str, str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.risk: Any = None
        self._intervention: Any = None
        self._plan: LockStep | None = None
        self._waiting: list[Sample] = []
        for topic, kind in topics.items():
            quality = Quality(latched=topic in self.latched)
            self._outlets[topic] = self.create_publisher(
                message_class(kind, topic=topic), topic, profile(quality, LOCK_STEP_DEPTH)
            )
            self._qualities[topic] = quality
        kept = QoSProfile(depth=KEPT_EVENTS, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.create_subscription(
            Intervention, f"{self._monitor}/output/intervention", self._on_intervention, kept
        )

    def begin(self) -> None:
        """Set the clock back: the monitor forgets the last trip."""
        grounds = self._meet_monitor(clock=True)
        self._plan = LockStep(grounds.grid, grounds.settle_ns, *self.span_ns)
        self._waiting.clear()
        self._started.clear()
        self._intervention = None
        clock_ns = grounds.grid.time_ns(self._plan.first - 1) + 1
        self._tell(Step((), clock_ns, None), self._plan)

    def accept(self, sample: Sample) -> None:
        """Take a message that is to be published before the next tick."""
        if sample.topic in self._outlets:
            self._waiting.append(sample)

    def flush(self) -> None:
        """Publish what waits, and when it arrived."""
        self._deliver(self._waiting)
        self._waiting.clear()

    def tick(self, number: int) -> Demand:
        """Publish, set the clock and return what the node demands at this tick."""
        assert self._plan is not None
        self.flush()
        time_ns = self._plan.grid.time_ns(number)
        asking = self._intervention is not None and self._intervention.action != Intervention.NONE
        self._tell(Step((), time_ns, number), self._plan)
        if asking or any(risk.level for risk in self.risk.risks):
            self._await(
                lambda: (
                    self._intervention is not None
                    and conversions.from_time(self._intervention.header.stamp) == time_ns
                ),
                lambda: f"{self._monitor} alerts at tick {number} and asks for nothing",
            )
        return self._demand()

    def _demand(self) -> Demand:
        asked = self._intervention
        if asked is None or not asked.active:
            return NOTHING
        demand = Demand(ACTIONS[asked.action], asked.speed_limit)
        return demand if demand.moves else NOTHING

    def _on_risk(self, message: Any) -> None:
        self.risk = message
        super()._on_risk(message)

    def _on_intervention(self, message: Any) -> None:
        self._intervention = message


class Compared:
    """The node in command, the library beside it.

    Attributes
    ----------
    ticks, unlike_risks, unlike_demands : int
        Ticks so far, and those at which not all bits of all risks, or not the demands, agreed.
    """

    def __init__(self, ego: Ego, library: Library) -> None:
        self._ego, self._library = ego, library
        self.ticks = self.unlike_risks = self.unlike_demands = 0

    def begin(self) -> None:
        """Forget the last trip."""
        self._ego.begin()
        self._library.begin()

    def accept(self, message: Published) -> None:
        """Take a message that has arrived."""
        self._ego.accept(Sample(message.arrival_ns, message.topic.name, message.data))
        self._library.accept(message)

    def tick(self, number: int) -> Demand:
        """Return what the node demands."""
        demand = self._ego.tick(number)
        other = self._library.tick(number)
        outcome = self._library.outcome
        assert outcome is not None
        self.ticks += 1
        self.unlike_risks += not same_bits(outcome.rows, tuple(map(row_of, self._ego.risk.risks)))
        self.unlike_demands += repr(demand) != repr(other)
        return demand


def row_of(risk: Any) -> tuple[Any, ...]:
    """Return the fields of a Risk message as the library has them."""
    fields = (getattr(risk, name) for name in RiskRow._fields)
    return tuple(
        field if isinstance(field, (str, bool, int, float)) else tuple(field) for field in fields
    )


@contextmanager
def node_process(
    module: str, parameters: Mapping[str, object], domain: int, log: Path
) -> Iterator[None]:
    """Run an executable of the monitor's package; it is stopped at the end."""
    environment = {
        **os.environ,
        "ROS_DOMAIN_ID": str(domain),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }
    command = [sys.executable, "-c", f"from {module} import main; main()", "--ros-args"]
    for key, value in parameters.items():
        command += ["-p", f"{key}:={value}"]
    with log.open("w") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(10.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def monitor_process(config: Path, domain: int, log: Path) -> AbstractContextManager[None]:
    """Run the monitor's executable; it is stopped at the end."""
    parameters = {"config": config, "mode": "act", "autostart": "true", "use_sim_time": "true"}
    return node_process("monitor_node.main", parameters, domain, log)


AnyEgo = TypeVar("AnyEgo", bound=Ego)


@contextmanager
def on_domain(kind: type[AnyEgo], topics: Mapping[str, str], domain: int) -> Iterator[AnyEgo]:
    """Yield an ego of some kind on a domain of its own."""
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    context = Context()
    with prompt_acknowledgements():
        rclpy.init(context=context, domain_id=domain)
        patience = Parameter("timeout", value=60.0)
        ego = kind(topics, context=context, parameter_overrides=[patience])
    try:
        yield ego
    finally:
        ego.destroy_node()
        rclpy.shutdown(context=context)


def acting_file(config: Path, folder: Path) -> Path:
    """Write the monitor file once more, with `mode: act`, beside nothing it names relatively."""
    text = config.read_text(encoding="utf-8")
    text, acting = re.subn(r"^mode: *observe", "mode: act", text, flags=re.MULTILINE)
    text, named = re.subn(
        r"^model: *(\S+)",
        lambda found: f"model: {config.resolve().parent / found[1]}",
        text,
        flags=re.MULTILINE,
    )
    if not (acting and named):
        raise SystemExit(f"{config}: no `mode: observe` or no model")
    path = folder / "acting.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def main() -> None:
    """Drive and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--config", type=Path, default=CONFIG, help="monitor file")
    parser.add_argument("--seeds", default="701:704", help="first:end (default: 701:704)")
    arguments = parser.parse_args()
    first, end = (int(part) for part in arguments.seeds.split(":"))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    monitored = Monitored.load(arguments.config)
    watch = open_watch(*monitored)
    library = Library(watch, as_shipped(watch.spec))
    domain = 20 + os.getpid() % 80
    config = acting_file(arguments.config, arguments.folder)
    rows = []
    with (
        monitor_process(config, domain, arguments.folder / "node.log"),
        on_domain(Ego, watch.spec.topics, domain) as ego,
    ):
        for seed in range(first, end):
            rows.append(compare(seed, ego, library, arguments.folder))
            print(json.dumps(rows[-1]), flush=True)
    told = {"model": monitored.model.fingerprint, "trips": rows}
    (HERE / "node.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    put("node in the loop", _table(rows))


def compare(seed: int, ego: Ego, library: Library, folder: Path) -> dict[str, Any]:
    """Drive one trip twice, and return what differed."""
    import libsumo

    scenario = town_scenario(seed, LIMIT, folder / "scenarios")
    both = Compared(ego, library)
    begun = time.monotonic()
    try:
        both.begin()
        one: Trip = drive(libsumo, scenario, seed, both)
        passed = time.monotonic() - begun
        library.begin()
        other = drive(libsumo, scenario, seed, library)
    except NoEgoError as error:
        return {"seed": seed, "failed": str(error)}
    return {
        "seed": seed,
        "ticks": both.ticks,
        "unlike_risks": both.unlike_risks,
        "unlike_demands": both.unlike_demands,
        "interventions": one.interventions,
        "same_trip": one == other,
        "wall_ms_per_tick": round(1000.0 * passed / max(both.ticks, 1), 1),
        **one.as_json(),
    }


def _table(rows: list[dict[str, Any]]) -> str:
    return table(
        (
            "seed",
            "ticks",
            "ticks with another bit in a risk",
            "ticks with another demand",
            "interventions",
            "end",
            "same trip by the library alone",
        ),
        [
            (
                str(row["seed"]),
                str(row["ticks"]),
                str(row["unlike_risks"]),
                str(row["unlike_demands"]),
                str(row["interventions"]),
                f"{row['end']} after {row['seconds']:g} s",
                "yes" if row["same_trip"] else "no",
            )
            for row in rows
            if "failed" not in row
        ],
    )


if __name__ == "__main__":
    main()
