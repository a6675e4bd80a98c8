"""The executable `bag_player_node`: plays a recording, by the clock or in step with a monitor."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from forewarn_msgs.msg import Arrivals, RiskArray
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import String

from forewarn.errors import ForewarnError, InputError
from forewarn.recordings.interface import Recording, Sample
from forewarn.recordings.registry import open_recording
from forewarn.signals.clock import NANOSECONDS
from forewarn.signals.clock_kinds import Grid
from forewarn_ros.clock import SimulatedTime
from forewarn_ros.events import owner
from forewarn_ros.messages import from_time, to_time
from forewarn_ros.overrides import tell_ignored, tell_unaddressed
from forewarn_ros.process import WAKE, Interrupt, middleware
from monitor_node.inputs import ARRIVALS
from monitor_node.lockstep import (
    Announced,
    LockStep,
    Pace,
    Rationale,
    Step,
    prompt_acknowledgements,
    timeline,
)
from monitor_node.log_throttle import Reminder
from monitor_node.message_types import TypeNotInstalledError, message_class
from monitor_node.outputs import KEPT_EVENTS
from monitor_node.parameters import PLAYER_PARAMETERS, declare
from monitor_node.qos import Quality, missing, offered, profile, recorded_qualities

RESEND = 0.5
CLOCK_PERIOD = 0.01
LOCK_STEP_DEPTH = 1000
CLOCK = "/clock"
DISCOVERY = 0.5
"""Seconds in which another node that publishes /clock would have been discovered."""
PATIENCE = 1.0
"""Seconds after which the player reports that the monitor is not there."""


class PlayError(InputError):
    """Playing cannot begin or go on."""


class BagPlayer(SimulatedTime):
    """Plays one recording; see `parameters.PLAYER_PARAMETERS`."""

    def __init__(self, interrupt: Interrupt | None = None, **arguments: Any) -> None:
        super().__init__("bag_player", **arguments)
        self._interrupt = interrupt or Interrupt()
        self.played = 0
        self._spinner = SingleThreadedExecutor(context=self.context)
        self._spinner.add_node(self)
        declare(self, PLAYER_PARAMETERS)
        tell_unaddressed(self)
        tell_ignored(self)
        self._monitor = self._value("monitor")
        self._clock_publisher: Any = None
        if self._value("clock") or self._value("lockstep"):
            self._clock_publisher = self.create_publisher(ClockMessage, CLOCK, 10)
        self._arrivals_publisher = self.create_publisher(
            Arrivals, f"{self._monitor}/{ARRIVALS}", LOCK_STEP_DEPTH
        )
        self._outlets: dict[str, Any] = {}
        self._qualities: dict[str, Quality] = {}
        self._announced = Announced()
        self._decided_ns = -1
        kept = QoSProfile(depth=KEPT_EVENTS, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.create_subscription(String, f"{self._monitor}/debug/events", self._on_event, kept)
        self.create_subscription(
            RiskArray, f"{self._monitor}/output/risk", self._on_risk, LOCK_STEP_DEPTH
        )

    def _value(self, name: str) -> Any:
        return self.get_parameter(name).value

    def play(self) -> None:
        """Play the recording as the parameters say.

        Raises KeyboardInterrupt if a signal asked it to stop.
        """
        path = self._value("bag")
        if not path:
            raise PlayError("is not set", key="parameter bag", accepted="a recording")
        with self._interrupt.raising():  # to find one's way in a large one takes a while
            recording = open_recording(Path(path))
        with recording:
            for warning in recording.warnings:
                self.get_logger().warning(warning)
            self._advertise(recording)
            if self._value("lockstep"):
                self._play_in_lock_step(recording)
            else:
                self._play_by_the_clock(recording)

    # What is published

    def _advertise(self, recording: Recording) -> None:
        if not recording.count or not recording.topics:
            raise PlayError("holds no messages that can be published", file=recording.path)
        wanted = list(filter(None, self._value("topics")))
        recorded = recorded_qualities(recording)
        left_out = []
        for topic in wanted or recording.topics:
            if topic not in recording.topics:
                raise PlayError(
                    f"the topic {topic} is not in the recording",
                    file=recording.path,
                    accepted=", ".join(recording.topics),
                )
            if topic == CLOCK and self._value("lockstep"):
                self.get_logger().info("the recorded /clock is left out: lock-step sets the time")
                continue
            info = recording.topics[topic]
            try:
                if info.message_type is None:
                    raise PlayError(f"{info.error}", key=f"topic {topic}")
                kind = message_class(info.msgtype, topic=topic)
            except TypeNotInstalledError:
                if wanted:
                    raise
                left_out.append(f"{topic} ({info.msgtype})")
                continue
            except ForewarnError as error:
                if wanted:
                    raise
                self.get_logger().error(f"left out: {error}")
                continue
            quality = recorded.get(topic, Quality())
            if self._value("lockstep"):  # acknowledgement is what lock-step rests on
                quality = quality._replace(reliable=True)
            publisher = self.create_publisher(kind, topic, profile(quality, LOCK_STEP_DEPTH))
            self._outlets[topic] = publisher
            self._qualities[topic] = quality
        if left_out:
            self.get_logger().error(
                f"left out: {', '.join(left_out)}: ROS publishes only types whose packages are "
                "installed (install them or source their workspace; `forewarn replay` and "
                "`forewarn learn` need no packages)"
            )
        if not self._outlets:
            raise PlayError("none of its topics can be published", file=recording.path)

    def _publish(self, sample: Sample) -> Any:
        publisher = self._outlets[sample.topic]
        publisher.publish(bytes(sample.data))  # type: ignore[arg-type]
        self.played += 1
        return publisher

    def _publish_clock(self, time_ns: int) -> None:
        self._clock_publisher.publish(ClockMessage(clock=to_time(time_ns)))

    # What the monitor says

    def _on_event(self, message: Any) -> None:
        self._announced.hear(message.data)

    def _on_risk(self, message: Any) -> None:
        self._decided_ns = from_time(message.header.stamp)

    def _await(
        self,
        condition: Callable[[], bool],
        complaint: Callable[[], str],
        again: Callable[[], None] | None = None,
    ) -> None:
        """Serve callbacks until `condition` holds, doing `again` now and then.

        Raises PlayError with the complaint, once the time is up.
        """
        end = time.monotonic() + self._value("timeout")
        resend = time.monotonic() + RESEND
        while not condition():
            now = time.monotonic()
            if now > end:
                raise PlayError(complaint())
            if now > resend:
                resend = now + RESEND
                if again is not None:
                    again()
            self._serve(0.1)

    def _meet_monitor(self, *, lockstep: bool) -> Rationale:
        """Wait until the monitor is active and listens to all that it wants of the recording."""
        reminder = Reminder(self.get_logger().info, PATIENCE)
        while self._announced.grounds is None:
            reminder.take(
                f"waiting for {self._monitor} ... (it has to be active; the parameter monitor "
                "names another one)",
                time.monotonic(),
            )
            self._serve(0.1)
        self._await(
            lambda: not self._unmatched(lockstep), lambda: "; ".join(self._unmatched(lockstep))
        )
        return self._announced.grounds

    def _unmatched(self, lockstep: bool) -> list[str]:
        """Return which of the monitor's inputs are not yet connected, and why."""
        assert self._announced.grounds is not None
        found = []
        for topic, publisher in self._outlets.items():
            name = publisher.topic_name
            if name not in self._announced.grounds.inputs:
                continue
            offer = self._qualities[topic]
            if not any(request == offer for request in self._requests(name)):
                why = {missing(offer, request) for request in self._requests(name)} - {""}
                found.append(
                    f"{name}: {self._monitor} does not ask for {offer} {why or ''}".rstrip()
                )
            elif not publisher.get_subscription_count():
                found.append(f"{name}: {self._monitor} is not connected")
        if lockstep and not self._requests("/clock"):
            found.append(
                f"{self._monitor} does not listen to /clock "
                "(accepted: a monitor with use_sim_time:=true)"
            )
        elif (
            self._clock_publisher is not None
            and self._requests("/clock")
            and not self._clock_publisher.get_subscription_count()
        ):
            found.append(f"/clock: {self._monitor} is not connected")
        if lockstep and not self._arrivals_publisher.get_subscription_count():
            found.append(f"{self._arrivals_publisher.topic_name}: {self._monitor} is not connected")
        return found

    def _requests(self, name: str) -> list[Quality]:
        infos = self.get_subscriptions_info_by_topic(name)
        return [offered(info.qos_profile) for info in infos if owner(info) == self._monitor]

    # Playing

    def _span(self, recording: Recording) -> tuple[int, int]:
        start_ns = recording.start_ns + round(self._value("start_offset") * NANOSECONDS)
        if start_ns > recording.end_ns:
            raise PlayError(
                f"{self._value('start_offset'):g} s",
                key="parameter start_offset",
                accepted=f"less than the recording's {recording.duration:.1f} s",
            )
        return start_ns, recording.end_ns

    def _samples(self, recording: Recording, start_ns: int) -> Iterator[Sample]:
        for sample in recording.read(self._outlets):
            self._interrupt.check()
            if sample.time_ns >= start_ns:
                yield sample

    def _play_in_lock_step(self, recording: Recording) -> None:
        grounds = self._meet_monitor(lockstep=True)
        start_ns, end_ns = self._span(recording)
        if not isinstance(grounds.grid, Grid):
            raise PlayError(
                f"{self._monitor} counts steps, and lock-step follows ticks",
                key="parameter lockstep",
                accepted="false: play in real time; `forewarn replay` gives what the steps say",
            )
        plan = LockStep(grounds.grid, grounds.settle_ns, start_ns, end_ns)
        while True:
            self._announced.forget()
            pace = Pace(self._value("rate"))  # of 0: as fast as the monitor
            for step in plan.steps(self._samples(recording, start_ns)):
                self._deliver(step.samples)
                if step.tick is not None:
                    pace.wait((step.tick - plan.first) / plan.grid.rate, self._sleep)
                self._tell(step, plan)
            if not self._value("loop"):
                return

    def _deliver(self, samples: Iterable[Sample]) -> None:
        """Publish samples, tell when they arrived, and have all of it acknowledged."""
        arrivals, publishers = Arrivals(), set()
        for sample in samples:
            publisher = self._publish(sample)
            publishers.add(publisher)
            arrivals.topics.append(publisher.topic_name)
            arrivals.times_ns.append(sample.time_ns)
        if publishers:
            self._arrivals_publisher.publish(arrivals)
            self._acknowledged({*publishers, self._arrivals_publisher})

    def _tell(self, step: Step, plan: LockStep) -> None:
        """Set the clock, again and again, for it is best effort, until the monitor answers."""
        self._publish_clock(step.clock_ns)
        self._await(
            lambda: self._answered(step, plan),
            lambda: self._silence(step, plan),
            lambda: self._publish_clock(step.clock_ns),
        )

    def _answered(self, step: Step, plan: LockStep) -> bool:
        if step.tick is not None:
            return self._decided_ns == plan.grid.time_ns(step.tick)
        if step.clock_ns > plan.grid.time_ns(plan.first):
            return self._announced.seen_ns == step.clock_ns
        return self._announced.started == plan.first

    def _silence(self, step: Step, plan: LockStep) -> str:
        if step.tick is not None:
            return f"{self._monitor} gives no verdict for tick {step.tick}"
        return (
            f"{self._monitor} does not start again at tick {plan.first}, though /clock says so "
            "(accepted: a monitor that has just been activated, or one whose clock lies later)"
        )

    def _acknowledged(self, publishers: set[Any]) -> None:
        timeout = self._value("timeout")
        end = time.monotonic() + timeout
        for publisher in publishers:
            while not publisher.wait_for_all_acked(Duration(seconds=min(WAKE, timeout))):
                self._interrupt.check()
                if time.monotonic() > end:
                    raise PlayError(
                        f"{publisher.topic_name}: messages are not acknowledged in {timeout:g} s"
                    )

    def _play_by_the_clock(self, recording: Recording) -> None:
        rate = self._value("rate") or 1.0
        if self._value("wait_for_monitor"):
            self._meet_monitor(lockstep=False)
        self._discover_clocks()
        start_ns, end_ns = self._span(recording)
        while True:
            pace = Pace(rate)
            step_ns = round(CLOCK_PERIOD * rate * NANOSECONDS) if self._owns_clock() else 0
            samples = self._samples(recording, start_ns)
            for time_ns, sample in timeline(samples, start_ns, end_ns, step_ns):
                pace.wait((time_ns - start_ns) / NANOSECONDS, self._serve)
                if sample is not None:
                    self._publish(sample)
                elif self._owns_clock():
                    self._publish_clock(time_ns)
            if not self._value("loop"):
                break
        self._acknowledged(set(self._outlets.values()))

    def destroy_node(self) -> None:
        """Destroy the node, and the executor that serves it."""
        self._spinner.shutdown()  # one that is left to the collector may complain on the screen
        super().destroy_node()

    def _discover_clocks(self) -> None:
        end = time.monotonic() + DISCOVERY
        while self._owns_clock() and (left := end - time.monotonic()) > 0:
            self._serve(left)

    def _owns_clock(self) -> bool:
        """Tell whether /clock is to come from here; not any more once it comes from elsewhere."""
        if self._clock_publisher is None:
            return False
        source = "another node" if self.count_publishers(CLOCK) > 1 else ""
        if CLOCK in self._outlets:
            source = "the recording"
        if not source:
            return True
        self.get_logger().info(f"/clock comes from {source}")
        self.destroy_publisher(self._clock_publisher)
        self._clock_publisher = None
        return False

    def _sleep(self, seconds: float) -> None:
        self._interrupt.check()
        time.sleep(seconds)

    def _serve(self, seconds: float) -> None:
        self._interrupt.check()
        self._spinner.spin_once(timeout_sec=seconds)


def main(args: Sequence[str] | None = None, interrupt: Interrupt | None = None) -> None:
    """Play, and say in one line what went wrong if anything did."""
    code = 0
    with interrupt or Interrupt() as stop, ExitStack() as stack:
        with prompt_acknowledgements():
            stack.enter_context(middleware(args))
            with stop.making():
                player = BagPlayer(stop)
        stack.callback(player.destroy_node)
        try:
            player.play()
            player.get_logger().info(f"played {player.played} messages")
        except ForewarnError as error:
            player.get_logger().error(" | ".join(str(error).splitlines()))
            code = 1
    sys.exit(130 if stop.signalled else code)
