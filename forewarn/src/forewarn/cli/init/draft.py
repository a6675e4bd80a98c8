"""From a recording to the signals of a first monitor file, with what their values are like."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.cli.init.arrays import with_array_numbers
from forewarn.cli.init.axes import with_axes
from forewarn.cli.init.catalogue import (
    ALOFT,
    CATALOGUE,
    MEASURED,
    STAMPED_TWIST,
    Proposal,
    Role,
)
from forewarn.cli.init.closing import closing_names
from forewarn.cli.init.message_fields import fields, leaves
from forewarn.cli.init.naming import end_of, is_arrival, is_command, is_goal, is_truth, role_of
from forewarn.cli.init.relative import Candidate, with_relative_distances
from forewarn.cli.init.scanning import (
    NO_RHYTHM,
    Scan,
    Statistics,
    numbers_of,
    rhythm,
    scan_all,
    statistics_of,
)
from forewarn.config.fields import Rate
from forewarn.errors import ExpressionError, FieldError, RecordingError
from forewarn.expressions.functions import CONSTANTS
from forewarn.expressions.syntax import parse_expression
from forewarn.learning.observing import check_playable
from forewarn.logic.parser import RESERVED
from forewarn.messages.definitions import MessageType
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.interface import Recording, TopicInfo
from forewarn.recordings.traces import JsonTrace
from forewarn.signals.clock import Clock
from forewarn.signals.clock_kinds import clock_of

NAME = re.compile(r"[A-Za-z]\w*\Z", re.ASCII)
RESERVED_WORDS = frozenset({"msg", *CONSTANTS, *RESERVED})
LOGS = ("rosgraph_msgs/msg/Log", "rcl_interfaces/msg/Log", "rcl_interfaces/msg/ParameterEvent")
MAX_GUESSES = 12
OF_STEPS = ("run", "action")
"""What lines of steps say beside their signals: which run they belong to, what was done."""


class DraftSignal(NamedTuple):
    """One signal of the draft.

    Attributes
    ----------
    topic, msgtype : str
        Empty for a derived signal and for a name in a trace.
    series : ndarray, shape (ticks,)
        Its value at each tick, NaN where it was no number.
    end : str
        The terminal label that it is whenever it is true, by its name; empty without one.
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
    series: NDArray[np.float64]
    closing: bool = False
    label: str = ""
    end: str = ""

    @property
    def numbers(self) -> NDArray[np.float64]:
        """Its value at each tick at which it was a number, infinite ones included."""
        found: NDArray[np.float64] = self.series[~np.isnan(self.series)]
        return found

    @property
    def is_goal(self) -> bool:
        """Whether it says how well a run went, so that no rule forbids it."""
        return is_goal(self.name)

    @property
    def ends_well(self) -> bool:
        """Whether it is a truth value that ends a run, and says that it went well."""
        return self.proposal.role is Role.FLAG and not self.closing and is_arrival(self.name)

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
    truths : tuple of str
        Values of traces that only a simulator knows, and that are left out.
    unnamed : tuple of str
        Values of traces whose names no signal may have, and that are left out.
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
    truths: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()


def draft(
    recordings: Sequence[Recording],
    rate: Rate,
    limit: float,
    progress: Callable[[float, float], None],
    step: str | None = None,
) -> Draft:
    """Propose signals and look at their values.

    Parameters
    ----------
    recordings : sequence of Recording
        At least one; all are messages, or all are traces.
    rate : float or 'steps'
        Ticks a second of the monitor, or its clock is steps.
    limit : float
        Seconds of the recordings to look at, together.
    step : str, optional
        Topic whose messages are steps.

    Raises
    ------
    RecordingError
        If nothing in the recordings can be a signal.
    """
    clock = clock_of(rate, step)
    for recording in recordings:
        check_playable(recording, clock)
    candidates, truths = _without_truths(candidates_in(recordings, clock))
    candidates = with_relative_distances(recordings, candidates)
    if isinstance(recordings[0], JsonTrace):
        candidates = with_array_numbers(recordings, candidates)
    else:
        candidates = with_axes(recordings, candidates)
    infos, unnamed = _infos(recordings), _unnamed(recordings)
    if not candidates and unnamed:
        raise RecordingError(
            f"no value has a name that a signal may have: {', '.join(unnamed)}",
            file=recordings[0].path,
            accepted=f"a letter, then letters, digits and underscores: {_identifier(unnamed[0])}",
        )
    if not candidates:
        known = ", ".join(f"{t.name} ({t.error or t.msgtype})" for t in infos.values())
        raise RecordingError(
            f"no topic has a field that could be a signal: {known}",
            file=recordings[0].path,
            accepted="a topic with a number or a truth value, and a definition of its type",
        )
    scan = scan_all(recordings, candidates, clock, limit, progress)
    rhythms = {topic: rhythm(steps) for topic, steps in scan.steps.items()}
    used = {candidate.topic for candidate in candidates}
    topics = tuple(
        DraftTopic(
            info,
            *rhythms.get(info.name, NO_RHYTHM),
            () if info.name in used else fields(info.message_type),
        )
        for info in infos.values()
    )
    more = f" and {len(recordings) - 1} more" if len(recordings) > 1 else ""
    first = recordings[0]
    return Draft(
        first.path.name + more,
        sum(recording.duration for recording in recordings),
        scan.seconds,
        rate,
        step,
        tuple(
            each for each in _signals(recordings, candidates, scan, rhythms, clock) if _says(each)
        ),
        topics,
        first.kind == "runs of agents",
        first.timed,
        truths,
        unnamed,
    )


