"""Do runs of ToolEmu end in harm? Risk 0 or 1 against 2 or 3, on models that were left out.

    python -m evaluation.agents.toolemu --data FOLDER [--folder out/agents/toolemu] [--write]

FOLDER holds runs with `model`, `case` and `tool_call_risk` (0 is certain harm), in any files.
All models saw the same cases, so a second split leaves out models and cases together. `--write`
puts the table into the page of results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.agents.outcome import (
    Typed,
    left_out,
    publish,
    rivals_left_out,
    rows_of,
    table_of,
    typed_runs,
)
from evaluation.harness.command import command
from forewarn.recordings import find_recordings

HERE = Path(__file__).resolve().parent
FOLDS = 5
NAMES = (
    *("saying", "changing", "looking", "asks", "claims", "declines", "confirms", "spoken", "used"),
    *("changed", "given", "found", "parts", "invented", "nothing", "errors", "step"),
)
"""The variables: none is a literal of a task, or tells which task or model it is."""

Groups = dict[Any, list[Typed]]


def by_model(runs: Sequence[Typed]) -> Groups:
    """Return the runs in parts that share no model."""
    models = sorted({run.fields["model"] for run in runs})
    groups: Groups = defaultdict(list)
    for run in runs:
        groups[models.index(run.fields["model"]) % FOLDS].append(run)
    return dict(groups)


def by_model_and_case(runs: Sequence[Typed]) -> Groups:
    """Return the runs in parts by model and by half of the cases."""
    return {
        (part, half): [run for run in some if run.fields["case"] % 2 == half]
        for part, some in by_model(runs).items()
        for half in (0, 1)
    }


def apart_from(groups: Groups) -> Callable[[Any], Groups]:
    """Return what gives the parts that share neither model nor case with a part."""
    return lambda part: {k: v for k, v in groups.items() if k[0] != part[0] and k[1] != part[1]}


def is_bad(fields: Mapping[str, Any]) -> bool:
    """Tell whether a run was judged to end in harm, certain or likely."""
    return bool(fields["tool_call_risk"] <= 1)


def remembered(groups: Groups) -> list[float]:
    """Return for each run how often its case ended badly with the models that were not left out."""
    found = []
    for part, runs in groups.items():
        known: dict[Any, list[bool]] = defaultdict(list)
        for run in (run for other, some in groups.items() if other != part for run in some):
            known[run.fields["case"]].append(run.bad)
        base = float(np.mean([bad for bads in known.values() for bad in bads]))
        found += [(sum(known[r.fields["case"]]) + base) / (len(known[r.fields["case"]]) + 1)
                  for r in runs]  # fmt: skip
    return found


def study(runs: Sequence[Typed], folder: Path) -> dict[str, Any]:
    """Return all figures."""
    both = by_model_and_case(runs)
    splits = {"models": (by_model(runs), None), "models and cases": (both, apart_from(both))}
    found: dict[str, Any] = {"runs": len(runs), "bad": sum(run.bad for run in runs)}
    for split, (groups, others) in splits.items():
        judged = [run for part in groups.values() for run in part]
        scores = {}
        for name, bound in (("Forewarn", ""), ("Forewarn, refined", "Pmax(bad) <= {base:.3f}")):
            risks = left_out(groups, NAMES, folder / split / name, refine=bound, others=others)
            scores[name] = [one.risk for part in risks.values() for one in part]
        only = () if others is None else ("gradient boosting",)
        scores |= rivals_left_out(groups, NAMES, others, only)
        if others is None:
            scores["memoriser of cases"] = [[one] for one in remembered(groups)]
        models = [run.fields["model"] for run in judged]
        found[split] = rows_of(scores, [run.bad for run in judged], models)
    return found


def text_of(found: Mapping[str, Any]) -> str:
    """Return the tables."""
    splits = ("models", "models and cases")
    return "\n".join(f"{split} left out:\n\n{table_of(found[split])}" for split in splits)


def main(
    data: Path, folder: Path = Path("out/agents/toolemu"), output: Path = HERE / "results.json",
    write: bool = False,
) -> None:  # fmt: skip
    """Read, judge, write."""
    runs = [
        run
        for path in find_recordings(data)
        for run in typed_runs(HERE / "toolemu.yaml", path, NAMES, is_bad)
    ]
    found = study(runs, folder)
    publish("toolemu", found, text_of(found), output, write=write)


if __name__ == "__main__":
    command(main)
