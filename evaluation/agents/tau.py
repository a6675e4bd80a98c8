"""Does a run of tau-bench succeed? The probability on tasks that nothing was learned from.

    python -m evaluation.agents.tau --data FILE [--folder out/agents/tau] [--write]

FILE holds chats with `task_id` and `reward`; several for each task. Each tenth of the tasks is
judged by what was learned from the others. `--write` puts the table into the page of results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.agents.outcome import (
    Risk,
    Typed,
    left_out,
    publish,
    rivals_left_out,
    rows_of,
    shown,
    table_of,
    typed_runs,
)
from evaluation.agents.rivals import told
from evaluation.harness.command import command
from forewarn.recordings import find_recordings

HERE = Path(__file__).resolve().parent
FOLDS, LEAF = 10, 20
NAMES = (
    *("changing", "giving_up", "thinking", "changed", "searched", "looked", "repeated"),
    *("given", "found", "parts", "invented", "errors", "failed", "step"),
)


def by_task(runs: Sequence[Typed]) -> dict[int, list[Typed]]:
    """Return the runs in parts that share no task."""
    tasks = sorted({run.fields["task_id"] for run in runs})
    groups: dict[int, list[Typed]] = defaultdict(list)
    for run in runs:
        groups[tasks.index(run.fields["task_id"]) % FOLDS].append(run)
    return dict(groups)


def success(judged: Sequence[Typed], risks: Sequence[Risk]) -> dict[str, Any]:
    """Return what was said of success before the first step, and how often runs succeeded."""
    tasks = [run.fields["task_id"] for run in judged]
    good = [not run.bad for run in judged]

    def mean(values: Any, labels: Any) -> float:
        del labels
        return float(np.mean(values))

    def first(values: Sequence[float]) -> float:
        return 1 - values[0]

    return {
        "predicted": told(mean, [first(one.risk) for one in risks], good, tasks),
        "lower": told(mean, [first(one.upper) for one in risks], good, tasks),
        "upper": told(mean, [first(one.lower) for one in risks], good, tasks),
        "observed": told(mean, [float(one) for one in good], good, tasks),
    }


def study(runs: Sequence[Typed], folder: Path) -> dict[str, Any]:
    """Return all figures."""
    groups = by_task(runs)
    judged = [run for part in groups.values() for run in part]
    scores: dict[str, Sequence[Sequence[float]]] = {}
    found: dict[str, Any] = {"runs": len(runs), "good": sum(not run.bad for run in runs)}
    for name, bound in (("Forewarn", ""), ("Forewarn, refined", "Pmax(bad) <= {base:.3f}")):
        by_group = left_out(groups, NAMES, folder / name, refine=bound, leaf_size=LEAF)
        risks = [one for part in by_group.values() for one in part]
        scores[name] = [one.risk for one in risks]
        found[f"success, {name}"] = success(judged, risks)
    base = [[np.mean([r.bad for k, p in groups.items() if k != part for r in p])] for part in groups
            for _ in groups[part]]  # fmt: skip
    scores |= {"base rate": base, **rivals_left_out(groups, NAMES)}
    tasks = [run.fields["task_id"] for run in judged]
    return found | {"rows": rows_of(scores, [run.bad for run in judged], tasks)}


def text_of(found: Mapping[str, Any]) -> str:
    """Return the table, and what was said of success."""
    lines = [
        f"{name}: success {shown(one['predicted'])} before the first step (mean bounds "
        f"{one['lower']['value']:.3f} to {one['upper']['value']:.3f}), observed "
        f"{shown(one['observed'])}."
        for name, one in ((key.partition(", ")[2], found[key]) for key in found if "success" in key)
    ]
    return "\n".join([table_of(found["rows"]), *lines, ""])


def main(
    data: Path, folder: Path = Path("out/agents/tau"), output: Path = HERE / "results.json",
    write: bool = False,
) -> None:  # fmt: skip
    """Read, judge, write."""
    runs = [
        run
        for path in find_recordings(data)
        for run in typed_runs(HERE / "tau.yaml", path, NAMES, lambda fields: fields["reward"] < 0.5)
    ]
    found = study(runs, folder)
    publish("tau", found, text_of(found), output, write=write)


if __name__ == "__main__":
    command(main)
