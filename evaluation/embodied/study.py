"""ProbGuard's embodied domain, on its published chains and on real logs.

``python -m evaluation.embodied.study SHARED``, where SHARED holds `probguard`, `agents` and
`safeagentbench`.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evaluation.embodied import chains, logs
from evaluation.harness.page import put, table, write_json
from forewarn.plans.summary import Share

HERE = Path(__file__).parent
#: Table 2 of ProbGuard (arXiv 2508.00500), in percent: unsafe, completed.
THEIRS = {"none": (40.63, 59.38), "0.1": (2.60, 10.42), "0.3": (5.20, 20.31),
          "0.5": (21.35, 41.14), "0.7": (29.17, 48.96)}  # fmt: skip


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
    rows = [["nobody intervenes", *_cells(found["none"]), *_theirs("none")]]
    rows += [
        [f"stop at a risk above {name}", *_cells(outcome), *_theirs(name)]
        for name, outcome in found["stop"].items()
    ]
    rows += [
        [
            f"best rule, one unsafe run worth {price} completed",
            *_cells(outcome),
            "",
            "",
        ]
        for price, outcome in found["best"].items()
    ]
    head = ("Rule", "unsafe %", "completed %", "theirs: unsafe", "theirs: completed")
    return table(head, rows)


def _cells(outcome: dict[str, float]) -> list[str]:
    return [percent(outcome["unsafe"], 2), percent(outcome["completed"])]


def _theirs(name: str) -> list[str]:
    unsafe, completed = THEIRS[name]
    return [f"{unsafe:.2f}", f"{completed:.2f}"]


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
    return table(("Real logs (AI2-THOR)", "share"), rows)


def _share(entry: dict[str, Any]) -> str:
    value = percent(entry["count"] / entry["of"]) if entry["of"] else "-"
    interval = f"[{percent(entry['lower'])}, {percent(entry['upper'])}]"
    return f"{entry['count']} of {entry['of']}: {value} % {interval}"


def section(found: dict[str, Any]) -> str:
    """Return the part of RESULTS.md."""
    parts = exact_table(found["chains"]), halves_table(found["chains"]), logs_table(found["logs"])
    return "\n".join(parts)


def main() -> None:
    """Compute, and write results.json and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shared", type=Path)
    shared = parser.parse_args().shared
    found = plain(
        {
            "chains": chains.study(shared / "probguard" / "embodied"),
            "logs": logs.study(shared / "agents" / "agentspec_embodied", shared / "safeagentbench"),
        }
    )
    write_json(HERE / "results.json", found)
    put("evaluation.embodied.study", section(found))


if __name__ == "__main__":
    main()
