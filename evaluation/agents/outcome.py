"""How probable a bad end of a run is: a tree and a chain of some groups of runs judge the others.

Runs are read by a monitor file once, into traces of its typed variables; then for each group left
out the documented commands are run on the rest (`abstract`, `refine` if asked, `learn`), and the
risk after each step of the runs left out is what the monitor says.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from evaluation.agents.rivals import (
    Trace,
    area,
    best_of,
    brier,
    calibration_error,
    rival_scores,
    told,
)
from evaluation.harness import page
from evaluation.harness.page import table
from evaluation.harness.runs import recordings_in
from forewarn import load_monitor, replay
from forewarn.cli.main import main as forewarn_main
from forewarn.errors import ForewarnError, InputError, plural
from forewarn.learning.examples import read_run
from forewarn.monitoring.loading import load_bare
from forewarn.recordings import open_recording

HERE = Path(__file__).resolve().parent
PROPERTY, HORIZON = "ends_well", 100


def forewarn(*arguments: object, codes: Sequence[int] = (0, 1)) -> dict[str, Any]:
    """Run a command of the tool; return what it says as JSON, or raise ForewarnError."""
    said, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
        code = forewarn_main([*map(str, arguments), "--json", "--quiet"])
    if code not in codes:
        raise ForewarnError(f"forewarn {' '.join(map(str, arguments))}: {wrong.getvalue()}")
    found: dict[str, Any] = json.loads(said.getvalue())
    return found


class Typed(NamedTuple):
    """One run: the typed variables before each step, what was done, and how it ended.

    Attributes
    ----------
    fields : dict
        What the run says of itself at its end: labels, the model, the task.
    """

    rows: list[dict[str, Any]]
    actions: list[str]
    fields: dict[str, Any]
    bad: bool

    def trace(self, names: Sequence[str]) -> Trace:
        """Return what rivals see: numbers, and as outputs those of the first variable."""
        rows = [[float(row[name]) for name in names] for row in self.rows]
        outputs = [str(int(row[names[0]])) for row in self.rows]
        return Trace(self.actions, outputs, rows, int(self.bad))


class Field(NamedTuple):
    """What a study needs that runs say of themselves."""

    fits: Callable[[Any], bool]
    accepted: str


def is_key(value: Any) -> bool:
    """Tell whether a value names something: a whole number or a text."""
    return isinstance(value, (int, str)) and not isinstance(value, bool)


def from_to(low: float, high: float) -> Callable[[Any], bool]:
    """Return what tells whether a value is a number within a range."""
    return lambda value: isinstance(value, (int, float)) and low <= value <= high


def in_order(keys: Iterable[Any]) -> list[Any]:
    """Return different keys sorted, numbers before texts."""
    return sorted(set(keys), key=lambda key: (isinstance(key, str), key))


def check_fields(fields: Mapping[str, Any], needs: Mapping[str, Field], run: Path) -> None:
    """Raise InputError if a run lacks a field, or it is none that would be accepted."""
    for key, field in needs.items():
        if not field.fits(fields.get(key)):
            problem = "is missing" if fields.get(key) is None else f"is {fields[key]!r}"
            raise InputError(problem, accepted=field.accepted, file=run, key=key)


def typed_runs(
    monitor: Path, data: Path, names: Sequence[str], bad: Callable[[Mapping[str, Any]], bool],
    needs: Mapping[str, Field],
) -> list[Typed]:  # fmt: skip
    """Read the runs of a file or folder without those that do nothing; say how many there are.

    `names` are the variables, `bad` judges a run's fields, and `needs` are those that all must
    have.

    Raises
    ------
    FileNotFoundError
        If there is nothing of that name.
    InputError
        If a run lacks a field, or it is none that would be accepted.
    """
    compiled, found, idle = load_bare(monitor), [], 0
    for run in recordings_in(data, "run"):
        with open_recording(run) as recording:
            fields = dict(list(recording.read())[-1].data)
        check_fields(fields, needs, run)
        episodes = read_run(run, compiled, names)
        if not episodes:
            idle += 1  # nothing was done, and so there is no step to judge
            continue
        [moments] = episodes
        rows = [moment.values for moment in moments]
        found.append(Typed(rows, [m.action or "" for m in moments], fields, bad(fields)))
    count = f"{plural(len(found), 'run')}, {sum(run.bad for run in found)} of them bad"
    print(f"{data}: {count}; {idle} without a step left out", flush=True)
    return found


def write_typed(path: Path, runs: Iterable[Typed]) -> Path:
    """Write runs as a trace of their variables, whose last lines tell how they ended."""
    with path.open("w", encoding="utf-8") as file:
        for number, run in enumerate(runs):
            for row, action in zip(run.rows, run.actions, strict=True):
                line = {"run": str(number), **row, "action": action or None, "outcome": -1}
                file.write(json.dumps(line) + "\n")
            last = {"run": str(number), **run.rows[-1], "action": None, "outcome": int(run.bad)}
            file.write(json.dumps(last) + "\n")
    return path


def write_monitor(path: Path, names: Sequence[str]) -> Path:
    """Write the monitor file of such traces: one leaf, to begin with."""
    content = {
        "version": 1,
        "clock": "steps",
        "signals": {name: {} for name in (*names, "outcome")},
        "terminal": {"bad": "outcome == 1", "good": "outcome == 0"},
        "properties": {
            PROPERTY: {
                "formula": "always(not bad)",
                "horizon": HORIZON,
                "thresholds": {"warn": 0.3, "act": 0.5, "release": 0.3},
                "enter": 1,
                "hold": 0,
            }
        },
        "states": {"kind": "tree", "variables": list(names), "tree": "s0"},
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


class Risk(NamedTuple):
    """What the monitor says after each step of a run."""

    risk: list[float]
    lower: list[float]
    upper: list[float]


def judged(monitor: Path, model: Path, path: Path) -> list[Risk]:
    """Return the risks of all runs of a trace, without their last moment, which tells the end."""
    found = []
    for track in replay(load_monitor(monitor, model), path).tracks(PROPERTY):
        going = ~track.terminal
        base = np.nan_to_num(track.probability[going], nan=0.5)
        found.append(Risk(base.tolist(), track.lower[going].tolist(), track.upper[going].tolist()))
    return found


Others = Callable[[Any], Mapping[Any, Sequence[Typed]]] | None
"""What gives the groups that a group is judged by; None is all others."""


def known_for(
    group: Any, groups: Mapping[Any, Sequence[Typed]],
    others: Others,
) -> list[Typed]:  # fmt: skip
    """Return the runs that a group is judged by, all other groups unless `others` says which.

    Raises
    ------
    InputError
        If these have no bad run, or no good one.
    """
    rest = others(group) if others else {k: v for k, v in groups.items() if k != group}
    learned = [run for part in rest.values() for run in part]
    bad = sum(run.bad for run in learned)
    if bad in (0, len(learned)):
        raise InputError(
            f"to judge part {group!r} there are {plural(len(learned), 'run')} to learn from, "
            f"{bad} of them bad",
            accepted="good and bad runs in each two parts; `--judged` judges few runs by others",
        )
    return learned


def left_out(
    groups: Mapping[Any, Sequence[Typed]], names: Sequence[str], folder: Path, *,
    refine: str = "", others: Others = None,
    leaf_size: int = 20, options: Sequence[str] = (),
) -> dict[Any, list[Risk]]:  # fmt: skip
    """Judge every group by what was learned from the others.

    Parameters
    ----------
    refine : str, optional
        The bound that the tree is refined for; ``{base}`` stands for the share of bad runs.
    others : callable, optional
        Which groups a group is judged by, instead of all others.
    options : sequence of str, optional
        More arguments of `abstract`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for number, (group, runs) in enumerate(groups.items()):
        learned = known_for(group, groups, others)
        monitor = write_monitor(folder / f"{number}.yaml", names)
        model, trace = folder / f"{number}.model.json", write_typed(folder / "out.jsonl", runs)
        known = write_typed(folder / "known.jsonl", learned)
        kind = f"violation:{PROPERTY}:{HORIZON}"
        forewarn("abstract", known, "-c", monitor, "--class", kind, "--leaf-size", leaf_size,
                 "--write", *options)  # fmt: skip
        if refine:
            base = sum(run.bad for run in learned) / len(learned)
            forewarn("refine", known, "-c", monitor, "--query", refine.format(base=base),
                     "--leaf-size", leaf_size, "--write")  # fmt: skip
        forewarn("learn", known, "-c", monitor, "-o", model)
        found[group] = judged(monitor, model, trace)
    return found


