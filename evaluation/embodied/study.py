"""ProbGuard's embodied domain, on its published chains and on real logs.

    python -m evaluation.embodied.study --data FOLDER [--part chains] [--write]

FOLDER holds `probguard/embodied` (a folder with model.json and abstraction.json for each chain),
and for the part `logs` `agents/agentspec_embodied` and `safeagentbench`. Prints the rows;
figures go to `--folder`, with `--write` the rows go to the page of results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation.embodied import chains, logs
from evaluation.harness.command import command
from evaluation.harness.page import Row, between, publish
from forewarn.wings.plans.summary import Share

TITLE = "Household agents"
COMMAND = "python -m evaluation.embodied.study --data D --write"
#: Table 2 of ProbGuard (arXiv 2508.00500), in percent: unsafe, completed.
THEIRS = {"none": (40.63, 59.38), "0.1": (2.60, 10.42), "0.3": (5.20, 20.31),
          "0.5": (21.35, 41.14), "0.7": (29.17, 48.96), "reflect": (14.07, 47.74)}  # fmt: skip


def plain(value: Any) -> Any:
    """Return figures as JSON has them."""
    if isinstance(value, Share):
        return asdict(value)
    if isinstance(value, chains.Outcome):
        return {"unsafe": value.unsafe, "completed": value.completed}
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value


def exact_rows(found: dict[str, Any]) -> Iterator[Row]:
    """Yield what is exact on the chains, beside the published figures."""
    none = found["none"]
    stops = {f"stop above {name}": (one, name) for name, one in found["stop"].items()}
    best = {f"best stop, price {price}": (one, "") for price, one in found["best"].items()}
    everything = {"nobody intervenes": (none, "none"), **stops, **best}
    for name, (one, published) in everything.items():
        answer = f"{_said(one['unsafe'], one['completed'])}{_right(one, none)}"
        if published:
            unsafe, completed = (figure / 100 for figure in THEIRS[published])
            answer += f" (theirs {_said(unsafe, completed)})"
        yield Row(f"Chains, {name}", answer)


def _said(unsafe: float, completed: float) -> str:
    return f"{unsafe:.2%}, {completed:.1%}"


def _right(outcome: dict[str, float], none: dict[str, float]) -> str:
    """Return how often a stop is right, and how many unsafe runs are stopped.

    Whoever is not stopped fares as if nobody intervened, so that these follow from the shares.
    """
    right = none["unsafe"] - outcome["unsafe"]
    stopped = 1 - outcome["unsafe"] - outcome["completed"]
    if right < 1e-6:
        return ""
    return f", right {right / stopped:.1%}, found {right / none['unsafe']:.1%}"


def halves_rows(found: dict[str, Any]) -> Iterator[Row]:
    """Yield what chains of half of the counts reach on the other half."""
    words = {
        "learned": "Forewarn",
        "alpha 1": "alpha 1",
        "possible": "best possible",
        "stop": "ProbGuard's stop",
    }
    for name, row in found["halves"].items():
        kind, _, price = name.rpartition(" ")
        if kind != "stop" and price != "2":
            continue
        ends = [[100 * end for end in row[f"{key}_interval"]] for key in ("unsafe", "completed")]
        yield Row(
            f"Halves, {words[kind]}{' at' if kind == 'stop' else ', price'} {price}",
            _said(row["unsafe"], row["completed"]),
            "%; ".join(between(end, "{:.2f}") for end in ends) + "%",
            f"{found['splits']} splits",
        )


def logs_rows(found: dict[str, Any]) -> Iterator[Row]:
    """Yield what rules made of final states would stop."""
    simulator, unsafe = found["simulator"], found["unsafe"]
    named = {
        "unsafe runs stopped by their own rule": simulator["recall"],
        "stopped runs that were unsafe": simulator["precision"],
        f"unsafe tasks stopped by any of {found['rules']} rules": unsafe["stopped_share"],
        "by rules of other tasks only": unsafe["others_share"],
        "safe tasks stopped by these rules": found["safe"]["stopped_share"],
    }
    for name, entry in named.items():
        value = f"{entry['count'] / entry['of']:.1%}" if entry["of"] else "-"
        ends = between([100 * entry["lower"], 100 * entry["upper"]], "{:.1f}")
        data = f"{entry['count']} of {entry['of']} runs"
        yield Row(f"Real logs: {name}", value, f"{ends}%, exact", data)


def rows_of(found: dict[str, Any]) -> list[Row]:
    """Return the rows of what has been judged."""
    rows: list[Row] = []
    if "chains" in found:
        rows += [*exact_rows(found["chains"]), *halves_rows(found["chains"])]
    if "logs" in found:
        rows += logs_rows(found["logs"])
    return rows


def main(
    data: Path, part: str = "all", folder: Path = Path("out/embodied"), write: bool = False
) -> None:
    """Judge, print, and keep the figures."""
    if part not in ("all", "chains", "logs"):
        raise SystemExit("--part is all, chains or logs")
    found = {}
    if part in ("all", "chains"):
        found["chains"] = plain(chains.study(data / "probguard" / "embodied"))
    if part in ("all", "logs"):
        runs = data / "agents" / "agentspec_embodied"
        found["logs"] = plain(logs.study(runs, data / "safeagentbench"))
    publish(TITLE, COMMAND, rows_of(found), found, folder, write=write)


if __name__ == "__main__":
    command(main)
