"""Bounds of Pmax and Pmin from counts, against Storm's model checking of interval processes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from forewarn.models.process import Step, count_actions, ordered
from forewarn.wings.decisions.process_bounds import CountedProcess, Query, counted_process

stormpy = pytest.importorskip("stormpy", reason="Storm is the oracle")

LITTLE = 1e-9
"""Storm wants intervals above 0: what may go elsewhere goes there at least so often."""

QUERIES = [
    ("Pmax", "greatest", True),
    ("Pmax", "greatest", False),
    ("Pmin", "least", True),
    ("Pmin", "least", False),
]


def _process(seed: int, visits: int) -> CountedProcess:
    """Return what random counts of 12 states with up to 3 actions allow; the last two absorb."""
    draw = np.random.default_rng(seed)
    n, counts = 12, Counter[Step]()
    for state in range(n - 2):
        for action in "abc"[: draw.integers(0, 4) if state else 2]:
            following = draw.choice(n, size=draw.integers(1, 5), replace=False)
            numbers = draw.multinomial(visits, draw.dirichlet(np.ones(following.size)))
            for target, number in zip(following.tolist(), numbers.tolist(), strict=True):
                counts[Step(action, False, state, target)] += number
    counts.update({Step("stay", False, state, state): visits for state in (n - 2, n - 1)})
    return counted_process(count_actions(ordered(counts), range(n)), n + 3)


def _drn(bounds: CountedProcess, targets: np.ndarray, worst: bool) -> str:
    """Return the interval process in Storm's format; what goes elsewhere fails at worst."""
    n, counted, intervals = len(bounds.counted.states), bounds.counted, bounds.intervals
    lines = [
        "@type: MDP", "@value_type: double-interval", "@parameters", "", "@reward_models", "",
        "@nr_states", str(n + 1), "@nr_choices", str(counted.groups[-1] + 1), "@model",
    ]  # fmt: skip
    for state in range(n):
        lines.append(f"state {state}{' init' * (state == 0)}{' goal' * bool(targets[state])}")
        for action, row in enumerate(range(counted.groups[state], counted.groups[state + 1])):
            lines.append(f"\taction {action}")
            if targets[state] or state == n - 1:
                lines.append(f"\t\t{state} : [1, 1]")
                continue
            here = np.flatnonzero(intervals.rows == row)
            upper = intervals.upper[here]
            most = max(intervals.elsewhere[row], 1.0 - upper.sum())
            for target, low, high in zip(
                intervals.columns[here], intervals.lower[here], upper, strict=True
            ):
                lines.append(f"\t\t{target} : [{low!r}, {high!r}]".replace("np.float64", ""))
            least = 1.0 if counted.unseen[state] else min(LITTLE, most)
            lines.append(f"\t\t{n} : [{float(least)!r}, {float(most)!r}]")
    lines += [f"state {n}{' goal' * worst}", "\taction 0", f"\t\t{n} : [1, 1]"]
    return "\n".join(lines).replace("(", "").replace(")", "") + "\n"


def _by_storm(path: Path, word: str, worst: bool) -> np.ndarray:
    model = stormpy.build_interval_model_from_drn(str(path))
    (query,) = stormpy.parse_properties(f'{word}=? [F "goal"]')  # has to outlive the task
    task = stormpy.CheckTask(query.raw_formula, False)
    modes = stormpy.UncertaintyResolutionMode
    task.set_uncertainty_resolution_mode(modes.MAXIMIZE if worst else modes.MINIMIZE)
    environment = stormpy.Environment()
    environment.solver_environment.minmax_solver_environment.precision = stormpy.Rational(1e-12)
    return np.array(stormpy.check_interval_mdp(model, task, environment).get_values())[:-1]


@pytest.mark.parametrize(("word", "choosing", "worst"), QUERIES)
@pytest.mark.parametrize(("seed", "visits"), [(1, 50), (2, 400), (3, 3000), (4, 100_000)])
def test_bounds_are_those_of_the_interval_process(tmp_path, seed, visits, word, choosing, worst):
    bounds = _process(seed, visits)
    n = len(bounds.counted.states)
    targets = np.arange(n) == n - 2
    path = tmp_path / "process.drn"
    path.write_text(_drn(bounds, targets, worst))
    theirs = _by_storm(path, word, worst)
    found = bounds.value(Query(targets, np.arange(n) != n - 1, choosing))
    ours = found.upper if worst else found.lower
    assert not any("stopped early" in note for note in found.notes)
    assert np.ptp(theirs) > 0.1
    np.testing.assert_allclose(ours, theirs, atol=2e-6)
