"""``forewarn info``: what recordings hold, and what a signal of them looks like."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forewarn.cli.init.axes import with_axes
from forewarn.cli.init.catalogue import ALOFT
from forewarn.cli.init.draft import candidates_in
from forewarn.cli.init.scanning import rhythm
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import PartOptions, Readers
from forewarn.errors import DecodeError, InputError, plural
from forewarn.expressions.syntax import parse_expression
from forewarn.expressions.values import Unknown
from forewarn.messages.extraction import compile_extractor
from forewarn.recordings.interface import Recording, TopicInfo
from forewarn.recordings.registry import open_recording
from forewarn.recordings.traces import JsonTrace
from forewarn.signals.clock import NANOSECONDS
from forewarn.signals.clock_kinds import clock_of
from forewarn.signals.sources import clock_gap, stamp_reader

DESCRIPTION = """\
Show what recordings hold: topics, types, rates, gaps and clocks, and which fields a monitor could
watch. --plot draws a signal in the terminal."""

EPILOG = """\
exit codes: 0 shown, 2 wrong usage or input.

examples: forewarn info run.mcap
          forewarn info run.mcap --plot /odom:twist.twist.linear.x
          forewarn info bags/ --jobs 4"""

WIDTH, HEIGHT = 72, 12
NAMED = 4
SYSTEM_TIME_NS = 10**18
"""From here on a time is that of a clock on the wall: September 2001."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Options(PartOptions):
    """The arguments of ``info``."""

    plot: str | None = option(
        "draw a signal: TOPIC:FIELD, as in /odom:twist.twist.linear.x, or the name of a value",
        "SIGNAL",
    )


@dataclass(frozen=True)
class TopicTimes:
    """When the messages of a topic arrived.

    Attributes
    ----------
    rate : float
        1 / median time between messages, in Hz; NaN for fewer than two.
    within : float
        99 % of the messages follow the one before within so many seconds.
    longest, at : float
        The longest time without a message, and where it begins, in seconds from the start.
    clock : str
        How its stamps differ from the arrivals; empty if they are near, or there are none.
    watched : tuple of str
        What could be watched: fields, as the monitor file reads them.
    """

    name: str
    msgtype: str
    messages: int
    rate: float
    within: float
    longest: float
    at: float
    clock: str
    watched: tuple[str, ...]


@dataclass(frozen=True)
class Contents:
    """What a recording holds.

    Attributes
    ----------
    names : dict
        For a trace: how often each value is there, and its least and greatest number.
    times, values : list of float
        The signal to draw, if one was asked for; seconds from the start.
    """

    path: Path
    start_ns: int
    duration: float
    messages: int
    timed: bool
    topics: tuple[TopicTimes, ...]
    names: Mapping[str, Mapping[str, Any]]
    warnings: tuple[str, ...]
    times: Sequence[float] = field(default_factory=list)
    values: Sequence[float] = field(default_factory=list)


def run(options: Options, output: Output) -> int:
    """Read the recordings, and show what they hold."""
    recordings = options.existing()
    readers = Readers(options, recordings, output)
    found = [one for _, one in readers.read(recordings, contents, options.plot)]
    for one in found:
        _show(one, output)
        if options.plot is not None:
            output.say(options.plot)
            for line in plotted(one.times, one.values):
                output.say(line)
            output.say()
    readers.warn()
    output.emit({"recordings": found, "left_out": readers.record()})
    return 0


def contents(path: Path, plot: str | None, progress: Any = None) -> Contents:
    """Return what a recording holds.

    Raises
    ------
    InputError
        If there is no such signal to draw.
    """
    del progress
    with open_recording(path) as recording:
        if isinstance(recording, JsonTrace):
            return _trace(recording, plot)
        return _messages(recording, plot)


def _messages(recording: Recording, plot: str | None) -> Contents:
    """Read all messages once: their times, their stamps, and the signal to draw."""
    topic, _, text = (plot or "").partition(":")
    extract = None if plot is None else _extractor(recording, topic, text)
    arrivals = {name: array("q") for name in recording.topics}
    stamps = {
        name: read
        for name, info in recording.topics.items()
        if info.message_type is not None and (read := stamp_reader(info.message_type)) is not None
    }
    clocks: dict[str, str] = {}
    times, values = list[float](), list[float]()
    for time_ns, name, data in recording.read(None):
        arrivals.setdefault(name, array("q")).append(time_ns)
        if name in stamps and name not in clocks:
            with suppress(DecodeError):
                clocks[name] = clock_gap(stamps[name](data), time_ns)
        if extract is not None and name == topic:
            times.append((time_ns - recording.start_ns) / NANOSECONDS)
            values.append(_number(extract, data))
    watched = _watched(recording)
    topics = tuple(
        _topic(recording, info, arrivals[name], clocks.get(name, ""), watched.get(name, ()))
        for name, info in sorted(recording.topics.items())
    )
    return Contents(
        recording.path, recording.start_ns, recording.duration, recording.count, True, topics, {},
        tuple(recording.warnings), times, values,
    )  # fmt: skip


def _topic(
    recording: Recording,
    info: TopicInfo,
    arrived: Sequence[int],
    clock: str,
    watched: tuple[str, ...],
) -> TopicTimes:
    arrivals = np.sort(np.array(arrived, dtype=np.int64))
    steps = np.diff(arrivals) / NANOSECONDS
    period, longest = rhythm(steps.tolist())
    rate = math.inf if period == 0 else 1 / period
    within = at = math.nan
    if len(steps):
        within = float(np.quantile(steps, 0.99))
        at = float(arrivals[int(steps.argmax())] - recording.start_ns) / NANOSECONDS
    note = info.error or clock
    return TopicTimes(
        info.name, info.msgtype, len(arrivals), rate, within, longest, at, note, watched
    )


