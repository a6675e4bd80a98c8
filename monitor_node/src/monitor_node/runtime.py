"""What runs while the node is active: take messages, evaluate the ticks that are due, publish."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from operator import itemgetter
from time import perf_counter_ns
from typing import TYPE_CHECKING

from rclpy.subscription import Subscription

from forewarn.models.counts import CountModel
from forewarn.monitoring.alerts import Alerts
from forewarn.monitoring.carried import PackedTables
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.intervention import Intervention, withdraw
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.record import Packed, RecordWriter
from forewarn.monitoring.session_events import (
    Activate,
    ClockHeard,
    Event,
    ModelChange,
    Recall,
    Start,
)
from forewarn.monitoring.step import Monitor
from forewarn.signals.clock import NANOSECONDS
from monitor_node import conversions
from monitor_node.actuators.loading import Actuators
from monitor_node.background import BackgroundBounds, BackgroundLearning
from monitor_node.composing import Composed, Composer, seen_at
from monitor_node.inputs import Inputs
from monitor_node.journal import Journal, take_up
from monitor_node.operator_log import OperatorLog
from monitor_node.outputs import Outputs, deadline, lease
from monitor_node.pacing import Pacer, Restart, Timing
from monitor_node.recording import Recording

if TYPE_CHECKING:
    from monitor_node.black_box import BlackBoxRecorder
    from monitor_node.guards.goals import Goals
    from monitor_node.regrowing import Regrowing


class Runtime:
    """One activation of the monitor."""

    def __init__(
        self,
        watch: LiveSession,
        pacer: Pacer,
        inputs: Inputs,
        outputs: Outputs,
        record: RecordWriter | None,
        warn: Callable[[str], None],
        operator_log: OperatorLog,
        actuators: Actuators | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.watch = watch
        self.pacer = pacer
        self.inputs = inputs
        self.outputs = outputs
        self.timing = Timing()
        self._looked, self._advanced_ns = time.monotonic(), time.monotonic_ns()
        self._begun_ns = self._deaf_until_ns = 0
        self.latest: TickResult | None = None
        self.failures: Counter[str] = Counter()
        self.reasons: dict[str, str] = {}
        self.failed: dict[str, int] = {}
        self.recording = Recording(record, warn)
        self._composer = Composer(watch, inputs, outputs.signature)
        self._composed: Composed | None = None
        self._unsaid: Composed | None = None
        self._warn, self._operator_log = warn, operator_log
        self._actuators = actuators
        self.journal = journal
        if journal is not None and journal.left is not None and actuators is not None:
            actuators.resume(journal.left.owing)
        self.learning: BackgroundLearning | None = None
        self.regrowing: Regrowing | None = None
        self.goals: Goals | None = None
        self.bounds: BackgroundBounds | None = None
        self.black_box: BlackBoxRecorder | None = None
        self.alerts = Alerts()

    def announce(self, time_ns: int) -> None:
        """Tell a player on which grid ticks lie, and what is listened to."""
        if self.alerts.all or self.alerts.forgotten:
            self.publish_alerts(time_ns)
        self.outputs.events.publish(
            conversions.event(
                Activate(
                    self.pacer.clock.remembered,
                    self.pacer.settle_ns,
                    {topic_input.topic: topic_input.name for topic_input in self.inputs.inputs},
                )
            )
        )

    def prepare(self, now_ns: int, system_ns: int) -> None:
        """Take what waits and evaluate the next tick, shortly before it is due.

        If nothing more arrives until then, only the publishing is left to do.
        """
        self._advance(now_ns, system_ns)
        self._accept()
        self._composed = self._composer.compose(self.pacer.next)

    def pump(self, now_ns: int, system_ns: int) -> None:
        """Evaluate the ticks that are due at `now_ns`; `system_ns` is the system's clock."""
        self._advance(now_ns, system_ns)
        regular = self.pacer.clock.regular
        if not regular:  # what is due, only arrivals tell
            self._accept()
            self.outputs.alive()
            if not self.pacer.due():  # a goal that passes is a step
                arrival_ns = self.pacer.arrival_ns(system_ns, system_ns)
                self._goal(self.pacer.next, arrival_ns or now_ns)
        due = self.pacer.due()
        if due:
            self._evaluate(due, now_ns)
        self._looked = time.monotonic()
        if self.black_box is not None:
            self.black_box.advance(now_ns)

    def _evaluate(self, due: range, now_ns: int) -> None:
        regular = self.pacer.clock.regular
        due_ns = self._due_ns(due[0])
        if regular and self._accept() <= due_ns:
            self._composed = None
        self._begun_ns = perf_counter_ns()
        left_out = 0
        for tick in due:
            if self._leaves_out(tick, due[-1], lagging=left_out > 0):
                left_out += 1
                continue
            if regular:
                self._goal(tick, self._due_ns(tick))
            self._tick(tick)
        self.pacer.evaluated(due[-1])  # or left out, for good
        done = len(due) - left_out
        spent_ns = (perf_counter_ns() - self._begun_ns) // max(done, 1)
        overruns = max(done - 1, 0) if regular else 0
        self.timing.note(done, overruns, now_ns - due_ns, spent_ns, left_out)

    def _leaves_out(self, tick: int, newest: int, *, lagging: bool) -> bool:
        """Tell whether nothing is to be known of a tick that is due.

        What came while the process did not get to run comes to light when it does, as if it came
        then. A monitor that lags by more than the time after which it loses its liveliness goes on
        with the newest tick. Simulated time may move on by many ticks at once: of these those are
        left out for which there is no time.
        """
        if not self.pacer.clock.regular or self._unsaid is not None:  # it was decided already
            return False
        if self._due_ns(tick) <= self._deaf_until_ns:
            return True
        if tick == newest or lagging:
            return tick != newest
        waited_ns = perf_counter_ns() - self._begun_ns
        if not self.pacer.simulated:
            waited_ns += self.pacer.overdue_ns(tick)
        return waited_ns > lease(self.pacer.clock) * NANOSECONDS

    def _fresh(self, tick: int) -> bool:
        """Tell whether a tick is new enough to take back what was asked for."""
        if not self.pacer.clock.regular:
            return True
        waited_ns = self.pacer.overdue_ns(tick) + perf_counter_ns() - self._begun_ns
        return waited_ns <= deadline(self.pacer.clock) * NANOSECONDS

    def overdue(self, now_ns: int) -> str:
        """Say that ticks do not come any more, at `now_ns` of the node's clock; empty if they do.

        The limit is the one after which the monitor loses its liveliness.
        """
        waited = time.monotonic() - self._looked
        if self.pacer.simulated:
            due_ns = self.pacer.due_ns(self.pacer.next) if self.pacer.clock.regular else None
            waited = 0.0 if due_ns is None else (now_ns - due_ns) / NANOSECONDS
        if not self.pacer.started or waited <= lease(self.pacer.clock):
            return ""
        return f"no tick was looked for in the last {waited:.1f} s"

    def _goal(self, tick: int, time_ns: int) -> None:
        """Have the first goal that waits judged for the next tick; one that passes arrives then."""
        if self.goals is None or not self.goals.waiting:
            return
        decided, topic, payload = self.goals.decide(self.watch, tick)
        self.outputs.events.publish(conversions.event(decided))
        self.recording.event(decided, time_ns)
        if decided.passes:
            self._composed = None
            if self.pacer.clock.regular:
                time_ns -= self.pacer.settle_ns  # it counts from the tick, and not from then on
            self.pacer.taken(time_ns)
            self.watch.accept(topic, time_ns, payload)
            self._record([(time_ns, topic, payload)])

    def _due_ns(self, tick: int) -> int:
        """Return when a tick that is due was due."""
        due_ns = self.pacer.due_ns(tick)
        assert due_ns is not None
        return due_ns

    def _advance(self, now_ns: int, system_ns: int) -> None:
        before_ns, self._advanced_ns = self._advanced_ns, time.monotonic_ns()
        passed_ns, clock = self._advanced_ns - before_ns, self.pacer.clock
        restart = self.pacer.advance(now_ns, system_ns, passed_ns)
        if restart is not None or self.pacer.simulated or not clock.regular:
            self._deaf_until_ns = 0
        elif passed_ns > deadline(clock) * NANOSECONDS:
            # Within a period what has waited is received.
            self._deaf_until_ns = now_ns + round(clock.period * NANOSECONDS)
        if restart is not None:
            self._composed = self._unsaid = None
            self._restart(restart)
        elif self.pacer.simulated and self.pacer.last is None and self.pacer.settle_ns:
            # Only a player in lock-step needs to know that the clock was heard, and only here.
            self.outputs.events.publish(conversions.event(ClockHeard(now_ns)))

    def _accept(self) -> float:
        """Hand over all messages that wait, and return when the first of them arrived."""
        found = self.inputs.take(player_times=self.pacer.simulated)
        arrived = [
            (self.pacer.arrival_ns(received_ns, taken_ns, player_ns), topic, payload)
            for topic, payload, received_ns, taken_ns, player_ns in found
        ]
        known = [(ns, topic, payload) for ns, topic, payload in arrived if ns is not None]
        taken = sorted(known, key=itemgetter(0))
        for arrival_ns, topic, payload in taken:
            self.pacer.taken(arrival_ns)
            self.watch.accept(topic, arrival_ns, payload)
        self._record(taken)
        if self.black_box is not None:
            self.black_box.taken(self.black_box.take(self.pacer))
        return taken[0][0] if taken else math.inf

    def _record(self, taken: list[tuple[int, str, bytes]]) -> None:
        self.recording.taken(taken)
        if self.black_box is not None:
            self.black_box.taken(taken)

    def _tick(self, tick: int) -> None:
        composed = self._unsaid
        if composed is None:
            composed, self._composed = self._composed, None
            if composed is None or composed.tick != tick:
                composed = self._composer.compose(tick)
            self.watch.commit(composed.evaluated)
            self._unsaid = composed  # if publishing fails, automata must not read the tick twice
        result = composed.evaluated.result
        self._composer.after(result.verdict)
        self._keep(result.request)
        if composed.intervention is not None:
            # First, and if it fails no risk follows: a gate stops when the two differ.
            self.outputs.intervention.publish(composed.intervention)
            self._composer.published = composed.request
        if self.outputs.anomaly is not None and composed.anomaly is not None:
            self.outputs.anomaly.publish(composed.anomaly)
        self.outputs.risk.publish(composed.risk)
        due_ns = self._due_ns(tick)
        self.recording.risk(due_ns, composed.risk, self.watch, composed.anomaly)
        if self._actuators is not None:
            self._actuators.apply(result.request, fresh=self._fresh(tick))
        self.outputs.alive()
        self._operator_log.log(result)
        self.pacer.evaluated(tick)
        self.latest, self._unsaid = result, None
        self.take_bounds()
        if self.learning is not None:
            self.learning.after(result)
        if self.regrowing is not None:
            self.regrowing.after(result)
        for failure in result.verdict.failures:
            self.failures[failure.where] += 1
            self.reasons[failure.where] = failure.reason
            self.failed[failure.where] = tick
        listened = self.outputs.state.get_subscription_count()
        if listened or self.black_box is not None:
            seen = seen_at(self.watch, self.pacer.clock, result.verdict)
            if listened:
                self.outputs.state.publish(conversions.signals(result.verdict.time_ns, *seen))
            if self.black_box is not None:
                published = composed.risk, composed.intervention, composed.anomaly
                self.black_box.tick(due_ns, result, seen, *published)
        box = self.black_box
        writing = "" if box is None or not box.writing else box.writer.path
        if self.alerts.take(result, self.watch.clock, writing):
            self.publish_alerts(result.verdict.time_ns)

    def publish_alerts(self, time_ns: int) -> None:
        """Tell what has become of alerts; the journal knows it before."""
        if self.journal is not None:
            self.journal.keep_alerts(self.alerts)
        session = self.outputs.signature.session
        self.outputs.alerts.publish(conversions.alert_array(time_ns, self.alerts, session))

    def _request(self, time_ns: int, request: Intervention) -> None:
        message = conversions.intervention(time_ns, request, self.outputs.signature)
        self.outputs.intervention.publish(message)
        self._composer.published = request
        self._operator_log.request(request)
        if self.black_box is not None:
            self.black_box.intervention(time_ns, message)

    def _keep(self, request: Intervention | None = None) -> None:
        """Write the journal, before anybody learns what it says."""
        if self.journal is not None:
            owing = () if self._actuators is None else self._actuators.owing(request)
            self.journal.keep(self.watch, owing)

    def _recall(self, restart: Restart) -> None:
        """Go on where a former life ended, if there was one."""
        lost = "the monitor was restarted without a memory of its former state"
        memory = take_up(self.journal, self.watch, restart.tick, self._warn)
        if memory is not None:
            self.note(Recall(restart.tick, memory))
        going_on = memory is not None and memory["pending"]
        if self.alerts.go_on(restart.time_ns, "" if going_on else lost):
            self.publish_alerts(restart.time_ns)

    @property
    def subscriptions(self) -> frozenset[Subscription]:
        """All subscriptions that executors are not to see."""
        extra = frozenset() if self.black_box is None else self.black_box.extra.subscriptions
        return self.inputs.subscriptions | extra

    def _restart(self, restart: Restart) -> None:
        """Start again: the clock was seen for the first time, or it has jumped.

        What is asked for stays in force, and so does what actuators were left with: the first tick
        decides.
        """
        self.recording.messages()
        self.watch.restart(restart.tick)
        self.latest = None
        self._composer.restart()
        self.failed.clear()
        if restart.jump_ns:
            held = "; alerts go on until they may end" if self.watch.memory.advisor.asking else ""
            self._warn(f"{restart.reason}: samples and obligations are forgotten{held}")
            self.inputs.ask_again()
        if self.black_box is not None:
            self.black_box.restart()
            if restart.jump_ns:
                self.black_box.extra.ask_again()
        start = Start(restart.reason, restart.tick, restart.time_ns)
        self.recording.start(start, self.watch)
        self.outputs.events.publish(conversions.event(start))
        self._recall(restart)
        if self._composer.published is None and not self.watch.memory.advisor.asking:
            # Nodes that still hold an intervention of a former life hear that it is over.
            withdrawn = withdraw(self.watch.memory.advisor, "the monitor was activated")
            self._request(restart.time_ns, withdrawn)

    def use_model(self, model: CountModel, monitor: Monitor, packed: Packed | None) -> None:
        """Put a model and the monitor solved for it into force, from the next tick on."""
        self.watch.use(monitor)
        name = self.recording.model(model, packed)
        tables = self._tables(None if packed is None else packed.tables)
        self.note(ModelChange(name, model.fingerprint, tables))

    def take_bounds(self) -> None:
        """Put bounds into force that have been computed meanwhile, from the next tick on."""
        if self.bounds is None:
            return
        found = self.bounds.take(self.recording.pack_tables if self.pacer.started else None)
        if found is not None and (model := found[0].model) is not None:
            monitor, packed = found
            self.watch.use(monitor)
            name = self.recording.model_name
            self.note(ModelChange(name, model.digest, self._tables(packed)))

    def _tables(self, packed: PackedTables | None = None) -> str | None:
        """Put the tables in force into the record, once ticks have begun."""
        if self.pacer.started:
            return self.recording.tables(self.watch.monitor, packed)
        self.recording.keep(packed)
        return None

    def note(self, event: Event) -> None:
        """Publish and record a command that has been carried out."""
        self._composed = None  # a tick that was evaluated before a command knows nothing of it
        self.alerts.command(event)
        self.outputs.events.publish(conversions.event(event))
        if self.pacer.started:
            self.recording.event(event)
            if self.black_box is not None and self.latest is not None:
                self.black_box.event(event, self.latest.verdict.time_ns)

    def close(self, time_ns: int, reason: str) -> None:
        """Withdraw a present intervention, unsubscribe and close the record."""
        request = self.watch.withdraw(reason)
        if request is not None:
            self._request(time_ns, request)
        if self.alerts.end(time_ns, reason):
            self.publish_alerts(time_ns)
        if self._actuators is not None:
            self._actuators.apply(None)
        self.watch.end()  # an orderly end leaves nothing pending
        self._keep()
        self.inputs.close()
        self.finish_files()

    def finish_files(self) -> None:
        """Write what was learned and close the record; nothing more is written."""
        learning, self.learning = self.learning, None
        if self.regrowing is not None:
            self.regrowing.close()
            self.regrowing = None
        black_box, self.black_box = self.black_box, None
        try:
            if learning is not None:
                learning.close()
        finally:
            self.recording.close()
            if black_box is not None and not black_box.close():
                self._warn(
                    f"black box: {black_box.writer.path} could not be completed in time: it can be "
                    "read as far as it goes"
                )
