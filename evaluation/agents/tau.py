"""Does a run of tau-bench succeed? The probability on tasks that nothing was learned from.

    python -m evaluation.agents.tau --data FILE [--judged FILE] [--write]

FILE, or a folder of files, holds chats with `task_id` and `reward`; several for each task. Each
tenth of the tasks is judged by what was learned from the others. With `--judged`, all that is in
`--data` is learned from, and the chats of the other are judged. `--write` puts the table into the
page of results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.agents.outcome import (
    Field,
    Others,
    Risk,
    Typed,
    from_to,
    in_order,
    is_key,
    known_for,
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

HERE = Path(__file__).resolve().parent
FOLDS, LEAF = 10, 20
NAMES = (
    *("changing", "giving_up", "thinking", "changed", "searched", "looked", "repeated"),
    *("given", "found", "parts", "invented", "errors", "failed", "step"),
)
NEEDS = {
    "task_id": Field(is_key, "the number or name of the task"),
    "reward": Field(from_to(0, 1), "a number from 0 (failed) to 1 (succeeded)"),
}


def by_task(runs: Sequence[Typed]) -> dict[int, list[Typed]]:
    """Return the runs in parts that share no task."""
    tasks = in_order(run.fields["task_id"] for run in runs)
    groups: dict[int, list[Typed]] = defaultdict(list)
    for run in runs:
        groups[tasks.index(run.fields["task_id"]) % FOLDS].append(run)
    return dict(groups)


def is_bad(fields: Mapping[str, Any]) -> bool:
    """Tell whether a run failed."""
    return bool(fields["reward"] < 0.5)


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


def study(
    runs: Sequence[Typed], unseen: Sequence[Typed] | None, folder: Path
) -> dict[str, Any]:  # fmt: skip
    """Return all figures: of runs judged by each other, or of others judged by all of them."""
    groups: dict[Any, Sequence[Typed]] = dict(by_task(runs))
    others: Others = None
    if unseen is not None:
        groups, known = {"judged": unseen}, {"known": runs}
        others = lambda _: known  # noqa: E731
    judged = [run for part in groups.values() for run in part]
    scores: dict[str, Sequence[Sequence[float]]] = {}
    found: dict[str, Any] = {"runs": len(judged), "good": sum(not run.bad for run in judged)}
    for name, bound in (("Forewarn", ""), ("Forewarn, refined", "Pmax(bad) <= {base:.3f}")):
        by_group = left_out(
            groups, NAMES, folder / name, refine=bound, others=others, leaf_size=LEAF
        )
        risks = [one for part in by_group.values() for one in part]
        scores[name] = [one.risk for one in risks]
        found[f"success, {name}"] = success(judged, risks)
    base = [[np.mean([r.bad for r in known_for(part, groups, others)])] for part in groups
            for _ in groups[part]]  # fmt: skip
    scores |= {"base rate": base, **rivals_left_out(groups, NAMES, others)}
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
    data: Path, judged: Path | None = None, folder: Path = Path("out/agents/tau"),
    write: bool = False,
) -> None:  # fmt: skip
    """Read, judge, write."""
    runs, unseen = (
        None if path is None else typed_runs(HERE / "tau.yaml", path, NAMES, is_bad, NEEDS)
        for path in (data, judged)
    )
    found = study(runs or [], unseen, folder)
    publish("tau", found, text_of(found), folder, write=write)


if __name__ == "__main__":
    command(main)
