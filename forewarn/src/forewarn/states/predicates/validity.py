"""Which states can occur, and which transitions (DESIGN: Validity).

A state is admissible if some valuation of the signals gives it: ``a > 0`` and ``a < 0`` never hold
together. Thresholds on one signal cut its range into finitely many regions, and every region
fixes all comparisons at once; so the regions, not the predicates, are enumerated. What is no
comparison with a number may be true or false freely. Declared constraints narrow this down.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from forewarn.errors import ConfigError, ConfigErrors, ExpressionError, InputError
from forewarn.expressions.comparisons import as_comparison
from forewarn.expressions.syntax import Expression, parse_expression
from forewarn.states.predicates.kleene import compile_test

if TYPE_CHECKING:
    from scipy import sparse

    from forewarn.config.file import MonitorSpec
    from forewarn.states.vocabulary import Vocabulary

MAX_PATTERNS = 1 << 16
MAX_STATES = 1 << 16

StateTest = Callable[[int], bool]


class Declared(Protocol):
    """What an abstraction declares."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Names of predicates and terminal labels."""

    @property
    def predicates(self) -> Sequence[Expression]:
        """One for each declared predicate."""

    @property
    def remembers(self) -> bool:
        """States hold the predicates of the tick before as well."""

    def resolve(self, atom: str) -> tuple[str, bool] | None:
        """Return the vocabulary name that `atom` stands for, and whether it is negated."""


@dataclass(frozen=True)
class Group:
    """Predicates that share signals, and the joint values they can take."""

    mask: int  # bits of the predicates
    patterns: frozenset[int]  # values of ``state & mask`` that some valuation gives


@dataclass(frozen=True)
class Validity:
    """Admissible states and valid transitions of one abstraction.

    `rules`: declared constraints on states; each tells whether a state is allowed.
    `forbidden`: declared constraints on transitions: none from a state where the first holds to one
    where the second does.
    `remembers`: states hold the predicates of the tick before in their upper `width` bits.
    """

    groups: tuple[Group, ...]  # what interval reasoning gives
    rules: tuple[StateTest, ...]
    forbidden: tuple[tuple[StateTest, StateTest], ...]
    width: int  # number of predicates
    remembers: bool = False

    def admits(self, state: int) -> bool:
        """Tell whether `state` can occur; terminal labels always can."""
        if state < 0:
            return True
        if self.remembers:
            before, now = divmod(state, 1 << self.width)
            # An episode begins with the present in place of the past, as if nothing moved.
            return self._admits(before) and self._admits(now) and self._allows(before, now)
        return self._admits(state)

    def _admits(self, state: int) -> bool:
        return all(state & g.mask in g.patterns for g in self.groups) and all(
            rule(state) for rule in self.rules
        )

    def allows(self, source: int, target: int) -> bool:
        """Tell whether the transition is valid."""
        if source < 0:
            return source == target
        if self.remembers:
            now = source % (1 << self.width)
            if target >= 0 and target >> self.width != now:
                return False
            return self._allows(now, target if target < 0 else target % (1 << self.width))
        return self._allows(source, target)

    def _allows(self, source: int, target: int) -> bool:
        return not any(leaves(source) and enters(target) for leaves, enters in self.forbidden)

    def forbidden_matrix(self, states: Sequence[int]) -> sparse.csr_matrix:
        """Return the transitions that declared rules forbid, shape (n, n), Boolean.

        Rows of terminal states are left empty: that they absorb is no declared rule.
        """
        from scipy import sparse

        n = len(states)
        matrix = sparse.csr_matrix((n, n), dtype=bool)
        if self.remembers:
            # The past of the next state is the present of this one: most pairs do not fit.
            refused = [[s >= 0 and not self.allows(s, t) for t in states] for s in states]
            return sparse.csr_matrix(np.array(refused, dtype=bool).reshape(n, n))
        for leaves, enters in self.forbidden:
            rows = [i for i, s in enumerate(states) if s >= 0 and leaves(s)]
            columns = [j for j, s in enumerate(states) if enters(s)]
            if not rows or not columns:
                continue
            pairs = np.array(list(itertools.product(rows, columns)))
            ones = np.ones(len(pairs), dtype=bool)
            matrix = matrix + sparse.csr_matrix((ones, pairs.T), shape=(n, n), dtype=bool)
        return sparse.csr_matrix(matrix, dtype=bool)

    def states(self, limit: int = MAX_STATES) -> list[int]:
        """Return all admissible states without terminal labels, in ascending order.

        Raises ConfigError if there are more than `limit`.
        """
        free = ((1 << self.width) - 1) & ~sum(g.mask for g in self.groups)
        loose = [Group(1 << i, frozenset({0, 1 << i})) for i in range(self.width) if free >> i & 1]
        groups = [*self.groups, *loose]
        if math.prod(len(g.patterns) for g in groups) > 64 * limit:
            raise self._too_many(limit)
        found = []
        for parts in itertools.product(*(sorted(g.patterns) for g in groups)):
            state = sum(parts)
            if all(rule(state) for rule in self.rules):
                found.append(state)
                if len(found) > limit:
                    raise self._too_many(limit)
        if self.remembers:
            pairs = itertools.product(found, found)
            found = [b << self.width | n for b, n in pairs if self._allows(b, n)]
            if len(found) > limit:
                raise self._too_many(limit)
        return sorted(found)

    def is_covered(self, states: Collection[int]) -> bool:
        """Tell whether `states` are all the admissible ones; no, if there are too many to try."""
        plain = sum(state >= 0 for state in states)
        if plain > MAX_STATES:
            return False
        try:
            return len(self.states(plain)) <= plain
        except ConfigError:
            return False

    def _too_many(self, limit: int) -> ConfigError:
        return ConfigError(
            f"{self.width} predicates have more than {limit} admissible states",
            key="learning.candidates",
            accepted="observed, fewer predicates, or constraints between them",
        )


