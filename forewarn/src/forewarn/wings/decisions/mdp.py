"""Least and greatest probability of ``phi U psi`` in a Markov decision process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from forewarn.checking.reachability import solve
from forewarn.errors import CheckingError
from forewarn.wings.decisions.choices import ChoiceGraph, Choices

if TYPE_CHECKING:
    from forewarn.models.chain import Floats
    from forewarn.models.process import DecisionProcess, Mask

MAX_IMPROVEMENTS = 10_000
GAIN = 1e-12


class Extreme(NamedTuple):
    """An extreme probability from each state, and a policy that attains it, shape (n,)."""

    values: Floats
    policy: Choices


def optimal(process: DecisionProcess, targets: Mask, through: Mask, *, maximise: bool) -> Extreme:
    """Return the extreme probability, over all policies, to reach `targets`, and such a policy.

    Paths go `through` some states, shape (n,). Policy iteration from a policy that leaves every
    state it has to; each policy is solved like a chain, with the accuracy assured there. Raises
    CheckingError if that cannot be assured.
    """
    graph = ChoiceGraph(process)
    policy = process.groups[:-1].copy()
    if maximise:
        sure, attaining = graph.certain_max(targets, through)
        policy = np.where(attaining >= 0, attaining, policy)
    else:
        sure = graph.certain_min(targets, through)
        avoiding = first_of(process, ~process.touches(~sure.zero))
        policy = np.where(sure.zero & (avoiding >= 0), avoiding, policy)
    maybe = ~(sure.zero | sure.one)
    values = sure.one.astype(np.float64)
    if not maybe.any():
        return Extreme(values, policy)
    if maximise:
        towards = graph.attract(sure.one, maybe).choice
        policy = np.where(maybe, towards, policy)
    return _improved(process, sure.zero, Extreme(values, policy), maybe, maximise)


def _improved(
    process: DecisionProcess, zero: Mask, first: Extreme, maybe: Mask, maximise: bool
) -> Extreme:
    """Return the result of policy iteration."""
    values, policy = first.values.copy(), first.policy.copy()
    one = values == 1.0
    states = np.flatnonzero(maybe)
    inside = maybe[process.owner]
    sign = 1.0 if maximise else -1.0
    for _ in range(MAX_IMPROVEMENTS):
        chosen = process.matrix[policy[states]]
        hit = np.asarray(chosen[:, one].sum(axis=1)).ravel()
        miss = np.asarray(chosen[:, zero].sum(axis=1)).ravel()
        values[states] = solve(sparse.csr_matrix(chosen[:, states]), hit, miss)
        gain = sign * (process.matrix @ values - values[process.owner])
        gain[~inside] = -np.inf
        best = np.maximum.reduceat(gain, process.groups[:-1])
        # Only a real gain changes a policy: one among equals might never leave.
        better = maybe & (best > GAIN * values)
        if not better.any():
            return Extreme(values, policy)
        choice = first_of(process, gain == best[process.owner])
        policy[better] = choice[better]
    raise CheckingError("policy iteration does not settle", accepted="a smaller process")


def first_of(process: DecisionProcess, choices: Mask) -> Choices:
    """Return the first of `choices` in each state, -1 without, shape (n,)."""
    first = np.flatnonzero(choices)
    result = np.full(process.size, -1, dtype=np.int64)
    result[process.owner[first][::-1]] = first[::-1]
    return result


def extreme_within(
    process: DecisionProcess, targets: Mask, through: Mask, horizon: int, *, maximise: bool
) -> Floats:
    """Return the extreme probability to reach `targets` within some steps, shape (n,).

    The policy may depend on the steps that are left.
    """
    if horizon < 0:
        raise CheckingError(f"a horizon of {horizon} steps", accepted="0 or more, or unbounded")
    goal = targets.astype(np.float64)
    moving = through & ~targets
    best = np.maximum.reduceat if maximise else np.minimum.reduceat
    values = goal
    for _ in range(horizon):
        following = np.where(moving, best(process.matrix @ values, process.groups[:-1]), goal)
        if np.array_equal(following, values):
            break
        values = following
    return values
