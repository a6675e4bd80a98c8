"""The lifecycle node: a thin shell around `forewarn.monitoring`."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rclpy.clock import JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.subscription import Subscription

from forewarn.config.file import MonitorSpec, load_spec
from forewarn.errors import ConfigError, ModelError, located, plural
from forewarn.files.chain import read_key
from forewarn.messages.definitions import MessageType, installed_message_type
from forewarn.models.counts import CountModel
from forewarn.models.file import check_replaceable
from forewarn.monitoring.alerts import Alerts
from forewarn.monitoring.bridging import divide
from forewarn.monitoring.build import compile_for
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.memory_bound import growing_parts, memory_bound
from forewarn.monitoring.model_fit import check_model
from forewarn.monitoring.record import SPEC_NAME, Names, RecordWriter
from forewarn.monitoring.run_anomaly import need_live_actions, open_detector
from forewarn.monitoring.session_events import PolicyChange
from forewarn.monitoring.step import Monitor
from forewarn.signals.clock import NANOSECONDS
from forewarn.signals.clock_kinds import by_clock
from forewarn.signals.sources import EXTERNAL_TYPE
from forewarn.states.inputs import open_feed, packed_rules, plan_readers
from forewarn_ros.clock import is_simulated
from forewarn_ros.events import owner, qos_mismatches
from forewarn_ros.lifecycle import ReportingNode, reported
from forewarn_ros.overrides import tell_ignored, tell_unaddressed
from forewarn_ros.status import Status
from monitor_node import parameters
from monitor_node.actuators.loading import Actuators, check_messages, named
from monitor_node.background import BackgroundBounds, BackgroundLearning, open_watch
from monitor_node.bond import Bond, check_bond
from monitor_node.diagnosis import Lasting, mode_status, node_status, statuses
from monitor_node.inputs import Inputs
from monitor_node.journal import Journal, carried_over
from monitor_node.log_throttle import Reminders, Throttle
from monitor_node.model_subprocess import MEGABYTE, load_in_subprocess
from monitor_node.operator_log import OperatorLog
from monitor_node.outputs import Outputs
from monitor_node.pacing import Pacer
from monitor_node.policies import Policies
from monitor_node.qos import twins
from monitor_node.recording import free_name
from monitor_node.runtime import Runtime
from monitor_node.security import announce_security
from monitor_node.services import Services
from monitor_node.ticking import Ticker

if TYPE_CHECKING:
    from monitor_node.black_box import BlackBoxRecorder
    from monitor_node.guards.goals import Goals


class MonitorNode(ReportingNode):
    """The monitor; parameters, topics and services are described in docs/design/node.md."""

    def __init__(self, **arguments: Any) -> None:
        self._hidden: frozenset[Subscription] = frozenset()
        super().__init__("monitor", **arguments)
        parameters.declare(self, parameters.NODE_PARAMETERS)
        tell_unaddressed(self)
        tell_ignored(self, lambda name: not name.startswith(parameters.CONFIGURED))
        self.watch: LiveSession | None = None
        self.runtime: Runtime | None = None
        self._types: dict[str, MessageType] = {}
        self._model: CountModel | None = None
        self._spec_text = ""
        self._rules: Mapping[str, bytes] = {}
        self._outputs: Outputs | None = None
        self._goals: Goals | None = None
        self._actuators: Actuators | None = None
        self._journal: Journal | None = None
        self._alerts = Alerts()
        self._bond: Bond | None = None
        self._bounds: BackgroundBounds | None = None
        self._commands: Services | None = None
        self._ticker: Ticker | None = None
        self._throttle = Throttle(self.get_logger().warning)
        self._modes = ("observe", "observe")
        self._lasting = Lasting()
        self._security = announce_security(self)
        self._report_every(self._value("diagnostics_period"))
        # rclpy keeps no reference to a jump callback: without ours it would be collected.
        self._jumps = self.get_clock().create_jump_callback(
            JumpThreshold(
                min_forward=Duration(nanoseconds=1),
                min_backward=Duration(nanoseconds=-1),
                on_clock_change=True,
            ),
            post_callback=self._clock_moved,
        )
        self._policies = Policies(self, self._policy_changed)

    @property
    def subscriptions(self) -> Iterator[Subscription]:
        """Subscriptions that executors wait for: the inputs are taken when a tick is due."""
        return (
            subscription
            for subscription in super().subscriptions
            if subscription not in self._hidden
        )

    # The life cycle

    @reported
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load, check, build; nothing is published yet."""
        config = self._value("config")
        if not config:
            raise ConfigError("is not set", key="parameter config", accepted="a monitor file")
        whole = self._in_mode(load_spec(config, self.get_namespace()))
        self._model = self._load_model(whole.model_path)
        compiled = compile_for(whole, self._model)
        spec = divide(whole).node
        if spec is not whole:  # a bridge computes the rest
            compiled = compile_for(spec, self._model)
        self._spec_text = Path(config).read_text(encoding="utf-8")
        readers, self._rules = plan_readers(spec), packed_rules(spec)
        external = Names.of(self.get_fully_qualified_name()).external
        self._types = {
            topic: installed_message_type(kind) for topic, kind in self._topics(compiled).items()
        }
        # Fields are checked before the model.
        open_feed(spec, compiled.abstraction, self._types, readers)
        with located(ModelError, file=self._value("model") or spec.model_path):
            if self._model is not None:
                check_model(compiled, self._model)
            detector = open_detector(compiled, self._model)
            need_live_actions(compiled, detector)
            # A stepped clock has to give the same at every run: then bounds come first.
            later = self._value("background_bounds") and not self._value("use_sim_time")
            sources = (compiled, self._model, self._types, external)
            watch, self._bounds = open_watch(*sources, background=later, detector=detector)
        check_messages(spec.actuators)
        if self._value("bond"):
            check_bond()
        self._policies.declare(watch)
        if self._bounds is not None:
            self._bounds.wait_if_compared()  # as parameters may ask for by now
        extra = () if spec.black_box is None else spec.black_box.topics
        for topic in (*self._types, *extra):
            parameters.declare(self, parameters.quality_parameters(topic))
        tell_ignored(self, lambda name: name.startswith(parameters.CONFIGURED))
        topics = {"anomalies": detector is not None, "guards": bool(spec.guards)}
        self._outputs = Outputs(self, compiled.abstraction.clock, spec.mode, **topics)
        if spec.guards:
            from monitor_node.guards.goals import Goals  # most monitors guard no action

            self._goals = Goals(self, spec, self._outputs, self._now_ns, self._warn)
        if spec.mode == "act":  # an observer has nothing that it could act with
            self._actuators = Actuators(self, spec.actuators, self._warn)
        self.watch = watch
        self._commands = Services(self)
        self._notes = (*watch.monitor.notes, *watch.feed.notes)
        for note in self._notes:
            self.get_logger().warning(note)
        for remark in watch.monitor.remarks:
            self.get_logger().info(remark)
        states = len(self._model.states) if self._model else 0
        self.get_logger().info(
            f"configured: {config}, {plural(len(watch.names), 'property', 'properties')}, "
            f"{plural(len(self._types), 'topic')}, "
            f"{by_clock(spec.rate)}, mode {spec.mode}, "
            + (f"model of {states} states" if states else "no model: verdicts without risk")
        )
        return super().on_configure(state)

    @reported
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe and start the ticks."""
        assert self.watch is not None and self._outputs is not None
        self._journal = self._open_journal(self.watch.spec)
        self._lasting = Lasting()
        self._reminders = Reminders(self.get_logger().warning, self._notes)
        if learned := self._value("learn_to"):
            check_replaceable(Path(learned))
        record = self._open_record()
        pacer = Pacer(
            self.watch.clock,
            self.watch.settle_ns,
            round(self._value("max_clock_step") * NANOSECONDS),
            self.watch.feed.moments,
        )
        pacer.simulated = is_simulated(self)
        guarded = {guard.topic for guard in self.watch.spec.guards.values()}
        topics = {t: mtype.name for t, mtype in self._types.items() if t not in guarded}
        inputs = Inputs(
            self,
            topics,
            self._value("queue_depth"),
            functools.partial(parameters.fixed_quality, self),
            whole=[s.topic for s in self.watch.spec.signals.values() if s.topic and s.reads_all],
        )
        detector = self.watch.monitor.detector
        longest = None if detector is None else detector.longest_normal
        self.runtime = Runtime(
            self.watch,
            pacer,
            inputs,
            self._outputs,
            record,
            self._warn,
            OperatorLog(self.get_logger(), longest),
            self._actuators,
            self._journal,
        )
        self.runtime.alerts = self._alerts
        for dropped in carried_over(self._alerts, self._journal, self.watch.names):
            self._warn(dropped)
        self.runtime.bounds, self.runtime.goals = self._bounds, self._goals
        self.runtime.take_bounds()
        if self._model is not None:
            self.runtime.recording.begin(self._model, self.watch.monitor)
        self.runtime.learning = self._learning(self.watch, self.runtime)
        if self.watch.spec.learning.regrow is not None:
            from monitor_node.regrowing import Grown, Regrowing  # it needs the wing `trees`

            paths = Grown.beside(Path(self._value("config")))
            self.runtime.regrowing = Regrowing(
                self.watch, self._spec_text, paths, self.get_logger().info, self._warn
            )
        self.runtime.black_box = self._open_black_box(self.watch, inputs)
        monitor = self.watch.monitor
        parts = growing_parts(monitor.spec, monitor.abstraction, monitor)
        self.get_logger().info(f"memory: {memory_bound(parts)}")
        inputs.open()
        self._hide()
        self._ticker = Ticker(self, self.runtime, self._warn, self._hide)
        self._bond = Bond(self, lambda: not self._failure()) if self._value("bond") else None
        result = super().on_activate(state)
        self.runtime.announce(self._now_ns())
        if self._goals is not None:
            self._goals.active = True
        self._ticker.pump()
        return result

    def _stop(self, reason: str) -> None:
        if self._goals is not None:
            self._goals.stop(reason)
        if self._bond is not None:
            self._bond.close()
            self._bond = None
        if self._ticker is not None:
            self._ticker.close()
            self._ticker = None
        if self.runtime is not None:
            self.runtime.close(self._now_ns(), f"the monitor {reason}")
            self.runtime = None
        self._hidden = frozenset()

    def _clear(self) -> None:
        if self._commands is not None:
            self._commands.close()
        if owing := self._left_in_force(over=True):
            self._warn(
                f"what was asked of {' and '.join(owing)} may stay in force: its end was not "
                "confirmed when the monitor was cleaned up; look at the robot"
            )
        if self._goals is not None:
            self._goals.close()
        if self._outputs is not None:
            self._outputs.close()
        self._policies.clear()
        self.watch = self._model = self._outputs = self._commands = self._actuators = None
        self._bounds = self._goals = None
        self._types = {}

    def _left_in_force(self, *, over: bool = False) -> list[str]:
        """Return which actuators have left something in force, at the end if they are `over`.

        After an orderly end the journal records it, too: confirmed requests are no longer due.
        """
        actuators = self._actuators
        if actuators is None:
            return []
        taken_back = self.runtime is None and actuators.decided
        if over:
            actuators.close()
        owing = actuators.owing(None)
        if taken_back and self._journal is not None:
            self._journal.settle(owing)
        return owing

    def _failure(self) -> str:
        """Say why nothing is decided although the node is active; empty if ticks are evaluated."""
        if self._ticker is None or self.runtime is None:
            return ""
        return self._ticker.failure or self.runtime.overdue(self._now_ns())

    def finish(self) -> None:
        """Close all files: the process ends. What was asked of a robot is not taken back."""
        if owing := self._left_in_force():
            self._warn(
                f"what was asked of {' and '.join(owing)} stays in force: deactivate the node "
                "first to take it back; with the parameter journal its next life does"
            )
        if self._goals is not None and self._goals.running:
            self._warn(f"{self._goals.running} goals that passed are carried out unwatched")
        if self.runtime is not None:
            self.runtime.finish_files()

    # Configuration

    def _in_mode(self, spec: MonitorSpec) -> MonitorSpec:
        """Return a monitor file that acts only if the file and the parameter both say so."""
        mode = self._value("mode")
        if refused := parameters.refuse("mode", mode):
            raise ConfigError(f"parameter {refused}")
        self._modes = (spec.mode, mode)
        if warning := mode_status(*self._modes).message.partition(": ")[2]:
            self.get_logger().warning(warning)
        return spec if mode == "act" else spec.model_copy(update={"mode": "observe"})

    def _load_model(self, named: Path | None) -> CountModel | None:
        given = self._value("model")
        path = Path(given) if given else named
        if path is None:
            return None
        return load_in_subprocess(path, self._value("model_limit") * MEGABYTE)

    def _topics(self, compiled: Any) -> dict[str, str]:
        topics = dict(compiled.spec.topics)
        if any(not source.topic for source in compiled.abstraction.sources):
            topics[Names.of(self.get_fully_qualified_name()).external] = EXTERNAL_TYPE
        return topics

    def _learning(self, watch: LiveSession, runtime: Runtime) -> BackgroundLearning | None:
        if self._model is None or not watch.spec.learning.online:
            return None

        def ready(model: CountModel, monitor: Monitor) -> Callable[[], None]:
            packed = runtime.recording.pack(model, monitor)

            def use() -> None:
                self.model_loaded(model)
                runtime.use_model(model, monitor, packed)

            return use

        path = self._value("learn_to")
        return BackgroundLearning(
            watch, self._model, Path(path) if path else None, ready, self._warn
        )

    def model_loaded(self, model: CountModel) -> None:
        """Take note of a model that the service has put into force."""
        self._model = model

    def _open_journal(self, spec: MonitorSpec) -> Journal | None:
        path = self._value("journal")
        if not path:
            return None
        actuators = tuple(named(spec.actuators)) if spec.mode == "act" else ()
        before = "" if self._journal is None else self._journal.lost
        journal = Journal(Path(path), self._value("journal_max_age"), actuators)
        journal.lost = journal.lost or before  # an activation may have failed meanwhile
        if journal.to_look_at:
            self.get_logger().error(journal.to_look_at)
        return journal

    def _open_record(self) -> RecordWriter | None:
        path = self._value("record")
        if not path:
            return None
        target = free_name(Path(path))
        names = Names.of(self.get_fully_qualified_name())
        detector = None if self.watch is None else self.watch.monitor.detector
        key = read_key(self._value("record_key") or None)
        types, rules = self._types, self._rules
        return RecordWriter(target, names, self._spec_text, types, detector, rules, key)

    def _open_black_box(self, watch: LiveSession, inputs: Inputs) -> BlackBoxRecorder | None:
        if watch.spec.black_box is None:
            return None
        from monitor_node.black_box import open_keeper  # it needs the wing `black_box`

        fixed = functools.partial(parameters.fixed_quality, self)
        extra = functools.partial(Inputs, self, depth=self._value("queue_depth"), fixed=fixed)
        files = {SPEC_NAME: self._spec_text.encode(), **self._rules}
        names = Names.of(self.get_fully_qualified_name())
        return open_keeper(watch, names, inputs, extra, files, self.get_logger())

    def _policy_changed(self, name: str, values: Mapping[str, object]) -> None:
        text = ", ".join(f"{key} is {value}" for key, value in values.items())
        self.get_logger().info(f"properties.{name}: {text}")
        if self.runtime is not None:
            self.runtime.note(PolicyChange(name, dict(values)))

    def _clock_moved(self, jump: TimeJump) -> None:
        if self._ticker is not None:
            self._ticker.clock_moved()

    def _hide(self) -> None:
        if self.runtime is not None:
            self._hidden = self.runtime.subscriptions

    # Reports

    def _warn(self, line: str) -> None:
        """Log a warning, the same one at most every five seconds."""
        self._throttle.take(line, time.monotonic())

    def _statuses(self) -> list[Status]:
        """Return what there is to report, once the publishers' QoS has been followed."""
        runtime = self.runtime
        failure = self._failure()
        same_name = twins(self)
        if same_name:
            others = "another node is" if same_name == 1 else f"{same_name} other nodes are"
            self._warn(f"{others} called {self.get_fully_qualified_name()}, too")
        for mismatch in qos_mismatches(self, self.publishers):
            self._warn(mismatch)
        found = [node_status(self.state, self.problem or failure, same_name, self.next_step)]
        found += [self._security, mode_status(*self._modes)]
        if runtime is not None:
            found_out = runtime.inputs.match()
            if runtime.black_box is not None:
                found_out += runtime.black_box.extra.match()
                found.append(runtime.black_box.status())
            for change in found_out:
                self.get_logger().info(change)
            self._hide()
            for topic_input in runtime.inputs.inputs:
                for problem in topic_input.problems():
                    self._warn(f"{topic_input.name}: {problem}")
            clocks = self._clocks()
            silent = [i.name for i in runtime.inputs.inputs if not (i.publishers or i.unusable)]
            notes = self.watch.feed.notes if self.watch is not None else ()
            started = runtime.pacer.started
            self._reminders.take(time.monotonic(), silent, clocks, notes, started=started)
            shared = frozenset(self._value("shared_inputs"))
            found += statuses(runtime, self._lasting, shared, clocks, failure)
        if self._actuators is not None:
            found += self._actuators.statuses(failure)
        if self._goals is not None:
            found += self._goals.statuses()
        if self._journal is not None:
            found.append(self._journal.status())
        return found

    def _clocks(self) -> tuple[str, ...] | None:
        """Return who publishes the simulated time; None by the system's clock."""
        if not is_simulated(self):
            return None
        return tuple(map(owner, self.get_publishers_info_by_topic("/clock")))