def build_validity(spec: MonitorSpec, abstraction: Declared) -> Validity:
    """Work out which states and transitions of an abstraction are valid.

    Raises ConfigError if a constraint names something unknown.
    """
    declared = abstraction.vocabulary.predicates[: len(abstraction.predicates)]
    names = {n: 1 << i for i, n in enumerate(declared)}
    groups = tuple(_groups(abstraction))
    rules: list[StateTest] = []
    forbidden: list[tuple[StateTest, StateTest]] = []
    errors: list[InputError] = []
    for index, entry in enumerate(spec.constraints):
        key = f"constraints[{index}]"
        tests = _Tests(abstraction, spec, key, errors)
        if entry.exclusive is not None:
            rules.append(_at_most_one(tests.bits(entry.exclusive, "exclusive", names)))
        elif entry.implies is not None:
            premise, conclusion = (
                tests.parse(text, f"implies[{i}]") for i, text in enumerate(entry.implies)
            )
            rules.append(_implication(premise, conclusion))
        elif entry.irreversible is not None:
            test = tests.parse(entry.irreversible, "irreversible")
            forbidden.append((test, _negation(test)))
        elif entry.forbid is not None:
            forbidden.append(
                (
                    tests.parse(entry.forbid.source, "forbid.from"),
                    tests.parse(entry.forbid.target, "forbid.to"),
                )
            )
    if errors:
        raise ConfigErrors(errors)
    return Validity(groups, tuple(rules), tuple(forbidden), len(names), abstraction.remembers)


def _at_most_one(bits: Sequence[int]) -> StateTest:
    mask = sum(bits)
    return lambda state: (state & mask) & ((state & mask) - 1) == 0


def _implication(premise: StateTest, conclusion: StateTest) -> StateTest:
    return lambda state: not premise(state) or conclusion(state)


def _negation(test: StateTest) -> StateTest:
    return lambda state: state >= 0 and not test(state)


