"""Trials of a warehouse robot: which end with a crash, and which belong together.

The trials are as published, `E2_002.json.gz` and so on; the first two letters are the label. The
crash is at the first sudden stop, or at the end. Some trials are another one mirrored: both are
always in the same part.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.harness.runs import Pass, pass_over, recordings_in, watch
from forewarn.errors import InputError, plural
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.loading import load_bare
from forewarn.recordings.registry import open_recording

HERE = Path(__file__).resolve().parent
PROPERTY, FOLDS = "no_crash", 5
CRASHES = {"N3": "wall", "N4": "oncoming", "N5": "crossing"}
SAFE, UNSAFE = ("E2", "E3"), ("N6",)
OTHERS = ("E1", "N1", "N2")
"""They do not crash, and are no escapes."""
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
    """Return the trials of a folder (or the one that a path names), and say how many of what."""
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


def splits_of(known: Sequence[Pass], judged: Sequence[Pass] | None, data: Path) -> list[Split]:
    """Return what each part of the trials is judged by: the other parts, or all of `known`."""
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
