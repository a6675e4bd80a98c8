"""Judge who foresees more in recorded trajectories, over the number of recordings learned from.

    python -m evaluation.foresight.trajectories --data drives --config config/monitor.yaml
        --name apollo --folder out/study --sizes 25 100 400 --write

The monitor file has a section `trajectories`, one property, and a learned score. Recordings with
the same poses count once. They are judged in folds, or with ``--by road`` by those of other values
of a key of the run; ``--every 3`` takes each third recording, ``--parts 2`` judges two parts only.
All signals that are numbers are computed once; the monitor (with its score; and the chain alone)
and all rivals learn from these.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

from evaluation.foresight.study import (
    CHAIN,
    OURS,
    Question,
    figures,
    monitor,
    row_of,
    scored,
)
from evaluation.harness.classifiers import boosting, examples, logistic, signals, with_history
from evaluation.harness.command import command
from evaluation.harness.page import Row, between, publish, rounded, shown
from evaluation.harness.runs import Pass, pass_over, watch
from evaluation.study.rivals import Quantity
from forewarn.assessment.comparison import Contender
from forewarn.assessment.resampling import bootstrap
from forewarn.errors import InputError, plural
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.loading import load_bare
from forewarn.recordings.interface import Recording
from forewarn.recordings.registry import existing_recordings, open_recording

TITLE = "Recorded trajectories"
COMMAND = "python -m evaluation.foresight.trajectories --data D --folder out/study --write"
SIZES, FOLDS, SEED = (25, 50, 100, 200, 400, 1000), 5, 1
LEAVES = (6, 31)
LEARNED = ("logistic regression", "boosting", "boosting with history")
MEAN, ENDED = "mean of the three that learn", "ended"
LEVEL = 0.3
"""Risk at which a lead is counted as ProbGuard's equation 3 does: their P_safe of 0.7."""

Floats = NDArray[np.float64]


class Trace(NamedTuple):
    """The numbers of a recording: the file, the part that it is judged in, what it belongs to."""

    path: Path
    part: str
    group: str


def write_traces(
    compiled: CompiledSpec, recordings: Iterable[Path], folder: Path, by: str | None
) -> list[Trace]:
    """Write the numbers that each distinct recording gives, once; return each with its part."""
    folder.mkdir(parents=True, exist_ok=True)
    together, seen, found = compiled.spec.learning.group_by, set[str](), list[Trace]()
    for path in recordings:
        with open_recording(path) as recording:
            digest = recording.digest()[:16]
            kept = folder / f"{digest}.jsonl"
            if not kept.exists():
                _write(watch(compiled, recording), kept, compiled.spec.rate)
            same = hashlib.sha256(kept.read_bytes()).hexdigest()
            if same not in seen:
                seen.add(same)
                group = _told(recording, together) if together else digest
                found.append(Trace(kept, _told(recording, by) if by else "", group))
    return found


def _told(recording: Recording, key: str) -> str:
    told = recording.metadata()["run"]
    if key not in told:
        raise InputError(f"its run does not say {key!r}", accepted=", ".join(told),
                         file=recording.path)  # fmt: skip
    return told[key]


def _write(found: Pass, path: Path, rate: Any) -> None:
    track = found.tracks[0]
    ticks = track.ticks - track.ticks[0]
    ended = track.terminal.astype(float)
    names = [name for name in found.signals if "(" not in name]
    rows = zip(*(found.signals[name].tolist() for name in names), strict=True)
    lines = (
        {"t": tick / rate, **dict(zip(names, row, strict=True)), ENDED: end}
        for tick, row, end in zip(ticks.tolist(), rows, ended.tolist(), strict=True)
    )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")


def over_numbers(config: Path, compiled: CompiledSpec, folder: Path, groups: Path) -> list[Path]:
    """Write the monitor file over the numbers of the traces: as it is, and with the chain alone."""
    content = yaml.safe_load(config.read_text(encoding="utf-8"))
    del content["trajectories"]
    asked = content.get("learned_score", {})
    numbers = {name for score in asked.values() for name in score.get("from", ())}
    numbers |= {*content.get("bins", {})} - {*asked}
    words = set(yaml.safe_dump(content.get("predicates", {})).replace("(", " ").split())
    numbers |= words & {*content["signals"]}
    timeout = 1.6 / float(compiled.spec.rate)
    content["signals"] = {name: {"timeout": timeout} for name in (*sorted(numbers), ENDED)}
    content["terminal"] = dict.fromkeys(content.get("terminal", {}), f"{ENDED} > 0")
    content.setdefault("learning", {}).update(group_by="group", group_source=str(groups.resolve()))
    files = [folder / "ours.yaml", folder / "chain.yaml"]
    files[0].write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    for name in content.pop("learned_score", {}):
        content.get("bins", {}).pop(name, None)
    for section in content["properties"].values():
        section["estimator"] = "chain"
    files[1].write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return files


