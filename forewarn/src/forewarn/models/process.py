"""What was done in which state, and the decision process that it makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.errors import CheckingError, ModelError
from forewarn.models.chain import ROW_TOLERANCE
from forewarn.models.checked_json import Reader
from forewarn.states.interface import StateSpace, is_terminal

Mask = NDArray[np.bool_]

MAX_TARGETS = 1 << 17


class Step(NamedTuple):
    """A state, what was done in it, and the state that followed.

    Attributes
    ----------
    action : str
        What was in force from one tick to the next.
    imposed : bool
        Forewarn's intervention: such steps belong to the process and not to the chain.
    state, following : int
        State codes.
    """

    action: str
    imposed: bool
    state: int
    following: int


Steps = tuple[tuple[Step, int], ...]
"""Steps in rising order, each with how often it was counted."""


def ordered(counts: Mapping[Step, int]) -> Steps:
    """Return counts in the one order that does not depend on how they came."""
    return tuple(sorted((step, count) for step, count in counts.items() if count))


def add_up(parts: Iterable[Steps]) -> Steps:
    """Return the sum of counts of steps."""
    total: Counter[Step] = Counter()
    for part in parts:
        total.update(dict(part))
    return ordered(total)


def check_steps(steps: Steps, vocabulary: StateSpace, chain: sparse.csr_matrix, index: Any) -> None:
    """Refuse steps that no recording gives.

    Raises
    ------
    ModelError
        If steps are not in order, have no name or no count, leave a terminal state, or are more
        than the transitions of the chain that they are part of.
    """
    names = [step for step, _ in steps]
    if any(not step.action for step in names) or names != sorted(set(names)):
        raise ModelError("steps are not in order", accepted="named, rising steps", key="actions")
    recorded: Counter[tuple[int, int]] = Counter()
    for step, count in steps:
        if count <= 0 or is_terminal(step.state):
            raise ModelError(
                f"{count} steps {step.action!r} out of {vocabulary.name(step.state)!r}",
                accepted="counts > 0, and none out of a terminal state",
                key="actions",
            )
        if not step.imposed:
            recorded[step.state, step.following] += count
    for (state, following), count in recorded.items():
        known = state in index and following in index
        of_chain = int(chain[index[state], index[following]]) if known else 0
        if count > of_chain:
            raise ModelError(
                f"{count} recorded steps from {vocabulary.name(state)!r} to "
                f"{vocabulary.name(following)!r}",
                accepted=f"at most the {of_chain} transitions of the chain",
                key="actions",
            )


def dump_steps(steps: Steps, vocabulary: StateSpace) -> list[dict[str, Any]]:
    """Return what a model file says of steps, one entry for each action and state."""
    rows: dict[tuple[str, bool, int], tuple[list[str], list[int]]] = {}
    for step, count in steps:
        following, counts = rows.setdefault(step[:3], ([], []))
        following.append(vocabulary.key(step.following))
        counts.append(count)
    return [
        {
            "action": action,
            "imposed": imposed,
            "state": vocabulary.key(state),
            "following": following,
            "counts": counts,
        }
        for (action, imposed, state), (following, counts) in rows.items()
    ]


def parse_steps(readers: Iterable[Reader], vocabulary: StateSpace, most: int) -> Steps:
    """Return the steps of a model file; raises ModelError."""
    counts: dict[Step, int] = {}
    for reader in readers:
        action, imposed = reader.text("action"), reader.truth("imposed")
        state = reader.state("state", reader.text("state"), vocabulary)
        targets = reader.items("following", MAX_TARGETS)
        numbers = reader.items("counts", len(targets))
        if len(numbers) != len(targets):
            raise ModelError(
                f"{len(numbers)} counts", accepted=f"{len(targets)}", key=f"{reader.path}.counts"
            )
        for i, target in enumerate(targets):
            step = Step(action, imposed, state, reader.state(f"following[{i}]", target, vocabulary))
            if step in counts:
                raise ModelError("a step stands twice", accepted="each once", key=reader.path)
            counts[step] = reader.whole(f"counts[{i}]", numbers[i], 1, most)
    return ordered(counts)


@dataclass(frozen=True, eq=False)
class DecisionProcess:
    """A Markov decision process.

    Attributes
    ----------
    matrix : csr_matrix, shape (c, n)
        One distribution over the n states for each choice.
    groups : ndarray of int, shape (n + 1,)
        The choices of state s are ``groups[s] .. groups[s + 1] - 1``; each state has one.
    states : tuple of int
        State codes, shape (n,); empty if the process does not come from counts.
    actions : tuple of str
        Name of each choice, shape (c,), empty for staying; empty if nothing is known of them.
    unseen : ndarray of bool, shape (n,), or None
        States that are no terminal ones and in which nothing was seen done. Their one choice is
        to stay, which is not a statement about them.
    """

    matrix: sparse.csr_matrix
    groups: NDArray[np.int64]
    states: tuple[int, ...] = ()
    actions: tuple[str, ...] = ()
    unseen: Mask | None = None

    def __post_init__(self) -> None:
        data = self.matrix.data
        if not np.isfinite(data).all() or (data < 0).any():
            raise CheckingError("a transition probability is negative or not finite")
        total = np.asarray(self.matrix.sum(axis=1)).ravel()
        wrong = np.flatnonzero(np.abs(total - 1.0) > ROW_TOLERANCE)
        if wrong.size:
            raise CheckingError(
                f"choice {wrong[0]} sums to {total[wrong[0]]:.12g}", accepted="rows that sum to 1"
            )
        ends = (int(self.groups[0]), int(self.groups[-1]))
        if ends != (0, self.matrix.shape[0]) or (np.diff(self.groups) < 1).any():
            raise CheckingError("groups of choices", accepted="at least one choice for each state")

    @property
    def size(self) -> int:
        """Number of states."""
        return int(self.groups.size - 1)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """State of each choice, shape (c,)."""
        return np.repeat(np.arange(self.size), np.diff(self.groups))

    def some(self, choices: Mask) -> Mask:
        """Return the states with at least one of `choices`, shape (n,)."""
        return np.asarray(np.logical_or.reduceat(choices, self.groups[:-1]))

    def all(self, choices: Mask) -> Mask:
        """Return the states all of whose choices are among `choices`, shape (n,)."""
        return np.asarray(np.logical_and.reduceat(choices, self.groups[:-1]))

    def touches(self, states: Mask) -> Mask:
        """Return the choices with a successor among `states`, shape (c,)."""
        return np.asarray(self._pattern @ states.astype(np.float64) > 0)

    @cached_property
    def _pattern(self) -> sparse.csr_matrix:
        data = (self.matrix.data > 0).astype(np.float64)
        return sparse.csr_matrix(
            (data, self.matrix.indices, self.matrix.indptr), shape=self.matrix.shape
        )


def estimate_process(steps: Steps, states: Iterable[int]) -> DecisionProcess:
    """Return the process of maximum likelihood, ``P[s, a, t] = C(s, a, t) / C(s, a)``.

    What was imposed counts like what was chosen: the world answers to the action and not to who
    asked for it. Transitions without an action do not count.

    Parameters
    ----------
    steps : Steps
        The counts.
    states : iterable of int
        State codes to begin with, those of the chain for instance; those of the steps follow.
    """
    named = {code for step, _ in steps for code in (step.state, step.following)}
    known = tuple(dict.fromkeys((*states, *sorted(named))))
    index = {state: i for i, state in enumerate(known)}
    counts: dict[tuple[int, str], Counter[int]] = {}
    for step, count in steps:
        row = counts.setdefault((index[step.state], step.action), Counter())
        row[index[step.following]] += count
    acted = {i for i, _ in counts}
    stays = {(i, ""): Counter({i: 1}) for i in range(len(known)) if i not in acted}
    choices = sorted({**counts, **stays}.items())
    sizes = np.bincount([i for (i, _), _ in choices], minlength=len(known))
    groups = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = [(c, j) for c, (_, row) in enumerate(choices) for j in row]
    values = [count / sum(row.values()) for _, row in choices for count in row.values()]
    matrix = sparse.csr_matrix(
        (values, ([c for c, _ in places], [j for _, j in places])),
        shape=(len(choices), len(known)),
    )
    unseen = np.array(
        [i not in acted and not is_terminal(state) for i, state in enumerate(known)], dtype=bool
    )
    return DecisionProcess(matrix, groups, known, tuple(a for (_, a), _ in choices), unseen)
