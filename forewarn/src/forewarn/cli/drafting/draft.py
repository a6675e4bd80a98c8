"""From a recording to the signals of a first monitor file, with what their values are like."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.cli.drafting.catalogue import CATALOGUE, Proposal, Role
from forewarn.cli.drafting.closing import closing_names
from forewarn.cli.drafting.message_fields import fields, leaves
from forewarn.cli.drafting.relative import Candidate, with_relative_distances
from forewarn.config.fields import Rate
from forewarn.errors import ExpressionError, FieldError, RecordingError
from forewarn.expressions import Unknown, compile_expression, parse_expression
from forewarn.expressions.functions import CONSTANTS, FUNCTIONS
from forewarn.learning.pipeline import check_playable
from forewarn.logic.lexer import RESERVED
from forewarn.messages import MessageType, compile_extractor
from forewarn.recordings import JsonTrace, Recording
from forewarn.recordings.agents import AgentTrace
from forewarn.recordings.interface import Sample, TopicInfo
from forewarn.signals.clock import NANOSECONDS, Clock
from forewarn.signals.clock_kinds import clock_of
from forewarn.signals.feed import Feed
from forewarn.signals.sources import SourceSignal

NAN = math.nan
NO_RHYTHM = (NAN, NAN)
RESERVED_WORDS = frozenset({"msg", *CONSTANTS, *FUNCTIONS, *RESERVED})
LOGS = ("rosgraph_msgs/msg/Log", "rcl_interfaces/msg/Log", "rcl_interfaces/msg/ParameterEvent")
MAX_GUESSES = 12
OF_STEPS = ("run", "action")
"""What lines of steps say beside their signals: which run they belong to, what was done."""


class Statistics(NamedTuple):
    """What the values of a signal are like, over the ticks at which it had one.

    Attributes
    ----------
    known : float
        Share of the ticks with a value.
    low, p10, median, p90, high : float
        Quantiles of the finite values.
    texts : tuple of str
        The most frequent texts of a text signal.
    is_array : bool
        Values are arrays; there are no quantiles.
    """

    known: float
    low: float
    p10: float
    median: float
    p90: float
    high: float
    texts: tuple[str, ...] = ()
    is_array: bool = False


class DraftSignal(NamedTuple):
    """One signal of the draft.

    Attributes
    ----------
    topic, msgtype : str
        Empty for a derived signal and for a name in a trace.
    numbers : ndarray, shape (k,)
        Its value at each tick at which it was a number, infinite ones included.
    closing : bool
        It is known on the last line of a run alone.
    label : str
        What a terminal label asks of it then, empty if it can be none.
    """

    name: str
    topic: str
    msgtype: str
    proposal: Proposal
    timeout: float
    statistics: Statistics | None
    numbers: NDArray[np.float64]
    closing: bool = False
    label: str = ""

    @property
    def is_derived(self) -> bool:
        """Whether other signals determine it."""
        return not self.topic and bool(self.proposal.value)


class DraftTopic(NamedTuple):
    """One topic of the recording, with what is known of its rhythm.

    Attributes
    ----------
    period, longest : float
        Median and greatest time between messages, in seconds; NaN if there are fewer than two.
    fields : tuple of str
        Its fields, for topics that nothing is proposed for.
    """

    info: TopicInfo
    period: float
    longest: float
    fields: tuple[str, ...]


class Draft(NamedTuple):
    """All that the file is written from.

    Attributes
    ----------
    calls : bool
        It is of runs of agents, which say on each line what is called next.
    timed : bool
        Its lines or messages have times; otherwise the duration is in lines.
    """

    recording: str
    duration: float
    scanned: float
    rate: Rate
    step: str | None
    signals: tuple[DraftSignal, ...]
    topics: tuple[DraftTopic, ...]
    calls: bool = False
    timed: bool = True


class Scan(NamedTuple):
    """What reading the recording once has shown."""

    values: dict[int, list[Any]]
    ticks: int
    arrivals: dict[str, list[int]]
    seconds: float


def draft(
    recording: Recording,
    rate: Rate,
    limit: float,
    progress: Callable[[float, float], None],
    step: str | None = None,
) -> Draft:
    """Propose signals and look at their values.

    Parameters
    ----------
    rate : float or 'steps'
        Ticks a second of the monitor, or its clock is steps.
    limit : float
        Seconds of the recording to look at.
    step : str, optional
        Topic whose messages are steps.

    Raises
    ------
    RecordingError
        If nothing in the recording can be a signal.
    """
    clock = clock_of(rate, step)
    check_playable(recording, clock)
    candidates = with_relative_distances(recording, _candidates(recording, clock))
    if not candidates:
        known = ", ".join(f"{t.name} ({t.error or t.msgtype})" for t in recording.topics.values())
        raise RecordingError(
            f"no topic has a field that could be a signal: {known}",
            file=recording.path,
            accepted="a topic with a number or a truth value, and a definition of its type",
        )
    scan = _scan(recording, candidates, clock, limit, progress)
    rhythm = {topic: _rhythm(times) for topic, times in scan.arrivals.items()}
    used = {candidate.topic for candidate in candidates}
    topics = tuple(
        DraftTopic(
            info,
            *rhythm.get(info.name, NO_RHYTHM),
            () if info.name in used else fields(info.message_type),
        )
        for info in recording.topics.values()
    )
    return Draft(
        recording.path.name,
        recording.duration,
        scan.seconds,
        rate,
        step,
        tuple(_signals(recording, candidates, scan, rhythm, clock)),
        topics,
        isinstance(recording, AgentTrace),
        not isinstance(recording, JsonTrace) or recording.timed,
    )


def _signals(
    recording: Recording,
    candidates: Sequence[Candidate],
    scan: Scan,
    rhythm: Mapping[str, tuple[float, float]],
    clock: Clock,
) -> Iterator[DraftSignal]:
    """Yield the signals with what their values are like."""
    traced = isinstance(recording, JsonTrace) and not clock.timed
    over = closing_names(recording) if traced else {}  # type: ignore[arg-type]
    closing = {_identifier(name): label for name, label in over.items()}
    for i, (name, candidate) in enumerate(zip(_names(candidates), candidates, strict=True)):
        yield DraftSignal(
            name,
            candidate.topic,
            candidate.msgtype,
            candidate.proposal,
            _timeout(*rhythm.get(candidate.topic, NO_RHYTHM), clock),
            _statistics(scan.values[i], scan.ticks),
            _numbers(scan.values[i]),
            name in closing,
            closing[name].test(name) if name in closing else "",
        )


def _candidates(recording: Recording, clock: Clock) -> list[Candidate]:
    if isinstance(recording, JsonTrace):
        names = [n for n in recording.signals if clock.timed or n not in OF_STEPS]
        return [Candidate("", "", Proposal(_identifier(n), "", "")) for n in names]
    found = []
    for info in recording.topics.values():
        if info.message_type is None or not info.count:
            continue
        found += [
            Candidate(info.name, info.msgtype, proposal)
            for proposal in CATALOGUE.get(info.msgtype, ())
            if _fits(info.message_type, proposal)
        ]
    return found or _any_number(recording)


def _fits(mtype: MessageType, proposal: Proposal) -> bool:
    try:
        compile_extractor(mtype, [parse_expression(proposal.value)])
    except (FieldError, ExpressionError):
        return False
    return True


def _any_number(recording: Recording) -> list[Candidate]:
    """Return the first number of each topic, where no type is known: a file needs a signal."""
    found = []
    for info in recording.topics.values():
        if info.message_type is None or not info.count or info.msgtype in LOGS:
            continue
        for path, kind in leaves(info.message_type.struct, ""):
            role = Role.FLAG if kind == "bool" else Role.OTHER
            proposal = Proposal(_identifier(path), f"msg.{path}", "", "", role)
            if kind not in ("string", "wstring") and _fits(info.message_type, proposal):
                found.append(Candidate(info.name, info.msgtype, proposal))
                break
    return found[:MAX_GUESSES]


def _identifier(text: str) -> str:
    name = re.sub(r"\W+", "_", text).strip("_").lower()
    if not name or not name[0].isalpha():
        name = f"s_{name}"
    return f"{name}_" if name in RESERVED_WORDS else name


def _names(candidates: Sequence[Candidate]) -> list[str]:
    """Return a name for each signal: the proposal's, with the topic's where that is not enough."""
    wanted = [candidate.proposal.name or _identifier(candidate.topic) for candidate in candidates]
    names: list[str] = []
    for candidate, name in zip(candidates, wanted, strict=True):
        if wanted.count(name) > 1 and candidate.topic and candidate.proposal.name:
            name = f"{_identifier(candidate.topic)}_{name}"
        unique, number = name, 2
        while unique in names:
            unique, number = f"{name}_{number}", number + 1
        names.append(unique)
    return names


def _scan(
    recording: Recording,
    candidates: Sequence[Candidate],
    clock: Clock,
    limit: float,
    progress: Callable[[float, float], None],
) -> Scan:
    traced = isinstance(recording, JsonTrace)
    received = [i for i, candidate in enumerate(candidates) if traced or candidate.topic]
    sources = [
        SourceSignal(
            candidates[i].proposal.name if traced else str(i),
            candidates[i].topic,
            candidates[i].msgtype,
            None if traced else parse_expression(candidates[i].proposal.value),
            -1,
            None,
        )
        for i in received
    ]
    topics = {candidate.topic for candidate in candidates}
    types = {
        topic: info.message_type
        for topic, info in recording.topics.items()
        if info.message_type is not None and topic in topics
    }
    feed = Feed(sources, types, clock)
    total = min(recording.duration, limit)
    keep = _Keeper(candidates, received)
    arrivals: dict[str, list[int]] = defaultdict(list)

    def within() -> Iterator[Sample]:
        for sample in recording.read(types.keys() if not traced else None):
            passed = (sample.time_ns - recording.start_ns) / NANOSECONDS
            if passed > limit:
                break
            arrivals[sample.topic].append(sample.time_ns)
            yield sample
            progress(passed, total)

    ticks = 0
    end_ns = recording.start_ns + round(total * NANOSECONDS)
    try:
        for tick in feed.play(within(), recording.start_ns, end_ns):
            keep(feed.snapshot(tick).values)
            ticks += 1
    except RecordingError as error:
        raise error.located(file=recording.path) from None
    return Scan(keep.values, ticks, arrivals, total)


class _Keeper:
    """Keeps the values of all signals, tick by tick; derived ones are computed."""

    def __init__(self, candidates: Sequence[Candidate], received: Sequence[int]) -> None:
        self.values: dict[int, list[Any]] = {i: [] for i in range(len(candidates))}
        self._received = received
        names = [candidates[i].proposal.name for i in received]
        self._derived = [
            (i, compile_expression(parse_expression(candidate.proposal.value), names))
            for i, candidate in enumerate(candidates)
            if i not in received
        ]

    def __call__(self, snapshot: Sequence[Any]) -> None:
        """Take in the received values of one tick; None is unknown."""
        for i, value in zip(self._received, snapshot, strict=True):
            if value is not None:
                self.values[i].append(value)
        for i, function in self._derived:
            value = function([NAN if value is None else value for value in snapshot])
            if not isinstance(value, Unknown) and value == value:
                self.values[i].append(value)


def _rhythm(times: Sequence[int]) -> tuple[float, float]:
    if len(times) < 2:
        return NO_RHYTHM
    steps = np.diff(np.array(times, dtype=np.int64)) / NANOSECONDS
    return float(np.median(steps)), float(steps.max())


def _timeout(period: float, longest: float, clock: Clock) -> float:
    """Return how old a sample may be: five periods, more if the recording itself has pauses."""
    if period != period or not clock.regular:
        return math.inf
    wanted = max(5 * period, 2 * clock.period, 1.5 * longest if longest < 20 * period else 0.0)
    step = 10.0 ** math.floor(math.log10(wanted))
    return round(math.ceil(wanted / step * 2 - 1e-9) / 2 * step, 9)


def _numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([v for v in values if isinstance(v, (bool, int, float))], dtype=np.float64)


def _statistics(values: Sequence[Any], ticks: int) -> Statistics | None:
    if not values:
        return None
    known = len(values) / max(ticks, 1)
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        ordered = sorted(set(texts), key=lambda text: (-texts.count(text), text))[:6]
        return Statistics(known, NAN, NAN, NAN, NAN, NAN, texts=tuple(ordered))
    numbers = _numbers(values)
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size:
        is_array = hasattr(values[0], "__len__")
        return Statistics(known, NAN, NAN, NAN, NAN, NAN, is_array=is_array)
    low, p10, median, p90, high = np.quantile(numbers, (0, 0.1, 0.5, 0.9, 1)).tolist()
    return Statistics(known, low, p10, median, p90, high)
