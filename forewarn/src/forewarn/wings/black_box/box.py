"""The black box: it keeps the newest messages and decides when an incident is written.

Messages stay in a ring buffer that is bounded in seconds and bytes. A trigger sends the ring to a
sink. Messages that follow go to the sink, too, until some seconds after the last trigger. Nothing
here has a clock, a thread or a file. `incident_file.py` writes files, and the node does so in a
thread of its own.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from forewarn.monitoring.intervention import reason_of
from forewarn.monitoring.policy import Level
from forewarn.monitoring.risk_rows import compared
from forewarn.monitoring.run_anomaly import in_words
from forewarn.signals.clock import NANOSECONDS, Clock

if TYPE_CHECKING:
    from forewarn.monitoring.evaluate import TickResult
    from forewarn.wings.black_box.section import BlackBoxSpec

ACT, VIOLATION, ANOMALY = "act", "violation", "anomaly"
WARN, RELEASED, REQUEST = "warn", "released", "request"
OVERHEAD = 250
"""Bytes that a message takes in memory beside its own, roughly."""
MOST_LATCHED = 32
"""Messages of a latched topic that outlive the ring."""


class LogEntry(NamedTuple):
    """Something that happened, on the monitor's clock.

    The kind is ``warn``, ``act``, ``released``, ``violation``, ``anomaly`` or ``request``. `risk`
    is the property's figure in [0, 1], NaN where there is none.
    """

    time_ns: int
    kind: str
    property: str
    risk: float
    text: str


class Kept(NamedTuple):
    """One message, at the time at which it arrived or was published, of about so many bytes.

    The payload is CDR, or a function that gives it: it is serialized only if it is written.
    `moment` is what it tells of, if it tells of what happened.
    """

    time_ns: int
    topic: str
    type: str
    payload: bytes | Callable[[], bytes]
    size: int
    moment: LogEntry | None = None

    def serialized(self) -> bytes:
        """Return the message in CDR."""
        return self.payload if isinstance(self.payload, bytes) else self.payload()


class Sink(Protocol):
    """Receives the messages of incidents."""

    @property
    def over(self) -> bool:
        """The file that was begun last takes no more: it is full, or could not be written."""

    def begin(self, first: LogEntry, kept: Sequence[Kept], *, continued: bool) -> None:
        """Begin an incident with the messages of the ring; `continued`: the last file was full."""

    def write(self, kept: Kept) -> None:
        """Append a message to the incident."""

    def end(self) -> None:
        """End the incident."""


class Ring:
    """The newest messages, within a span of time and a number of bytes.

    Of topics whose publishers keep messages for late subscribers (maps, transforms that never
    change) the newest outlive the span: without them, a recording that begins now says nothing.
    `squeezed` counts messages that were dropped before their time, because the ring was full.
    """

    def __init__(self, span_ns: int, most: int) -> None:
        self.size = 0
        self.squeezed = 0
        self._span_ns = span_ns
        self._most = most
        self._kept: deque[tuple[Kept, bool]] = deque()
        self._latched: defaultdict[str, deque[Kept]] = defaultdict(deque)

    def add(self, kept: Kept, *, latched: bool = False) -> None:
        """Take a message, which is no older than the one before, and let go of others."""
        self._kept.append((kept, latched))
        self.size += kept.size
        oldest_ns = kept.time_ns - self._span_ns
        while self._kept[0][0].time_ns < oldest_ns:
            self._drop()
        while self.size > self._most and self._kept:
            self.squeezed += 1
            self._drop()
            self._unlatch()

    def _drop(self) -> None:
        kept, latched = self._kept.popleft()
        if not latched:
            self.size -= kept.size
            return
        lasting = self._latched[kept.topic]
        lasting.append(kept)
        if len(lasting) > MOST_LATCHED:
            self.size -= lasting.popleft().size

    def _unlatch(self) -> None:
        """Let what outlives the span have a quarter of the bytes at the most."""
        lasting = sum(one.size for own in self._latched.values() for one in own)
        while lasting > self._most // 4:
            topic = max(self._latched, key=lambda name: sum(o.size for o in self._latched[name]))
            gone = self._latched[topic].popleft()
            self.size -= gone.size
            lasting -= gone.size

    def __iter__(self) -> Iterator[Kept]:
        """Yield the messages in order of time; what outlived the span stands at its beginning."""
        begin_ns = self._kept[0][0].time_ns if self._kept else 0
        for own in self._latched.values():
            for kept in own:
                yield kept._replace(time_ns=max(begin_ns, kept.time_ns))
        for kept, _ in self._kept:
            yield kept

    @property
    def span_ns(self) -> int:
        """How far back it reaches."""
        return self._kept[-1][0].time_ns - self._kept[0][0].time_ns if self._kept else 0

    def clear(self) -> None:
        """Forget everything: the clock has jumped."""
        self._kept.clear()
        self._latched.clear()
        self.size = 0


class BlackBox:
    """Keeps messages, and has them written to a sink when something happens."""

    def __init__(self, spec: BlackBoxSpec, sink: Sink) -> None:
        self.ring = Ring(round(spec.before * NANOSECONDS), spec.ring)
        self._sink = sink
        self._triggers = {*spec.trigger, REQUEST}
        self._after_ns = round(spec.after * NANOSECONDS)
        self._longest_ns = round(spec.longest * NANOSECONDS)
        self._last: LogEntry | None = None  # of the incident that is going on
        self._ends_ns = 0

    @property
    def writing(self) -> bool:
        """Tell whether an incident is going on."""
        return self._last is not None

    def keep(self, kept: Kept, *, latched: bool = False) -> None:
        """Take a message, which is no older than the one before."""
        self.advance(kept.time_ns)
        self.ring.add(kept, latched=latched)
        moment = kept.moment
        triggers = moment is not None and moment.kind in self._triggers
        if triggers and self._sink.over:
            self.close()
        if self._last is not None:
            self._sink.write(kept)
        if moment is None or not triggers:
            return
        if self._last is None:
            self._begin(moment, tuple(self.ring))
        self._last = moment

    def _begin(self, moment: LogEntry, kept: Sequence[Kept], *, continued: bool = False) -> None:
        self._sink.begin(moment, kept, continued=continued)
        self._ends_ns = moment.time_ns + self._longest_ns

    def advance(self, now_ns: int) -> None:
        """End an incident whose time is over; one that is too long goes on in another file."""
        if self._last is None:
            return
        quiet_ns = self._last.time_ns + self._after_ns
        if now_ns > quiet_ns:
            self.close()
        elif now_ns > self._ends_ns:
            self._sink.end()
            self._begin(self._last, (), continued=True)
            self._ends_ns = now_ns + self._longest_ns

    def close(self) -> None:
        """End the incident that is going on."""
        if self._last is not None:
            self._last = None
            self._sink.end()

    def restart(self) -> None:
        """Forget everything: the clock has jumped."""
        self.close()
        self.ring.clear()


class Observer:
    """Tells what happened at a tick: what is new about each property, and about the run."""

    def __init__(self) -> None:
        self._levels: dict[str, Level] = {}

    def moments(self, result: TickResult, clock: Clock) -> Iterator[LogEntry]:
        """Yield what is new at a tick."""
        verdict = result.verdict
        for prop, row in zip(verdict.properties, result.rows, strict=True):
            before, level = self._levels.get(row.property, Level.NONE), Level(row.level)
            self._levels[row.property] = level
            figure = compared(row)
            if prop.counted:
                text = f"{row.property}: violated"
                yield LogEntry(verdict.time_ns, VIOLATION, row.property, figure, text)
            if level > before:
                kind = ACT if level is Level.ACT else WARN
                yield LogEntry(verdict.time_ns, kind, row.property, figure, reason_of(row, clock))
            elif level < before:
                text = f"{row.property}: back from {before.name} to {level.name}"
                yield LogEntry(verdict.time_ns, RELEASED, row.property, figure, text)
        anomaly = verdict.anomaly
        if anomaly is not None and anomaly.since == anomaly.tick:
            yield LogEntry(verdict.time_ns, ANOMALY, "", anomaly.value, in_words(anomaly))

    def restart(self) -> None:
        """Forget the levels: monitoring starts again."""
        self._levels.clear()