def learned(
    question: Question, training: Sequence[Pass], judged: Sequence[Pass], names: Sequence[str]
) -> list[Contender]:
    """Return the classifiers, and the mean of their chances."""
    now = signals(names)
    second = max(round(float(question.compiled.spec.rate)), 1)
    past = with_history(now, sorted({max(round(second * part), 1) for part in (0.2, 0.5, 1.0)}))
    tuned = partial(boosting, leaves=LEAVES)
    found: list[Contender] = []
    chances = []
    for label, features, fit in zip(
        LEARNED, (now, now, past), (logistic, tuned, tuned), strict=True
    ):
        chance = fit(*examples(question.name, training, features))
        chances.append([chance(features(one)) for one in judged])
        found.append(scored(label, question, judged, chances[-1], True))
    mean = [np.mean(some, axis=0) for some in zip(*chances, strict=True)]
    return [*found, scored(MEAN, question, judged, mean, True)]


def contenders(
    question: Question, files: Sequence[Path], training: Sequence[Pass], judged: Sequence[Pass],
    names: Sequence[str], folder: Path,
) -> tuple[list[Contender], Any]:  # fmt: skip
    """Return all who learned from some recordings or watch a quantity; ours is the first."""
    folder.mkdir(parents=True, exist_ok=True)
    ours, said = monitor(OURS, question, files[0], len(training), folder)
    chain, _ = monitor(CHAIN, question, files[1], len(training), folder)
    watched = [
        scored(one.name, question, judged, [one.score(run.signals) for run in judged], False)
        for one in question.quantities
    ]
    return [ours, chain, *learned(question, training, judged, names), *watched], said


def joined(some: Sequence[Contender]) -> Contender:
    """Return a contender over all parts."""
    runs = tuple(run for one in some for run in one.runs)
    if any(one.probabilities is None for one in some):
        return replace(some[0], runs=runs)
    return replace(
        some[0], runs=runs, probabilities=tuple(p for one in some for p in one.probabilities or ())
    )


def first_crossings(one: Contender) -> dict[str, Any]:
    """Return leads as ProbGuard counts them: from the first crossing, even if it was over again."""
    leads = []
    for run in one.runs:
        hits = np.flatnonzero(run.violation)
        if hits.size:
            before = np.flatnonzero(run.score[: hits[0]] >= LEVEL)
            lead = (hits[0] - before[0]) / float(run.rate) if before.size else None
            leads.append(lead)
    known = [lead for lead in leads if lead is not None]
    ends = bootstrap(known, np.mean, resamples=300, seed=SEED) if known else (None, None)
    return {
        "violations": len(leads),
        "crossed": len(known),
        "mean": rounded(float(np.mean(known))) if known else None,
        "interval": list(map(rounded, ends)),
        "longest": rounded(max(known, default=None)),
    }


def false_alarms(one: Contender) -> dict[str, Any]:
    """Return recordings without a violation in which the risk ever reaches `LEVEL`."""
    crossed = [bool((run.score >= LEVEL).any()) for run in one.runs if not run.violation.any()]
    ends = bootstrap(crossed, np.mean, resamples=300, seed=SEED) if crossed else (None, None)
    return {"safe": len(crossed), "alarmed": sum(crossed), "interval": list(map(rounded, ends))}


def dealt(traces: Sequence[Trace], by: str | None) -> list[list[Trace]]:
    """Return the traces of each part, or in folds where nothing names parts; groups stay whole."""
    chance = np.random.default_rng(SEED)
    order = [traces[i] for i in chance.permutation(len(traces))]
    if by is None:
        fold = {group: i % FOLDS for i, group in enumerate(dict.fromkeys(t.group for t in order))}
        return [[one for one in order if fold[one.group] == number] for number in range(FOLDS)]
    names = sorted({one.part for one in traces})
    return [[one for one in order if one.part == name] for name in names]


