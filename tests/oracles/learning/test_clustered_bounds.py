"""Clustered bounds: Clopper and Pearson's where these are exact, and worlds known to the digit."""

from __future__ import annotations

import numpy as np
import pytest
from bounds_coverage import RECORDINGS, coverage
from hidden_worlds import HORIZON, STATES, TICKS, World
from scipy.special import expit
from scipy.stats import binomtest

from forewarn.learning.estimates.clustered import steps_to_violation
from forewarn.learning.estimates.shares import share_bounds, tally
from forewarn.logic.automaton import Automaton

LEAST = 0.9
"""Of nominal 95 %; with more worlds it is more (`evaluation/RESULTS.md`)."""


@pytest.mark.parametrize("recordings", [1, 5, 30])
@pytest.mark.parametrize("moments", [1, 40])
def test_with_all_or_nothing_recordings_they_are_clopper_and_pearsons(
    recordings: int, moments: int
) -> None:
    """However many moments a recording has, it is one trial; and none without a violation is 0."""
    for successes in range(recordings + 1):
        followed = np.where(np.arange(recordings) < successes, float(moments), 0.0)
        visits = np.full(recordings, float(moments))
        cell = np.zeros(recordings, dtype=np.int64)
        told = tally(np.arange(recordings), cell, visits, followed, 1)
        lower, upper = share_bounds(told, 0.95)
        exact = binomtest(successes, recordings).proportion_ci(0.95, "exact")
        assert (lower[0], upper[0]) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_rows_of_one_recording_are_one() -> None:
    recording = np.array([0, 0, 1, 1, 2])
    cell = np.array([0, 0, 0, 1, 1])
    visits, followed = np.array([3.0, 4.0, 5.0, 1.0, 2.0]), np.array([3.0, 0.0, 1.0, 0.0, 2.0])
    told = tally(recording, cell, visits, followed, 3)
    assert told.recordings.tolist() == [2, 2, 0]
    assert told.visits.tolist() == [12, 3, 0]
    assert told.visits_squared.tolist() == [49 + 25, 1 + 4, 0]
    assert told.product.tolist() == [21 + 5, 4, 0]
    lower, upper = share_bounds(told, 0.95)
    assert (lower[2], upper[2]) == (0.0, 1.0)


@pytest.mark.parametrize("recordings", [1, 2, 3, 5, 10, 30, 100])
@pytest.mark.parametrize(("centre", "drivers"), [(-4.0, 1.0), (-4.0, 2.0), (-1.0, 3.0), (0.0, 0.3)])
@pytest.mark.parametrize("visits_too", [False, True])
def test_a_share_of_drivers_who_differ_is_held(
    recordings: int, centre: float, drivers: float, visits_too: bool
) -> None:
    """Those who are in danger more often may also be there for longer."""
    rng = np.random.default_rng(recordings)
    repeats = 2000
    trait = rng.normal(size=(repeats, recordings))
    odds = centre + drivers * trait
    size = np.exp(2 + 0.7 * rng.normal(size=trait.shape) + 0.5 * visits_too * trait)
    visits = 5 * np.ceil(size)
    followed = 5 * rng.binomial(np.ceil(size).astype(int), expit(odds))  # five ticks at a time
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    weights = weights * np.exp(0.5 * visits_too * nodes)
    truth = float(expit(centre + drivers * nodes) @ weights / weights.sum())
    row, cell = np.arange(trait.size) % recordings, np.repeat(np.arange(repeats), recordings)
    told = tally(row, cell, visits.ravel(), followed.ravel().astype(np.float64), repeats)
    lower, upper = share_bounds(told, 0.95)
    assert ((lower <= truth) & (truth <= upper)).mean() >= LEAST


def test_the_truth_of_a_world_is_what_happens_in_it() -> None:
    world = World.draw(3, 1.0, 2.0)
    states, crash = world.record(4000, 1)
    here = states[:, : TICKS - HORIZON]
    followed = np.arange(TICKS - HORIZON)[None] + HORIZON >= crash[:, None]
    truth = world.truth()
    checked = 0
    for state in range(STATES):
        at = here == state
        if at.sum() < 5000:
            continue
        checked += 1
        assert followed[at].mean() == pytest.approx(truth[state], abs=0.03)
    assert checked > 5


@pytest.mark.parametrize("recordings", RECORDINGS)
@pytest.mark.parametrize("kind", ["drivers differ", "both"])
def test_risks_are_within_clustered_bounds(kind: str, recordings: int) -> None:
    found = coverage(kind, recordings, worlds=3, samples=20)
    for name, one in found.items():
        if name != "chain, credible":
            assert one.held / one.states >= LEAST, name
            assert one.width / one.states < 0.8, name
    if recordings == 100:  # what they are there for
        chain, credible = found["chain, clustered"], found["chain, credible"]
        assert chain.held > credible.held


def test_what_the_letters_cannot_reach_in_time_is_certain() -> None:
    """Three letters to a violation from 0, two from 1, one from 2; 3 is satisfied."""
    automaton = Automaton(
        atoms=("a",),
        letter_class=np.array([0, 1], dtype=np.int32),
        transitions=np.array([[0, 1], [3, 2], [0, 4], [3, 3], [4, 4]], dtype=np.int32),
        initial=0,
        violated=4,
        satisfied=3,
        names=("0", "1", "2", "satisfied", "violated"),
    )
    assert steps_to_violation(automaton).tolist() == [3, 2, 1, np.inf, 0]
