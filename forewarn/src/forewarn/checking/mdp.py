"""Least and greatest probability of ``phi U psi`` in a Markov decision process."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking.graph import Certain
from forewarn.checking.reachability import solve
from forewarn.errors import CheckingError
from forewarn.models.chain import Floats
from forewarn.models.process import DecisionProcess, Mask

MAX_IMPROVEMENTS = 10_000
GAIN = 1e-12


def extreme_reach(
    process: DecisionProcess, targets: Mask, through: Mask, *, maximise: bool
) -> Floats:
    """Return the extreme probability, over all policies, to reach `targets`, shape (n,).

    Policy iteration from a policy that leaves every state it has to; each policy is solved like a
    chain, with the accuracy assured there.

    Parameters
    ----------
    targets : ndarray of bool, shape (n,)
        States of psi.
    through : ndarray of bool, shape (n,)
        States of phi.
    maximise : bool
        Whether the greatest or the least probability is asked for.

    Raises
    ------
    CheckingError
        If the accuracy cannot be assured, or policies do not settle.
    """
    through = through & ~targets
    sure = (
        certain_max(process, targets, through)
        if maximise
        else certain_min(process, targets, through)
    )
    values = sure.one.astype(np.float64)
    maybe = ~(sure.zero | sure.one)
    if not maybe.any():
        return values
    policy = _attracted(process, sure.one, maybe) if maximise else process.groups[:-1].copy()
    states = np.flatnonzero(maybe)
    inside = maybe[process.owner]
    sign = 1.0 if maximise else -1.0
    for _ in range(MAX_IMPROVEMENTS):
        chosen = process.matrix[policy[states]]
        hit = np.asarray(chosen[:, sure.one].sum(axis=1)).ravel()
        miss = np.asarray(chosen[:, sure.zero].sum(axis=1)).ravel()
        values[states] = solve(sparse.csr_matrix(chosen[:, states]), hit, miss)
        gain = sign * (process.matrix @ values - values[process.owner])
        gain[~inside] = -np.inf
        best = np.maximum.reduceat(gain, process.groups[:-1])
        # Only a real gain changes a policy: one among equals might never leave.
        better = maybe & (best > GAIN * values)
        if not better.any():
            return values
        first = np.flatnonzero(gain == best[process.owner])
        choice = np.full(process.size, -1)
        choice[process.owner[first][::-1]] = first[::-1]
        policy[better] = choice[better]
    raise CheckingError("policy iteration does not settle", accepted="a smaller process")


def certain_max(process: DecisionProcess, targets: Mask, through: Mask) -> Certain:
    """Return where the greatest probability is 0, and where it is 1."""
    reached = targets
    while True:
        following = reached | (through & process.some(process.touches(reached)))
        if (following == reached).all():
            break
        reached = following
    one = reached
    while True:
        # Choices that never leave the present candidates, and lead towards the targets.
        stays = ~process.touches(~one)
        inner = targets
        while True:
            following = inner | (through & process.some(stays & process.touches(inner)))
            if (following == inner).all():
                break
            inner = following
        if (inner == one).all():
            return Certain(~reached, one)
        one = inner


def certain_min(process: DecisionProcess, targets: Mask, through: Mask) -> Certain:
    """Return where the least probability is 0, and where it is 1."""
    forced = targets
    while True:
        following = forced | (through & process.all(process.touches(forced)))
        if (following == forced).all():
            break
        forced = following
    zero = ~forced
    doubtful = zero
    while True:
        following = doubtful | (~targets & process.some(process.touches(doubtful)))
        if (following == doubtful).all():
            return Certain(zero, ~doubtful)
        doubtful = following


def _attracted(process: DecisionProcess, goal: Mask, maybe: Mask) -> NDArray[np.int64]:
    """Return a policy under which every state of `maybe` may reach `goal`, shape (n,)."""
    policy = process.groups[:-1].copy()
    reached = goal
    while True:
        towards = process.touches(reached)
        fresh = maybe & ~reached & process.some(towards)
        if not fresh.any():
            return policy
        first = np.flatnonzero(towards)
        choice = np.full(process.size, -1)
        choice[process.owner[first][::-1]] = first[::-1]
        policy[fresh] = choice[fresh]
        reached = reached | fresh
