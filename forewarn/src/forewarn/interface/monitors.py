"""A monitor file with its model, and one run that a program steps through it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.config.actions import NO_ACTION
from forewarn.errors import ConfigError, RecordingError
from forewarn.interface.learned import Learned
from forewarn.models.counts import CountModel
from forewarn.monitoring import step
from forewarn.monitoring.evaluate import EscalationChains, Memory, evaluate
from forewarn.monitoring.intervention import Intervention
from forewarn.monitoring.loading import make_monitor
from forewarn.monitoring.session import Session
from forewarn.monitoring.verdict import PropertyVerdict
from forewarn.recordings.interface import Sample
from forewarn.recordings.traces import NO_TIME, line_value, sample_of
from forewarn.signals.clock import NANOSECONDS


def load_monitor(config: Path | str, model: Path | str | Learned | None = None) -> Monitor:
    """Load a monitor file and its model, and compute the risks.

    Parameters
    ----------
    config : path
        The monitor file.
    model : path or Learned, optional
        The model file, or the result of `learn`. By default, it is the file that the monitor file
        names. If the monitor file names none, the monitor reports violations and no risks.

    Returns
    -------
    Monitor
        The monitor, ready to be used.

    Raises
    ------
    ForewarnError
        If a file cannot be read, if it has an error, or if the model was learned with other
        signals, predicates or another rate than the monitor file has.
    """
    given = model.model if isinstance(model, Learned) else model if model is None else Path(model)
    compiled, counts = make_monitor(Path(config), given)
    return Monitor(compiled, counts)


@dataclass(frozen=True, repr=False)
class Monitor:
    """A monitor file with its model, ready to be used. `load_monitor` returns it.

    A monitor never changes. Any number of runs and threads may share it.

    Attributes
    ----------
    compiled, counts
        The compiled monitor file and the model. These attributes are internal.
    """

    compiled: step.Monitor
    counts: CountModel | None

    def __repr__(self) -> str:
        """Return the file, the properties, and whether there is a model."""
        file = self.compiled.spec.file
        model = "without model" if self.counts is None else f"{self.counts.size} states"
        return f"Monitor({file}: {', '.join(self.properties)}; {model})"

    @property
    def properties(self) -> tuple[str, ...]:
        """Names of the properties, in the order of the monitor file."""
        return tuple(self.compiled.spec.properties)

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals that `Run.step` takes. Derived signals are computed from them."""
        return tuple(source.name for source in self.compiled.abstraction.sources)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user about properties and risks, one sentence each."""
        return self.compiled.all_notes

    def start(self) -> Run:
        """Return a run before its first step."""
        return Run(self)


class Step(NamedTuple):
    """The verdict of a monitor at one moment.

    Attributes
    ----------
    time : float
        Time in seconds. Under ``clock: steps`` without times, it is the number of the step.
    state : str
        The predicates that hold in the state, in words.
    properties : dict of str to PropertyVerdict
        The verdict on each property, by its name. ``probability``, ``lower`` and ``upper`` are
        the risk of a violation within the horizon and its bounds, in [0, 1]. They are NaN without
        a model. ``violation`` is True at the moment at which the property is violated. ``status``
        and ``level`` are enumerations.
    intervention : Intervention or None
        The intervention that is requested now, with ``action``, ``property``, ``reason`` and
        ``evidence``. Its ``active`` is True only if the monitor file says ``mode: act``. It is
        None if no intervention is requested.
    unknown : tuple of str
        Signals without a value: none has arrived, or the last one is older than the timeout.
    problems : tuple of str
        Values that arrived and could not be used, with the reason.
    """

    time: float
    state: str
    properties: dict[str, PropertyVerdict]
    intervention: Intervention | None
    unknown: tuple[str, ...]
    problems: tuple[str, ...]


class Run:
    """One run of a robot or an agent that is monitored step by step.

    A run remembers its past. Its verdicts are those of `replay` for the same values, to the last
    bit. Only one thread at a time may use it.

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
        self._chains = EscalationChains.of(monitor.compiled)
        none = [0] * len(monitor.properties)
        self._memory = Memory(monitor.compiled.start(), none)

    def step(self, values: Mapping[str, Any]) -> Step:
        """Take the values of the signals at one moment, and return the verdict of the monitor.

        Parameters
        ----------
        values : mapping
            The value of each signal by its name, as in a line of a trace. None means unknown. A
            signal that is left out keeps its last value until its timeout is over. ``action`` is
            the name of the action that is taken next. ``t`` is the time in seconds. Without ``t``,
            the moment is the next step, or the next tick.

        Returns
        -------
        Step
            The verdict at this moment.

        Raises
        ------
        ForewarnError
            If a value has a type that no signal can have, or if the time is not later than the
            last one.
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
                f"{sample.time_ns / NANOSECONDS:g} s belongs to a {clock.noun} that is over",
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