def _watched(recording: Recording) -> dict[str, tuple[str, ...]]:
    """Return by topic which fields `init` would propose."""
    found: dict[str, tuple[str, ...]] = {}
    for candidate in with_axes([recording], candidates_in([recording], clock_of(10.0, None))):
        if candidate.topic and candidate.proposal.name not in ALOFT:
            found[candidate.topic] = (*found.get(candidate.topic, ()), candidate.proposal.value)
    return found


def _extractor(recording: Recording, topic: str, text: str) -> Any:
    info = recording.topics.get(topic)
    if info is None or info.message_type is None or not text:
        listed = ", ".join(sorted(recording.topics)) or "none"
        raise InputError(
            f"{recording.path} has no topic {topic!r} that can be read" if text else repr(topic),
            key="--plot",
            accepted=f"TOPIC:FIELD with one of its topics: {listed}",
        )
    return compile_extractor(info.message_type, [parse_expression(text)])


def _number(extract: Any, data: Any) -> float:
    try:
        (value,) = extract(data)
    except DecodeError:
        return math.nan
    return _plain(value)


def _plain(value: Any) -> float:
    return float(value) if isinstance(value, int | float | np.number) else math.nan


def _trace(trace: JsonTrace, plot: str | None) -> Contents:
    """Read all lines of a trace once."""
    if plot is not None and plot not in trace.signals:
        listed = ", ".join(trace.signals)
        raise InputError(
            f"{trace.path} has no value {plot!r}", key="--plot", accepted=f"one of: {listed}"
        )
    counts = dict.fromkeys(trace.signals, 0)
    low = dict.fromkeys(trace.signals, math.inf)
    high = dict.fromkeys(trace.signals, -math.inf)
    times, values = list[float](), list[float]()
    for time_ns, _, line in trace.read(None):
        assert isinstance(line, Mapping)
        for name, value in line.items():
            if name in counts and value is not None and not isinstance(value, Unknown):
                number = _plain(value)
                counts[name] += 1
                low[name], high[name] = min(low[name], number), max(high[name], number)
        if plot is not None:
            times.append((time_ns - trace.start_ns) / NANOSECONDS)
            values.append(_plain(line.get(plot)))
    names = {
        name: {"lines": counts[name], "low": low[name], "high": high[name]}
        for name in trace.signals
    }
    return Contents(
        trace.path, trace.start_ns, trace.duration, trace.count, trace.timed, (), names,
        tuple(trace.warnings), times, values,
    )  # fmt: skip


def _show(one: Contents, output: Output) -> None:
    begins = ""
    if one.start_ns > SYSTEM_TIME_NS:
        moment = datetime.fromtimestamp(one.start_ns / NANOSECONDS, timezone.utc)
        begins = f" from {moment:%Y-%m-%d %H:%M:%S} UTC"
    length = f"{one.duration:.1f} s{begins}, " if one.timed else "steps without times, "
    what = "message" if one.topics else "line"
    output.say(f"{one.path}: {length}{plural(one.messages, what)}")
    columns = ("topic", "?type", ">messages", ">rate", ">99 % within", ">longest gap", ">at",
               "could be watched")  # fmt: skip
    output.table(columns, [_row(topic) for topic in one.topics])
    rows = [
        [name, f"{summary['lines']:,}", _figure(summary["low"]), _figure(summary["high"])]
        for name, summary in one.names.items()
    ]
    output.table(("value", ">lines", ">least", ">greatest"), rows)
    for topic in one.topics:
        if topic.clock:
            output.warn(f"{topic.name}: {topic.clock}")
    for text in one.warnings:
        output.warn(f"{one.path}: {text}")
    output.say()


def _row(topic: TopicTimes) -> list[str]:
    more = len(topic.watched) - NAMED
    shown = [*topic.watched[:NAMED], *([f"{more} more"] if more > 0 else [])]
    return [
        topic.name,
        topic.msgtype,
        f"{topic.messages:,}",
        _figure(topic.rate, " Hz"),
        _figure(topic.within, " s"),
        _figure(topic.longest, " s"),
        _figure(topic.at, " s"),
        ", ".join(shown),
    ]


def _figure(value: float, unit: str = "") -> str:
    return f"{value:.3g}{unit}" if math.isfinite(value) else "-"


def plotted(times: Sequence[float], values: Sequence[float]) -> Iterator[str]:
    """Yield a picture of a signal in lines of text.

    Each column shows the range of the values that arrived in its part of the time.
    """
    at, value = np.array(times), np.array(values)
    known = np.isfinite(value)
    if not known.any():
        yield "no number arrived"
        return
    low, high = float(value[known].min()), float(value[known].max())
    span = max(float(at.max() - at.min()), 1e-9)
    column = np.minimum(((at - at.min()) / span * WIDTH).astype(int), WIDTH - 1)
    row = np.zeros(len(value), dtype=int)
    if high > low:
        row[known] = np.rint((value[known] - low) / (high - low) * (HEIGHT - 1)).astype(int)
    cells = np.full((HEIGHT, WIDTH), " ")
    for place in np.unique(column[known]):
        here = row[known & (column == place)]
        cells[here.min() : here.max() + 1, place] = "█"
    labels = [f"{high:.4g}", *[""] * (HEIGHT - 2), f"{low:.4g}"]
    width = max(map(len, labels))
    for label, line in zip(labels, cells[::-1], strict=True):
        yield f"{label:>{width}} ┤{''.join(line).rstrip()}"
    yield f"{'':>{width}} └{'─' * WIDTH}"
    ends = f"{at.min():.1f} s", f"{at.max():.1f} s"
    yield f"{'':>{width}}  {ends[0]}{ends[1]:>{WIDTH - len(ends[0])}}"
