"""Which runs of the file agent are anomalous? The paper's experiment, before and after refinement.

    python -m evaluation.agents.file_study [--folder out/agents/files] [--write]

A tree is learned from normal runs by `abstract`, with the paper's variables and none used twice;
then it is refined for the bounds of files.yaml, each at half as much again as normal runs show. The
paper's rule judges the likelihood of a whole run; the conformal rules promise their false alarms.
`--write` puts the tables into the page of results.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.agents.file_agent import EFFECTS, KINDS, write_all
from evaluation.agents.outcome import forewarn, publish, shown
from evaluation.agents.rivals import Trace, area, best_of, false_at, rival_scores, told
from evaluation.harness.command import command
from evaluation.harness.page import table
from forewarn.learning.transitions import read_transitions
from forewarn.models.file import load_model
from forewarn.monitoring.anomalies import Rule, calibrate
from forewarn.monitoring.loading import load_bare
from forewarn.monitoring.surprise import Surprise, What, predictor_of
from forewarn.recordings import find_recordings

HERE = Path(__file__).resolve().parent
ALPHA, EVERY = 0.05, 10
RULES: tuple[tuple[Rule, What], ...] = (
    ("normal", "both"),
    ("conformal", "both"),
    ("prefix", "both"),
    ("prefix", "state"),
)
"""Rules, the paper's first, and what may be surprising: step by step, or where a run stays."""

GOALS = ("lopsided", "long", "short", "erring")
VARIABLES = ("iteration", "files_written", "files_read", "share", "errors")
PARTS = ("calibrated", "fresh", "odd")

Surprises = dict[str, list[Surprise]]
"""Of each transition of each run, by the run's name."""


def lines_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of each run of a trace."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        runs.setdefault(line["run"], []).append(line)
    return runs


def learned(paths: Mapping[str, Path], folder: Path, *, refined: bool) -> dict[str, Any]:
    """Learn tree and model from normal runs by the documented commands; return what they say."""
    monitor = Path(
        shutil.copy(HERE / "files.yaml", folder / f"{'after' if refined else 'before'}.yaml")
    )
    known, found = paths["learned"], {}
    found["abstract"] = forewarn("abstract", known, "-c", monitor, "--once", "--write")
    for goal, bound in bounds(known).items() if refined else ():
        query = f"Pmax({goal}) <= {bound:.3f}"
        told_of = forewarn("refine", known, "-c", monitor, "--query", query, "--write")
        found[query] = {"ending": told_of["ending"], "splits": len(told_of["rounds"])}
    forewarn("learn", known, "-c", monitor, "-o", monitor.with_suffix(".model.json"))
    return {"monitor": monitor, **found}


def bounds(known: Path) -> dict[str, float]:
    """Return the bounds to refine for: half as much again as the share of normal runs."""
    runs = lines_of(known).values()

    def lopsided(line: Mapping[str, Any]) -> bool:
        return (
            line["iteration"] >= 15 and not 0.25 <= line["files_read"] / line["iteration"] <= 0.75
        )

    shares = {
        "lopsided": np.mean([any(map(lopsided, run)) for run in runs]),
        "long": np.mean([run[-1]["iteration"] > 38 for run in runs]),
        "short": np.mean([run[-1]["iteration"] < 12 for run in runs]),
        "erring": np.mean([run[-1]["errors"] > 1 for run in runs]),
    }
    return {goal: min(1.5 * float(shares[goal]), 0.99) for goal in GOALS}


def surprises_of(monitor: Path, path: Path) -> Surprises:
    """Return how surprising each transition of each run is."""
    compiled = load_bare(monitor)
    predictor = predictor_of(load_model(monitor.with_suffix(".model.json")), "both")
    return {
        run.name.partition("run=")[2]: [
            predictor.surprise(one)
            for episode in read_transitions(run, compiled)
            for one in episode
        ]
        for run in find_recordings(path, "run")
    }


Scorer = Callable[[Sequence[float]], float]


def judged(found: Mapping[str, Surprises]) -> dict[str, Any]:
    """Return for each rule what it says of fresh and odd runs, and its scores of them."""
    by_rule: dict[str, Any] = {}
    for rule, what in RULES:
        runs = {part: {name: [one.of(what) for one in run] for name, run in found[part].items()}
                for part in PARTS}  # fmt: skip
        made = calibrate(list(runs["calibrated"].values()), model="", abstraction="", what=what,
                         rule=rule, every=EVERY, alpha=ALPHA, recordings=())  # fmt: skip
        by_rule[f"{rule} of {what}"] = {
            part: {
                name: (made.score(run), made.judge(run).anomalous)
                for name, run in runs[part].items()
            }
            for part in ("fresh", "odd")
        }
    return by_rule


