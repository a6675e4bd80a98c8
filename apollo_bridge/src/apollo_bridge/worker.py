"""What runs while the bridge is active: a thread that takes what arrives and sends signals."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from apollo_bridge.derivation import Derivation, SentSignal
from apollo_bridge.transport import (
    Arrival,
    Connected,
    Event,
    Lost,
    Offer,
    ServiceResult,
    Topology,
    Transport,
)

LONGEST_WAIT = 0.5


class Worker:
    """Takes messages from a transport and hands on signals.

    `publish`: sends signals; called in this thread, with the time of the steady clock.
    `max_rate`: Hz; messages that come faster are taken together.
    `listeners`: takes the data of channels that are no signals; called in this thread.
    """

    def __init__(
        self,
        transport: Transport,
        derivation: Derivation,
        publish: Callable[[int, Sequence[SentSignal]], None],
        max_rate: float,
        listeners: Mapping[str, Callable[[bytes], None]] | None = None,
    ) -> None:
        self.transport = transport
        self.derivation = derivation
        self.problem = "not connected yet"
        self.connections = 0
        self.published = 0
        self.topology: Mapping[str, Sequence[str]] | None = None
        self.error = ""
        # The newest answer of each service that was called: a problem, or nothing
        self.answers: dict[str, str] = {}
        self._listeners = listeners or {}
        self._publish = publish
        self._least_ns = round(1e9 / max_rate)
        # Stale signals are sent at least as often as the node ticks, even without news.
        self._most_ns = round(1e9 / min(max_rate, derivation.rate))
        self._published_ns = 0
        self._fresh = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="apollo", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and the transport."""
        self._stop.set()
        self.transport.close()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._step()
        except Exception as error:  # the diagnostics tell; a dead thread alone would not
            if not self._stop.is_set():
                self.error = f"{type(error).__name__}: {error}"
                raise

    def _step(self) -> None:
        events = self.transport.receive(self._wait(time.monotonic_ns()) / 1e9)
        self._fresh |= self._take(events)
        now = time.monotonic_ns()
        if self._wait(now) <= 0:
            self._published_ns, self._fresh = now, False
            self._publish(now, self.derivation.evaluate(now))
            self.published += 1

    def _wait(self, now_ns: int) -> int:
        """Return for how many nanoseconds nothing is due: before the first message, nothing is."""
        if not (self.published or self._fresh):
            return round(LONGEST_WAIT * 1e9)
        due = self._published_ns + (self._least_ns if self._fresh else self._most_ns)
        return max(0, min(due - now_ns, round(LONGEST_WAIT * 1e9)))

    def _take(self, events: Sequence[Event]) -> bool:
        arrivals = []
        for event in events:
            if isinstance(event, Arrival):
                arrivals.append(event)
                if event.channel in self._listeners:
                    self._listeners[event.channel](event.data)
            elif isinstance(event, Offer):
                self.derivation.offer(event)
            elif isinstance(event, Topology):
                self.topology = event.channels
            elif isinstance(event, Connected):
                self.problem = ""
                self.connections += 1
            elif isinstance(event, Lost):
                self.problem = event.reason
            elif isinstance(event, ServiceResult):
                self.answers[event.service] = event.problem
        return bool(arrivals) and self.derivation.accept(arrivals)
