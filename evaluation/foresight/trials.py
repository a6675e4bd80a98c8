"""The same question where recordings are few: each is judged by what was learned from the others.

    python -m evaluation.foresight.trials --robot FOLDER [--judged FOLDER] --folder out/study
    python -m evaluation.foresight.trials --ngsim FOLDER --folder out/study

`--robot` has the trials of a warehouse robot as published, `E2_002.json.gz` and so on. They are
judged in five parts, a trial and its mirror image in the same one; with `--judged`, all of them are
learned from, and the trials of the other folder are judged. `--ngsim` has CommonRoad's scenes of
recorded traffic: the cars of a scene are judged by those of the others, and left out together where
folds are made of these.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.foresight import sequor
from evaluation.foresight.ngsim import write_traces
from evaluation.foresight.study import HERE, Question, contenders, figures, row_of
from evaluation.harness.command import command
from evaluation.harness.page import publish
from evaluation.harness.runs import Pass, pass_over
from evaluation.study.rivals import Quantity
from forewarn.assessment.comparison import Contender
from forewarn.errors import InputError, plural
from forewarn.monitoring.loading import load_bare

TITLE = "Recordings of others"
COMMAND = "python -m evaluation.foresight.trials --robot D --ngsim D2 --folder out/study --write"

FOLLOWING = {"headway": -1.0, "time_to_collision": -1.0, "required_deceleration": 1.0}
TRAFFIC: dict[str, tuple[str, dict[str, float]]] = {
    "de_g1_safe_distance": ("ngsim_distance.yaml", {"margin": -1.0, **FOLLOWING}),
    "hard_braking": (
        "ngsim_braking.yaml",
        {"just_now": -1.0, "acceleration": -1.0, "speed": 1.0, "lead_acceleration": -1.0,
         **FOLLOWING},
    ),
}  # fmt: skip
"""Monitor files, and quantities to watch; -1 where a small value is the dangerous one."""


def question(file: Path, name: str, signs: Mapping[str, float]) -> Question:
    """Return what is asked of a property, with nothing to learn from yet."""
    compiled = load_bare(file)
    return Question(file, compiled, name, [Quantity(s, x < 0) for s, x in signs.items()], [], [])


def in_turn(
    asked: Question, splits: Sequence[sequor.Split], folder: Path
) -> tuple[list[Contender], Any]:
    """Return the contenders over all judged runs, each learned from what belongs to them."""
    found: list[list[Contender]] = []
    made_of = []
    for number, (known, judged) in enumerate(splits):
        training, unseen = ([one.path for one in some] for some in (known, judged))
        split = replace(asked, training=training, judged=unseen)
        some, said = contenders(split, known, judged, folder / str(number))
        found.append(some)
        made_of.append(said)
    return [_joined(some) for some in zip(*found, strict=True)], made_of


def _joined(some: Sequence[Contender]) -> Contender:
    runs = tuple(run for one in some for run in one.runs)
    if any(one.probabilities is None for one in some):
        return replace(some[0], runs=runs)
    chances = tuple(chance for one in some for chance in one.probabilities or ())
    return replace(some[0], runs=runs, probabilities=chances)


def answer(
    asked: Question, splits: Sequence[sequor.Split], parts: Sequence[Sequence[Pass]], folder: Path,
    alike: Callable[[Pass], Any] = lambda one: one.path,
) -> dict[str, Any]:  # fmt: skip
    """Return the figures of all contenders over the judged runs.

    Thresholds for a part come from the other parts. Runs that are `alike` are drawn together for
    intervals.
    """
    began = time.perf_counter()
    found, made_of = in_turn(asked, splits, folder)
    folds = [number for number, part in enumerate(parts) for _ in part]
    same = [str(alike(one)) for part in parts for one in part]
    done = {"size": len(folds), **figures(found, folds, same), "made_of": made_of}
    return done | {"seconds": round(time.perf_counter() - began)}


def together(passes: Iterable[tuple[Pass, Any]], table: Path) -> Path:
    """Write which runs belong together, as ``learning: {group_by: group}`` reads it."""
    number: dict[Any, int] = {}
    rows = [f"{one.path.name},{number.setdefault(same, len(number))}" for one, same in passes]
    table.write_text("\n".join(["recording,group", *rows]) + "\n", encoding="utf-8")
    return table


def warehouse(data: Path, judged: Path | None, folder: Path) -> dict[str, Any]:
    """Return the figures of the warehouse robot."""
    asked = question(sequor.HERE / "sequor_hand.yaml", sequor.PROPERTY, sequor.SINGLE)
    known, others = sequor.passes_of(data, judged, folder / "trials")
    mirrored = ((one, sequor.likeness(one)) for one in known)
    asked = replace(asked, groups=together(mirrored, folder / "trials.csv"))
    parts = sequor.parts_of(known if others is None else others)
    unseen = None if others is None else [one for part in parts for one in part]
    splits = sequor.splits_of(known, unseen, judged or data)
    return answer(asked, splits, parts, folder / "foresight", sequor.likeness)


def scenes_of(data: Path, work: Path) -> dict[str, list[Path]]:
    """Return traces of the cars of each scene that has any; raises InputError if these are few."""
    scenes = {name: paths for name, paths in write_traces(data, work).items() if paths}
    if len(scenes) < 3:
        raise InputError(
            f"{plural(len(scenes), 'scene')} with a car that was seen for 1.5 s",
            accepted="three or more: each is judged by the others, at thresholds from these",
            file=data,
        )
    return scenes


def traffic(data: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the figures of the rules that the recorded cars broke often enough to learn."""
    scenes, found = scenes_of(data, folder / "trials"), {}
    for name, (file, signs) in TRAFFIC.items():
        asked = question(HERE / file, name, signs)
        parts = {
            scene: [pass_over(asked.compiled, path) for path in paths]
            for scene, paths in scenes.items()
        }
        cars = ((one, scene) for scene, part in parts.items() for one in part)
        asked = replace(asked, groups=together(cars, folder / f"{name}.csv"))
        broken = sum(
            any(track.violation.any() for one in part for track in one.tracks)
            for part in parts.values()
        )
        if broken < 2:
            print(f"{name}: left out: broken in {plural(broken, 'scene')}, and two would be needed")
            continue
        splits = sequor.in_parts(list(parts.values()))
        found[f"NGSIM, {name}"] = answer(asked, splits, list(parts.values()), folder / name)
    return found


def main(
    folder: Path, robot: Path | None = None, judged: Path | None = None, ngsim: Path | None = None,
    write: bool = False,
) -> None:  # fmt: skip
    """Learn, judge, write."""
    if robot is None and ngsim is None:
        raise FileNotFoundError("--robot FOLDER or --ngsim FOLDER is asked for")
    found: dict[str, dict[str, Any]] = {}
    if robot is not None:
        found["warehouse robot"] = warehouse(robot, judged, folder / "sequor")
    if ngsim is not None:
        found |= traffic(ngsim, folder / "ngsim")
    rows = [row_of(name, item) for name, item in found.items()]
    publish(TITLE, COMMAND, rows, found, folder / "trials", write=write)


if __name__ == "__main__":
    command(main)