def kinds_of(names: Sequence[str]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield each kind of anomaly, and each kind at each effect, with the runs that have it."""
    for kind in KINDS:
        yield kind, np.array([name.startswith(f"{kind}-") for name in names])
        for effect in EFFECTS:
            start = f"{kind}-{effect:g}-"
            yield f"{kind} {effect:g}", np.array([name.startswith(start) for name in names])


def figures(scores: Mapping[str, tuple[float, bool]], odd: Mapping[str, tuple[float, bool]]) -> Any:
    """Return false alarms, what is found, areas, and false alarms where 80 % are found."""
    fresh = list(scores.values())
    alarms = np.array([alarm for _, alarm in fresh])
    found: dict[str, Any] = {"false_alarms": told(_share, alarms * 1.0, alarms)}
    values = np.array([value for value, _ in fresh])
    for label, mask in kinds_of(list(odd)):
        some = [one for one, wanted in zip(odd.values(), mask, strict=True) if wanted]
        caught = np.array([alarm for _, alarm in some])
        together = np.concatenate([values, [value for value, _ in some]])
        truths = np.concatenate([np.zeros(len(values), bool), np.ones(len(some), bool)])
        found[label] = {
            "found": told(_share, caught * 1.0, caught),
            "area": told(area, together, truths),
            "false_at_80": told(lambda s, t: false_at(s, t, 0.8), together, truths),
        }
    return found


def _share(values: NDArray[np.float64], labels: NDArray[np.bool_]) -> float:
    del labels
    return float(values.mean())


def rival_traces(path: Path, *, label: int | None) -> dict[str, Trace]:
    """Return what rivals see of the runs of a trace: all variables, read or written, or over."""
    found = {}
    for name, lines in lines_of(path).items():
        rows = [[_number(line, key) for key in VARIABLES] for line in lines]
        outputs = [f"{min(line['errors'], 3)} {line['done']}" for line in lines]
        found[name] = Trace([line["action"] or "" for line in lines], outputs, rows, label)
    return found


def _number(line: Mapping[str, Any], key: str) -> float:
    if key == "share":
        return line["files_read"] / line["iteration"] if line["iteration"] else 0.5
    return float(line[key])


def rivals(paths: Mapping[str, Path]) -> dict[str, Any]:
    """Return the figures of the rivals; their level is the quantile of the calibrated runs.

    Boosting learns from the half of the odd runs with even numbers, which are not judged for it:
    it alone knows anomalies beforehand.
    """
    parts = {part: rival_traces(paths[part], label=0) for part in ("learned", *PARTS)}
    asked = [trace for part in PARTS for trace in parts[part].values()]
    found = rival_scores(list(parts["learned"].values()), asked)
    odd = [name for part in PARTS for name in [part] * len(parts[part])]
    chosen = best_of(
        {name: [r for r, p in zip(runs, odd, strict=True) if p != "calibrated"]
         for name, runs in found.items()},
        [part == "odd" for part in odd if part != "calibrated"],
    )  # fmt: skip
    even = {n: t._replace(label=1) for i, (n, t) in enumerate(parts["odd"].items()) if i % 24 < 12}
    known = [*parts["learned"].values(), *even.values()]
    told_before = rival_scores(known, asked, only=("gradient boosting",))
    boosted = "gradient boosting, last step"
    result = {}
    for name in (*chosen, boosted):
        last = [run[-1] for run in (told_before if name == boosted else found)[name]]
        cut = np.cumsum([len(parts[part]) for part in PARTS])
        quiet, fresh, strange = np.split(np.array(last), cut[:-1])
        level = np.quantile(quiet, 1 - ALPHA, method="higher")
        result[name] = figures(
            {n: (s, s > level) for n, s in zip(parts["fresh"], fresh, strict=True)},
            {n: (s, s > level) for n, s in zip(parts["odd"], strange, strict=True)
             if name != boosted or n not in even},
        )  # fmt: skip
    return result


def table_of(results: Mapping[str, Any]) -> str:
    """Return the table: false alarms, and for each kind what is found and false alarms at 80 %."""
    columns = {"found": "found", "area": "AUC", "false_at_80": "false at 80 %"}
    titles = (f"{kind}: {title}" for title in columns.values() for kind in KINDS)
    head = ("Monitor", "False alarms", *titles)
    rows = []
    for name, one in results.items():
        cells = [shown(one[k][w], 2) for w in columns for k in KINDS]
        rows.append([name, shown(one["false_alarms"]), *cells])
    return table(head, rows)


def curves_of(results: Mapping[str, Any]) -> str:
    """Return areas by size of the effect."""
    labels = [f"{kind} {effect:g}" for kind in KINDS for effect in EFFECTS]
    rows = [[name, *(f"{one[label]['area']['value']:.2f}" for label in labels)]
            for name, one in results.items()]  # fmt: skip
    return table(("AUC", *labels), rows)


def text_of(found: Mapping[str, Any]) -> str:
    """Return both tables."""
    return f"{table_of(found['monitors'])}\n{curves_of(found['monitors'])}"


def main(
    folder: Path = Path("out/agents/files"), write: bool = False
) -> None:  # fmt: skip
    """Draw the runs, learn, judge, write."""
    paths, results, steps = write_all(folder), {}, {}
    for refined in (False, True):
        when = "after" if refined else "before"
        told_of = learned(paths, folder, refined=refined)
        found = {part: surprises_of(told_of["monitor"], paths[part]) for part in PARTS}
        steps[when] = {key: value for key, value in told_of.items() if key != "monitor"}
        for rule, said in judged(found).items():
            results[f"{rule}, {when}"] = figures(said["fresh"], said["odd"])
    results |= rivals(paths)
    told_of_all = {"commands": steps, "monitors": results}
    publish("files", told_of_all, text_of(told_of_all), folder, write=write)


if __name__ == "__main__":
    command(main)