def rivals_left_out(
    groups: Mapping[Any, Sequence[Typed]], names: Sequence[str],
    others: Others = None, only: Sequence[str] = (),
) -> dict[str, list[list[float]]]:  # fmt: skip
    """Return the scores of rivals that were fitted on the same groups, run by run."""
    found: dict[str, list[list[float]]] = {}
    for group, runs in groups.items():
        learned = [run.trace(names) for run in known_for(group, groups, others)]
        judged_traces = [run.trace(names) for run in runs]
        for name, scores in rival_scores(learned, judged_traces, only=only).items():
            found.setdefault(name, []).extend(scores)
    return best_of(found, [run.bad for part in groups.values() for run in part])


def rows_of(
    scores: Mapping[str, Sequence[Sequence[float]]], labels: Sequence[bool], groups: Sequence[Any]
) -> list[dict[str, Any]]:
    """Return a row for each monitor: areas after the last and the first step, and calibration.

    Intervals come from resampling whole groups. Only what is a probability has a calibration.
    """
    rows = []
    for name, runs in scores.items():
        last = [run[-1] for run in runs]
        row = {
            "monitor": name,
            "area": told(area, last, labels, groups),
            "area_first": told(area, [run[0] for run in runs], labels, groups),
        }
        if min(last) >= 0 and max(last) <= 1:
            row["calibration_error"] = told(calibration_error, last, labels, groups)
            row["brier"] = told(brier, last, labels, groups)
        rows.append(row)
    return rows


HEADINGS = ("Monitor", "AUC, last step", "AUC, first step", "Calibration error", "Brier")


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as Markdown."""
    keys = ("area", "area_first", "calibration_error", "brier")
    return table(
        HEADINGS, [[row["monitor"], *(shown(row.get(key)) for key in keys)] for row in rows]
    )


def publish(study: str, found: Any, text: str, folder: Path, *, write: bool) -> None:
    """Print a study and keep its figures; if asked, they are the published ones."""
    mark, figures = f"evaluation.agents.{study}", HERE / "results.json"
    page.publish(mark, text, found, figures, folder, write=write, within=study)


def shown(figure: Mapping[str, Any] | None, digits: int = 3) -> str:
    """Return a figure with its interval."""
    if figure is None or figure["value"] is None:
        return "-"
    low, high = figure["interval"]
    text = f"{figure['value']:.{digits}f}"
    return text if low is None else f"{text} [{low:.{digits}f}, {high:.{digits}f}]"