@dataclass(frozen=True)
class _Tests:
    """Compiles Boolean expressions over predicates and terminal labels into tests of a state."""

    abstraction: Declared
    spec: MonitorSpec
    key: str
    errors: list[InputError]

    def bits(self, names: Iterable[str], part: str, known: Mapping[str, int]) -> list[int]:
        found = []
        for name in names:
            if name in known:
                found.append(known[name])
            else:
                self._unknown(name, part)
        return found

    def parse(self, text: str, part: str) -> StateTest:
        try:
            return compile_test(parse_expression(text).tree, lambda atom: self._atom(atom, part))
        except ExpressionError as error:
            self.errors.append(error.located(file=self.spec.file, key=f"{self.key}.{part}"))
            return bool

    def _unknown(self, name: str, part: str) -> StateTest:
        vocabulary = self.abstraction.vocabulary
        self.errors.append(
            ConfigError(
                f"unknown predicate {name!r}",
                file=self.spec.file,
                key=f"{self.key}.{part}",
                accepted=", ".join([*vocabulary.predicates, *vocabulary.terminals]),
            )
        )
        return bool

    def _atom(self, tree: ast.expr, part: str) -> StateTest:
        text = ast.unparse(tree)
        resolved = self.abstraction.resolve(text)
        if resolved is None:
            return self._unknown(text, part)
        name, negated = resolved
        vocabulary = self.abstraction.vocabulary
        return lambda state: vocabulary.holds(name, state) != negated


def _groups(abstraction: Declared) -> Iterator[Group]:
    """Group predicates that share a signal or a predicate, and enumerate their joint values."""
    trees = [expression.tree for expression in abstraction.predicates]
    names = abstraction.vocabulary.predicates[: len(trees)]
    tests = [compile_test(tree, _atom) for tree in trees]
    leaves = [_leaves(tree) for tree in trees]
    signals = [{_signal(leaf) for leaf in found} for found in leaves]
    # A predicate that another one builds on belongs to the same group.
    linked: list[set[str]] = [
        {f"predicate {names[i]}"}
        | {f"predicate {n}" for n in used & set(names)}
        | {f"signal {s}" for s in used - set(names)}
        for i, used in enumerate(signals)
    ]
    for members in _components(linked):
        regions: dict[str, list[float | str | bool]] = {}
        for i in members:
            for leaf in leaves[i]:
                if not (isinstance(leaf, ast.Name) and leaf.id in names):
                    _add_region(regions, leaf)
        for name in regions:
            regions[name] = _samples(regions[name])
        if math.prod(len(r) for r in regions.values()) > MAX_PATTERNS:
            continue  # too many to enumerate: these predicates count as independent
        patterns = set()
        for values in itertools.product(*regions.values()):
            known: dict[str, Any] = dict(zip(regions, values, strict=True))
            pattern = 0
            for i in members:
                known[names[i]] = tests[i](known)
                pattern |= known[names[i]] << i
            patterns.add(pattern)
        yield Group(sum(1 << i for i in members), frozenset(patterns))


def _components(linked: list[set[str]]) -> list[list[int]]:
    groups: list[tuple[set[str], list[int]]] = []
    for index, tags in enumerate(linked):
        joined = [g for g in groups if g[0] & tags]
        groups = [g for g in groups if not g[0] & tags]
        merged = set(tags).union(*(g[0] for g in joined))
        groups.append((merged, sorted([index, *(i for g in joined for i in g[1])])))
    return [members for _, members in groups]


def _leaves(tree: ast.expr) -> list[ast.expr]:
    if isinstance(tree, ast.BoolOp):
        return [leaf for value in tree.values for leaf in _leaves(value)]
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return _leaves(tree.operand)
    return [tree]


def _signal(leaf: ast.expr) -> str:
    comparison = as_comparison(leaf)
    return comparison.signal if comparison else ast.unparse(leaf)


def _add_region(regions: dict[str, list[float | str | bool]], leaf: ast.expr) -> None:
    comparison = as_comparison(leaf)
    found = regions.setdefault(_signal(leaf), [])
    if comparison is not None:
        found.append(comparison.threshold)
    elif isinstance(leaf, ast.Name):
        found.append(0.0)  # a number taken for its truth is compared with zero


def _samples(thresholds: list[float | str | bool]) -> list[float | str | bool]:
    """Return one value for each region that the thresholds cut, or both truth values."""
    cuts = sorted({float(t) for t in thresholds})
    if not cuts:
        return [False, True]
    between = [(a + b) / 2 for a, b in itertools.pairwise(cuts)]
    return [-math.inf, *cuts, *between, math.inf]


def _atom(tree: ast.expr) -> Callable[[Mapping[str, Any]], bool]:
    """Return what an atom says of values by name: of signals, predicates and other conditions."""
    comparison = as_comparison(tree)
    if comparison is not None:
        return lambda values: comparison.holds(float(values[comparison.signal]))
    text = ast.unparse(tree)
    return lambda values: bool(values[text])
