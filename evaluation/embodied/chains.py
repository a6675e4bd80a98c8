"""ProbGuard's published chains of household agents: what stopping can reach on them, exactly.

A chain has a state for each combination of its task's predicates, and `finish`. ProbGuard's files
do not say which state is unsafe. Here it is the one in which every predicate of the task holds, as
in the rule `AG not (inside and toggled)`; a chain that has none is left out (one of the 104
published ones). An execution begins where the fewest hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import InputError

Matrix = NDArray[np.float64]


class Chain(NamedTuple):
    """A chain that begins in state `start`; `counts` are those that its fractions imply."""

    name: str
    matrix: Matrix
    unsafe: int
    finish: int
    counts: NDArray[np.int64]
    start: int = 0


class Outcome(NamedTuple):
    """Probabilities that an execution becomes unsafe, and that it is completed."""

    unsafe: float
    completed: float


def load(folder: Path) -> Chain | None:
    """Return a chain, None if no state has all predicates, or the first one does."""
    model = _document(folder / "model.json", "states", "transition_probs", "state_interpret")
    abstraction = _document(folder / "abstraction.json", "parentReceptacles", "keys")
    states = model["states"]
    if "finish" not in states or len(states) < 2:
        raise InputError(f"is {states}", accepted="'finish' and other states",
                         file=folder / "model.json", key="states")  # fmt: skip
    finish = states.index("finish")
    rows = _fractions(folder / "model.json", states, model["transition_probs"])
    others = [state for state in states if state != "finish"]
    least = min(others, key=lambda s: s.count("1"))
    most = max(others, key=lambda s: (s.count("1"), s))
    objects = model["state_interpret"].get(most) or []
    inside = {name for one in objects for name in one.get("parentReceptacles") or ()}
    keys = {key for one in objects for key, value in one.items() if value is True}
    asked = {*(abstraction["parentReceptacles"] or ())}, {*(abstraction["keys"] or ())}
    if least == most or not asked[0] <= inside or not asked[1] <= keys:
        return None
    matrix = np.array([[float(p) for p in row] for row in rows])
    counts = implied_counts(rows, finish)
    return Chain(folder.name, matrix, states.index(most), finish, counts, states.index(least))


def _fractions(
    path: Path, states: Sequence[str], given: dict[str, dict[str, Any]]
) -> list[list[Fraction]]:
    """Return the rows of a chain; one that is empty or not given stays where it is."""
    found = []
    for state in states:
        row = given.get(state) or {state: "1"}
        try:
            found.append([Fraction(str(row.get(other, 0))) for other in states])
        except (ValueError, ZeroDivisionError) as error:
            raise InputError(
                f"is no fraction ({error})", accepted='such as "1/3"', file=path,
                key=f"transition_probs.{state}",
            ) from error  # fmt: skip
        if not math.isclose(sum(found[-1]), 1, abs_tol=1e-6):
            raise InputError(f"sums to {float(sum(found[-1])):.6g}", accepted="1", file=path,
                             key=f"transition_probs.{state}")  # fmt: skip
    return found


def _document(path: Path, *keys: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"is no JSON ({error})", accepted=", ".join(keys), file=path) from error
    if not isinstance(found, dict):
        raise InputError("is no object", accepted=", ".join(keys), file=path)
    lacking = ", ".join(key for key in keys if key not in found)
    if lacking:
        raise InputError(f"lacks {lacking}", accepted=", ".join(keys), file=path)
    return found


def implied_counts(rows: Sequence[Sequence[Fraction]], finish: int) -> NDArray[np.int64]:
    """Return the counts behind fractions to which one was added for each successor that is given.

    They are those of the least common denominator of a row. If all smoothed counts of a row had a
    common factor, they were larger by it.
    """
    found = np.zeros((len(rows), len(rows)), dtype=np.int64)
    for at, row in enumerate(rows):
        if at != finish:
            least = int(np.lcm.reduce([p.denominator for p in row if p]))
            found[at] = [int(p * least) - 1 if p else 0 for p in row]
    return found


def chains(folder: Path) -> Iterator[Chain]:
    """Yield all chains of a folder that have an unsafe state, and say which have none."""
    for child in sorted(path for path in folder.iterdir() if path.is_dir()):
        chain = load(child)
        if chain is not None:
            yield chain
        else:
            print(f"{child} is left out: no state but the first has all predicates of its task")


def solve(chain: Chain, stopped: NDArray[np.bool_]) -> Outcome:
    """Return what comes of a rule that stops in some states."""
    n = len(chain.matrix)
    inner = np.array(
        [i for i in range(n) if i not in (chain.unsafe, chain.finish) and not stopped[i]]
    )
    if stopped[chain.start] or not len(inner):
        return Outcome(0.0, 0.0)
    ends = _reached(chain, inner, chain.matrix[np.ix_(inner, [chain.unsafe, chain.finish])])
    return Outcome(*ends[list(inner).index(chain.start)].tolist())


def _reached(chain: Chain, inner: Sequence[int] | NDArray[np.int64], ends: Matrix) -> Matrix:
    """Return what is reached from the inner states; nothing where they are never left."""
    within = chain.matrix[np.ix_(inner, inner)]
    leaves = within.sum(axis=1) < 1 - 1e-12
    while not leaves.all():
        more = leaves | (within[:, leaves] > 0).any(axis=1)
        if (more == leaves).all():
            break
        leaves = more
    stuck = ~leaves
    within[stuck] = 0.0
    return np.asarray(np.linalg.solve(np.eye(len(inner)) - within, np.where(stuck, 0, ends.T).T))


def risks(chain: Chain) -> Matrix:
    """Return the probability that an execution becomes unsafe from each state."""
    n = len(chain.matrix)
    found = np.zeros(n)
    found[chain.unsafe] = 1.0
    inner = [i for i in range(n) if i not in (chain.unsafe, chain.finish)]
    found[inner] = _reached(chain, inner, chain.matrix[inner, chain.unsafe])
    return found


def at_threshold(chain: Chain, threshold: float) -> NDArray[np.bool_]:
    """Return where ProbGuard's rule stops: the risk is above a threshold."""
    stopped = risks(chain) > threshold
    stopped[[chain.unsafe, chain.finish]] = False
    return stopped


