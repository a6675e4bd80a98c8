"""What was done in which state, and the decision process that it makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray
from scipy import sparse

from forewarn.errors import CheckingError, ModelError
from forewarn.models.chain import ROW_TOLERANCE, check_probabilities
from forewarn.states.interface import StateSpace, is_terminal

if TYPE_CHECKING:
    from forewarn.models.checked_json import Reader

Mask = NDArray[np.bool_]

MAX_TARGETS = 1 << 17


class Flow(NamedTuple):
    """How often an action led from one state to another; it is empty where none is known."""

    state: str
    action: str
    following: str
    times: Annotated[int, Ge(1)]


class Step(NamedTuple):
    """A state, what was done in it, and the state that followed.

    `action`: what was in force from one tick to the next.
    `imposed`: forewarn's intervention: such steps belong to the process and not to the chain.
    `state`, `following`: state codes.
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

    Raises ModelError if steps are not in order, have no name or no count, leave a terminal state,
    or are more than the transitions of the chain that they are part of.
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
    for (state, following), count, of_chain in _beyond(recorded, chain, index):
        raise ModelError(
            f"{count} recorded steps from {vocabulary.name(state)!r} to "
            f"{vocabulary.name(following)!r}",
            accepted=f"at most the {of_chain} transitions of the chain",
            key="actions",
        )


