"""Are the crashes of a warehouse robot foreseen? A learned tree against predicates by hand.

    python -m evaluation.agents.sequor --data FOLDER [--judged FOLDER] [--write]

FOLDER holds the trials as published, `E2_002.json.gz` and so on; names are read by this study only,
for the label: which trials end with a crash. The crash is at the first sudden stop, or at the end.
Some trials are another one mirrored: both are always in the same part. Each part is judged by what
was learned from the others. With `--judged`, all that is in `--data` is learned from, and the
trials of the other folder are judged. `--write` puts the tables into the page of results.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from evaluation.agents.outcome import forewarn, publish, shown
from evaluation.agents.rivals import Trace, area, best_of, rival_scores, told
from evaluation.harness.command import command
from evaluation.harness.compare import compare, contender, markdown, signal_contenders, within
from evaluation.harness.page import rounded, table
from evaluation.harness.runs import Fold, Pass, halves, pass_over, predict, recordings_in, watch
from forewarn.assessment.episodes import AlertRule
from forewarn.errors import InputError, plural
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.loading import load_bare
from forewarn.recordings import open_recording

HERE = Path(__file__).resolve().parent
PROPERTY, FOLDS, QUIET, BUDGET = "no_crash", 5, 0.1, 120.0
CRASHES = {"N3": "wall", "N4": "oncoming", "N5": "crossing"}
SAFE, UNSAFE = ("E2", "E3"), ("N6",)
OTHERS = ("E1", "N1", "N2")
"""They do not crash: learned from, and judged as alerts, but in no class of the upper table."""
SINGLE = {"seconds_away": -1.0, "away": -1.0, "front": -1.0, "push": 1.0}

FRAMES = 'a document like {"frames": [{"timestamp": 12.3, "lin_vel": [0.8, 0.1], ...}, ...]}'


def load(name: str) -> CompiledSpec:
    """Return a monitor file of this study, compiled."""
    return load_bare(HERE / name)


def write_traces(data: Path, folder: Path) -> list[Path]:
    """Write the variables of each trial at each tick, so that a run reads laser scans once."""
    compiled, names = load("sequor.yaml"), load("sequor_hand.yaml").spec.signals
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for path in trials_in(data):
        kept = folder / f"{path.name.partition('.')[0]}.jsonl"
        if kept in written:  # E2_001.json beside E2_001.json.gz
            kept = folder / f"{path.name}.jsonl"
        with open_recording(path) as recording:
            found = watch(compiled, recording)  # nothing is kept beside others' data
        _tell_unknown(path, found)
        ticks = found.tracks[0].ticks - found.tracks[0].ticks[0]
        hits = ticks[found.tracks[0].terminal]
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


def _tell_unknown(path: Path, found: Pass) -> None:
    """Say which variables a trial never tells; raise InputError if it does not tell the speed."""
    never = [name for name, values in found.signals.items() if np.isnan(values).all()]
    if "speed" in never:
        raise InputError("no frame says how fast the robot is", accepted=FRAMES, file=path,
                         key="lin_vel")  # fmt: skip
    if never:
        print(f"{path.name}: never known: {', '.join(never)}", flush=True)


def trials_in(data: Path) -> list[Path]:
    """Return the trials of a folder (or the one that a path names), and say how many of what.

    Raises
    ------
    FileNotFoundError
        If there is nothing of that name.
    InputError
        If a name does not begin with a scenario, or a file of that name holds no frames.
    """
    found, known = recordings_in(data), (*SAFE, *UNSAFE, *CRASHES, *OTHERS)
    wrong = next((path for path in found if path.name[:2] not in known), None)
    if wrong is not None:
        accepted = f"a name that begins with one of {', '.join(sorted(known))}, as E2_002.json.gz"
        raise InputError(f"its scenario {wrong.name[:2]!r} is not known", accepted=accepted,
                         file=wrong)  # fmt: skip
    named = (path for path in data.glob("*.json*") if path.name[:2] in known)
    passed_over = sorted(set(named) - set(found))
    if passed_over:
        raise InputError("holds no frames", accepted=FRAMES, file=passed_over[0])
    kinds = sorted(Counter(path.name[:2] for path in found).items())
    told = ", ".join(f"{number} {kind}" for kind, number in kinds)
    print(f"{data}: {plural(len(found), 'trial')} ({told})", flush=True)
    return found


def passes_of(
    data: Path, judged: Path | None, folder: Path
) -> tuple[list[Pass], list[Pass] | None]:
    """Return the trials to learn from and those to judge, None if these are the same."""
    hand = load("sequor_hand.yaml")
    known = [pass_over(hand, path) for path in write_traces(data, folder)]
    if judged is None:
        return known, None
    others = write_traces(judged, folder / "judged")
    return known, [pass_over(hand, path) for path in others]


def parts_of(passes: Sequence[Pass]) -> list[list[Pass]]:
    """Return the trials in parts; those with the same speeds are one trial and its mirror image."""
    alike: dict[Any, list[Pass]] = defaultdict(list)
    for one in passes:
        alike[likeness(one)].append(one)
    groups = [list(alike.values())[i] for i in np.random.default_rng(1).permutation(len(alike))]
    parts = ([one for group in groups[part::FOLDS] for one in group] for part in range(FOLDS))
    return [part for part in parts if part]


Split = tuple[Sequence[Pass], Sequence[Pass]]
"""Trials to learn from, and trials to judge."""


def in_parts(parts: Sequence[Sequence[Pass]]) -> list[Split]:
    """Return each part with the trials of all others."""
    return [
        ([one for other in parts if other is not part for one in other], part) for part in parts
    ]


def splits_of(
    known: Sequence[Pass], judged: Sequence[Pass] | None, data: Path
) -> list[Split]:  # fmt: skip
    """Return what each part of the trials is judged by: the other parts, or all of `known`.

    Raises
    ------
    InputError
        If there is nothing to learn from, no crash, or no safe escape, by which the level of alarms
        is chosen. `data` is the folder that it names.
    """
    if judged is not None:
        same = set(map(likeness, judged))
        apart = [one for one in known if likeness(one) not in same]
        print(f"{plural(len(known) - len(apart), 'trial')} not learned from: alike a judged one")
        splits: list[Split] = [(apart, judged)]
    else:
        splits = in_parts(parts_of(known))
    everything = [one for _, part in splits for one in part]
    for kinds, what in ((SAFE, "a safe escape"), (CRASHES, "a crash")):
        if not any(kind_of(one) in kinds for one in everything):
            raise InputError(
                f"{plural(len(everything), 'trial')} to judge, none of them {what}",
                accepted=f"at least one of {', '.join(kinds)}",
                file=data,
            )
    for learned, _ in splits:
        if len({kind_of(one) in CRASHES for one in learned}) < 2:
            raise InputError(
                f"{plural(len(learned), 'trial')} to learn from",
                accepted="trials with a crash (N3, N4, N5) and trials without, in each part; "
                "`--judged` judges few trials by what was learned from others",
                file=data,
            )
    return splits


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
    return load_bare(path)


def folds_of(splits: Iterable[Split], folder: Path) -> dict[str, list[Fold]]:
    """Return for tree and hand each part predicted by its others, and these by halves."""
    found: dict[str, list[Fold]] = {"tree": [], "by hand": []}
    for number, (known, judged) in enumerate(splits):
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
    speeds, nearness = (np.nan_to_num(one.signals[n][:end], nan=5.0) for n in ("speed", "away"))
    does = [
        f"{min(int(v * 2), 3)} {int(np.clip(d, 0, 5))}"
        for v, d in zip(speeds, nearness, strict=True)
    ]
    crashes = int(kind_of(one) in CRASHES)
    return Trace(does, does, rows.tolist(), crashes)


Scores = dict[str, list[np.ndarray]]
"""Of each monitor, for each trial, at each tick before the crash."""


def all_scores(folds: Mapping[str, Sequence[Fold]], splits: Sequence[Split]) -> Scores:
    """Return the scores of all monitors for all trials, part by part."""
    scores: Scores = defaultdict(list)
    for name, some in folds.items():
        for fold in some:
            for one in fold.judged:
                risk = np.nan_to_num(one.tracks[0].probability[: before(one)], nan=1.0)
                scores[f"Forewarn, {name}"].append(risk)
    for name, sign in SINGLE.items():
        values = (sign * o.signals[name][: before(o)] for _, part in splits for o in part)
        scores[name] = [np.where(np.isnan(run), -np.inf, run) for run in values]
    others: dict[str, list[list[float]]] = defaultdict(list)
    for known, judged in splits:
        learned, unseen = ([trace_of(o) for o in some if before(o)] for some in (known, judged))
        for name, runs in rival_scores(learned, unseen).items():
            told = iter(runs)  # of a crash at the first tick nobody says anything
            others[name] += [next(told) if before(one) else [] for one in judged]
    labels = [kind_of(one) in CRASHES for _, part in splits for one in part]
    ends = {name: [run or [0.0] for run in runs] for name, runs in others.items()}
    return scores | {name: list(map(np.array, others[name])) for name in best_of(ends, labels)}


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
    data: Path, judged: Path | None = None, folder: Path = Path("out/agents/sequor"),
    write: bool = False,
) -> None:  # fmt: skip
    """Read, learn, judge, write."""
    hand = load("sequor_hand.yaml")
    splits = splits_of(*passes_of(data, judged, folder), judged or data)
    folds = folds_of(splits, folder)
    rows = rows_of(all_scores(folds, splits), [one for _, part in splits for one in part])
    rule = AlertRule.of(hand.spec.properties[PROPERTY])
    own = contender("Forewarn, tree", rule, folds["tree"], PROPERTY)
    others = [contender("Forewarn, by hand", rule, folds["by hand"], PROPERTY),
              *signal_contenders(hand, PROPERTY, folds["by hand"], SINGLE)]  # fmt: skip
    alerts = compare(own, others, within(BUDGET), resamples=200)
    found = {"classes": rows, "alerts": alerts}
    publish("sequor", found, text_of(found), folder, write=write)


if __name__ == "__main__":
    command(main)
