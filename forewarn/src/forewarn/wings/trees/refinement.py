"""Refinement of a tree by counterexamples (TriCEGAR 4.1.5 and A.4, which the paper leaves open).

An upper bound of the probability to reach a goal is checked on the process that traces and tree
make. If it does not hold, the policy that breaks it is played in the trie: from each endpoint the
runs go on that did there what the policy says for its leaf. What arrives at the goal is evidence;
where no run did so, the rest is lost. If the evidence alone breaks the bound, the counterexample is
real. Otherwise the process promises more than the runs show, and the difference is the sum, over
the endpoints that are reached, of what their leaf promises above what follows there. The leaf
with the largest part is split by what best predicts the next states, unless the split predicts
held-out runs no better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from forewarn.checking.critical import CriticalPart, critical_subsystem
from forewarn.checking.probable_paths import Path, probable_paths, with_start
from forewarn.errors import CheckingError
from forewarn.models.chain import Floats
from forewarn.models.process import Flow, Mask, Step, count_actions, ordered
from forewarn.models.trie import NOWHERE, ROOT
from forewarn.registry import part
from forewarn.wings.trees.abstracted_runs import AbstractedRuns, Compile
from forewarn.wings.trees.concrete import Condition
from forewarn.wings.trees.growth import Choice, Growth
from forewarn.wings.trees.leaf_splits import LeafSplitter
from forewarn.wings.trees.nodes import Leaf, Node, Split
from forewarn.wings.trees.refined import (
    BEFORE,
    ENDED,
    GOAL,
    Ending,
    GoalEstimate,
    LeafValue,
    Limits,
    Refined,
    RefinementQuery,
    Round,
    Trace,
    Way,
)

REST = "(rest)"
PATHS = 64
SHOWN = 5
RefinementProgress = Callable[[int, GoalEstimate], object]


class Refiner:
    """Refines one tree on the runs that the process is made of; splits are tried on others.

    `groups` is what each of `runs` belongs to, by default each its own: of a value, word or member
    that one group alone has, nothing is asked.
    """

    def __init__(
        self,
        tree: Node,
        variables: Sequence[str],
        runs: Sequence[Trace],
        held_out: Sequence[Trace],
        compile_condition: Compile,
        groups: Sequence[Hashable] | None = None,
    ) -> None:
        def compiled(text: str) -> Condition:
            return BEFORE[text] if text in BEFORE else compile_condition(text)

        for name in reversed([*BEFORE]):
            tree = Split(name, Leaf(name), tree)
        self._runs = AbstractedRuns(tree, runs, compiled, groups)
        if not self._runs.endpoints(GOAL):
            raise CheckingError(
                "no run reaches the goal", accepted="runs some of which reach what is bounded"
            )
        if not self._runs.initial():
            raise CheckingError("no run begins in a known state", accepted="known variables")
        self._splitter = LeafSplitter(self._runs, variables, held_out)

    def refine(
        self,
        question: RefinementQuery,
        limits: Limits,
        progress: RefinementProgress = lambda *_: None,
    ) -> Refined:
        """Split leaves until the bound holds, is really broken, or nothing helps.

        `progress` gets after each split how many there were, and what the process says now.
        """
        rounds: list[Round] = []
        rejected: list[tuple[str, str]] = []
        made = self._made(question)
        while True:
            progress(len(rounds), made.answer)
            real, lost = self._evidence(made)
            ending: Ending | None = None
            if made.answer.estimate <= question.bound:
                ending = "holds"
            elif real > question.bound:
                ending = "real"
            elif len(rounds) >= limits.rounds or self._leaves >= limits.leaves:
                ending = "budget"
            if ending is not None:
                return self._ended(ending, made, question, rounds, real, rejected)
            split = self._split(lost, made, limits.growth, rejected)
            if split is None:
                return self._ended("no split", made, question, rounds, real, rejected)
            before, (leaf, choice, path) = made.answer, split
            made = self._made(question)
            rounds.append(
                Round(leaf, choice.condition, choice.gain, lost[leaf], *path, before, made.answer)
            )

    def _made(self, question: RefinementQuery) -> _Made:
        """Return the process as the tree makes it now, and its answer."""
        runs = self._runs
        goal, ended = runs.numbers[GOAL], runs.numbers[ENDED]
        # What never occurs is no state of which the bounds have to say anything.
        known = {*runs.numbers.values()} - (set() if runs.endpoints(ENDED) else {ended})
        steps = ordered(
            Counter(
                {
                    Step(edge.action or REST, False, edge.state, edge.following): number
                    for edge, number in runs.counts().items()
                    if self._leaf(edge.state) not in BEFORE
                }
            )
        )
        counted = count_actions(steps, sorted(known))
        place = {vertex: i for i, vertex in enumerate(counted.states)}
        targets = np.zeros(len(place), dtype=bool)
        targets[place[goal]] = True
        bounds = part("decisions", "process_bounds", "refine")
        bounded = bounds.counted_process(counted, len(place), grown=True)
        going_on = np.array([vertex != ended for vertex in counted.states])
        choosing = "greatest" if question.maximise else "least"
        found = bounded.value(bounds.Query(targets, going_on, choosing))
        values = np.nan_to_num(found.estimate)  # nothing was seen done, nothing is promised
        initial = runs.initial()
        weights = np.zeros(len(place))
        for vertex, number in initial.items():
            weights[place[vertex]] = number
        weights /= weights.sum()
        n = len(place)
        assert found.policy is not None
        matrix = with_start(bounded.process.matrix[found.policy], weights)
        answer = GoalEstimate(
            float(weights @ values),
            float(weights @ found.lower),
            float(weights @ found.upper),
            self._leaves,
            self._splitter.loss(),
        )
        actions = tuple(counted.actions[choice] for choice in found.policy)
        return _Made(
            matrix, n, np.append(targets, False), counted.states, (*actions, ""), values, answer
        )

    def _evidence(self, made: _Made) -> tuple[float, dict[str, float]]:
        """Play the policy in the trie; return the probability to arrive, and what leaves lost.

        That is what it promises above what follows; all together, and the first, are what the
        process promises.
        """
        states, trie = self._runs.state_of, self._runs.trie
        place = {vertex: i for i, vertex in enumerate(made.states)}
        first = [there for there in trie.following(ROOT) if states[there] != NOWHERE]
        total = sum(trie.runs[there] for there in first)
        waiting = [(there, trie.runs[there] / total) for there in first]
        real, lost = 0.0, Counter[str]()
        while waiting:
            here, weight = waiting.pop()
            leaf, i = self._leaf(states[here]), place[states[here]]
            if leaf == GOAL:
                real += weight
                continue
            wanted = _recorded(made.actions[i])
            onward = [
                there
                for there in trie.following(here)
                if trie.action[there] == wanted and states[there] != NOWHERE
            ]
            runs = sum(trie.runs[there] for there in onward)
            follows = 0.0
            for there in onward:
                share = trie.runs[there] / runs
                follows += share * made.values[place[states[there]]]
                waiting.append((there, weight * share))
            lost[leaf] += weight * (made.values[i] - follows)
        return real, dict(lost)

    def _named(self, vertices: Sequence[int], actions: Sequence[str]) -> tuple[str, ...]:
        pairs = zip(map(self._leaf, vertices), (*actions, ""), strict=True)
        return tuple(part for pair in pairs for part in pair)[:-1]

    def _split(
        self,
        lost: Mapping[str, float],
        made: _Made,
        growth: Growth,
        rejected: list[tuple[str, str]],
    ) -> tuple[str, Choice, tuple[tuple[str, ...], float]] | None:
        """Split the leaf that promises most of what the runs do not show, and can be split."""
        for leaf in sorted(lost, key=lambda name: (-lost[name], name)):
            if lost[leaf] <= 0:
                break
            choice = self._splitter.best(leaf, growth)
            if choice is None or (leaf, choice.condition) in rejected:
                continue
            if not self._splitter.helps(leaf, choice.condition):
                rejected.append((leaf, choice.condition))
                continue
            path = self._path_through(leaf, made)
            self._runs.split(leaf, choice.condition, *self._splitter.names(leaf))
            return leaf, choice, path
        return None

    def _path_through(self, leaf: str, made: _Made) -> tuple[tuple[str, ...], float]:
        vertex = self._runs.numbers[leaf]
        for path in probable_paths(made.matrix, made.start, made.targets, PATHS):
            vertices, actions = _walked(path, made)
            if vertex in vertices:
                return self._named(vertices, actions), path.probability
        return (), 0.0

    def _ended(
        self,
        ending: Ending,
        made: _Made,
        question: RefinementQuery,
        rounds: Sequence[Round],
        real: float,
        rejected: Sequence[tuple[str, str]],
    ) -> Refined:
        tree = self._runs.tree
        for _ in BEFORE:
            assert isinstance(tree, Split)
            tree = tree.otherwise
        return Refined(
            ending,
            tree,
            tuple(rounds),
            made.answer,
            real,
            tuple(self._ways(made)),
            None if ending == "holds" else self._critical(made, question.bound),
            tuple(rejected),
            tuple(self._flows()),
            self._leaf_values(made),
        )

    def _ways(self, made: _Made) -> Iterator[Way]:
        for path in probable_paths(made.matrix, made.start, made.targets, SHOWN):
            vertices, actions = _walked(path, made)
            found = self._runs.concretise(vertices, list(map(_recorded, actions)))
            runs = sum(self._runs.trie.runs[e] for e in found.endpoints) if found.real else 0
            yield Way(self._named(vertices, actions), path.probability, runs, found.step)

    def _critical(self, made: _Made, bound: float) -> CriticalPart:
        found = critical_subsystem(made.matrix, made.start, made.targets, bound)
        inner = [made.states[state] for state in found.states if state != made.start]
        found = found._replace(at_least=found.at_least - 1)  # where runs begin is no leaf
        return CriticalPart(tuple(map(self._leaf, inner)), *found[1:])

    def _flows(self) -> Iterator[Flow]:
        for edge, number in sorted(self._runs.counts().items()):
            if self._leaf(edge.state) not in BEFORE:
                yield Flow(self._leaf(edge.state), edge.action, self._leaf(edge.following), number)

    def _leaf_values(self, made: _Made) -> dict[str, LeafValue]:
        initial = self._runs.initial()
        parts = zip(made.states, made.values, made.actions[:-1], strict=True)
        return {
            self._leaf(vertex): LeafValue(initial[vertex], float(value), _recorded(action))
            for vertex, value, action in parts
        }

    @property
    def _leaves(self) -> int:
        """How many leaves the tree has."""
        return len(self._runs.numbers) - len(BEFORE)

    def _leaf(self, vertex: int) -> str:
        return self._runs.names[vertex]


def _recorded(action: str) -> str:
    """Return the action as runs have it, where the process names what has no name."""
    return "" if action == REST else action


def _walked(path: Path, made: _Made) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the vertices of a path, and the actions between them."""
    inner = path.states[1:]
    return tuple(made.states[i] for i in inner), tuple(made.actions[i] for i in inner[:-1])


class _Made(NamedTuple):
    """The chain of the extreme policy, with one more state before all, and the answer."""

    matrix: sparse.csr_matrix
    start: int
    targets: Mask
    states: tuple[int, ...]
    actions: tuple[str, ...]
    values: Floats
    answer: GoalEstimate
