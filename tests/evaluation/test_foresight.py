"""The study of foresight: what rivals are given, who is ahead, and the page of its figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

pytest.importorskip("sklearn", reason="boosting is a rival")
pytest.importorskip("rtamt", reason="the study's rivals need RTAMT")

from evaluation.foresight import study, trials
from evaluation.foresight.study import HERE, Question, ahead, answer
from evaluation.foresight.tables import (
    ahead_of,
    earlier,
    shown,
    standing,
    table_of,
    write_page,
)
from evaluation.harness.classifiers import LAGS, Floats, logistic, with_history
from evaluation.harness.page import PAGE, replaced
from evaluation.harness.runs import Pass, pass_over
from evaluation.real import crime
from evaluation.study.rivals import Quantity
from forewarn.assessment.comparison import Contender, Estimate, Judged
from forewarn.assessment.episodes import AlertRule, ScoredRun
from forewarn.assessment.ranking import precision_recall
from forewarn.assessment.tradeoff import Point
from forewarn.config import load_spec
from forewarn.errors import InputError
from forewarn.learning import danger_fit
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.verdict import PropertyStatus
from tests.evaluation.test_trees import FRAME, SIGNALS, write_run


def test_history_is_what_was_and_how_it_changed() -> None:
    now = np.random.default_rng(3).normal(size=(17, 2))
    found = with_history(lambda one: now)(Pass(Path(), (), np.zeros(0, np.int64), {}))
    for tick in range(len(now)):
        then = [now[tick - lag] if tick >= lag else np.full(2, np.nan) for lag in LAGS]
        window = now[max(0, tick - LAGS[-1]) : tick + 1]
        parts = [part for row in then for part in (row, now[tick] - row)]
        wanted = np.concatenate([now[tick], *parts, window.min(0), window.max(0)])
        np.testing.assert_array_equal(found[tick], wanted)


def test_logistic_regression_knows_what_is_far_and_what_is_unknown() -> None:
    rng = np.random.default_rng(5)
    gap = rng.uniform(0, 10, 600)
    rows: Floats = np.stack((gap, np.full(600, np.nan)), axis=1)
    rows[::7, 0] = 1e6
    chance = logistic(rows, rows[:, 0] < 3, np.arange(600) % 12)
    near, middle, far, unknown = chance(
        np.array([[0.5, np.nan], [6.0, np.nan], [1e6, np.nan], [np.nan, np.nan]])
    )
    assert near > 0.9 and middle < 0.1 and far < 0.1 and unknown < 0.1


def judged(name: str, **differences: Estimate) -> Judged:
    """Return a contender of whom only its differences are told."""
    one = Estimate(0.5, 0.4, 0.6)
    return Judged(
        name,
        one,
        None,
        one,
        Point(0.5, 0, 0, (), 0, 0, 0, 0, 1.0),
        one,
        (0.5, 0.5),
        None,
        0.0,
        differences,
    )


def test_a_lead_counts_if_it_is_no_chance_or_large() -> None:
    sure, chance = Estimate(0.009, 0.005, 0.013), Estimate(0.03, -0.02, 0.08)
    nothing = Estimate(0.005, -0.02, 0.03)
    better = Estimate(-0.004, -0.005, -0.003)
    rows = [
        judged("ours"),
        judged("sure", area=sure, brier=nothing),
        judged("large", area=chance, brier=nothing),
        judged("neither", area=nothing, brier=nothing),
        judged("right", area=nothing, brier=better),
    ]
    assert ahead(rows) == [
        "right: brier by 0.0040",
        "sure: area by 0.0090",
        "large: area by 0.0300, maybe chance",
    ]


@pytest.mark.slow
def test_all_are_judged_on_the_same_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "hand.yaml"
    content: dict[str, Any] = {**FRAME, "signals": SIGNALS, "predicates": {"leans": "lean > 0.3"}}
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    compiled = compile_spec(load_spec(file))
    (tmp_path / "runs").mkdir()
    runs = [write_run(tmp_path / "runs" / f"{seed}.jsonl", seed) for seed in range(36)]
    question = Question(file, compiled, "stands", [Quantity("lean")], runs[:24], runs[24:])
    monkeypatch.setattr(study, "NOT_GIVEN", ("fallen",))
    monkeypatch.setattr(study, "RESAMPLES", 20)
    monkeypatch.setattr(danger_fit, "MOST_TREES", 25)
    passes = [[pass_over(compiled, path) for path in some] for some in (runs[:24], runs[24:])]
    found = answer(question, 24, (passes[0], passes[1]), tmp_path / "work")
    names = [row["name"] for row in found["rows"]]
    assert names[:2] == ["Forewarn", "chain"] and names[-1] == "lean" and len(names) == 6
    assert found["judged"] == 12 and found["violations"] > 3
    ours, chain, *others = (row["area"][0] for row in found["rows"])
    assert ours > chain and ours > 0.7 and min(others) > 0.7
    assert table_of({"it": {"24": found}}).count("\n") == 2 + len(names)


def test_of_the_single_quantities_the_page_shows_the_best() -> None:
    areas = {"Forewarn": 0.5, "gap": 0.7, "time": 0.8, "never": 0.9, "boosting": 0.4}
    rows = [
        {"name": n, "area": [a], "ece": None if n == "never" else 0.1} for n, a in areas.items()
    ]
    assert [row["name"] for row in shown(rows)] == ["Forewarn", "boosting", "time"]


def test_of_the_others_the_page_shows_the_best_in_each_column() -> None:
    areas, scores = (0.5, 0.4, 0.7), (0.02, 0.01, 0.03)
    leads = ([1.0, None], [0.5, 3.0], [2.0, 2.5])
    rows = [
        {"name": name, "area": [area], "brier": [score], "leads": lead}
        for name, area, score, lead in zip("ABC", areas, scores, leads, strict=True)
    ]
    item = {"judged": 9, "violations": 4, "rows": rows, "ahead": []}
    *_, row = ahead_of({"it": {"25": item}}).splitlines()
    assert row.strip("| ").split(" | ") == [
        *("it", "25", "9 (4)", "0.500", "0.700 (C)", "0.0200", "0.0100 (B)"),
        *("1.00 s", "2.00 s (C)", "0.00 s", "3.00 s (B)", "nobody"),
    ]


def test_each_part_is_judged_by_what_the_others_taught(tmp_path: Path) -> None:
    file = tmp_path / "hand.yaml"
    content: dict[str, Any] = {**FRAME, "signals": SIGNALS, "predicates": {"leans": "lean > 0.3"}}
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    asked = trials.question(file, "stands", {"lean": 1.0})
    passes = [
        pass_over(asked.compiled, write_run(tmp_path / f"{seed}.jsonl", seed)) for seed in range(12)
    ]
    parts = [passes[:4], passes[4:8], passes[8:]]
    folds = [0] * 4 + [1] * 4 + [2] * 4
    ours = trials._joined(
        [
            study.chain(asked, [one for other in parts if other is not part for one in other], part)
            for part in parts
        ]
    )
    assert [len(run.ticks) for run in ours.runs] == [len(one.tracks[0].ticks) for one in passes]
    for part, alone in enumerate(parts):
        known = [one for other in parts if other is not alone for one in other]
        wanted = study.chain(asked, known, alone)
        for mine, theirs in zip(ours.runs[4 * part :], wanted.runs, strict=False):
            np.testing.assert_array_equal(mine.score, theirs.score)
    found = study.figures([ours, *study.watched(asked, passes)], folds)
    assert found["judged"] == 12 and [row["name"] for row in found["rows"]] == ["chain", "lean"]


def test_measures_of_criticality_join_as_quantities(tmp_path: Path) -> None:
    file = tmp_path / "hand.yaml"
    content: dict[str, Any] = {**FRAME, "signals": SIGNALS, "predicates": {"leans": "lean > 0.3"}}
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    asked = trials.question(file, "stands", {})
    passes = [pass_over(asked.compiled, write_run(tmp_path / f"{n}.jsonl", n)) for n in range(2)]
    (folder := tmp_path / "measures").mkdir()
    for one in passes:
        values = [None, *range(1, len(one.tracks[0].ticks))]
        rows = [json.dumps(dict.fromkeys(crime.MEASURES, value)) + "\n" for value in values]
        (folder / one.path.name).write_text("".join(rows), encoding="utf-8")
    found = {one.name: one for one in trials.criticalities(asked, passes, folder)}
    for run in found["TTC (CriMe)"].runs:
        np.testing.assert_array_equal(run.score, [np.nan, *-np.arange(1.0, len(run.ticks))])
    assert found["DST (CriMe)"].runs[0].score[3] == 3.0
    (folder / passes[1].path.name).write_text(rows[0], encoding="utf-8")
    with pytest.raises(InputError, match=r"1\.jsonl: 1 step of \d+ that 1\.jsonl has"):
        trials.criticalities(asked, passes, folder)


def trial(kind: str, number: int, scores: list[float]) -> tuple[Pass, ScoredRun]:
    """Return a trial of ten ticks with a speed of its own, and what a contender says of it."""
    ticks = np.arange(len(scores), dtype=np.int64)
    nothing = np.zeros(len(scores), dtype=bool)
    status = np.zeros(len(scores), dtype=np.int8)
    run = ScoredRun(10.0, 10, ticks, np.array(scores), nothing, status, terminal=nothing)
    speeds = {"speed": np.full(len(scores), float(number // 2))}
    return Pass(Path(f"{kind}_{number:03d}.jsonl"), (run,), ticks, speeds), run  # type: ignore[arg-type]


def test_a_class_of_crashes_is_judged_where_a_tenth_of_the_safe_trials_alarm() -> None:
    made = [trial("E2", n, [0.0, n / 30, 0.0]) for n in range(30)]
    made += [trial("N3", 30, [0.0, 0.88, 0.91]), trial("N3", 32, [0.0, 0.0, 0.0])]
    made += [trial("N5", 34, [0.0, 0.95, 0.97]), trial("N6", 36, [0.99, 0.0, 0.0])]
    judge = trials.Trials([one for one, _ in made])
    ours = Contender("Forewarn", AlertRule(), tuple(run for _, run in made))
    theirs = replace(ours, name="other")
    strict, ours_row, their_row = judge.rows([ours, theirs])
    # Three of thirty safe trials reach more than 26/30, one of them more than 28/30.
    assert ours_row["safe"] == [3, 30] and strict["safe"] == [1, 30]
    assert ours_row["wall"] == [1, 2] and ours_row["wall lead"] == pytest.approx(0.1)
    assert strict["wall"] == [0, 2] and strict["crossing lead"] == pytest.approx(0.2)
    assert ours_row["oncoming"] == [0, 0] and ours_row["unsafe"] == [1, 1]
    value, low, high = their_row["more"]["wall"]
    assert value == pytest.approx(-0.1) and low <= value <= high
    assert trials.classes_of([strict, their_row], ["Forewarn", "other"]).count("\n") == 4


def scored(scores: list[float], hits: list[int]) -> ScoredRun:
    """Return a run with a horizon of one tick: what a hit follows, is followed."""
    ticks, none = np.arange(len(scores), dtype=np.int64), np.zeros(len(scores), dtype=bool)
    hit = np.isin(ticks, hits)
    status = np.full(len(scores), PropertyStatus.SATISFIED_SO_FAR, dtype=np.int8)
    return ScoredRun(10.0, 1, ticks, np.array(scores), hit, status, terminal=none)


def test_scales_that_differ_between_parts_cost_no_area_within_them() -> None:
    """The second part's fit says half of what the first one's does, and ranks as well."""
    rising, hits = [0.1, 0.2, 0.9, 0.3, 0.1, 0.2, 0.3, 0.1], [3]
    first = [scored(rising, hits), scored(rising, hits)]
    second = [scored([value / 5 for value in rising], hits) for _ in first]
    quiet = [scored([0.8] * 8, []), scored([0.8] * 8, [])]
    ours = Contender("Forewarn", AlertRule(), (*first, *second, *quiet))
    random = [scored([0.5] * 8, list(np.flatnonzero(run.violation))) for run in ours.runs]
    theirs = Contender("other", AlertRule(), tuple(random))
    folds, apart = [0, 0, 1, 1, 2, 2], list("abcdef")
    assert precision_recall(ours.runs).area < 0.7
    mine, other = trials.within([ours, theirs], folds, apart)
    assert mine == {"area": [1.0, 1.0, 1.0]}
    assert other["area"][0] == pytest.approx(other["more"][0] + 1) and other["more"][0] < -0.7
    (mean, low, high), _ = (row["area"] for row in trials.within([theirs, ours], folds, apart))
    assert low <= mean <= high < 1


def test_runs_that_are_alike_are_drawn_together() -> None:
    """Of one cluster with both kinds of runs each resample is the same; of two, it is not."""
    good, bad = scored([0.1, 0.9, 0.1, 0.1], [2]), scored([0.9, 0.1, 0.8, 0.1], [2])
    pairs = Contender("Forewarn", AlertRule(), (good, bad, good, bad))
    (joined,) = trials.within([pairs], [0] * 4, ["a", "a", "b", "b"])
    (parted,) = trials.within([pairs], [0] * 4, ["a", "b", "c", "d"])
    assert joined["area"][1] == joined["area"][2] == joined["area"][0]
    assert parted["area"][1] < parted["area"][0] < parted["area"][2]
    (few,) = trials.within([pairs], [0, 0, 0, 1], ["a", "b", "c", "d"])
    assert few["area"][1] <= few["area"][0] <= few["area"][2], "a part of one run has no resample"
    (none,) = trials.within([pairs], [0, 1, 2, 3], ["a", "b", "c", "d"])
    assert none["area"][0] is not None and none["area"][1:] == [None, None]


def test_the_last_figures_of_a_study_and_size_stand() -> None:
    sizes = {"a, first": (25, 50), "a": (25, 100), "b": (25,), "a, third": (25,)}
    found = {name: {str(size): {"of": name} for size in some} for name, some in sizes.items()}
    stands = [(name, list(some)) for name, some in standing(found).items()]
    assert stands == [("a, third", ["25"]), ("a, first", ["50"]), ("a", ["100"]), ("b", ["25"])]
    assert {name: list(some) for name, some in earlier(found).items()} == {
        "a, first": ["25"],
        "a": ["25"],
    }


def test_the_page_has_the_figures_of_the_study(tmp_path: Path) -> None:
    found = json.loads((HERE / "results.json").read_text(encoding="utf-8"))
    page = tmp_path / "RESULTS.md"
    page.write_bytes(PAGE.read_bytes())
    write_page(found, page)
    assert page.read_bytes() == PAGE.read_bytes()
    text = PAGE.read_text("utf-8")
    assert replaced(text, trials.MARK, trials.text_of(found)) == text
    assert replaced(text, trials.INSIDE, trials.inside_of(found)) == text
