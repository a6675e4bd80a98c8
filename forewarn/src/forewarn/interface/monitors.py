"""A monitor file with its model, and one run that is stepped through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.config.actions import NO_ACTION
from forewarn.errors import ConfigError, RecordingError
from forewarn.interface.learned import Learned
from forewarn.models import CountModel
from forewarn.monitoring import step
from forewarn.monitoring.evaluate import Chains, Memory, evaluate
from forewarn.monitoring.intervention import Request
from forewarn.monitoring.loading import make_monitor
from forewarn.monitoring.session import Session
from forewarn.monitoring.verdict import PropertyVerdict
from forewarn.recordings.annotate import line_value
from forewarn.recordings.interface import Sample
from forewarn.recordings.traces import NO_TIME, sample_of
from forewarn.signals.clock import NANOSECONDS


def load_monitor(config: Path | str, model: Path | str | Learned | None = None) -> Monitor:
    """Load a monitor file and its model, and compute the risks.

    Parameters
    ----------
    config : path
        The monitor file.
    model : path or Learned, optional
        The model file, or what `learn` gave. By default the file that the monitor file names;
        if it names none, violations are told and no risks.

    Raises
    ------
    ForewarnError
        If a file cannot be read or is wrong, or the two do not belong together.
    """
    given = model.model if isinstance(model, Learned) else model if model is None else Path(model)
    compiled, counts = make_monitor(Path(config), given)
    return Monitor(compiled, counts)


@dataclass(frozen=True)
class Monitor:
    """A monitor file with its model, ready to use; `load_monitor` makes it.

    It never changes: any number of runs and threads may share it.

    Attributes
    ----------
    compiled, counts
        For Forewarn itself.
    """

    compiled: step.Monitor
    counts: CountModel | None

    @property
    def properties(self) -> tuple[str, ...]:
        """Names of the properties, in the order of the monitor file."""
        return tuple(self.compiled.spec.properties)

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals that are read; others are computed from them."""
        return tuple(source.name for source in self.compiled.abstraction.sources)

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to know about properties and risks, in words."""
        return self.compiled.notes

    def start(self) -> Run:
        """Return a run before its first step."""
        return Run(self)


class Step(NamedTuple):
    """What a monitor says of one moment.

    Attributes
    ----------
    time : float
        When that was, in seconds; under ``clock: steps`` without times, the number of the step.
    state : str
        What holds, in words: the predicates of the state.
    properties : dict of str to PropertyVerdict
        Each property by its name: ``probability``, ``lower`` and ``upper`` of a violation within
        the horizon, in [0, 1] and NaN without a model; ``violation``, True at the moment that
        breaks the property; ``status`` and ``level``, whose names are words.
    intervention : Request or None
        What is asked for now: ``action``, ``property``, ``reason``, ``evidence``; ``active`` only
        if the monitor file says ``mode: act``. None while nothing is.
    unknown : tuple of str
        Signals without a value: they never came, or are too old.
    problems : tuple of str
        Values that came and could not be used.
    """

    time: float
    state: str
    properties: dict[str, PropertyVerdict]
    intervention: Request | None
    unknown: tuple[str, ...]
    problems: tuple[str, ...]


class Run:
    """One run of a robot or an agent beside a monitor, which tells of each step what it thinks.

    It remembers what happened, and gives to the last bit what `replay` gives for the same values.
    One thread at a time may use it.

    Parameters
    ----------
    monitor : Monitor
        The monitor.

    Raises
    ------
    ForewarnError
        If the monitor file counts the messages of a topic as steps.
    """

    def __init__(self, monitor: Monitor) -> None:
        spec = monitor.compiled.spec
        if spec.step is not None:
            raise ConfigError(
                f"{spec.step}: steps are messages of a topic, and values by name are none",
                file=spec.file,
                key="step",
                accepted="clock: steps without step, or ticks",
            )
        self.monitor = monitor
        self._session = Session(monitor.compiled, {})
        self._chains = Chains.of(monitor.compiled)
        none = [0] * len(monitor.properties)
        self._memory = Memory(monitor.compiled.start(), none)

    def step(self, values: Mapping[str, Any]) -> Step:
        """Take in the values of signals, and return what the monitor says of the moment.

        Parameters
        ----------
        values : mapping
            What a line of a trace holds: signals by name, None for unknown; ``action`` names what
            is done next; ``t`` is the time in seconds. Without it, a step follows the one before,
            and a tick lies one period after it. A signal that is not given keeps its value until
            that is too old.

        Raises
        ------
        ForewarnError
            If a value is of no type that a signal may have, or a time does not lie after the last.
        """
        session = self._session
        moments, clock = session.feed.moments, session.clock
        sample = _sample(values)
        last = self._memory.state.tick
        if sample.time_ns == NO_TIME:
            sample = sample._replace(time_ns=clock.time_ns(0 if last is None else last + 1))
        if session.actions is not None:
            (sample,) = session.actions.listen([sample], moments)
        due = moments.following(sample.time_ns)
        if last is not None and due <= last:
            raise RecordingError(
                f"{sample.time_ns / NANOSECONDS:g} s belongs to a tick that is over",
                key="t",
                accepted=f"a time after {clock.time_ns(last) / NANOSECONDS:g} s",
            )
        session.accept(sample.topic, sample.time_ns, sample.data)
        evaluated = evaluate(
            self.monitor.compiled, self._chains, self._memory, session.snapshot(due)
        )
        self._memory = evaluated.memory
        verdict, request = evaluated.result.verdict, evaluated.result.request
        return Step(
            verdict.time_ns / NANOSECONDS,
            self.monitor.compiled.abstraction.vocabulary.observed_name(verdict.observation),
            {prop.name: prop for prop in verdict.properties},
            None if request is None or request.action == NO_ACTION else request,
            tuple(stale.name for stale in verdict.stale),
            tuple(f"{failure.where}: {failure.reason}" for failure in verdict.failures),
        )


def _sample(values: Mapping[str, Any]) -> Sample:
    """Return the values as a line of a trace; raises RecordingError."""
    try:
        return sample_of({name: line_value(name, value)[0] for name, value in values.items()})
    except ValueError as error:
        raise RecordingError(str(error)) from error
