"""A monitor with its inputs, and a session with its state. Replay and studies use it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from forewarn.learning.actions import ActionReader
from forewarn.signals.snapshots import singly
from forewarn.states.inputs import open_feed, plan_readers

if TYPE_CHECKING:
    from forewarn.messages.definitions import MessageType
    from forewarn.monitoring.step import Monitor, MonitorState
    from forewarn.monitoring.verdict import Verdict
    from forewarn.recordings.interface import Sample
    from forewarn.signals.clock import Clock, Payload
    from forewarn.signals.feed import Reader
    from forewarn.signals.snapshots import Snapshot


class Inputs:
    """A monitor with what it reads: takes payloads. What is remembered is its user's.

    `readers`: functions that judge plans in signals. By default, they read the files of rules that
    the monitor file names.
    """

    def __init__(
        self,
        monitor: Monitor,
        message_types: Mapping[str, MessageType],
        readers: Mapping[str, Reader] | None = None,
    ) -> None:
        self.monitor = monitor
        found = plan_readers(monitor.spec) if readers is None else readers
        self.feed = open_feed(monitor.spec, monitor.abstraction, message_types, found)

    @property
    def clock(self) -> Clock:
        """Return what a moment is."""
        return self.feed.clock

    @property
    def settle_ns(self) -> int:
        """Return how much later than its tick an evaluation happens, in nanoseconds."""
        return self.feed.settle_ns

    def accept(self, topic: str, time_ns: int, payload: Payload) -> None:
        """Take one payload that arrived at `time_ns`."""
        self.feed.accept(topic, time_ns, payload)

    def last_due(self, now_ns: int) -> int:
        """Return the newest moment that may be evaluated at `now_ns`."""
        return self.feed.moments.last_due(now_ns)

    def swap(self, monitor: Monitor) -> None:
        """Go on with other tables or thresholds; automata and alerts stay where they are."""
        self.monitor = monitor


class Session(Inputs):
    """Inputs with the state of the monitor: returns verdicts. The caller decides when.

    The parameters are those of `Inputs`.
    """

    def __init__(
        self,
        monitor: Monitor,
        message_types: Mapping[str, MessageType],
        readers: Mapping[str, Reader] | None = None,
    ) -> None:
        super().__init__(monitor, message_types, readers)
        self.state: MonitorState = monitor.start()
        # Few ask what is done; a trace may say so where the monitor file does not.
        self.actions = (
            ActionReader(monitor.spec, monitor.abstraction) if monitor.asks_what_is_done else None
        )

    def snapshot(self, tick: int) -> Snapshot:
        """Return all source signals at a tick, with the action then if it is used."""
        return self._acted(self.feed.snapshot(tick))

    def blocks(self, ticks: Iterable[range]) -> Iterator[list[Snapshot]]:
        """Yield the snapshots of recorded ticks as `Feed.blocks` does."""
        for block in self.feed.blocks(ticks):
            yield list(map(self._acted, block))

    def _acted(self, snapshot: Snapshot) -> Snapshot:
        if self.actions is not None and self.monitor.abstraction.action is None:
            return snapshot._replace(action=self.actions.at(snapshot.tick, ())[0])
        return snapshot

    def tick(self, tick: int) -> Verdict:
        """Evaluate one tick; it must lie after the last one."""
        return self.step(self.snapshot(tick))

    def step(self, snapshot: Snapshot) -> Verdict:
        """Evaluate a snapshot; it must lie after the last one."""
        self.state, verdict = self.monitor.step(self.state, snapshot)
        return verdict

    def through(self, snapshot: Snapshot) -> Iterator[Verdict]:
        """Evaluate a snapshot and those that repeat it, as `Monitor.through` does."""
        for state, verdict in self.monitor.through(self.state, snapshot):
            self.state = state
            yield verdict


def run(
    session: Session, samples: Iterable[Sample], start_ns: int, end_ns: int
) -> Iterator[Verdict]:
    """Yield the verdict of every tick from the one of `start_ns` to the one of `end_ns`."""
    for found in run_at_once(session, samples, start_ns, end_ns):
        for verdict, _ in singly(found, session.clock):
            yield verdict


def run_at_once(
    session: Session, samples: Iterable[Sample], start_ns: int, end_ns: int
) -> Iterator[Verdict]:
    """Yield the verdicts of all ticks, one for all that repeat it (`Verdict.repeats`).

    A live node that receives the same samples at the same times evaluates the same ticks. The
    session may swap monitors of the same signals on the way; samples are taken ahead.
    """
    if session.actions is not None:
        samples = session.actions.listen(samples, session.feed.moments)
    ticks = session.feed.stretches(samples, start_ns, end_ns)
    for snapshot in session.monitor.abstraction.outlook.over(session.blocks(ticks)):
        yield from session.through(snapshot)
