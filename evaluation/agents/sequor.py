"""Are the crashes of a warehouse robot foreseen? A learned tree against predicates by hand.

    python -m evaluation.agents.sequor --data FOLDER [--folder out/agents/sequor] [--write]

FOLDER holds the trials as published, `E2_002.json.gz` and so on; names are read by this study only,
for the label: which trials end with a crash. The crash is at the first sudden stop, or at the end.
Some trials are another one mirrored: both are always in the same part. Each part is judged by what
was learned from the others. `--write` puts the tables into the page of results.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from evaluation.agents.outcome import forewarn, publish, shown
from evaluation.agents.rivals import Trace, area, best_of, rival_scores, told
from evaluation.harness.command import command
from evaluation.harness.compare import compare, contender, markdown, signal_contenders, within
from evaluation.harness.page import rounded, table
from evaluation.harness.runs import Fold, Pass, halves, pass_over, predict, watch
from forewarn.assessment.tradeoff import AlertRule
from forewarn.config import load_spec
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.recordings import find_recordings, open_recording

HERE = Path(__file__).resolve().parent
PROPERTY, FOLDS, QUIET, BUDGET = "no_crash", 5, 0.1, 120.0
CRASHES = {"N3": "wall", "N4": "oncoming", "N5": "crossing"}
SAFE, UNSAFE = ("E2", "E3"), ("N6",)
SINGLE = {"seconds_away": -1.0, "away": -1.0, "front": -1.0, "push": 1.0}


def load(name: str) -> CompiledSpec:
    """Return a monitor file of this study, compiled."""
    return compile_spec(load_spec(HERE / name))


def write_traces(data: Path, folder: Path) -> list[Path]:
    """Write the variables of each trial at each tick, so that a run reads laser scans once."""
    compiled, names = load("sequor.yaml"), load("sequor_hand.yaml").spec.signals
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for path in find_recordings(data):
        kept = folder / f"{path.name.partition('.')[0]}.jsonl"
        with open_recording(path) as recording:
            found = watch(compiled, recording)  # nothing is kept beside others' data
        ticks = found.tracks[0].ticks - found.tracks[0].ticks[0]
        hits = np.flatnonzero(found.tracks[0].terminal)
        end = (hits[0] if hits.size else ticks[-1]) if path.name[:2] in CRASHES else np.inf
        found.signals["crashed"] = np.where(ticks >= end, 1.0, 0.0)
        rows = zip(*(found.signals[name].tolist() for name in names), strict=True)
        lines = zip(ticks.tolist(), rows, strict=True)
        with kept.open("w", encoding="utf-8") as file:
            for tick, row in (line for line in lines if line[0] <= end):
                file.write(json.dumps({"t": tick / 10, **dict(zip(names, row, strict=True))}))
                file.write("\n")
        written.append(kept)
    return written


def parts_of(passes: Sequence[Pass]) -> list[list[Pass]]:
    """Return the trials in parts; those with the same speeds are one trial and its mirror image."""
    alike: dict[Any, list[Pass]] = defaultdict(list)
    for one in passes:
        alike[likeness(one)].append(one)
    groups = [list(alike.values())[i] for i in np.random.default_rng(1).permutation(len(alike))]
    return [[one for group in groups[part::FOLDS] for one in group] for part in range(FOLDS)]


def kind_of(one: Pass) -> str:
    """Return the label of a trial, which is in the name of its file."""
    return one.path.name[:2]


def likeness(one: Pass) -> tuple[float, ...]:
    """Return what a trial and its mirror image have in common: the speeds."""
    return tuple(np.round(one.signals["speed"], 1).tolist())


def with_tree(known: Sequence[Pass], path: Path) -> CompiledSpec:
    """Grow a tree on some trials by the documented command."""
    content = yaml.safe_load((HERE / "sequor_hand.yaml").read_text(encoding="utf-8"))
    del content["predicates"], content["bins"]
    variables = [name for name in content["signals"] if name != "crashed"]
    states = {"kind": "tree", "variables": variables, "tree": "s0"}
    path.write_text(yaml.safe_dump(content | {"states": states}, sort_keys=False), encoding="utf-8")
    traces = [one.path for one in known]
    forewarn("abstract", *traces, "-c", path, "--class", f"violation:{PROPERTY}:1.0", "--write")
    return compile_spec(load_spec(path))


def folds_of(parts: Sequence[Sequence[Pass]], folder: Path) -> dict[str, list[Fold]]:
    """Return for tree and hand each part predicted by the others, and these by halves."""
    found: dict[str, list[Fold]] = {"tree": [], "by hand": []}
    for number, judged in enumerate(parts):
        known = [one for part in parts if part is not judged for one in part]
        tree = with_tree(known, folder / f"{number}.yaml")
        for name, compiled in (("tree", tree), ("by hand", load("sequor_hand.yaml"))):
            ours, theirs = ([pass_over(compiled, one.path) for one in some]
                            for some in (known, judged))  # fmt: skip
            found[name].append(Fold(halves(compiled, ours), predict(compiled, ours, theirs)))
    return found


def before(one: Pass) -> int:
    """Return how many ticks come before the first crash, all if there is none."""
    hits = np.flatnonzero(one.tracks[0].terminal)
    return int(hits[0]) if hits.size else len(one.tracks[0].ticks)


def trace_of(one: Pass) -> Trace:
    """Return what rivals see: the ticks before the crash, and whether one comes."""
    end, names = before(one), set(load("sequor_hand.yaml").spec.signals) - {"crashed"}
    rows = np.nan_to_num(
        np.array([one.signals[name][:end] for name in sorted(names)]).T, posinf=99.0
    )
    speeds, nearness = one.signals["speed"][:end], one.signals["away"][:end]
    does = [
        f"{min(int(v * 2), 3)} {int(np.clip(d, 0, 5))}"
        for v, d in zip(speeds, nearness, strict=True)
    ]
    crashes = int(kind_of(one) in CRASHES)
    return Trace(does, does, rows.tolist(), crashes)


Scores = dict[str, list[np.ndarray]]
"""Of each monitor, for each trial, at each tick before the crash."""


def all_scores(folds: Mapping[str, Sequence[Fold]], parts: Sequence[Sequence[Pass]]) -> Scores:
    """Return the scores of all monitors for all trials, part by part."""
    scores: Scores = defaultdict(list)
    for name, some in folds.items():
        for fold in some:
            for one in fold.judged:
                risk = np.nan_to_num(one.tracks[0].probability[: before(one)], nan=1.0)
                scores[f"Forewarn, {name}"].append(risk)
    for name, sign in SINGLE.items():
        scores[name] = [sign * o.signals[name][: before(o)] for part in parts for o in part]
    others: dict[str, list[list[float]]] = defaultdict(list)
    for judged in parts:
        known = [trace_of(one) for part in parts if part is not judged for one in part]
        for name, runs in rival_scores(known, [trace_of(one) for one in judged]).items():
            others[name] += runs
    labels = [kind_of(one) in CRASHES for part in parts for one in part]
    return scores | {n: list(map(np.array, r)) for n, r in best_of(others, labels).items()}


def rows_of(scores: Scores, judged: Sequence[Pass]) -> list[dict[str, Any]]:
    """Return for each monitor what is foreseen of each class where a tenth of safe trials alarm."""
    kinds = np.array([kind_of(one) for one in judged])
    safe, rows = np.isin(kinds, SAFE), []
    pairs = list(map(likeness, judged))
    for name, runs in scores.items():
        peaks = np.array([run.max() if run.size else -np.inf for run in runs])
        falling = np.sort(peaks[safe])[::-1]
        level = falling[int(QUIET * len(falling))]
        leads = [lead(run, level) for run in runs]
        both = safe | np.isin(kinds, list(CRASHES))
        row: dict[str, Any] = {"monitor": name, "level": rounded(float(level))}
        row["false"] = float((peaks[safe] > level).mean())
        alike = [pair for pair, wanted in zip(pairs, both, strict=True) if wanted]
        row["area"] = told(area, np.nan_to_num(peaks[both], neginf=-1e9), ~safe[both], alike)
        for kind, what in CRASHES.items():
            some = [ticks for ticks, one in zip(leads, kinds, strict=True) if one == kind]
            row[what] = [sum(ticks > 0 for ticks in some), len(some)]
            row[f"{what} lead"] = rounded(float(np.median([x for x in some if x] or [0])) / 10)
        unsafe = np.isin(kinds, UNSAFE)
        row["unsafe"] = [int((peaks[unsafe] > level).sum()), int(unsafe.sum())]
        rows.append(row)
    return rows


def lead(run: np.ndarray, level: float) -> int:
    """Return for how many ticks up to the last one the score has been above a level."""
    quiet = np.flatnonzero(~(run > level))
    return len(run) - (int(quiet[-1]) + 1 if quiet.size else 0)


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as Markdown."""
    classes = (f"{what}: foreseen, median lead" for what in CRASHES.values())
    head = ("Monitor", "AUC of trials", *classes, "safe escapes that alarm", "unsafe ones")
    lines = []
    for row in rows:
        cells = [f"{row[w][0]} of {row[w][1]}, {row[f'{w} lead']:.1f} s" for w in CRASHES.values()]
        share = f"{row['unsafe'][0]} of {row['unsafe'][1]}"
        lines.append([row["monitor"], shown(row["area"], 2), *cells, f"{row['false']:.0%}", share])
    return table(head, lines)


def text_of(found: Mapping[str, Any]) -> str:
    """Return both tables."""
    return f"{table_of(found['classes'])}\n{markdown(found['alerts'])}\n"


def main(
    data: Path, folder: Path = Path("out/agents/sequor"), output: Path = HERE / "results.json",
    write: bool = False,
) -> None:  # fmt: skip
    """Read, learn, judge, write."""
    hand = load("sequor_hand.yaml")
    parts = parts_of([pass_over(hand, path) for path in write_traces(data, folder)])
    folds = folds_of(parts, folder)
    judged = [one for part in parts for one in part]
    rows = rows_of(all_scores(folds, parts), judged)
    rule = AlertRule.of(hand.spec.properties[PROPERTY])
    own = contender("Forewarn, tree", rule, folds["tree"], PROPERTY)
    others = [contender("Forewarn, by hand", rule, folds["by hand"], PROPERTY),
              *signal_contenders(hand, PROPERTY, folds["by hand"], SINGLE)]  # fmt: skip
    alerts = compare(own, others, within(BUDGET), resamples=200)
    found = {"classes": rows, "alerts": alerts}
    publish("sequor", found, text_of(found), output, write=write)


if __name__ == "__main__":
    command(main)
