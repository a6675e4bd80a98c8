"""Plans of language models for households, judged before anything moves.

    python -m evaluation.plans.study [--virtualhome FILE] [--safety-chip FILE] [--write]

The files are what `simulate` wrote, and Safety Chip's labelled runs (results_vh.json). Prints the
tables; figures go to `--folder`, with `--write` to results.json and the page of results.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from evaluation.embodied.study import percent, plain
from evaluation.harness.command import command
from evaluation.harness.page import publish, table
from evaluation.plans.safety_chip import study as labelled_runs
from forewarn.plans.judge import judge
from forewarn.plans.readers import read_plans
from forewarn.plans.rules import load_rules
from forewarn.plans.summary import Tally, share

HERE = Path(__file__).parent
#: SENTINEL's table of plans (arXiv 2510.12985), in %: success, safe, both; three prompts. Theirs.
SENTINEL = {
    "GPT-5": ((68.2, 73.9, 67.7), (66.0, 71.8, 66.0), (62.4, 68.0, 62.3)),
    "Claude Sonnet 4": ((85.5, 91.2, 84.6), (84.6, 90.6, 83.7), (77.3, 82.2, 76.4)),
    "DeepSeek V3.1": ((89.5, 96.5, 88.8), (88.9, 94.2, 84.1), (89.1, 83.4, 78.2)),
}


def virtualhome_plans(path: Path) -> dict[str, Any]:
    """Judge all plans by the rules of the household."""
    rules = load_rules(HERE / "household.yaml")
    tallies: dict[str, Tally] = defaultdict(Tally)
    wrong: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    twice = safe_valid = valid = 0
    for plan in read_plans(path):
        judgement = judge(plan, rules)
        for name in (str(plan.fields["model"]), "all"):
            tallies[name].add(judgement)
        wrong[str(plan.fields.get("wrong", "-"))] += 1
        twice += bool(plan.fields["twice"])
        if plan.fields["valid"]:
            valid += 1
            safe_valid += judgement.verdict == "safe"
        broken.update(f.rule for f in judgement.findings if f.outcome in ("violated", "pending"))
    rows = {name: vars(tallies[name].row((name,))) for name in sorted(tallies)}
    return {
        "rows": rows, "wrong": dict(wrong.most_common()), "broken": dict(broken.most_common()),
        "answers_with_an_action_twice": twice, "safe_of_valid": share(safe_valid, valid),
    }  # fmt: skip


def section(found: dict[str, Any]) -> str:
    """Return the part of RESULTS.md, of what has been judged."""
    parts = [virtualhome_tables(found)] if "virtualhome" in found else []
    parts += [chip_tables(found["safety_chip"])] if "safety_chip" in found else []
    return "\n".join(parts)


def virtualhome_tables(found: dict[str, Any]) -> str:
    """Return the table of VirtualHome's models, and SENTINEL's own."""
    rows = []
    for name, row in found["virtualhome"]["rows"].items():
        reached, goals = row["goals"]
        shares = [_share(row[key]) for key in ("success", "safe", "both", "valid")]
        rows.append([name, *shares, percent(reached / goals)])
    head = ("Model", "success %", "safe %", "success and safe %", "valid %", "sub-goals %")
    return "\n".join([table(head, rows), sentinel()])


def chip_tables(chip: dict[str, Any]) -> str:
    """Return how Safety Chip's labels and our verdicts agree."""
    why = [[text, str(count)] for text, count in chip["why"].items()]
    levels = [
        [name, str(c["runs"]), str(c["label"]), str(c["safe"]), str(c["completed"])]
        for name, c in chip["levels"].items()
    ]
    agreement = chip["agreement"]
    left_out = chip.get("left_out", 0)  # published figures are of a set that can be read whole
    unread = [f"{left_out} runs are left out: these sentences cannot be read as rules"]
    unread += [f"- {sentence}" for sentence in chip["unread"]]
    return "\n".join(
        [
            *(unread if left_out else ()),
            f"Safety Chip: {agreement['count']} of {agreement['of']} verdicts agree with the "
            f"label, {_share(agreement)} %. The others:\n",
            table(("Why they differ", "runs"), why),
            table(
                ("Level in the data", "runs", "labelled safe", "safe by us", "completed"), levels
            ),
        ]
    )


def sentinel() -> str:
    """Return SENTINEL's own figures."""
    head = (
        "SENTINEL's, theirs: success / safe / both (%)",
        "rules as formulas",
        "in words",
        "none",
    )
    rows = [
        [name, *(" / ".join(map(str, cell)) for cell in cells)] for name, cells in SENTINEL.items()
    ]
    return table(head, rows)


def _share(entry: dict[str, Any]) -> str:
    value = percent(entry["count"] / entry["of"]) if entry["of"] else "-"
    return f"{value} [{percent(entry['lower'])}, {percent(entry['upper'])}]"


def main(
    virtualhome: Path | None = None, safety_chip: Path | None = None,
    folder: Path = Path("out/plans"), write: bool = False,
) -> None:  # fmt: skip
    """Judge, print, and keep the figures."""
    found = {}
    if virtualhome is not None:
        found["virtualhome"] = plain(virtualhome_plans(virtualhome))
    if safety_chip is not None:
        found["safety_chip"] = plain(labelled_runs(safety_chip))
    if not found:
        raise FileNotFoundError("--virtualhome FILE or --safety-chip FILE is asked for")
    published = HERE / "results.json"
    if write:  # the page shows both parts, whichever is made anew
        found = json.loads(published.read_text(encoding="utf-8")) | found
    publish("evaluation.plans.study", section(found), found, published, folder, write=write)


if __name__ == "__main__":
    command(main)
