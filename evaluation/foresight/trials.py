"""The same question where recordings are few: each is judged by what was learned from the others.

    python -m evaluation.foresight.trials --robot FOLDER [--judged FOLDER] --folder out/study
    python -m evaluation.foresight.trials --ngsim FOLDER [--crime FOLDER] --folder out/study

Figures go to the folder, with `--write` to results.json beside this file and to RESULTS.md.
`--robot` has the trials of a warehouse robot as published, `E2_002.json.gz` and so on. They are
judged in the parts of `evaluation.agents.sequor`, a trial and its mirror image in the same one, by
the label of that study; with `--judged`, all of them are learned from, and the trials of the other
folder are judged. `--ngsim` has CommonRoad's scenes of recorded traffic: the cars of a scene are
judged by those of the others, and left out together where folds are made of these. `--crime` has
the measures of `evaluation.real.crime` of the same cars; they join as quantities to watch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.agents import sequor
from evaluation.foresight.study import HERE, Question, contenders, figures, scored
from evaluation.foresight.tables import (
    OURS,
    Found,
    shown,
    standing,
    table_of,
    told,
    write_page,
)
from evaluation.harness.command import command
from evaluation.harness.lines import json_lines
from evaluation.harness.page import put, rounded, table, write_json
from evaluation.harness.runs import Pass, pass_over
from evaluation.real import crime as criticality
from evaluation.real import study as real
from evaluation.study.rivals import Quantity
from forewarn.assessment.comparison import Contender
from forewarn.assessment.ranking import precision_recall
from forewarn.assessment.resampling import bootstrap, interval, resampled
from forewarn.errors import InputError, plural
from forewarn.monitoring.loading import load_bare

MARK = "evaluation.foresight.trials"
INSIDE = f"{MARK}, within parts"
QUIET = 0.1
"""Share of the safe escapes that may alarm; ours a third of it."""

RESAMPLES = 200

Peaks = NDArray[np.float64]


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
    alike: Callable[[Pass], Any] = lambda one: one.path, also: Sequence[Contender] = (),
) -> tuple[dict[str, Any], list[Contender]]:  # fmt: skip
    """Return the figures of all contenders over the judged runs, and the contenders.

    Thresholds for a part come from the other parts. Runs that are `alike` are drawn together for
    intervals. Contenders in `also` are judged with them.
    """
    began = time.perf_counter()
    found, made_of = in_turn(asked, splits, folder)
    found += also
    folds = [number for number, part in enumerate(parts) for _ in part]
    same = [str(alike(one)) for part in parts for one in part]
    done = {"size": len(folds), **figures(found, folds, same), "made_of": made_of}
    for row, inside in zip(done["rows"], within(found, folds, same), strict=True):
        row["within"] = inside
    return done | {"seconds": round(time.perf_counter() - began)}, found


def within(
    found: Sequence[Contender], folds: Sequence[int], clusters: Sequence[str]
) -> list[dict[str, Any]]:
    """Return for each contender the mean of its areas within parts, and by how much it is more.

    Each part is judged by a fit of its own. Where these fits are on different scales, the area over
    all parts is lower, which costs no monitor: it has one fit. Parts without a violation are left
    out. `more` is than the first contender has. Runs of a cluster are drawn together.
    """
    parts: dict[int, dict[str, list[int]]] = {}
    for place, (part, name) in enumerate(zip(folds, clusters, strict=True)):
        parts.setdefault(part, {}).setdefault(name, []).append(place)
    groups = [list(part.values()) for part in parts.values()]
    means = [_mean_area(one, groups) for one in found]
    first, drawn_first = means[0]
    rows = []
    for mean, drawn in means:
        row = {"area": list(map(rounded, (mean, *interval(drawn))))}
        if drawn is not drawn_first:
            row["more"] = list(map(rounded, (mean - first, *interval(drawn - drawn_first))))
        rows.append(row)
    return rows


def _mean_area(
    one: Contender, parts: Sequence[Sequence[Sequence[int]]]
) -> tuple[float, NDArray[np.float64]]:
    """Return the mean area of parts with a violation, and that of resamples of each of them."""

    def area(groups: Sequence[Sequence[int]]) -> float:
        runs = [one.runs[place] for group in groups for place in group]
        return precision_recall(runs, one.rule.unseen).area

    values, drawn = [], []
    for seed, groups in enumerate(parts):
        value = area(groups)
        if value == value:
            values.append(value)
            some = resampled(groups, area, resamples=RESAMPLES, seed=seed)
            drawn.append(some if some.size else np.full(RESAMPLES, value))
    if all(len(groups) < 2 for groups in parts):
        drawn = [np.full(RESAMPLES, np.nan)]
    return float(np.mean(values)), np.asarray(np.mean(drawn, axis=0))


class Trials:
    """The warehouse robot's trials: which alarm, and since when alarms were on at the crash.

    Parameters
    ----------
    judged : sequence of Pass
        All trials, in the order of the contenders' runs.
    """

    def __init__(self, judged: Sequence[Pass]) -> None:
        self.kinds = [sequor.kind_of(one) for one in judged]
        self.ends = [sequor.before(one) for one in judged]
        alike: dict[Any, list[int]] = {}
        for place, one in enumerate(judged):
            alike.setdefault(sequor.likeness(one), []).append(place)
        self.groups = list(alike.values())

    def scores(self, one: Contender) -> list[Peaks]:
        """Return a contender's scores before the crash; none is no alarm, as the file has it."""
        return [
            np.nan_to_num(run.score[:end], nan=-np.inf, neginf=-np.inf, posinf=np.inf)
            for run, end in zip(one.runs, self.ends, strict=True)
        ]

    def found(self, scores: Sequence[Peaks], quiet: float, drawn: Sequence[int]) -> dict[str, Any]:
        """Return what alarms and what is foreseen where a share of the safe escapes may alarm.

        The level is the lowest that keeps to it, in hindsight for all alike. A crash that is not
        foreseen has a lead of 0 s.
        """
        peaks = {place: scores[place].max(initial=-np.inf) for place in drawn}
        safe = [place for place in drawn if self.kinds[place] in sequor.SAFE]
        falling = sorted((peaks[place] for place in safe), reverse=True)
        level = falling[int(quiet * len(falling) + 1e-9)]
        row: dict[str, Any] = {"safe": _of(peak > level for peak in falling)}
        for kind, what in sequor.CRASHES.items():
            some = [place for place in drawn if self.kinds[place] == kind]
            leads = [sequor.lead(scores[place], level) for place in some]
            row[what] = _of(lead > 0 for lead in leads)
            row[f"{what} lead"] = float(np.mean(leads)) / 10 if leads else 0.0
        unsafe = [place for place in drawn if self.kinds[place] in sequor.UNSAFE]
        row["unsafe"] = _of(peaks[place] > level for place in unsafe)
        return row

    def rows(self, contenders: Sequence[Contender]) -> list[dict[str, Any]]:
        """Return what each contender foresees; ours also at a third of the false alarms.

        `more` is how much longer our lead is at a third of the alarms, with its interval over
        trials drawn together with their mirror images.
        """
        ours = self.scores(contenders[0])
        everybody = [place for group in self.groups for place in group]
        rows = [{"name": OURS, "quiet": QUIET / 3} | self.found(ours, QUIET / 3, everybody)]
        for one in contenders:
            theirs = self.scores(one)
            row = {"name": one.name, "quiet": QUIET} | self.found(theirs, QUIET, everybody)
            if one is not contenders[0]:
                row["more"] = {
                    what: self._more(ours, theirs, what) for what in sequor.CRASHES.values()
                }
            rows.append(row)
        return rows

    def _more(self, ours: Sequence[Peaks], theirs: Sequence[Peaks], what: str) -> list[Any]:
        def figure(groups: Sequence[Sequence[int]]) -> float:
            drawn = [place for group in groups for place in group]
            if not any(self.kinds[place] in sequor.SAFE for place in drawn):
                return float("nan")
            mine = self.found(ours, QUIET / 3, drawn)
            return float(mine[f"{what} lead"] - self.found(theirs, QUIET, drawn)[f"{what} lead"])

        ends = bootstrap(self.groups, figure, resamples=RESAMPLES, seed=1)
        return list(map(rounded, (figure(self.groups), *ends)))