def _says(signal: DraftSignal) -> bool:
    """Tell whether a signal says something: height does where a robot flies."""
    least, known = ALOFT.get(signal.proposal.name, 0.0), signal.numbers
    if not least or not signal.topic:
        return True
    return bool(len(known)) and float(np.ptp(known)) >= least


def _unnamed(recordings: Sequence[Recording]) -> tuple[str, ...]:
    """Return the names in traces that no signal may have: by its name a value is supplied."""
    traces = (recording for recording in recordings if isinstance(recording, JsonTrace))
    names = dict.fromkeys(name for trace in traces for name in trace.signals)
    return tuple(name for name in names if not _is_name(name))


def _infos(recordings: Sequence[Recording]) -> dict[str, TopicInfo]:
    """Return all topics, with the number of messages in all recordings."""
    found: dict[str, TopicInfo] = {}
    for recording in recordings:
        for topic, info in recording.topics.items():
            before = found.get(topic)
            if before is None:
                found[topic] = info
            elif before.msgtype == info.msgtype:
                found[topic] = before._replace(count=before.count + info.count)
    return found


def _signals(
    recordings: Sequence[Recording],
    candidates: Sequence[Candidate],
    scan: Scan,
    rhythms: Mapping[str, tuple[float, float]],
    clock: Clock,
) -> Iterator[DraftSignal]:
    """Yield the signals with what their values are like."""
    traces = [recording for recording in recordings if isinstance(recording, JsonTrace)]
    closing = closing_names(traces) if traces and not clock.timed else {}
    for i, (name, candidate) in enumerate(zip(_names(candidates), candidates, strict=True)):
        proposal = _understood(name, candidate, [v for v in scan.values[i] if v is not None])
        flag = proposal.role is Role.FLAG and name not in closing
        yield DraftSignal(
            name,
            candidate.topic,
            candidate.msgtype,
            proposal,
            _timeout(scan.steps.get(candidate.topic, ()), clock),
            statistics_of(scan.values[i], scan.ticks),
            numbers_of(scan.values[i]),
            name in closing,
            closing[name].test(name) if name in closing else "",
            end_of(name) if flag else "",
        )


def _understood(name: str, candidate: Candidate, values: Sequence[Any]) -> Proposal:
    """Return a proposal with the role that name and values tell, where its type tells nothing."""
    proposal = candidate.proposal
    bare = candidate.msgtype.startswith("std_msgs/") or not proposal.value
    if proposal.role is not Role.OTHER or not bare:
        return proposal
    return proposal._replace(role=role_of(name, values))


def _without_truths(
    candidates: Sequence[Candidate],
) -> tuple[list[Candidate], tuple[str, ...]]:
    """Leave out what only a simulator knows, if anything else is left; return its names, too."""
    left = [c for c in candidates if not is_truth(c.topic or c.proposal.name)]
    if not left:
        return list(candidates), ()
    names = (c.proposal.name for c in candidates if not c.topic and is_truth(c.proposal.name))
    return left, tuple(names)


def candidates_in(recordings: Sequence[Recording], clock: Clock) -> list[Candidate]:
    """Return the candidates of all recordings; of a topic with two types, those of the first."""
    infos = _infos(recordings)
    for kinds in (_candidates, _any_number):
        found = dict.fromkeys(
            candidate for recording in recordings for candidate in kinds(recording, clock)
        )
        fitting = [c for c in found if not c.topic or infos[c.topic].msgtype == c.msgtype]
        if fitting:
            return fitting
    return []


def _candidates(recording: Recording, clock: Clock) -> list[Candidate]:
    if isinstance(recording, JsonTrace):
        names = [n for n in recording.signals if clock.timed or n not in OF_STEPS]
        return [Candidate("", "", Proposal(n, "", "")) for n in names if _is_name(n)]
    found = []
    for info in recording.topics.values():
        if info.message_type is None or not info.count:
            continue
        stamped = info.msgtype == STAMPED_TWIST
        known = CATALOGUE.get(info.msgtype, ())
        if info.msgtype in MEASURED and not is_command(info.name, stamped=stamped):
            known = MEASURED[info.msgtype]
        found += [
            Candidate(info.name, info.msgtype, proposal)
            for proposal in known
            if _fits(info.message_type, proposal)
        ]
    return found


def _fits(mtype: MessageType, proposal: Proposal) -> bool:
    try:
        compile_extractor(mtype, [parse_expression(proposal.value)])
    except (FieldError, ExpressionError):
        return False
    return True


def _any_number(recording: Recording, clock: Clock) -> list[Candidate]:
    """Return the first number of each topic, where no type is known: a file needs a signal."""
    del clock
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


def _is_name(text: str) -> bool:
    return NAME.match(text) is not None and text not in RESERVED_WORDS


def _identifier(text: str) -> str:
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()
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


def _timeout(gaps: Sequence[float], clock: Clock) -> float:
    """Return how old a sample may be: as old as pauses make it usually, bursts or not."""
    if not len(gaps) or not clock.regular:
        return math.inf
    usual, long = np.quantile(gaps, (0.5, 0.99)).tolist()
    wanted = max(5 * usual, 3 * long, 2 * clock.period)
    step = 10.0 ** math.floor(math.log10(wanted))
    return float(round(math.ceil(wanted / step * 2 - 1e-9) / 2 * step, 9))
