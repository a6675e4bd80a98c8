"""Do runs of ToolEmu end in harm? Risk 0 or 1 against 2 or 3, on models that were left out.

    python -m evaluation.agents.toolemu --data FOLDER [--judged FOLDER] [--write]

FOLDER holds runs with `model`, `case` and `tool_call_risk` (0 is certain harm), in any files.
All models saw the same cases, so a second split leaves out models and cases together. With
`--judged`, all that is in `--data` is learned from, and the runs of the other folder are judged.
`--write` puts the table into the page of results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.agents.outcome import (
    Field,
    Typed,
    from_to,
    in_order,
    is_key,
    left_out,
    publish,
    rivals_left_out,
    rows_of,
    table_of,
    typed_runs,
)
from evaluation.harness.command import command

HERE = Path(__file__).resolve().parent
FOLDS = 5
NAMES = (
    *("saying", "changing", "looking", "asks", "claims", "declines", "confirms", "spoken", "used"),
    *("changed", "given", "found", "parts", "invented", "nothing", "errors", "step"),
)
"""The variables: none is a literal of a task, or tells which task or model it is."""

NEEDS = {
    "model": Field(is_key, "the name of the model"),
    "case": Field(is_key, "the number or name of the case"),
    "tool_call_risk": Field(from_to(0, 3), "a number from 0 (certain severe risk) to 3 (none)"),
}

Groups = dict[Any, list[Typed]]


def by_model(runs: Sequence[Typed]) -> Groups:
    """Return the runs in parts that share no model."""
    models = in_order(run.fields["model"] for run in runs)
    groups: Groups = defaultdict(list)
    for run in runs:
        groups[models.index(run.fields["model"]) % FOLDS].append(run)
    return dict(groups)


def by_model_and_case(runs: Sequence[Typed]) -> Groups:
    """Return the runs in parts by model and by half of the cases."""
    cases = {case: half % 2 for half, case in enumerate(in_order(r.fields["case"] for r in runs))}
    groups = {
        (part, half): [run for run in some if cases[run.fields["case"]] == half]
        for part, some in by_model(runs).items()
        for half in (0, 1)
    }
    return {part: some for part, some in groups.items() if some}


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


Split = tuple[Groups, Callable[[Any], Groups] | None]
"""Parts to judge, and what gives the parts that each is judged by, None for all others."""


def splits_of(runs: Sequence[Typed], unseen: Sequence[Typed] | None = None) -> dict[str, Split]:
    """Return how runs are judged: by each other, or those that are unseen by all others."""
    if unseen is not None:
        return {"other runs": ({"judged": list(unseen)}, lambda _: {"known": list(runs)})}
    both = by_model_and_case(runs)
    return {
        "models": (by_model(runs), None),
        "models and cases": (both, apart_from(both)),
    }


def study(splits: Mapping[str, Split], folder: Path) -> dict[str, Any]:
    """Return all figures."""
    found: dict[str, Any] = {}
    for split, (groups, others) in splits.items():
        judged = [run for part in groups.values() for run in part]
        found |= {"runs": len(judged), "bad": sum(run.bad for run in judged)}
        scores = {}
        for name, bound in (("Forewarn", ""), ("Forewarn, refined", "Pmax(bad) <= {base:.3f}")):
            risks = left_out(groups, NAMES, folder / split / name, refine=bound, others=others)
            scores[name] = [one.risk for part in risks.values() for one in part]
        only = ("gradient boosting",) if split == "models and cases" else ()
        scores |= rivals_left_out(groups, NAMES, others, only)
        if others is None:
            scores["memoriser of cases"] = [[one] for one in remembered(groups)]
        models = [run.fields["model"] for run in judged]
        found[split] = rows_of(scores, [run.bad for run in judged], models)
    return found


def text_of(found: Mapping[str, Any]) -> str:
    """Return the tables."""
    splits = {
        "models": "models left out", "models and cases": "models and cases left out",
        "other runs": "judged by what was learned from other runs",
    }  # fmt: skip
    tables = (f"{splits[name]}:\n\n{table_of(found[name])}" for name in splits if name in found)
    return "\n".join(tables)


def main(
    data: Path, judged: Path | None = None, folder: Path = Path("out/agents/toolemu"),
    write: bool = False,
) -> None:  # fmt: skip
    """Read, judge, write."""
    runs, unseen = (
        None if path is None else typed_runs(HERE / "toolemu.yaml", path, NAMES, is_bad, NEEDS)
        for path in (data, judged)
    )
    found = study(splits_of(runs or [], unseen), folder)
    publish("toolemu", found, text_of(found), folder, write=write)


if __name__ == "__main__":
    command(main)