def answer(
    question: Question, files: Sequence[Path], passes: Sequence[Sequence[Pass]], size: int,
    how: tuple[int | None, Sequence[str]], folder: Path, alike: dict[Path, str],
) -> dict[str, Any]:  # fmt: skip
    """Return the figures of all contenders over parts, each judged by so many of the others.

    `how` has the number of parts that are judged (all for None), and the signals to learn from.
    """
    (count, names), found, said = how, [], []
    parts = passes[:count]
    for number, judged in enumerate(parts):
        rest = [one for other in passes if other is not judged for one in other]
        order = np.random.default_rng(SEED).permutation(len(rest))
        training = [rest[i] for i in order[:size]]
        asked = replace(
            question,
            training=[one.path for one in training],
            judged=[one.path for one in judged],
        )
        work = folder / f"part{number}"
        some, told = contenders(asked, files, training, judged, names, work)
        found.append(some)
        said.append(told.get("estimates"))
        print(f"{size} recordings, part {number + 1} of {len(parts)}", flush=True)
    whole = [joined(some) for some in zip(*found, strict=True)]
    # Thresholds for a recording come from other ones, of all parts.
    folds = [index % FOLDS for part in parts for index, _ in enumerate(part)]
    same = [alike[one.path] for part in parts for one in part]
    done = {"size": size, **figures(whole, folds, same), "made_of": said}
    done["first_crossing"] = {one.name: first_crossings(one) for one in whole[:2]}
    done["false_alarms"] = {one.name: false_alarms(one) for one in whole[:2]}
    return done


def rows_of(name: str, done: dict[str, Any]) -> list[Row]:
    """Return what is published of a size."""
    crossing, alarms = done["first_crossing"][OURS], done["false_alarms"][OURS]
    low, high = (100 * (end or 0.0) for end in alarms["interval"])
    theirs = (
        f"mean {shown(crossing['mean'], '{:.1f}')} s, at most "
        f"{shown(crossing['longest'], '{:.1f}')} s, in {crossing['crossed']} of "
        f"{plural(crossing['violations'], 'violation')}; {alarms['alarmed']} of {alarms['safe']} "
        f"safe recordings ({low:.0f} to {high:.0f} %)"
    )
    row = row_of(name, done)
    leads = between(done["rows"][0]["lead_interval"], "{:.2f}")
    return [
        row._replace(interval=f"{row.interval}; lead {leads}"),
        Row(
            f"{name}, {done['size']}, first crossings",
            theirs,
            between(crossing["interval"], "{:.1f}"),
            f"{done['judged']}",
        ),
    ]


def main(
    data: Sequence[Path],
    config: Path,
    name: str,
    folder: Path,
    by: str | None = None,
    sizes: Sequence[int] = SIZES,
    watched: Sequence[str] = ("conflict", "nearest"),
    every: int = 1,
    parts: int | None = None,
    write: bool = False,
) -> None:
    """Compute the signals, learn, judge, write. Small values of what is `watched` are dangerous."""
    compiled = load_bare(config)
    work = folder / name
    recordings = existing_recordings(data, compiled.spec)[::every]
    traces = write_traces(compiled, recordings, work / "traces", by)
    groups = work / "groups.csv"
    lines = [f"{one.path.name},{one.group}" for one in traces]
    groups.write_text("\n".join(["recording,group", *lines]) + "\n", encoding="utf-8")
    files = over_numbers(config, compiled, work, groups)
    numbers = load_bare(files[1])
    passes = [[pass_over(numbers, one.path) for one in part] for part in dealt(traces, by)]
    quantities = [Quantity(text, falling=True) for text in watched]
    property_name = next(iter(compiled.spec.properties))
    question = Question(files[1], numbers, property_name, quantities, [], [])
    score = next(iter(compiled.spec.learned_score.values()))
    alike = {one.path: one.group for one in traces}
    found: dict[str, Any] = {}
    told_sizes = " ".join(map(str, sizes))
    label = name if by is None else f"{name}, each {by} by the others"
    least = min(len(traces) - len(part) for part in passes[:parts])
    for size in (size for size in sizes if size <= least):
        place = work / f"by_{by}"
        done = answer(
            question, files, passes, size, (parts, list(score.signals or ())), place, alike
        )
        found[f"{label} {size}"] = done
        given = {"config": f"config/{config.name}", "name": name, "by": by}
        some = {"every": every if every > 1 else None, "parts": parts, "sizes": told_sizes}
        options = (f" --{key} {value}" for key, value in (given | some).items() if value)
        told = COMMAND + "".join(options)
        publish(TITLE, told, rows_of(label, done), found, work, write=write)


if __name__ == "__main__":
    command(main)
