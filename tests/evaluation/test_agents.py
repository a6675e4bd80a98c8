"""The agents' studies: rivals, measures and the file agent, without the rivals' packages."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.agents import file_agent, file_promise, file_study, sequor, tau, texts, toolemu
from evaluation.agents.file_agent import Nature, anomaly_of, with_anomaly, write_runs
from evaluation.agents.file_study import bounds, lines_of, surprises_of
from evaluation.agents.fitted import _boosted, _filtered
from evaluation.agents.outcome import Typed, forewarn, left_out, rows_of
from evaluation.agents.rivals import (
    area,
    best_of,
    brier,
    calibration_error,
    false_at,
    found_at,
    told,
)
from evaluation.agents.sequor import lead
from evaluation.agents.toolemu import remembered
from forewarn.config import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.surprise import Surprise

metrics = pytest.importorskip("sklearn.metrics")

Scored = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=2, max_size=40)


@given(Scored)
def test_the_area_is_that_of_scikit_learn(pairs: list[tuple[int, bool]]) -> None:
    scores, labels = (np.array(part) for part in zip(*pairs, strict=True))
    if labels.all() or not labels.any():
        assert area(scores, labels) is None
    else:
        assert area(scores, labels) == pytest.approx(metrics.roc_auc_score(labels, scores))


@given(Scored, st.sampled_from([0.05, 0.2, 0.5, 0.8]))
def test_what_is_found_and_false_is_counted(pairs: list[tuple[int, bool]], share: float) -> None:
    scores, labels = (np.array(part) for part in zip(*pairs, strict=True))
    if labels.all() or not labels.any():
        return
    levels = [-1.0, *np.unique(scores)]
    rates = [((scores[~labels] > x).mean(), (scores[labels] > x).mean()) for x in levels]
    assert found_at(scores, labels, share) == max(found for false, found in rates if false <= share)
    rates = [((scores[~labels] >= x).mean(), (scores[labels] >= x).mean()) for x in levels]
    enough = [false for false, found in rates if found >= share]
    assert false_at(scores, labels, share) == min(enough)


def test_calibration_of_a_known_case() -> None:
    risks, labels = np.array([0.1] * 10 + [0.9] * 10), np.array([True] + [False] * 9 + [True] * 10)
    assert calibration_error(risks, labels, bins=2) == pytest.approx((0.0 + 0.1) / 2)
    assert brier(risks, labels) == pytest.approx(metrics.brier_score_loss(labels, risks))


def test_intervals_come_from_whole_groups() -> None:
    scores, labels = [0.0, 1.0] * 20, [False, True] * 20
    alike = told(area, scores, labels, groups=[0, 1] * 20)
    assert alike == {"value": 1.0, "interval": [1.0, 1.0]}
    few = told(lambda s, _: float(s.mean()), scores, labels, groups=[0] * 20 + [1] * 20)
    assert few["interval"] == [0.5, 0.5]


def test_the_better_variant_of_each_rival_and_two_detectors_stay() -> None:
    labels = [False, True]
    scores = {
        "chain, likelihood": [[0.0], [1.0]],
        "chain, greatest surprise": [[1.0], [0.0]],
        "pyod A, last step": [[0.0], [0.0]],
        "pyod B, last step": [[1.0], [0.0]],
        "pyod C, greatest": [[0.0], [1.0]],
    }
    found = best_of(scores, labels)
    assert set(found) == {"chain, likelihood", "pyod C, greatest", "pyod A, last step"}


def test_the_forward_algorithm_sums_over_all_ways() -> None:
    rng = np.random.default_rng(3)
    start, matrix = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3)
    logs = np.log(rng.random((5, 3)))
    totals = []
    for length in range(1, 6):
        ways = itertools.product(range(3), repeat=length)
        totals.append(
            sum(
                start[way[0]]
                * np.prod([matrix[a, b] for a, b in itertools.pairwise(way)])
                * np.exp(sum(logs[t, s] for t, s in enumerate(way)))
                for way in ways
            )
        )
    assert np.cumsum(_filtered(start, matrix, logs)) == pytest.approx(-np.log(totals))


def test_boosting_scores_every_prefix() -> None:
    traces = [
        {
            "actions": [],
            "outputs": [],
            "rows": [[float(label), t] for t in range(9)],
            "label": label,
        }
        for label in [0, 1] * 20
    ]
    found = _boosted(traces, traces, 1, rounds=30)
    last = found["gradient boosting, last step"]
    assert [len(run) for run in last] == [9] * 40
    assert last[1][-1] > 0.7 > 0.3 > last[0][-1]


def test_the_file_agent_is_drawn_from_its_seed(tmp_path: Path) -> None:
    one, two, odd = (tmp_path / name for name in ("one", "two", "odd"))
    write_runs(one, 30, 7)
    write_runs(two, 30, 7)
    write_runs(odd, 24, 7, anomalous=True)
    assert one.read_bytes() == two.read_bytes()
    lines = [json.loads(line) for line in one.read_text(encoding="utf-8").splitlines()]
    ends = [line for line in lines if line["done"]]
    assert len(ends) == 30 and all(10 <= line["iteration"] <= 40 for line in ends)
    steps = [line for line in lines if not line["done"]]
    for line, after in itertools.pairwise(steps):
        if line["run"] == after["run"]:
            assert after["files_read"] - line["files_read"] == (line["action"] == "read_file")
    names = {json.loads(line)["run"] for line in odd.read_text(encoding="utf-8").splitlines()}
    kinds = {name.rpartition("-")[0] for name in names}
    assert len(kinds) == 24  # every kind, effect and direction
    assert {anomaly_of(n)[0] for n in range(3)} == set(file_agent.KINDS)


@pytest.mark.parametrize("kind", file_agent.KINDS)
def test_an_anomaly_grows_with_its_effect(kind: str) -> None:
    nature = Nature(20, 0.5, 0.0)

    def far(effect: float) -> float:
        odd = with_anomaly(nature, kind, effect, upward=True)
        return max(odd.steps / 20 - 1, abs(odd.reads - 0.5), odd.malformed)

    sizes = [far(effect) for effect in (0.0, *file_agent.EFFECTS)]
    assert sizes[0] == 0.0 and sizes == sorted(set(sizes))


def typed(number: int, bad: bool) -> Typed:
    rows = [{"danger": bad and step > 1, "step": step} for step in range(4)]
    return Typed(rows, ["look", "look", "act", "say"], {"group": number % 3}, bad)


def test_groups_left_out_are_judged_by_the_others(tmp_path: Path) -> None:
    groups = {part: [typed(n, n % 4 == 1) for n in range(part * 24, part * 24 + 24)]
              for part in range(3)}  # fmt: skip
    found = left_out(groups, ["danger", "step"], tmp_path, refine="Pmax(bad) <= 0.1", leaf_size=5)
    for part, runs in groups.items():
        for run, risk in zip(runs, found[part], strict=True):
            assert len(risk.risk) == 4 and all(
                low <= value <= high
                for low, value, high in zip(risk.lower, risk.risk, risk.upper, strict=True)
            )
            assert 0.15 < risk.risk[0] < 0.35
            assert risk.risk[-1] > 0.8 if run.bad else risk.risk[-1] < 0.2


def test_a_row_has_a_calibration_only_for_probabilities() -> None:
    labels = [False, True] * 10
    scores = {"a": [[0.1], [0.9]] * 10, "b": [[-3.0], [4.0]] * 10}
    one, two = rows_of(scores, labels, list(range(20)))
    assert one["area"]["value"] == two["area"]["value"] == 1.0
    assert one["calibration_error"]["value"] == pytest.approx(0.1) and "brier" not in two


def test_a_lead_is_that_of_the_alarm_which_is_on() -> None:
    assert [lead(np.array(run), 0.5) for run in ([0, 1, 1], [1, 0, 1], [1, 1, 0], [])] == [
        2,
        1,
        0,
        0,
    ]


def test_the_memory_of_cases_leaves_the_model_out() -> None:
    def run(model: str, bad: bool) -> Typed:
        return Typed([], [], {"model": model, "case": 1}, bad)

    groups = {"a": [run("a", True)], "b": [run("b", False), run("b", False)]}
    assert remembered(groups) == pytest.approx([0.0, 1.0, 1.0])


def test_the_bounds_of_the_file_agent_are_half_as_much_again(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs.jsonl", 60, 5)
    runs = lines_of(tmp_path / "runs.jsonl").values()
    long = sum(run[-1]["iteration"] > 38 for run in runs)
    assert bounds(tmp_path / "runs.jsonl")["long"] == pytest.approx(1.5 * long / 60)


def test_every_step_of_a_run_of_the_file_agent_has_a_surprise(tmp_path: Path) -> None:
    monitor = tmp_path / "monitor.yaml"
    monitor.write_text((file_study.HERE / "files.yaml").read_text(encoding="utf-8"))
    write_runs(tmp_path / "runs.jsonl", 4, 5)
    model = monitor.with_suffix(".model.json")
    forewarn("learn", tmp_path / "runs.jsonl", "-c", monitor, "-o", model)
    found = surprises_of(monitor, tmp_path / "runs.jsonl")
    steps = {name: len(run) - 1 for name, run in lines_of(tmp_path / "runs.jsonl").items()}
    assert {name: len(run) for name, run in found.items()} == steps
    assert all(one.of("both") >= 0 for run in found.values() for one in run)


def test_the_share_that_is_told_is_that_of_runs_that_did_not_calibrate() -> None:
    rng = np.random.default_rng(0)
    runs = [[Surprise(0.0, float(v), 0.0) for v in rng.random(12)] for _ in range(500)]
    greatest = [max(one.outcome for one in run) for run in runs]
    # The conformal rule tells of what is above all but 19 of 400: (19 + 1) / 401 is below 0.05.
    level = sorted(greatest[:400])[-20]
    above = np.mean([value > level for value in greatest[400:]])
    assert file_promise.share_told(runs, "conformal", "outcome") == pytest.approx(above)


def test_the_page_shows_the_published_figures(repository: Path) -> None:
    page = (repository / "evaluation" / "RESULTS.md").read_text(encoding="utf-8")
    text = (repository / "evaluation" / "agents" / "results.json").read_text(encoding="utf-8")
    found = json.loads(text)
    studies = {
        "files": file_study, "promise": file_promise, "toolemu": toolemu, "texts": texts,
        "tau": tau, "sequor": sequor,
    }  # fmt: skip
    for name, study in studies.items():
        assert study.text_of(found[name]).strip() in page


@pytest.mark.parametrize("path", sorted(file_study.HERE.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_monitor_file_of_the_studies_is_valid(path: Path) -> None:
    assert compile_spec(load_spec(path)).spec.properties


@pytest.mark.parametrize("study", [tau, toolemu])
def test_the_variables_of_a_study_are_signals_of_its_file(study: Any) -> None:
    signals = load_spec(study.HERE / f"{study.__name__.rpartition('.')[2]}.yaml").signals
    assert set(study.NAMES) <= set(signals)
