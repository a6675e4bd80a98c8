"""ProbGuard's embodied domain, on its published chains and on real logs.

    python -m evaluation.embodied.study --data FOLDER [--part chains] [--write]

FOLDER holds `probguard/embodied` (a folder with model.json and abstraction.json for each chain),
and for the part `logs` `agents/agentspec_embodied` and `safeagentbench`. Prints the tables; figures
go to `--folder`, with `--write` to results.json and the page of results.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation.embodied import chains, logs
from evaluation.harness.command import command
from evaluation.harness.page import publish, table
from forewarn.plans.summary import Share

HERE = Path(__file__).parent
#: Table 2 of ProbGuard (arXiv 2508.00500), in percent: unsafe, completed.
THEIRS = {"none": (40.63, 59.38), "0.1": (2.60, 10.42), "0.3": (5.20, 20.31),
          "0.5": (21.35, 41.14), "0.7": (29.17, 48.96), "reflect": (14.07, 47.74)}  # fmt: skip
#: AgentSpec's rules on embodied tasks, written by a model, as ProbGuard's paper has them.
AGENTSPEC = {"precision": 95.56, "recall": 70.96}


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


def percent(value: float, digits: int = 1) -> str:
    """Return a share in percent."""
    return f"{100 * value:.{digits}f}"


def exact_table(found: dict[str, Any]) -> str:
    """Return what is exact on the chains, beside the published figures."""
    none = found["none"]
    stops = {f"stop at a risk above {name}": (one, name) for name, one in found["stop"].items()}
    best = {
        f"best rule, one unsafe run worth {price} completed": (one, "")
        for price, one in found["best"].items()
    }
    rows = [
        [name, *_cells(one, none), *_theirs(published)]
        for name, (one, published) in {"nobody intervenes": (none, "none"), **stops, **best}.items()
    ]
    rows.append(["reflect at 0.1", *[""] * 4, *_theirs("reflect")])
    columns = ("unsafe %", "completed %", "precision %", "recall %")
    return table(("Rule", *columns, *(f"theirs: {name}" for name in columns)), rows)


def _cells(outcome: dict[str, float], none: dict[str, float]) -> list[str]:
    """Return shares, and how often a stop is right and how many unsafe runs are stopped.

    Whoever is not stopped fares as if nobody intervened, so that these follow from the shares.
    """
    unsafe, completed = outcome["unsafe"], outcome["completed"]
    shares = [percent(unsafe, 2), percent(completed)]
    right, stopped = none["unsafe"] - unsafe, 1 - unsafe - completed
    if right < 1e-6:
        return [*shares, "", ""]
    return [*shares, percent(right / stopped), percent(right / none["unsafe"])]


def _theirs(name: str) -> list[str]:
    if not name:
        return [""] * 4
    unsafe, completed = (figure / 100 for figure in THEIRS[name])
    shares = [percent(unsafe, 2), percent(completed, 2)]
    if not name[0].isdigit():  # who reflects is not stopped
        return [*shares, "", ""]
    none = {"unsafe": THEIRS["none"][0] / 100}
    return [*shares, *_cells({"unsafe": unsafe, "completed": completed}, none)[2:]]


def halves_table(found: dict[str, Any]) -> str:
    """Return what chains of half of the counts reach on the other half."""
    words = {
        "learned": "Forewarn's chain (alpha sparse), best rule", "alpha 1": "alpha 1, best rule",
        "possible": "best possible, from the judging half itself",
        "stop": "ProbGuard's stop, alpha 1",
    }  # fmt: skip
    rows = []
    for name, row in found["halves"].items():
        kind, _, price = name.rpartition(" ")
        if kind != "stop" and price not in ("1", "2", "4"):
            continue
        low, high = row["unsafe_interval"], row["completed_interval"]
        rows.append(
            [f"{words[kind]}, {'at ' if kind == 'stop' else 'price '}{price}",
             f"{percent(row['unsafe'], 2)} [{percent(low[0], 2)}, {percent(low[1], 2)}]",
             f"{percent(row['completed'])} [{percent(high[0])}, {percent(high[1])}]"]
        )  # fmt: skip
    return table(("Learned from one half, judged on the other", "unsafe %", "completed %"), rows)


def logs_table(found: dict[str, Any]) -> str:
    """Return what rules made of final states would stop."""
    simulator, unsafe = found["simulator"], found["unsafe"]
    named = {
        "runs that reached their unsafe state, stopped by their own rule": simulator["recall"],
        "of those stopped, reached it": simulator["precision"],
        f"runs of unsafe tasks that any of {found['rules']} rules stops": unsafe["stopped_share"],
        "the same, rules of other tasks only": unsafe["others_share"],
        "runs of safe tasks that these rules stop, too": found["safe"]["stopped_share"],
    }
    rows = [[name, _share(entry)] for name, entry in named.items()]
    rows += [
        [f"AgentSpec's rules, theirs, other runs: {key}", f"{value:.2f} %"]
        for key, value in AGENTSPEC.items()
    ]
    return table(("Real logs (AI2-THOR)", "share"), rows)


def _share(entry: dict[str, Any]) -> str:
    value = percent(entry["count"] / entry["of"]) if entry["of"] else "-"
    interval = f"[{percent(entry['lower'])}, {percent(entry['upper'])}]"
    return f"{entry['count']} of {entry['of']}: {value} % {interval}"


def section(found: dict[str, Any]) -> str:
    """Return the part of RESULTS.md, of what has been judged."""
    parts = []
    if "chains" in found:
        parts += [exact_table(found["chains"]), halves_table(found["chains"])]
    if "logs" in found:
        parts.append(logs_table(found["logs"]))
    return "\n".join(parts)


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
    published = HERE / "results.json"
    if write:  # other studies keep figures in this file
        found = json.loads(published.read_text(encoding="utf-8")) | found
    publish("evaluation.embodied.study", section(found), found, published, folder, write=write)


if __name__ == "__main__":
    command(main)