def _of(truths: Iterable[Any]) -> list[int]:
    """Return how many are true, of how many."""
    known = [bool(truth) for truth in truths]
    return [sum(known), len(known)]


def classes_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Return as Markdown what of each class of crash is foreseen by some of the contenders."""
    whats = list(sequor.CRASHES.values())
    classes = (f"{what}: foreseen, mean lead (Forewarn at a third: longer by)" for what in whats)
    head = ("Monitor", "safe escapes that alarm", *classes, "unsafe escapes that alarm")
    lines = []
    for row in rows:
        if row["name"] not in names:
            continue
        cells = []
        for what in whats:
            cell = f"{row[what][0]} of {row[what][1]}, {row[f'{what} lead']:.2f} s"
            if "more" in row:
                value, low, high = row["more"][what]
                cell += f" ({value:+.2f} s [{low:+.2f}, {high:+.2f}])"
            cells.append(cell)
        safe, unsafe = (f"{row[key][0]} of {row[key][1]}" for key in ("safe", "unsafe"))
        lines.append([row["name"], safe, *cells, unsafe])
    return table(head, lines)


def together(passes: Iterable[tuple[Pass, Any]], table: Path) -> Path:
    """Write which runs belong together, as ``learning: {together: group}`` reads it.

    Parameters
    ----------
    passes : iterable of tuple
        Runs, and what is the same for those that belong together.
    """
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
    everything = [one for part in parts for one in part]
    unseen = None if others is None else everything
    splits = sequor.splits_of(known, unseen, judged or data)
    done, found = answer(asked, splits, parts, folder / "foresight", sequor.likeness)
    return done | {"classes": Trials(everything).rows(found)}


def criticalities(asked: Question, judged: Sequence[Pass], folder: Path) -> list[Contender]:
    """Return the measures of criticality that `evaluation.real.crime` wrote, each as a contender.

    Raises
    ------
    FileNotFoundError
        If a car has no file there.
    InputError
        If a file lacks a measure, or has another number of steps.
    """
    values = []
    for one in judged:
        path = folder / one.path.name
        rows = list(json_lines(path, *criticality.MEASURES))
        ticks = len(one.tracks[0].ticks)
        if len(rows) != ticks:
            raise InputError(
                f"{plural(len(rows), 'step')} of {ticks} that {one.path.name} has",
                accepted="what python -m evaluation.real.crime writes of the same scenes",
                file=path,
            )
        values.append(rows)
    return [
        scored(
            f"{name} (CriMe)",
            asked,
            judged,
            [np.asarray([row[name] for row in rows], dtype=float) * sign for rows in values],
            chances=False,
        )
        for name, sign in criticality.MEASURES.items()
    ]


def traffic(data: Path, folder: Path, crime: Path | None) -> dict[str, dict[str, Any]]:
    """Return the figures of the rules that the recorded cars broke often enough to learn."""
    scenes, found = real.scenes_of(data, folder / "trials"), {}
    for name in ("de_g1_safe_distance", "hard_braking"):
        asked = question(real.HERE / real.ALONE[name], name, real.RIVALS[name])
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
        everything = [one for part in parts.values() for one in part]
        also = [] if crime is None else criticalities(asked, everything, crime)
        splits = sequor.in_parts(list(parts.values()))
        found[name], _ = answer(asked, splits, list(parts.values()), folder / name, also=also)
    return found


def text_of(found: Mapping[str, Any]) -> str:
    """Return the table of the classes of crashes."""
    [item] = found["warehouse robot"].values()
    return classes_of(item["classes"], [row["name"] for row in shown(item["rows"])])


def inside_of(found: Found) -> str:
    """Return as Markdown the area over all parts, and the mean of the areas within them."""
    head = ("", "Monitor", "PR area, all parts", "mean of parts", "to Forewarn")
    lines = []
    for name, sizes in standing(found).items():
        for item in sizes.values():
            for row in (row for row in shown(item["rows"]) if "within" in row):
                mean, more = row["within"]["area"], row["within"].get("more")
                cells = (told(mean, ".3f"), "" if more is None else told(more, "+.3f"))
                lines.append([name, row["name"], f"{row['area'][0]:.3f}", *cells])
    return table(head, lines)


def main(
    folder: Path,
    robot: Path | None = None,
    judged: Path | None = None,
    ngsim: Path | None = None,
    crime: Path | None = None,
    write: bool = False,
) -> None:
    """Learn, judge, write."""
    if robot is None and ngsim is None:
        raise FileNotFoundError("--robot FOLDER or --ngsim FOLDER is asked for")
    output = (HERE if write else folder) / "results.json"
    found: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {}
    some: dict[str, dict[str, Any]] = {}
    if robot is not None:
        some["warehouse robot"] = warehouse(robot, judged, folder / "sequor")
    if ngsim is not None:
        traffics = traffic(ngsim, folder / "ngsim", crime)
        some |= {f"NGSIM {name}": item for name, item in traffics.items()}
    for name, item in some.items():
        found[name] = {str(item["size"]): item}
        print(table_of({name: found[name]}), *item["ahead"], sep="\n", flush=True)
    write_json(output, found)
    if robot is not None:
        print(text_of(found))
    print(f"figures: {output}")
    if write:
        write_page(found)
        put(MARK, text_of(found))
        put(INSIDE, inside_of(found))


if __name__ == "__main__":
    command(main)