def _beyond(
    recorded: Mapping[tuple[int, int], int], chain: sparse.csr_matrix, index: Any
) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Yield the transitions that are recorded more often than the chain has them."""
    known = {pair: n for pair, n in recorded.items() if pair[0] in index and pair[1] in index}
    yield from ((pair, n, 0) for pair, n in recorded.items() if pair not in known)
    rows, columns = ([index[pair[side]] for pair in known] for side in (0, 1))
    counted = sparse.csr_matrix(
        (list(known.values()), (rows, columns)), chain.shape, dtype=np.int64
    )
    excess = (counted - chain).tocoo()
    states = list(index)
    for place in np.flatnonzero(excess.data > 0):
        pair = states[excess.row[place]], states[excess.col[place]]
        yield pair, known[pair], known[pair] - int(excess.data[place])


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
    codes: dict[Any, int] = {}

    def code(reader: Reader, key: str, text: Any) -> int:
        # Many steps name few states, and a key takes long to parse.
        found = codes.get(text) if isinstance(text, str) else None
        if found is None:
            found = codes[text] = reader.state(key, text, vocabulary)
        return found

    for reader in readers:
        action, imposed = reader.text("action"), reader.truth("imposed")
        state = code(reader, "state", reader.text("state"))
        targets = reader.items("following", MAX_TARGETS)
        numbers = reader.items("counts", len(targets))
        if len(numbers) != len(targets):
            raise ModelError(
                f"{len(numbers)} counts", accepted=f"{len(targets)}", key=f"{reader.path}.counts"
            )
        for i, target in enumerate(targets):
            step = Step(action, imposed, state, code(reader, f"following[{i}]", target))
            if step in counts:
                raise ModelError("a step stands twice", accepted="each once", key=reader.path)
            counts[step] = reader.whole(f"counts[{i}]", numbers[i], 1, most)
    return ordered(counts)


@dataclass(frozen=True, eq=False)
class DecisionProcess:
    """A Markov decision process.

    `matrix` (shape (c, n)): one distribution over the n states for each choice.
    `groups` (shape (n + 1,)): the choices of state s are ``groups[s] .. groups[s + 1] - 1``; each
        state has one.
    `states`: state codes, shape (n,); empty if the process does not come from counts.
    `actions`: name of each choice, shape (c,), empty for staying; empty if nothing is known of
        them.
    `unseen` (shape (n,), or None): states that are no terminal ones and in which nothing was seen
        done. Their one choice is to stay, which is not a statement about them.
    """

    matrix: sparse.csr_matrix
    groups: NDArray[np.int64]
    states: tuple[int, ...] = ()
    actions: tuple[str, ...] = ()
    unseen: Mask | None = None

    def __post_init__(self) -> None:
        check_probabilities(self.matrix, "transition probabilities")
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

    def touches(self, states: Mask) -> Mask:
        """Return the choices with a successor among `states`, shape (c,)."""
        return np.asarray(self.pattern @ states.astype(np.float64) > 0)

    @cached_property
    def pattern(self) -> sparse.csr_matrix:
        """Which successors each choice has, as ones, shape (c, n)."""
        found = sparse.csr_matrix(
            ((self.matrix.data > 0).astype(np.float64), self.matrix.indices, self.matrix.indptr),
            shape=self.matrix.shape,
        )
        found.eliminate_zeros()
        return found


class ActionCounts(NamedTuple):
    """What followed each action in each state: one row for each choice.

    `states`: state codes, shape (n,).
    `actions`: action of each row, shape (c,); empty in the one row of a state in which nothing was
        done.
    `groups` (shape (n + 1,)): the rows of state s are ``groups[s] .. groups[s + 1] - 1``.
    `counts` (shape (c, n)): how often each state followed.
    `recorded` (shape (c,)): how often the action was chosen and not imposed.
    """

    states: tuple[int, ...]
    actions: tuple[str, ...]
    groups: NDArray[np.int64]
    counts: sparse.csr_matrix
    recorded: NDArray[np.int64]

    @property
    def owner(self) -> NDArray[np.int64]:
        """State of each row, shape (c,)."""
        return np.repeat(np.arange(len(self.states)), np.diff(self.groups))

    @property
    def acted(self) -> Mask:
        """Rows in which something was done, shape (c,)."""
        return np.array([bool(action) for action in self.actions], dtype=bool)

    @property
    def terminal(self) -> Mask:
        """States that are terminal labels, shape (n,)."""
        return np.fromiter(map(is_terminal, self.states), dtype=bool, count=len(self.states))

    @property
    def unseen(self) -> Mask:
        """States that are no terminal ones and in which nothing was seen done, shape (n,)."""
        return ~self.acted[self.groups[:-1]] & ~self.terminal


def count_actions(steps: Steps, states: Iterable[int]) -> ActionCounts:
    """Return the counts of steps by state and action.

    What was imposed counts like what was chosen: the world answers to the action and not to who
    asked for it.

    `states`: state codes to begin with, those of the chain for instance; those of the steps follow.
    """
    named = {code for step, _ in steps for code in (step.state, step.following)}
    known = tuple(dict.fromkeys((*states, *sorted(named))))
    index = {state: i for i, state in enumerate(known)}
    done = {(index[step.state], step.action) for step, _ in steps}
    acted = {i for i, _ in done}
    choices = sorted({*done, *((i, "") for i in range(len(known)) if i not in acted)})
    row = {choice: c for c, choice in enumerate(choices)}
    rows = np.array([row[index[step.state], step.action] for step, _ in steps], dtype=np.int64)
    columns = np.array([index[step.following] for step, _ in steps], dtype=np.int64)
    numbers = np.array([count for _, count in steps], dtype=np.int64)
    chosen = np.array([not step.imposed for step, _ in steps], dtype=bool)
    counts = sparse.csr_matrix((numbers, (rows, columns)), shape=(len(choices), len(known)))
    recorded = np.zeros(len(choices), dtype=np.int64)
    np.add.at(recorded, rows[chosen], numbers[chosen])
    sizes = np.bincount([i for i, _ in choices], minlength=len(known))
    groups = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return ActionCounts(known, tuple(action for _, action in choices), groups, counts, recorded)


def process_of(counted: ActionCounts, weights: sparse.csr_matrix | None = None) -> DecisionProcess:
    """Return the process of counts, ``P[s, a, t] = C(s, a, t) / C(s, a)``.

    `counted`: the counts. A state in which nothing was done stays where it is.
    `weights` (shape (c, n)): prior weights, added to the counts.
    """
    matrix = counted.counts.astype(np.float64)
    if weights is not None:
        matrix = matrix + weights
    idle = np.flatnonzero(~counted.acted)
    stay = sparse.csr_matrix(
        (np.ones(idle.size), (idle, counted.owner[idle])), shape=counted.counts.shape
    )
    total = np.asarray(matrix.sum(axis=1)).ravel()
    total[idle] = 1.0
    shares = sparse.csr_matrix(sparse.diags(1.0 / total) @ matrix + stay)
    shares.sort_indices()
    return DecisionProcess(shares, counted.groups, counted.states, counted.actions, counted.unseen)
