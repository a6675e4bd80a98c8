"""Is the promised share of false alarms kept? Fresh draws of calibrating and of judged normal runs.

    python -m evaluation.agents.file_promise [--folder out/agents/files] [--draws 40] [--write]

FOLDER is that of file_study, which learned its trees and models. Each draw calibrates anew on 400
normal runs of the file agent and judges 100 others; no run is in two draws. The promise holds on
average over draws, and so the interval is over draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.agents.file_agent import write_runs
from evaluation.agents.file_study import ALPHA, EVERY, RULES, surprises_of
from evaluation.agents.outcome import publish, shown
from evaluation.agents.rivals import told
from evaluation.harness.command import command
from evaluation.harness.page import table
from forewarn.monitoring.anomalies import PROMISING, Rule, calibrate
from forewarn.monitoring.surprise import Surprise, What

HERE = Path(__file__).resolve().parent
CALIBRATED, JUDGED = 400, 100
FIRST_SEED = 1_000
"""Of the draws: file_study has 1 to 4."""

Runs = Sequence[Sequence[Surprise]]


def share_told(runs: Runs, rule: Rule, what: What) -> float:
    """Return the share of the judged runs of a draw that is told; the first ones calibrate."""
    values = [[one.of(what) for one in run] for run in runs]
    made = calibrate(values[:CALIBRATED], model="", abstraction="", what=what, rule=rule,
                     every=EVERY, alpha=ALPHA, recordings=())  # fmt: skip
    return float(np.mean([made.judge(run).anomalous for run in values[CALIBRATED:]]))


def figures(shares: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return for each rule the mean share over draws with its interval, and the extreme draws."""

    def mean(values: Any, labels: Any) -> float:
        del labels
        return float(np.mean(values))

    return {
        name: {
            "mean": told(mean, found, [False] * len(found), resamples=2000),
            "least": min(found),
            "greatest": max(found),
        }
        for name, found in shares.items()
    }


def text_of(found: Mapping[str, Any]) -> str:
    """Return the table."""
    rows = [
        [name, shown(one["mean"]), f"{one['least']:.2f} to {one['greatest']:.2f}"]
        for name, one in found["monitors"].items()
    ]
    return table(("Monitor", "Told of normal runs, mean of draws", "Single draws"), rows)


def main(
    folder: Path = Path("out/agents/files"), draws: int = 40, write: bool = False
) -> None:  # fmt: skip
    """Draw, judge, write."""
    shares: dict[str, list[float]] = {}
    path = folder / "draw.jsonl"
    for draw in range(draws):
        write_runs(path, CALIBRATED + JUDGED, FIRST_SEED + draw)
        for when in ("before", "after"):
            runs = list(surprises_of(folder / f"{when}.yaml", path).values())
            for rule, what in RULES:
                if rule in PROMISING:
                    share = share_told(runs, rule, what)
                    shares.setdefault(f"{rule} of {what}, {when}", []).append(share)
    found = {"draws": draws, "alpha": ALPHA, "monitors": figures(shares)}
    publish("promise", found, text_of(found), folder, write=write)


if __name__ == "__main__":
    command(main)
