"""From a snapshot of signals to what is known of the state, whatever a state is.

A kind of state gives its `StateSpace`, and a function from the values of all signals to what one
tick shows. All else is the same for every kind: derived signals, phases, the action, which
conditions the type of processor may decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from forewarn.expressions.syntax import Expression
from forewarn.expressions.values import Unknown
from forewarn.signals.snapshots import ABSENT, Ahead, Failure, Snapshot, identical
from forewarn.signals.sources import SourceSignal, stored_value
from forewarn.states.ahead import DerivedSignalBatch
from forewarn.states.interface import Admission, Observed, StateSpace, mark_of
from forewarn.states.learned_signal import LearnedSignal, SignalFit

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.expressions.functions.memory import Cell
    from forewarn.signals.clock import Clock

STATES = "states"
ASKED_EVERY = 64
PHASES = ("active_when", "intervened_when")


class Past(NamedTuple):
    """What a tick leaves to the one that follows.

    `cells`: what the expressions that remember have taken in, in the order of their signals.
    """

    tick: int  # its number
    alone: Observed  # what is known of its state from this tick only
    cells: tuple[Cell, ...] = ()

    def same_but_for_time(self, before: Past | None) -> bool:
        """Tell whether this tick left the same to the last bit as the one before.

        Then further ticks that see the same leave it, too. The comparison is slow, so that it is
        made at one of `ASKED_EVERY` ticks, and False at all others.
        """
        if before is None or self.tick != before.tick + 1 or self.tick % ASKED_EVERY:
            return False
        return identical(self[1:], before[1:])

    def after(self, repeats: int) -> Past:
        """Return what the last of some ticks leaves that are the same."""
        return self._replace(tick=self.tick + repeats) if repeats else self


class Seen(NamedTuple):
    """What a snapshot shows.

    `failures`: derived signals and conditions that have no value although all they need is known.
    """

    observation: Observed  # what is known of the state
    past: Past  # for the tick that follows
    values: list[Any]  # values of all signals in slot order; None where unknown
    failures: tuple[Failure, ...]


class Remembers(Protocol):
    """What a signal remembers, as `expressions.functions.memory` describes cells."""

    @property
    def judges(self) -> bool:
        """Tell whether it is also asked where an argument is unknown."""

    @property
    def start(self) -> Cell:
        """The cell before the first moment of a run."""

    @property
    def forgotten(self) -> Cell:
        """The cell after moments about which nothing is known."""

    def advance(self, cell: Cell, value: Any) -> tuple[Any, Cell]:
        """Take in the value of one moment; return the value of the signal, and the cell."""

    def rest(self, data: Any) -> Cell:
        """Return the cell that plain data were made of; raises ValueError."""


@dataclass(frozen=True)
class DerivedSignal:
    """A signal computed from others, whose slots in the value list are `arguments`.

    Where it has a memory, `function` gives what that takes in at each moment, and `key` is the key
    path of an expression in which it stands.
    """

    name: str
    expression: Expression
    arguments: tuple[int, ...]
    function: Callable[[Sequence[Any]], Any]
    memory: Remembers | None = None
    key: str = ""

    def computed(self, values: Sequence[Any]) -> tuple[Any, str]:
        """Return its value, or what its memory takes in; and why there is none with all known.

        `values`: values of the signals before it, in slot order; None where unknown.
        """
        arguments = [values[slot] for slot in self.arguments]
        for argument in arguments:
            if argument is None and not (self.memory is not None and self.memory.judges):
                return None, ""
        raw = self.function(arguments)
        value = stored_value(raw)
        if value is not None or raw is None:
            return value, ""
        return None, raw.reason if isinstance(raw, Unknown) else "the result is NaN"


@dataclass(frozen=True)
class Abstraction:
    """The signals and states of one monitor file, compiled.

    `sources`, `derived`: signals in the order of their slots: sources first, derived ones in order
    of evaluation.
    `digest`: SHA-256 over everything a learned model depends on: what was fitted, if anything was,
    and the declared atoms too.
    `evaluate`: from the values of all signals to what the tick shows by itself, an `Observed`.
    `conditions`: key path and expression of all that distinguishes states.
    `phases`: the expressions of ``active_when`` and ``intervened_when``, as far as there are any.
    `state_source_recordings`: beginnings of the digests of recordings that a tree was learned from,
    as far as known.
    `rebuild`: makes the same abstraction in another process, where compiled functions cannot go.
    """

    vocabulary: StateSpace  # the states
    sources: tuple[SourceSignal, ...]
    derived: tuple[DerivedSignal, ...]
    clock: Clock  # what a moment is
    digest: str
    evaluate: Callable[[Sequence[Any]], Any]
    remembers: bool = False  # a state also tells of the tick before; see `joined`
    conditions: Mapping[str, Expression] = field(default_factory=dict)
    phases: Mapping[str, Expression] = field(default_factory=dict)
    action: DerivedSignal | None = None  # what names the action
    state_source_recordings: tuple[str, ...] = ()
    fitted: tuple[SignalFit, ...] = ()  # learned scores that are fitted
    rebuild: Callable[[], Abstraction] | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let the abstraction be built again where it arrives."""
        if self.rebuild is None:
            raise TypeError("an abstraction travels only as `forewarn.states.kinds` built it")
        return self.rebuild, ()

    def validity(self, spec: MonitorSpec) -> Admission:
        """Return which states and transitions are valid; raises ConfigError."""
        raise NotImplementedError

    def joined(self, previous: Any, current: Any) -> Any:
        """Return what is observed where a state `remembers`.

        `previous`: what the tick before showed by itself; None at the start of a run.
        `current`: what this tick shows by itself.
        """
        raise NotImplementedError

    def undecided(self, values: Sequence[Any], observation: Any) -> list[tuple[str, str]]:
        """Return the conditions that are unknown although all their signals have a value.

        These are key paths in the monitor file, with the reason; `observation` is what `evaluate`
        made of the values.
        """
        return []

    def differing(self, one: Any, other: Any) -> Iterator[set[str]]:
        """Yield sets of key paths, one of which differs in two observations."""
        if one != other:
            yield {*self.conditions, *self.phases}

    def resolve(self, atom: str) -> tuple[str, bool] | None:
        """Return the name that `atom` of a formula stands for, and whether it is negated."""
        return (atom, False) if atom in self.vocabulary.atoms else None

    @property
    def signals(self) -> tuple[str, ...]:
        """Return the names of all signals in slot order."""
        return (*(s.name for s in self.sources), *(d.name for d in self.derived))

    @cached_property
    def deciding(self) -> frozenset[str]:
        """Signals that distinguish states, without those that they are derived from."""
        names = {name for condition in self.conditions.values() for name in condition.names}
        return frozenset(names & {*self.signals})

    @cached_property
    def by_platform(self) -> frozenset[str]:
        """Key paths of the conditions that the type of processor may decide, by a last bit."""
        marked = {source.name for source in self.sources if source.by_platform}
        marked |= {one.name for one in self.derived if one.expression.by_platform}
        conditions = {**self.conditions, **self.phases}
        marked |= {key for key, expression in conditions.items() if expression.by_platform}
        return self._depending(marked)

    @cached_property
    def learned(self) -> frozenset[str]:
        """Key paths of the conditions that depend on learned scores."""
        return self._depending({name for name, _ in self.scores})

    @cached_property
    def learned_from(self) -> tuple[str, ...]:
        """Beginnings of the digests of the recordings that the states were learned from.

        These are the recordings of a tree, and of learned scores that conditions depend on. What
        happened in them decided where the states are cut.
        """
        fits = [fit for fit in self.fitted if self._depending({fit.name})]
        marks = {mark_of(digest) for fit in fits for digest in fit.recordings}
        return tuple(sorted(marks | {*self.state_source_recordings}))

    def _depending(self, marked: set[str]) -> frozenset[str]:
        """Return the key paths of conditions that are `marked`, or depend on what is."""
        for signal in self.derived:
            if signal.expression.names & marked:
                marked.add(signal.name)
        found = set[str]()
        for key, expression in {**self.conditions, **self.phases}.items():
            if key in marked or expression.names & marked:
                found.add(key)
                marked.add(key.removeprefix("predicates."))
        return frozenset(found)

    @cached_property
    def scores(self) -> tuple[tuple[str, LearnedSignal], ...]:
        """Learned scores by the names of their signals."""
        return tuple(
            (s.name, s.memory) for s in self.derived if isinstance(s.memory, LearnedSignal)
        )

    def without(self, folds: Mapping[str, int]) -> Abstraction:
        """Return the same with learned scores that did not see a fold of the recordings.

        `folds`: the fold, by the names of the scores; others stay as they are.
        """
        changed = (
            replace(one, memory=one.memory.without(folds[one.name]))
            if isinstance(one.memory, LearnedSignal) and one.name in folds
            else one
            for one in self.derived
        )
        return replace(self, derived=tuple(changed), rebuild=None)

    def window(self, name: str, past: Past) -> Cell:
        """Return what the learned score of this name has seen at the moment that left `past`."""
        remembering = [signal.name for signal in self.derived if signal.memory is not None]
        return past.cells[remembering.index(name)]

    def scores_in_words(self, past: Past | None, values: Sequence[Any]) -> tuple[str, ...]:
        """Return a sentence about each learned score at a tick.

        `past`: what the tick left.
        `values`: values of all signals at the tick, in slot order.
        """
        if past is None:
            return ()
        slots = {name: slot for slot, name in enumerate(self.signals)}
        return tuple(
            score.explained(self.window(name, past), values[slots[name]])
            for name, score in self.scores
        )

    @cached_property
    def memories(self) -> tuple[Remembers, ...]:
        """Return what the expressions that remember do, in the order of their signals."""
        return tuple(s.memory for s in self.derived if s.memory is not None)

    @cached_property
    def _blank(self) -> tuple[Cell, ...]:
        return tuple(memory.start for memory in self.memories)

    @cached_property
    def _forgotten(self) -> tuple[Cell, ...]:
        return tuple(memory.forgotten for memory in self.memories)

    def observe(self, snapshot: Snapshot, past: Past | None) -> Seen:
        """Return what the snapshot of one tick shows.

        `snapshot`: the source signals.
        `past`: what the last tick left; None at the start of a run. Of ticks that were missed
        between the two nothing is known.
        """
        tick = snapshot.tick
        before = self.cells(past, tick) if self.memories else ()
        values, failed, cells = self.complete(snapshot.values, before, snapshot.ahead)
        alone = self.evaluate(values)
        if alone.state is None or alone.active is None or alone.intervened is None:
            failed += self.undecided(values, alone)
        observation = self.following(past, tick, alone) if self.remembers else alone
        failures = tuple(map(Failure._make, failed)) if failed else ()
        return Seen(observation, Past(tick, alone, cells), values, failures)

    @cached_property
    def unseen(self) -> Any:
        """Return what a tick shows by itself of which no source is known, without memories."""
        return self.evaluate(self.complete([None] * len(self.sources))[0])

    def decided_by(self, sources: Iterable[str]) -> bool:
        """Tell whether a condition may have a value, or a part of one, with these sources alone."""
        known, names = set(sources), [source.name for source in self.sources]
        for signal in self.derived:
            if signal.memory is not None or known.issuperset(names[s] for s in signal.arguments):
                known.add(signal.name)
            names.append(signal.name)
        read = (each.names for each in (*self.conditions.values(), *self.phases.values()))
        return not self.conditions or not known.isdisjoint(chain.from_iterable(read))

    def following(self, past: Past | None, tick: int, alone: Any) -> Any:
        """Return what is observed of a tick that by itself shows `alone`."""
        if not self.remembers:
            return alone
        missed = past is not None and tick > past.tick + 1
        before = self.vocabulary.nothing_known if missed else past and past.alone
        return self.joined(before, alone)

    def cells(self, past: Past | None, tick: int) -> tuple[Cell, ...]:
        """Return what the expressions that remember have taken in before a tick.

        A run begins with nothing, and so does what follows a terminal label. After moments that
        were missed nothing is known, whatever was before them.
        """
        if past is None:
            return self._blank
        if tick > past.tick + 1:
            return self._forgotten
        if past.alone.ended:
            return self._blank
        unsure = past.alone.state is None and self.vocabulary.terminal_candidates(past.alone)
        return self._forgotten if unsure else past.cells

    @cached_property
    def outlook(self) -> DerivedSignalBatch:
        """Return what computes derived signals for many moments at once."""
        return DerivedSignalBatch(len(self.sources), self.derived)

    def parse_past(self, data: Sequence[Any]) -> Past:
        """Return the `Past`, a tuple, that JSON has made a list of; raises ValueError."""
        tick, alone, cells = data
        pairs = zip(self.memories, cells, strict=True)
        kept = tuple(memory.rest(cell) for memory, cell in pairs)
        return Past(int(tick), self.vocabulary.parse_observation(alone), kept)

    def nothing_seen(self, tick: int) -> Past:
        """Return what a tick leaves if nothing is known of it, nor of any before."""
        return Past(tick, self.vocabulary.nothing_known, self._forgotten)

    def done(self, values: Sequence[Any]) -> tuple[str | None, str]:
        """Return the name of the action, None if unknown, and why it is unknown."""
        if self.action is None:
            return None, ""
        arguments = [values[slot] for slot in self.action.arguments]
        if any(argument is None for argument in arguments):
            return None, ""
        raw = self.action.function(arguments)
        if isinstance(raw, str):
            return raw, ""
        return None, raw.reason if isinstance(raw, Unknown) else f"{raw!r} is no text"

    def complete(
        self,
        sources: Sequence[Any],
        cells: Sequence[Cell] | None = None,
        ahead: Ahead | None = None,
    ) -> tuple[list[Any], list[tuple[str, str]], tuple[Cell, ...]]:
        """Append the derived signals to the values of the sources, in slot order; None if unknown.

        With them come the derived signals whose inputs are known and which still have no value,
        with the reason, and what the expressions that remember have taken in.

        `cells`: what `cells` gave for the moment; that of a run's first one by default.
        `ahead`: what was computed already.
        """
        values: list[Any] = list(sources)
        failures: list[tuple[str, str]] = []
        if not self.derived:
            return values, failures, ()
        left: list[Cell] = []
        given = iter(self._blank if cells is None else cells)
        for place, signal in enumerate(self.derived):
            if ahead is not None and ahead.values[place] is not ABSENT:
                values.append(ahead.values[place])
                if place in ahead.failed:
                    failures.append((signal.name, ahead.failed[place]))
                continue
            value, reason = signal.computed(values)
            if reason:
                failures.append((signal.name, reason))
            if signal.memory is not None:
                raw, cell = signal.memory.advance(next(given), value)
                left.append(cell)
                value = stored_value(raw)
                if isinstance(raw, Unknown):
                    failures.append((signal.name, raw.reason))
            values.append(value)
        return values, failures, tuple(left)
