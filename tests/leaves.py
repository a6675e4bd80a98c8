"""A kind of states as a learned tree will be: a leaf together with declared atoms. For tests.

The leaf follows from text, a collection and a number; what is unknown leaves several leaves open.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from forewarn.config import MonitorSpec, Section
from forewarn.errors import ModelError
from forewarn.states.abstraction import Abstraction
from forewarn.states.interface import Admission, StateSpace, is_terminal, terminal_index
from forewarn.states.kinds import KINDS, Kind
from forewarn.states.predicates import Observation, build_abstraction
from forewarn.states.vocabulary import Vocabulary


class Split(Section):
    """``{signal: tool, has: send}``, or ``{signal: items, over: 2}``."""

    signal: str
    has: str | None = None
    over: float | None = None

    def holds(self, value: Any) -> bool:
        if self.has is not None:
            return self.has in value
        return bool((len(value) if isinstance(value, list) else value) > self.over)


class Splits(Section):
    """What the monitor file says beside the kind: a list of tests, each splits the rest."""

    splits: tuple[Split, ...]


class Leaf(NamedTuple):
    """What is known of a tick: leaves that it may be in, and the declared atoms."""

    state: int | None
    leaves: tuple[int, ...]
    declared: Observation

    @property
    def ended(self) -> bool:
        return self.declared.ended

    @property
    def active(self) -> bool | None:
        return self.declared.active

    @property
    def intervened(self) -> bool | None:
        return self.declared.intervened


@dataclass(frozen=True)
class Leaves(StateSpace, Admission):
    """State code: number of the leaf, above the bits of the declared atoms."""

    kind = "leaves"
    predicates: tuple[str, ...]
    terminals: tuple[str, ...]
    leaves: int

    @property
    def declared(self) -> Vocabulary:
        return Vocabulary(self.predicates, self.terminals)

    @property
    def present(self) -> tuple[str, ...]:
        return (*self.predicates, *(f"leaf {i}" for i in range(self.leaves)))

    @property
    def cardinality(self) -> int:
        return self.leaves << len(self.predicates)

    @property
    def nothing_known(self) -> Leaf:
        return Leaf(None, tuple(range(self.leaves)), self.declared.nothing_known)

    def content(self) -> dict[str, Any]:
        return {"leaves": self.leaves}

    def split(self, state: int) -> tuple[int, int]:
        return divmod(state, 1 << len(self.predicates))

    def name(self, state: int) -> str:
        if is_terminal(state):
            return self.terminals[terminal_index(state)]
        leaf, mask = self.split(state)
        return f"leaf {leaf}: {self.declared.name(mask)}"

    def key(self, state: int) -> str:
        if is_terminal(state):
            return self.declared.key(state)
        leaf, mask = self.split(state)
        return f"{leaf}:{self.declared.key(mask)}"

    def parse_key(self, key: str) -> int:
        if key.startswith("!"):
            return self.declared.parse_key(key)
        leaf, _, mask = key.partition(":")
        if leaf not in map(str, range(self.leaves)):
            raise ModelError(f"{key!r} is no state", accepted="LEAF:ATOMS")
        return int(leaf) << len(self.predicates) | self.declared.parse_key(mask)

    def holds(self, atom: str, state: int) -> bool:
        if is_terminal(state):
            return self.declared.holds(atom, state)
        leaf, mask = self.split(state)
        return atom == f"leaf {leaf}" or self.declared.holds(atom, mask)

    def candidates(self, observation: Leaf) -> Iterator[int] | None:
        masks = self.declared.candidates(observation.declared)
        if masks is None:
            return None
        width = len(self.predicates)
        pairs = itertools.product(observation.leaves, masks)
        return (leaf << width | mask for leaf, mask in pairs)

    def terminal_candidates(self, observation: Leaf) -> tuple[int, ...]:
        return self.declared.terminal_candidates(observation.declared)

    def parse_observation(self, values: Sequence[Any]) -> Leaf:
        state, leaves, declared = values
        return Leaf(state, tuple(leaves), self.declared.parse_observation(declared))

    def admits(self, state: int) -> bool:
        return state < self.cardinality

    def allows(self, source: int, target: int) -> bool:
        return not is_terminal(source) or source == target

    def states(self) -> list[int]:
        return list(range(self.cardinality))


@dataclass(frozen=True)
class LeafAbstraction(Abstraction):
    def validity(self, spec: MonitorSpec) -> Admission:
        assert isinstance(self.vocabulary, Leaves)
        return self.vocabulary


def _observe(
    splits: Sequence[tuple[int, Split]],
    width: int,
    declared: Callable[[Sequence[Any]], Observation],
) -> Callable[[Sequence[Any]], Leaf]:
    def observe(values: Sequence[Any]) -> Leaf:
        atoms = declared(values)
        leaves = []
        for leaf, (slot, split) in enumerate(splits):
            value = values[slot]
            if value is None or split.holds(value):
                leaves.append(leaf)
            if value is not None and leaves[-1:] == [leaf]:
                break
        else:
            leaves.append(len(splits))
        state = atoms.state
        if state is not None and state >= 0:
            state = leaves[0] << width | state if len(leaves) == 1 else None
        return Leaf(state, tuple(leaves), atoms)

    return observe


def build(spec: MonitorSpec, inline: Iterable[str]) -> LeafAbstraction:
    splits = spec.states_section(Splits).splits
    base = build_abstraction(spec, features=[split.signal for split in splits])
    words = base.vocabulary
    slots = [(base.signals.index(split.signal), split) for split in splits]
    fitted = json.dumps([split.model_dump() for split in splits])
    return LeafAbstraction(
        vocabulary=Leaves(words.predicates, words.terminals, len(splits) + 1),
        sources=base.sources,
        derived=base.derived,
        clock=base.clock,
        digest=hashlib.sha256(f"{base.digest}{fitted}".encode()).hexdigest(),
        evaluate=_observe(slots, len(words.predicates), base.evaluate),
        conditions=base.conditions,
        phases=base.phases,
        action=base.action,
    )


def parse(names: tuple[str, ...], labels: tuple[str, ...], content: Mapping[str, Any]) -> Leaves:
    if content.keys() != {"leaves"}:
        raise ModelError(f"{sorted(content)}", key="leaves", accepted="leaves")
    return Leaves(names, labels, content["leaves"])


KINDS["leaves"] = Kind(build, parse)