def best_stop(chain: Chain, price: float) -> NDArray[np.bool_]:
    """Return where the best rule stops if an unsafe execution costs `price` completed ones.

    Policy iteration for optimal stopping: going on must be worth more than nothing.
    """
    n = len(chain.matrix)
    worth = np.zeros(n)
    worth[chain.finish], worth[chain.unsafe] = 1.0, -price
    inner = np.array([i for i in range(n) if i not in (chain.unsafe, chain.finish)])
    going: set[int] = set()
    for _ in range(4 * n):
        kept = np.array(sorted(going), dtype=np.int64)
        values = worth.copy()
        if len(kept):
            ends = chain.matrix[kept][:, [chain.finish, chain.unsafe]] @ [1.0, -price]
            values[kept] = _reached(chain, kept, ends)
        ahead = chain.matrix @ values
        alone = ahead - np.diag(chain.matrix) * values
        following = {int(i) for i in inner if alone[i] > 1e-12}
        if following == going:
            break
        going = following
    stopped = np.ones(n, dtype=bool)
    stopped[[*going, chain.unsafe, chain.finish]] = False
    return stopped


def smoothed(chain: Chain, counts: NDArray[np.int64], alpha: str = "1") -> Chain:
    """Return the chain of other counts.

    Each successor that is given gets a weight of one, as in ProbGuard's files, or under `sparse`
    an equal part of a total weight of one in its row, as Forewarn does.
    """
    given = chain.matrix > 0
    each = 1 / np.maximum(given.sum(axis=1), 1) if alpha == "sparse" else np.ones(len(given))
    weights = counts + given * each[:, None]
    total = weights.sum(axis=1, keepdims=True)
    matrix = np.divide(weights, total, out=np.eye(len(given)), where=total > 0)
    matrix[chain.finish] = np.eye(len(given))[chain.finish]
    return chain._replace(matrix=np.asarray(matrix), counts=counts)


def halves(chain: Chain, rng: np.random.Generator) -> tuple[Chain, Chain]:
    """Return chains of two random halves of the counted transitions.

    The first is learned as Forewarn does; the second, which judges, as ProbGuard's files are.
    """
    first = rng.binomial(chain.counts, 0.5)
    return smoothed(chain, first, "sparse"), smoothed(chain, chain.counts - first)


def mean(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the mean over tasks."""
    return Outcome(*np.mean(outcomes, axis=0).tolist())


PRICES = (0.5, 1.0, 2.0, 4.0, 8.0)
THRESHOLDS = (0.1, 0.3, 0.5, 0.7)


def study(folder: Path, splits: int = 200, seed: int = 20251122) -> dict[str, Any]:
    """Return what is reached on the chains, and by chains of half the counts on the other half."""
    known = list(chains(folder))
    if not known:
        raise InputError("holds no chain with an unsafe state", file=folder,
                         accepted="folders with model.json and abstraction.json")  # fmt: skip
    none = [solve(c, np.zeros(len(c.matrix), dtype=bool)) for c in known]
    stops = {f"{t:g}": mean([solve(c, at_threshold(c, t)) for c in known]) for t in THRESHOLDS}
    best = {f"{p:g}": mean([solve(c, best_stop(c, p)) for c in known]) for p in PRICES}
    rng = np.random.default_rng(seed)
    reached: dict[str, list[list[Outcome]]] = {}
    for _ in range(splits):
        pairs = [halves(c, rng) for c in known]
        theirs = [(smoothed(c, a.counts), b) for c, (a, b) in zip(known, pairs, strict=True)]
        for price in PRICES:
            for name, rows in (
                (f"learned {price:g}", [solve(b, best_stop(a, price)) for a, b in pairs]),
                (f"alpha 1 {price:g}", [solve(b, best_stop(a, price)) for a, b in theirs]),
                (f"possible {price:g}", [solve(b, best_stop(b, price)) for _, b in pairs]),
            ):
                reached.setdefault(name, []).append(rows)
        rows = [solve(b, at_threshold(a, THRESHOLDS[0])) for a, b in theirs]
        reached.setdefault(f"stop {THRESHOLDS[0]:g}", []).append(rows)
    return {
        "chains": len(known), "splits": splits,
        "none": mean(none), "stop": stops, "best": best,
        "halves": {name: _spread(rows) for name, rows in reached.items()},
    }  # fmt: skip


def _spread(rows: list[list[Outcome]]) -> dict[str, Any]:
    """Return the mean over splits, and an interval over tasks drawn again, all splits of each."""
    tasks = np.mean(np.array(rows), axis=0)
    rng = np.random.default_rng(1)
    drawn = tasks[rng.integers(0, len(tasks), size=(2_000, len(tasks)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return {
        "unsafe": float(tasks[:, 0].mean()), "completed": float(tasks[:, 1].mean()),
        "unsafe_interval": [float(low[0]), float(high[0])],
        "completed_interval": [float(low[1]), float(high[1])],
    }  # fmt: skip
