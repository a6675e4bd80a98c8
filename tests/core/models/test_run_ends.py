"""Whether violations end recordings: against the definition, and where nothing is to be found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.models.run_ends import RunEnd, RunEnds, ends_in_words, judge_ends

Draws = np.random.Generator
HORIZON = 30


@st.composite
def run_ends(draw: st.DrawFn) -> RunEnd:
    length = draw(st.integers(1, 12))
    return RunEnd(length, tuple(sorted(draw(st.sets(st.integers(0, length - 1))))))


@given(st.lists(run_ends(), max_size=8), st.integers(1, 9))
def test_what_is_expected_is_what_runs_of_the_same_age_do(runs: list[RunEnd], horizon: int) -> None:
    def hides(run: RunEnd, length: int) -> bool:
        """Tell whether a run that ended at that age would end within a horizon of a violation."""
        return any(at < length < at + horizon for at in run.violations)

    expected = 0.0
    for run in runs:
        peers = [other for other in runs if other.length >= run.length]
        expected += sum(hides(other, run.length) for other in peers) / len(peers)
    found = judge_ends(runs, horizon)
    assert found.expected == pytest.approx(expected)
    assert found.observed == sum(hides(run, run.length) for run in runs)
    assert found.last == sum(at + horizon > run.length for run in runs for at in run.violations)
    assert found.violations == sum(len(run.violations) for run in runs)


def by_chance(draws: Draws, lengths: Sequence[int], share: float) -> list[RunEnd]:
    return [
        RunEnd(int(n), tuple(np.flatnonzero(draws.random(n) < share).tolist())) for n in lengths
    ]


def crashes(draws: Draws, number: int, others: int, after: int) -> list[RunEnd]:
    """Return runs that end so long after their only violation, and others without any."""
    times = draws.integers(20, 150 - after, number).tolist()
    return [*(RunEnd(at + 1 + after, (at,)) for at in times), *[RunEnd(150, ())] * others]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda d: by_chance(d, [40] * 80, 0.02), id="clips of one length"),
        pytest.param(lambda d: by_chance(d, d.integers(5, 300, 60), 0.01), id="of any length"),
        pytest.param(
            lambda d: [*by_chance(d, [35] * 60, 0.02), *by_chance(d, [600] * 60, 0.0005)],
            id="clips from dangerous places, and long runs from others",
        ),
        pytest.param(lambda d: crashes(d, 20, 20, after=40), id="that go on for long"),
    ],
)
def test_ends_by_chance_are_not_taken_for_ends_by_violations(
    make: Callable[[Draws], list[RunEnd]],
) -> None:
    draws = np.random.default_rng(1)
    assert sum(judge_ends(make(draws), HORIZON).concluded for _ in range(100)) <= 1


@pytest.mark.parametrize(("number", "others", "after"), [(20, 20, 0), (20, 20, 15), (12, 500, 0)])
def test_runs_that_end_at_the_crash_are_found(number: int, others: int, after: int) -> None:
    draws = np.random.default_rng(2)
    found = [judge_ends(crashes(draws, number, others, after), HORIZON) for _ in range(50)]
    assert sum(one.concluded for one in found) >= 49
    assert {(one.last, one.violations) for one in found} == {(number, number)}


def test_three_crashes_are_too_few_and_an_unbounded_horizon_tells_nothing() -> None:
    runs = crashes(np.random.default_rng(3), 3, 200, after=0)
    assert not judge_ends(runs, HORIZON).concluded
    assert judge_ends(runs * 9, None) == judge_ends([], HORIZON) == RunEnds()


def test_what_is_said_names_the_share_and_what_the_file_can_say() -> None:
    def told(*counts: int, concluded: bool = False) -> str:
        last, violations = counts
        ends = RunEnds(violations, last, last, 0.1, concluded)
        return ends_in_words("no_crash", ends, "3 s", "`terminal: {crash: hit > 0.5}`")

    assert told(20, 20, concluded=True) == (
        "no_crash: 20 of 20 violations lie within the last 3 s of their recordings, which end "
        "because of them: each counts as the end of an episode. The monitor file can say so for "
        "certain: `terminal: {crash: hit > 0.5}`"
    )
    assert told(1, 2).startswith("no_crash: 1 of 2 violations lies within the last 3 s of a")
    assert "the moments before are left out" in told(1, 2)
    assert told(1, 3) == told(0, 0) == "", "few of them say nothing"
