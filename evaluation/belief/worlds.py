"""Chains that Forewarn and premise both follow: our own with noise, and premise's examples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.config import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models import CountModel
from forewarn.models.counts import Smoothing
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.step import Monitor

Reading = tuple[bool | None, ...]
"""What is read of each predicate; None where nothing is."""

SUCCESSORS = 6
MISSING = Fraction(1, 10)
"""How probable it is that a noisy predicate is not read at a tick."""

WHOLE = 1 << 46
"""Counts of a row whose probabilities are given: no probability is off by more than 1e-14."""


@dataclass(frozen=True)
class World:
    """A random chain over all vectors of some predicates, and how they are read.

    The first `noisy` predicates are read wrongly or not at all, the last `silent` ones never;
    those between are known.

    Attributes
    ----------
    width : int
        Predicates; the chain has ``2**width`` states.
    within : int
        Steps within which the second predicate has to follow the first.
    horizon : int
        Steps that a risk looks ahead.
    """

    name: str
    width: int
    noisy: int
    silent: int
    within: int = 5
    horizon: int = 10
    seed: int = 1

    @property
    def noise(self) -> dict[int, Fraction]:
        """How probable a wrong reading is, by predicate."""
        return {i: Fraction(1, 20 - 10 * (i % 2)) for i in range(self.noisy)}

    @property
    def text(self) -> str:
        """The monitor file."""
        names = [f"p{i}" for i in range(self.width)]
        signals = ", ".join(f"s_{name}: {{timeout: never}}" for name in names)
        predicates = ", ".join(f"{name}: s_{name}" for name in names)
        noise = ", ".join(f"p{i}: {float(wrong)}" for i, wrong in self.noise.items())
        return (
            f"rate: 1\nstartup: 0\nbounds: {{kind: none}}\nsignals: {{{signals}}}\n"
            f"predicates: {{{predicates}}}\nnoise: {{{noise}}}\nproperties:\n"
            f"  responds: {{formula: 'always(p0 implies eventually[0:{self.within} steps](p1))', "
            f"horizon: {self.horizon}, figure: expected}}\n"
        )

    def monitor(self) -> tuple[Monitor, CountModel]:
        """Return the monitor, and the counts that it has learned."""
        compiled = compile_spec(parse_spec(parse_document(self.text)))
        model = _model(compiled, range(2**self.width), _drawn(2**self.width, self.seed))
        return build_monitor(compiled, model), model

    def readings(self, state: int) -> Iterator[tuple[Reading, Fraction]]:
        """Yield what may be read in a state, and how probably."""
        truth = [bool(state >> i & 1) for i in range(self.width)]
        known = tuple(truth[self.noisy : self.width - self.silent])
        for noisy in itertools.product((False, True, None), repeat=self.noisy):
            share = Fraction(1)
            for i, value in enumerate(noisy):
                wrong = self.noise[i]
                right = wrong if value != truth[i] else 1 - wrong
                share *= MISSING if value is None else (1 - MISSING) * right
            yield (*noisy, *known, *(None,) * self.silent), share


def _drawn(size: int, seed: int) -> sparse.csr_matrix:
    """Return counts of a random chain with few successors a state, shape (size, size)."""
    rng = np.random.default_rng(seed)
    targets = np.array([rng.choice(size, SUCCESSORS, replace=False) for _ in range(size)])
    rows = np.repeat(np.arange(size), SUCCESSORS)
    counts = rng.integers(1, 100, size=rows.size)
    return sparse.csr_matrix((counts, (rows, targets.ravel())), shape=(size, size))


def _model(compiled: CompiledSpec, states: Sequence[int], counts: sparse.csr_matrix) -> CountModel:
    """Return a model of counts that nothing smooths."""
    abstraction = compiled.abstraction
    starts = np.zeros(len(states), dtype=np.int64)
    return CountModel(
        abstraction.vocabulary, 1.0, abstraction.digest, tuple(states), counts, starts,
        Smoothing("none"),
    )  # fmt: skip


class Programme:
    """A world as a POMDP of PRISM, whose risk is premise's to compute.

    A place is a state, what the automaton remembers, and whether there is a violation; `x` is its
    number, and `z` that of what is read. Place 0 lies before the first tick.
    """

    def __init__(self, world: World, monitor: Monitor, model: CountModel) -> None:
        self.world, (self._compiled,) = world, monitor.properties
        self.z: dict[Reading, int] = {}
        self._places: dict[tuple[int, int, bool], int] = {}
        rows = [self._shares(model.counts.getrow(i)) for i in range(model.size)]
        often = model.visits + model.starts
        first = {i: Fraction(int(n), int(often.sum())) for i, n in enumerate(often) if n}
        live = self._compiled.live
        waiting = [(0, live.initial, False)]
        commands = [self._command(0, live.initial, first, waiting)]
        done = 1
        while done < len(waiting):
            state, branch, _ = waiting[done]
            commands.append(self._command(done, branch, rows[state], waiting))
            done += 1
        body = "\n".join(commands)
        self.places = len(self._places)
        self.text = (
            "pomdp\nobservables z endobservables\nmodule m\n"
            f"x: [0..{self.places}] init 0;\nz: [0..{len(self.z)}] init 0;\nv: bool init false;\n"
            f'{body}\nendmodule\nlabel "violated" = v;\n'
        )

    def _shares(self, row: Any) -> dict[int, Fraction]:
        total = int(row.sum())
        return {int(i): Fraction(int(n), total) for i, n in zip(row.indices, row.data, strict=True)}

    def _command(
        self, place: int, branch: int, step: Mapping[int, Fraction], waiting: list[Any]
    ) -> str:
        live, found = self._compiled.live, []
        for state, probability in step.items():
            at = branch, self._compiled.letters_of(state)[0]
            key = state, int(live.following[at]), bool(live.outcome[at])
            if key not in self._places:
                self._places[key] = len(self._places) + 1
                waiting.append(key)
            for reading, share in self.world.readings(state):
                z = self.z.setdefault(reading, len(self.z) + 1)
                violated = str(key[2]).lower()
                p = probability * share
                found.append(
                    f"{p.numerator}/{p.denominator}: "
                    f"(x'={self._places[key]}) & (z'={z}) & (v'={violated})"
                )
        return f"[] x={place} -> {' + '.join(found)};"


@dataclass(frozen=True)
class Hidden:
    """A chain of hidden states, read as predicates: bits of what is observed, and of the rest.

    Attributes
    ----------
    states : tuple of int
        Code of each state of the chain.
    known : int
        How many predicates are observed; those after them never are.
    """

    monitor: Monitor
    states: tuple[int, ...]
    width: int
    known: int

    @classmethod
    def of(cls, told: Mapping[str, Any], horizon: int | None) -> Hidden:
        """Return the monitor of a chain as premise's side tells it."""
        observed = np.array(told["observations"])
        bad = np.zeros(observed.size, dtype=bool)
        bad[told["bad"]] = True
        inside = _within(observed)
        known, hidden = _bits(observed), _bits(inside)
        codes = observed | inside << known | bad.astype(np.int64) << (known + hidden)
        names = [f"o{i}" for i in range(known)] + [f"h{i}" for i in range(hidden)] + ["bad"]
        asked = f"formula: always(not bad), figure: expected, horizon: {horizon or 'unbounded'}"
        text = (
            "rate: 1\nstartup: 0\nbounds: {kind: none}\n"
            f"signals: {{{', '.join(f's_{name}: {{timeout: never}}' for name in names)}}}\n"
            f"predicates: {{{', '.join(f'{name}: s_{name}' for name in names)}}}\n"
            f"properties: {{safe: {{{asked}}}}}\n"
        )
        compiled = compile_spec(parse_spec(parse_document(text)))
        rows, columns, shares = (np.array(column) for column in zip(*told["entries"], strict=True))
        counts = np.rint(shares * WHOLE).astype(np.int64)
        shape = observed.size, observed.size
        rows, columns = rows.astype(np.int64), columns.astype(np.int64)
        matrix = sparse.csr_matrix((counts, (rows, columns)), shape=shape)
        model = _model(compiled, codes.tolist(), matrix)
        return cls(build_monitor(compiled, model), tuple(codes.tolist()), len(names), known)

    def reading(self, observation: int) -> Reading:
        """Return what is read where something is observed."""
        bits = (bool(observation >> i & 1) for i in range(self.known))
        return (*bits, *(None,) * (self.width - self.known))

    def exactly(self, state: int) -> Reading:
        """Return what would be read if all of a state were observed."""
        return tuple(bool(self.states[state] >> i & 1) for i in range(self.width))


def _within(observed: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of each state among those that look the same."""
    seen: dict[int, int] = {}
    found = []
    for observation in observed.tolist():
        found.append(seen.get(observation, 0))
        seen[observation] = found[-1] + 1
    return np.array(found)


def _bits(values: NDArray[np.int64]) -> int:
    return max(1, math.ceil(math.log2(int(values.max()) + 1)))
