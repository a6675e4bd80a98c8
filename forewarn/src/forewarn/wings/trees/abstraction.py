"""From signals to the leaf of a tree: its conditions are evaluated like predicates."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from forewarn.config.fields import Section
from forewarn.config.file import MonitorSpec
from forewarn.errors import ConfigError, located
from forewarn.expressions.syntax import normal_form, parse_expression
from forewarn.states.abstraction import Abstraction
from forewarn.states.interface import Admission, is_terminal
from forewarn.states.kinds import Kind
from forewarn.states.predicates.compile import build_abstraction
from forewarn.states.predicates.validity import MAX_STATES, Validity
from forewarn.states.vocabulary import Observation, Vocabulary
from forewarn.wings.trees.nodes import Leaf, Node, conditions, dump_tree, leaves, parse_tree, paths
from forewarn.wings.trees.space import TreeObservation, TreeSpace, parse_space

if TYPE_CHECKING:
    from scipy import sparse

    from forewarn.states.learned_signal import SignalFit
    from forewarn.states.predicates.abstraction import PredicateAbstraction

KEY = "states.tree"
Role = Literal["goal", "checkpoint", "state", "ignored"]


class TreeSection(Section):
    """What ``states:`` says of a tree.

    Attributes
    ----------
    tree : Any
        A leaf's name, or ``if`` (an expression over signals), ``then`` and ``else``. There may be
        1024 leaves, and 32 conditions on a path.
    variables : tuple of str, or mapping of str to str
        Signals that ``learn-states`` may ask about, at most 1,000: a list of names, or ``name:
        role``. A ``goal`` stays the same through an episode, a ``checkpoint`` is a flag of the
        workflow, ``ignored`` is not asked about, ``state`` is any other. Where not given: all
        signals.
    state_source_recordings : tuple of str
        What ``learn-states`` and ``refine`` write: beginnings of the digests of the recordings that
        the tree is from. Bounds from counts of the same recordings are not sound, and ``check``, a
        shield and ``risk_measure: min_risk`` say so; without the key they say that it is not known.
    """

    tree: Any = "s0"
    variables: tuple[str, ...] | dict[str, Role] = ()
    state_source_recordings: tuple[str, ...] = ()

    @property
    def roles(self) -> dict[str, Role]:
        """Return the variables that are named, each with its role."""
        named = self.variables
        return named if isinstance(named, dict) else dict.fromkeys(named, "state")


Compiled = tuple[int, "Compiled", "Compiled"] | int
"""Bit of the condition and the two ways on, or the number of a leaf."""


@dataclass(frozen=True)
class TreeAbstraction(Abstraction):
    """Signals, declared predicates and a tree, compiled.

    `vector` has the declared predicates and after them the conditions of the tree; `bits` is the
    bit of each condition, by its text.
    """

    vocabulary: TreeSpace
    vector: PredicateAbstraction | None = None
    bits: Mapping[str, int] | None = None

    def validity(self, spec: MonitorSpec) -> TreeAdmission:
        """Return which states and transitions are valid; raises ConfigError."""
        assert self.vector is not None and self.bits is not None
        fixed = []
        for _, path in paths(self.vocabulary.tree):
            mask = sum({1 << self.bits[text] for text, _ in path})
            held = sum({1 << self.bits[text] for text, outcome in path if outcome})
            fixed.append((mask, held))
        return TreeAdmission(self.vocabulary, self.vector.validity(spec), tuple(fixed))

    def undecided(
        self, values: Sequence[Any], observation: TreeObservation
    ) -> list[tuple[str, str]]:
        """Return the conditions that are unknown although all their signals have a value."""
        assert self.vector is not None
        found = self.vector.undecided(values, self.vector.evaluate(values))
        return [(key.replace(f"predicates.{KEY}", KEY), reason) for key, reason in found]

    def resolve(self, atom: str) -> tuple[str, bool] | None:
        """Return the declared name that `atom` stands for, and whether it is negated."""
        assert self.vector is not None
        found = self.vector.resolve(atom)
        return found if found is not None and found[0] in self.vocabulary.atoms else None


@dataclass(frozen=True)
class TreeAdmission(Admission):
    """Which leaves and predicates can hold together.

    For each leaf `paths` has the bits of the conditions on its path, and those of them that hold.
    """

    space: TreeSpace
    vector: Validity
    paths: tuple[tuple[int, int], ...]

    def admits(self, state: int) -> bool:
        """Tell whether `state` can occur; terminal labels always can."""
        if is_terminal(state):
            return True
        leaf, mask = self.space.parts(state)
        asked, held = self.paths[leaf]
        asked |= (1 << self.space.width) - 1
        held |= mask
        return all(
            any((pattern ^ held) & group.mask & asked == 0 for pattern in group.patterns)
            for group in self.vector.groups
        ) and all(rule(mask) for rule in self.vector.rules)

    def allows(self, source: int, target: int) -> bool:
        """Tell whether the transition is valid."""
        if is_terminal(source):
            return source == target
        return self.vector.allows(self._mask(source), self._mask(target))

    def _mask(self, state: int) -> int:
        return state if is_terminal(state) else self.space.parts(state)[1]

    def forbidden_matrix(self, states: Sequence[int]) -> sparse.csr_matrix:
        """Return the transitions that declared rules forbid, shape (n, n), Boolean."""
        return self.vector.forbidden_matrix([self._mask(state) for state in states])

    def states(self) -> list[int]:
        """Return all admissible states without terminal labels; raises ConfigError if too many."""
        width = self.space.width
        declared = (1 << width) - 1
        grouped = sum(group.mask for group in self.vector.groups) & declared
        loose = [(0, 1 << i) for i in range(width) if not grouped >> i & 1]
        found: list[int] = []
        for leaf, (asked, held) in enumerate(self.paths):
            parts = [
                sorted({p & declared for p in g.patterns if (p ^ held) & g.mask & asked == 0})
                for g in self.vector.groups
            ]
            choices = [*parts, *loose]
            if math.prod(map(len, choices)) + len(found) > MAX_STATES:
                raise ConfigError(
                    f"{len(self.paths)} leaves and {width} predicates have more than "
                    f"{MAX_STATES} admissible states",
                    key="learning.candidates",
                    accepted="observed, fewer predicates, or constraints between them",
                )
            for chosen in itertools.product(*choices):
                mask = sum(chosen)
                if all(rule(mask) for rule in self.vector.rules):
                    found.append(leaf << width | mask)
        return sorted(found)


def build_tree_abstraction(
    spec: MonitorSpec, inline: Iterable[str], fitted: Sequence[SignalFit] = ()
) -> TreeAbstraction:
    """Return the abstraction of a monitor file with leaves of a tree as states; raises ConfigError.

    Formulas may name declared predicates and terminal labels only: comparisons of theirs (`inline`)
    do not become predicates.
    """
    del inline
    section = spec.states_section(TreeSection)
    with located(ConfigError, file=spec.file):
        tree = parse_tree(section.tree, KEY)
    if spec.history != 1:
        raise ConfigError(
            "a tree remembers nothing", file=spec.file, key="history", accepted="1, with a tree"
        )
    texts: dict[str, str] = {}
    for key, text in conditions(tree, KEY):
        texts.setdefault(text, key)
    further = {key: text for text, key in texts.items()}
    vector = build_abstraction(spec, further=further, fitted=fitted)
    names = vector.vocabulary.predicates
    width = len(names) - len(texts)
    bits = {text: width + i for i, text in enumerate(texts)}
    declared = Vocabulary(names[:width], vector.vocabulary.terminals)
    for name in leaves(tree):
        if name in declared.atoms:
            raise ConfigError(
                f"the leaf {name!r} has the name of a predicate or terminal label",
                file=spec.file,
                key=KEY,
                accepted="a name of its own",
            )
    space = TreeSpace(declared, tree)
    return TreeAbstraction(
        vocabulary=space,
        sources=vector.sources,
        derived=vector.derived,
        clock=vector.clock,
        digest=_digest(vector.digest, tree),
        evaluate=_evaluator(vector.evaluate, tree, bits, width),
        conditions={
            key.replace(f"predicates.{KEY}", KEY): one for key, one in vector.conditions.items()
        },
        phases=vector.phases,
        action=vector.action,
        state_source_recordings=section.state_source_recordings,
        fitted=vector.fitted,
        vector=vector,
        bits=bits,
    )


def _digest(vector: str, tree: Node) -> str:
    """Hash what the counts depend on: the shape of the tree and its names come on top."""
    shape = _normal(tree)
    return hashlib.sha256(f"{vector}{json.dumps(shape)}".encode()).hexdigest()


def _normal(tree: Node) -> Any:
    shape = dump_tree(tree)
    waiting = [shape]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            node["if"] = normal_form(parse_expression(node["if"]))
            waiting += [node["then"], node["else"]]
    return shape


def _evaluator(
    evaluate: Callable[[Sequence[Any]], Observation],
    tree: Node,
    bits: Mapping[str, int],
    width: int,
) -> Callable[[Sequence[Any]], TreeObservation]:
    numbers = iter(range(len(leaves(tree))))

    def compiled(node: Node) -> Compiled:
        if isinstance(node, Leaf):
            return next(numbers)
        then = compiled(node.then)
        return (1 << bits[node.condition], then, compiled(node.otherwise))

    root = compiled(tree)
    everything = (1 << width) - 1

    def observe(values: Sequence[Any]) -> TreeObservation:
        known, mask = (found := evaluate(values)).known, found.mask
        here = root
        while not isinstance(here, int):
            bit, then, otherwise = here
            if not known & bit:
                break
            here = then if mask & bit else otherwise
        may = 1 << here if isinstance(here, int) else _possible(here, known, mask)
        state = found.state
        declared = mask & everything
        certain = known & everything == everything and not found.open_terminals
        if not found.ended:
            state = here << width | declared if isinstance(here, int) and certain else None
        atoms = Observation(
            found.state if found.ended else declared if certain else None,
            known & everything,
            declared,
            found.open_terminals,
            found.active,
            found.intervened,
            found.ended,
        )
        return TreeObservation(state, atoms, may, found.ended, found.active, found.intervened)

    return observe


def _possible(node: Compiled, known: int, mask: int) -> int:
    """Return the leaves that may be reached, as bits."""
    return sum({1 << leaf for leaf in _reached(node, known, mask)})


def _reached(node: Compiled, known: int, mask: int) -> Iterator[int]:
    if isinstance(node, int):
        yield node
        return
    bit, then, otherwise = node
    if not known & bit or mask & bit:
        yield from _reached(then, known, mask)
    if not known & bit or not mask & bit:
        yield from _reached(otherwise, known, mask)


KIND = Kind(build_tree_abstraction, parse_space)
