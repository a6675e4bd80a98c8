"""Do the bounds hold? Random chains whose truth is known, learned from runs of many lengths.

``python -m evaluation.bounds.study`` draws 200 chains, runs each for up to 100,000 transitions,
learns from the first 1,000, 10,000 and 100,000 of them, and asks for the risk of a bounded
response within several horizons, with credible and with sound bounds. It writes ``results.json``,
the table in ``README.md`` and the plot ``width.svg`` beside itself.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking import label_states, risk_table
from forewarn.checking.credible import Question, credible_tables
from forewarn.checking.interface import RiskTable
from forewarn.checking.sound import sound_table
from forewarn.logic import compile_formula, parse_formula
from forewarn.models import Chain, CountModel, Smoothing
from forewarn.states.vocabulary import Vocabulary

HERE = Path(__file__).resolve().parent
LENGTHS = (1_000, 10_000, 100_000)
HORIZONS = (10, 50, 200)
PREDICATES = ("a", "b", "c", "d", "e")
FORMULA = "always(a implies eventually[0:4](b))"


class Truth(NamedTuple):
    """A chain and the states it is made of; the last state is the terminal label ``end``."""

    chain: Chain
    states: tuple[int, ...]
    vocabulary: Vocabulary


def random_truth(rng: np.random.Generator) -> Truth:
    """Draw a chain of 8 to 32 states with 2 to 8 successors each; some states are sticky."""
    n = int(rng.integers(8, 33))
    states = (*sorted(rng.choice(32, size=n - 1, replace=False).tolist()), -1)
    matrix = np.zeros((n, n))
    for i in range(n - 1):
        targets = rng.choice(n - 1, size=min(int(rng.integers(2, 9)), n - 1), replace=False)
        matrix[i, targets] = rng.dirichlet(np.full(targets.size, 0.5))
        if rng.random() < 0.5:
            matrix[i] *= 0.2
            matrix[i, i] += 0.8
    leave = 10 ** rng.uniform(-4, -2)
    matrix[:-1] *= 1 - leave
    matrix[:-1, -1] = leave
    matrix[-1, -1] = 1.0
    matrix /= matrix.sum(axis=1, keepdims=True)
    absorbing = np.arange(n) == n - 1
    return Truth(Chain.from_matrix(matrix, absorbing), states, Vocabulary(PREDICATES, ("end",)))


def run(truth: Truth, length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return `length` transitions (from, to), shape (length, 2); a new start after each end."""
    table = np.cumsum(truth.chain.to_dense(), axis=1)
    n = truth.chain.size
    draws = rng.random(length)
    pairs = np.empty((length, 2), dtype=np.int64)
    state = 0
    for k in range(length):
        following = min(int(np.searchsorted(table[state], draws[k], side="right")), n - 1)
        pairs[k] = state, following
        state = following if following < n - 1 else int(rng.integers(0, n - 1))
    return pairs


def learned(truth: Truth, pairs: NDArray[np.int64]) -> CountModel:
    """Return the counts of a run over the states of the truth."""
    n = truth.chain.size
    counts = sparse.csr_matrix(
        (np.ones(len(pairs), dtype=np.int64), (pairs[:, 0], pairs[:, 1])), shape=(n, n)
    )
    starts = np.zeros(n, dtype=np.int64)
    starts[0] = 1
    return CountModel(truth.vocabulary, 10.0, "", truth.states, counts, starts, Smoothing())


def study(chains: int, seed: int) -> list[dict[str, float | int | str]]:
    """Return one record for each chain, run length, horizon and kind of bound."""
    automaton = compile_formula(parse_formula(FORMULA), rate=1.0)
    records: list[dict[str, float | int | str]] = []
    for number in range(chains):
        rng = np.random.default_rng([seed, number])
        truth = random_truth(rng)
        classes = label_states(automaton, truth.vocabulary, truth.states)
        exact = {h: risk_table(truth.chain, automaton, classes, h).values for h in HORIZONS}
        pairs = run(truth, max(LENGTHS), rng)
        for length in LENGTHS:
            model = learned(truth, pairs[:length])
            seen = (model.visits > 0) & ~model.terminal
            questions = [Question(automaton, classes, h) for h in HORIZONS]
            found: list[RiskTable] = credible_tables(model, questions)
            found += [sound_table(model, automaton, classes, h) for h in HORIZONS]
            for table in found:
                assert table.horizon is not None
                records.append(
                    {"chain": number, "transitions": length, "horizon": table.horizon}
                    | measures(table, exact[table.horizon], seen, automaton.initial)
                )
    return records


def measures(
    table: RiskTable, exact: NDArray[np.float64], seen: NDArray[np.bool_], idle: int
) -> dict[str, float | int | str]:
    """Return coverage (all states at once, and share of states), width and error."""
    assert table.lower is not None
    assert table.upper is not None
    inside = (table.lower <= exact + 1e-9) & (exact <= table.upper + 1e-9)
    return {
        "kind": table.kind,
        "all": int(inside[seen].all()),
        "share": float(inside[seen][:, idle].mean()),
        "width": float((table.upper - table.lower)[seen][:, idle].mean()),
        "error": float(np.abs(table.values - exact)[seen][:, idle].mean()),
        "risk": float(exact[seen][:, idle].mean()),
    }


def summary(records: list[dict[str, float | int | str]]) -> list[dict[str, float | int | str]]:
    """Return means over chains for each kind, horizon and number of transitions."""
    groups: dict[tuple[str, int, int], list[dict[str, float | int | str]]] = defaultdict(list)
    for record in records:
        key = (str(record["kind"]), int(record["horizon"]), int(record["transitions"]))
        groups[key].append(record)
    rows: list[dict[str, float | int | str]] = []
    for (kind, horizon, transitions), members in sorted(groups.items()):
        row: dict[str, float | int | str] = {
            "kind": kind,
            "horizon": horizon,
            "transitions": transitions,
            "chains": len(members),
        }
        for name in ("all", "share", "width", "error", "risk"):
            row[name] = float(np.mean([float(member[name]) for member in members]))
        rows.append(row)
    return rows


def table_text(rows: list[dict[str, float | int | str]]) -> str:
    """Return the summary as a Markdown table."""
    lines = [
        "| bounds | horizon | transitions | chains wholly covered | states covered | mean width | "
        "mean error of the estimate | mean risk |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['kind']} | {r['horizon']} | {r['transitions']:,} | {r['all']:.1%} | "
        f"{r['share']:.1%} | {r['width']:.3f} | {r['error']:.4f} | {r['risk']:.3f} |"
        for r in rows
    ]
    return "\n".join(lines)


def main() -> None:
    """Run the study and write its results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--dry-run", action="store_true", help="print the table, write nothing")
    options = parser.parse_args()
    rows = summary(study(options.chains, options.seed))
    print(table_text(rows))
    if options.dry_run:
        return
    from evaluation.bounds.plot import plot_widths

    (HERE / "results.json").write_text(json.dumps(rows, indent=1) + "\n")
    (HERE / "width.svg").write_text(plot_widths(rows))
    readme = HERE / "README.md"
    head, _, _ = readme.read_text().partition("<!-- table -->")
    readme.write_text(f"{head}<!-- table -->\n\n{table_text(rows)}\n")


if __name__ == "__main__":
    main()
