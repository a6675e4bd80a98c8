"""What makes a probability over all ways to choose so great: ways to the goal, and a part."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from forewarn.checking.critical import CriticalSubsystem, critical_subsystem
from forewarn.checking.probable_paths import probable_paths, with_start

if TYPE_CHECKING:
    from forewarn.models.chain import Floats
    from forewarn.models.process import Mask
    from forewarn.wings.decisions.process_query import ProcessQueryResult

WAYS = 5


class ProcessWay(NamedTuple):
    """A path of the process to the goal: n states, and what the policy does between them.

    `seen` counts its states from the beginning up to a step that was never counted: what follows is
    promised by smoothing alone.
    """

    states: tuple[int, ...]
    actions: tuple[str, ...]
    probability: float
    seen: int

    def named(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return states and actions in turn, by the names of all states."""
        pairs = zip(self.states, (*self.actions, ""), strict=True)
        return tuple(part for state, action in pairs for part in (names[state], action))[:-1]


class Evidence(NamedTuple):
    """Why a probability is as great as it is, under the policy that attains it.

    The policy is empty where nothing was seen done. `critical` is a smallest part that breaks an
    upper bound by itself, where one is broken.
    """

    policy: tuple[str, ...]
    ways: tuple[ProcessWay, ...]
    critical: CriticalSubsystem | None


def find_evidence(answer: ProcessQueryResult, starts: Floats) -> Evidence | None:
    """Return the evidence for an answer over n states; None if no one policy attains it.

    `starts`, shape (n,), is the share of runs that begin in each state.
    """
    policy = answer.values.policy
    if policy is None:
        return None
    n, process = answer.goal.size, answer.counted.process
    # A run that leaves the way of an until stays where it is: it never arrives.
    lost = ~(answer.goal | answer.way)
    keep = sparse.diags((~lost).astype(np.float64))
    chain = keep @ process.matrix[policy] + sparse.diags(lost.astype(np.float64))
    matrix = with_start(sparse.csr_matrix(chain), starts)
    matrix.eliminate_zeros()
    goal = np.append(answer.goal, False)
    actions = tuple(process.actions[choice] for choice in policy)
    followed = sparse.csr_matrix(answer.counted.counted.counts[policy])
    ways = tuple(_ways(matrix, goal, followed, actions))
    critical, query = None, answer.query
    reached = answer.values.complement() if query.always else answer.values
    mean = float(starts @ np.nan_to_num(reached.estimate))
    if query.most is not None and mean > query.most:
        critical = critical_subsystem(matrix, n, goal, query.most)
        inner = tuple(state for state in critical.states if state != n)
        # Where runs begin is no state.
        critical = critical._replace(states=inner, at_least=critical.at_least - 1)
    return Evidence(actions, ways, critical)


def _ways(
    matrix: sparse.csr_matrix, goal: Mask, followed: sparse.csr_matrix, actions: tuple[str, ...]
) -> Iterator[ProcessWay]:
    for path in probable_paths(matrix, matrix.shape[0] - 1, goal, WAYS):
        states = path.states[1:]
        steps = list(itertools.pairwise(states))
        unseen = (i for i, (state, after) in enumerate(steps, 1) if not followed[state, after])
        done = tuple(actions[state] for state, _ in steps)
        yield ProcessWay(states, done, path.probability, next(unseen, len(states)))
