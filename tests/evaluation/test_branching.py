"""Branched futures: what is counted, which states are looked at, and what the figures mean."""

from __future__ import annotations

import json
import math
import os
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evaluation.branching.bounds import (
    ASKED,
    MARK,
    Visits,
    compare,
    design_effect,
    moment_by_moment,
    of_states,
    shown,
    widened,
)
from evaluation.branching.futures import Future, Glance, follow, in_a_copy, ran_red
from evaluation.branching.states import (
    EDGES,
    OPEN,
    Prediction,
    chances,
    choose,
    open_states,
    predictions_of,
)
from evaluation.branching.summary import (
    Tally,
    followed,
    overall,
    plot_frequencies,
    spread,
    tallies_of,
)
from evaluation.branching.tables import single_moments, tables
from evaluation.harness.page import replaced
from evaluation.sumo.simulation import Frame, Light
from forewarn.config import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.models import CountModel, load_model
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.step import Monitor

HORIZONS = Future(5, 3)
CALM, RED, CONTACT = Glance(False, False), Glance(False, True), Glance(True, False)


@pytest.mark.parametrize(
    ("glances", "future"),
    [
        ([CALM] * 9, Future(None, None)),
        ([RED, *[CALM] * 8], Future(1, None)),  # published now, seen at the next tick
        ([CALM] * 4 + [RED] * 5, Future(5, None)),
        ([CALM] * 5 + [RED] * 4, Future(None, None)),  # beyond the horizon
        ([CALM, CONTACT, *[RED] * 5], Future(None, 2)),  # a collision ends the episode
        ([CALM] * 3 + [CONTACT] * 5, Future(None, None)),  # beyond the horizon, and the end
        ([RED, CALM, CONTACT], Future(1, 3)),
        ([Glance(True, True)], Future(None, 1)),  # a terminal label wins over predicates
        ([CALM], Future(None, None)),  # the ego has left the town
    ],
)
def test_a_future_counts_what_the_monitor_sees_within_its_horizon(
    glances: list[Glance], future: Future
) -> None:
    assert follow(iter(glances), HORIZONS) == future


def test_a_future_is_followed_no_longer_than_it_matters() -> None:
    endless = iter(lambda: CALM, None)
    assert follow(endless, Future(0, 2)) == Future(None, None)


def test_a_line_is_crossed_at_red_within_the_last_tick() -> None:
    light = Light("red", -0.5, 3.0)
    frame = Frame(0, 0, 0, 0, 4.0, 0, 0, 0, False, False, None, light, None)
    assert ran_red(frame)  # 0.5 m behind the line, 0.2 m + 0.15 s * 4 m/s at the most
    assert not ran_red(replace(frame, speed=1.0))
    assert not ran_red(replace(frame, light=light._replace(colour="yellow")))
    assert not ran_red(replace(frame, light=light._replace(distance=0.1)))
    assert not ran_red(replace(frame, light=None))


def test_a_copy_leaves_this_process_as_it_is() -> None:
    state = [1]

    def work() -> tuple[int, list[int]]:
        state.append(2)
        return os.getpid(), state

    child, seen = in_a_copy(work)
    assert child != os.getpid() and seen == [1, 2] and state == [1]


def test_a_copy_that_dies_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="died"):
        in_a_copy(lambda: 1 / 0)


def test_spread_tells_unlike_moments_from_the_noise_of_counting() -> None:
    rng = random.Random(3)

    def tallies(probabilities: list[float]) -> list[Tally]:
        return [
            Tally(run, 100, sum(rng.random() < p for _ in range(100)))
            for run, p in enumerate(probabilities)
        ]

    alike = spread(tallies([0.3] * 400))
    assert alike.mean == pytest.approx(0.3, abs=0.01)
    assert alike.between < 0.015 and alike.binomial == pytest.approx(math.sqrt(0.21 / 100), 0.02)
    unlike = spread(tallies([0.1, 0.5] * 200))
    assert unlike.between == pytest.approx(0.2, abs=0.01)
    # of the outcome's variance 0.3 * 0.7, 0.2 ** 2 lies between moments
    assert unlike.decided == pytest.approx(0.04 / 0.21, abs=0.02) and alike.decided < 0.002
    assert unlike.low < 0.3 < unlike.high and unlike.high - unlike.low < 0.05


def test_a_moment_may_decide_everything_or_there_is_nothing_to_decide() -> None:
    assert spread([Tally(1, 10, 0), Tally(2, 10, 10)]).decided == 1.0
    assert math.isnan(spread([Tally(1, 10, 0), Tally(2, 10, 0)]).decided)


def test_moments_of_one_run_count_as_one_witness() -> None:
    apart = [Tally(run, 10, 10 * (run % 2)) for run in range(8)]
    together = [Tally(run // 4, 10, 10 * (run // 4)) for run in range(8)]
    assert spread(together).high - spread(together).low > spread(apart).high - spread(apart).low
    assert (spread(together).runs, spread(together).moments) == (2, 8)


def test_tallies_count_the_futures_with_a_violation() -> None:
    moment = {"state": "01", "futures": [[3, None], [None, None], [None, 2]]}
    runs = [{"seed": 7, "moments": [moment, {**moment, "state": "10"}]}]
    assert tallies_of(runs, "01", 0) == [Tally(7, 3, 1)]
    assert tallies_of(runs, "01", 1) == [Tally(7, 3, 1)]


def test_intervals_meet_unless_they_lie_apart() -> None:
    row = {
        "frequencies": [0.0, 0.3],
        "recorded": None,
        "risk": 0.5,
        "lower": 0.4,
        "upper": 0.6,
        "mean": 0.3,
        "between": 0.1,
        "binomial": 0.05,
    }
    told = overall([{**row, "low": 0.2, "high": 0.39}, {**row, "low": 0.2, "high": 0.41}])
    assert (told["intervals_meet"], told["bias"], told["unanimous"]) == (1, 0.2, 2)


def test_single_moments_are_those_with_most_futures_where_the_outcome_is_open() -> None:
    row = {
        "property": "collision",
        "state": "near",
        "chosen": True,
        "risk": 0.3,
        "lower": 0.2,
        "upper": 0.4,
        "mean": 0.5,
        "low": 0.1,
        "high": 0.9,
        "frequencies": [0.9, 0.005, 0.1],
        "futures_each": [200, 200, 10],
    }
    few = {**row, "state": "far", "frequencies": [0.5], "futures_each": [10]}
    told = single_moments([row, few, {**row, "state": "other", "chosen": False}])
    (line,) = told.splitlines()[2:]
    assert line.startswith("| `collision` | near | 0.300 (0.200 to 0.400) | 0.500 (0.100 to 0.900)")
    assert line.endswith("| 200 | 0.005, 0.9 |")


def test_what_followed_is_a_share_of_all_ticks_of_all_recordings() -> None:
    found = followed([(10, 10), (30, 0), (0, 0)])
    assert found is not None
    assert (found.ticks, found.recordings, found.share) == (40, 2, 0.25)
    assert found.low == 0.0 and found.high == 1.0  # one recording or the other, drawn twice
    never = followed([(100, 0)] * 10)
    # of ten recordings none: 1 - 0.025 ** (1 / 10)
    assert never is not None and never.high == pytest.approx(0.3085, abs=1e-4)
    assert followed([(0, 0)]) is None


def test_the_plot_has_a_dot_for_each_moment_and_a_cross_for_each_recorded_state() -> None:
    row = {"property": "collision", "risk": 0.5, "lower": 0.4, "upper": 0.6}
    recorded = {"share": 0.3, "low": 0.1, "high": 0.5}
    rows = [
        {**row, "frequencies": [0.0, 1.0, 0.2], "recorded": recorded},
        {**row, "frequencies": [0.1], "recorded": None},
    ]
    picture = plot_frequencies(rows)
    assert picture.count("<circle") == 4
    assert picture.count('stroke-width="2"') == 2


@pytest.fixture(scope="module")
def shipped(repository: Path) -> tuple[Monitor, CountModel]:
    spec = load_spec(repository / "evaluation" / "sumo" / "predicates.yaml")
    assert spec.model_path is not None
    model = load_model(spec.model_path)
    compiled = compile_spec(
        spec.model_copy(update={"bounds": spec.bounds.model_copy(update={"samples": 20})})
    )
    return build_monitor(compiled, model), model


def test_states_are_chosen_over_the_whole_range_of_risk(
    shipped: tuple[Monitor, CountModel],
) -> None:
    monitor, model = shipped
    chosen = choose(monitor, model, ("red_light", "collision"), ("ran_red",))
    risks = [
        predictions_of(monitor, model.index[code])["red_light"].risk
        for code, names in chosen.items()
        if "red_light" in names
    ]
    bands = np.digitize(risks, EDGES)
    assert len(set(bands)) == len(bands) >= 8 and max(risks) > 0.8
    assert all(code >= 0 and not model.vocabulary.holds("ran_red", code) for code in chosen)


def test_the_most_visited_states_of_open_outcome_have_many_futures(
    shipped: tuple[Monitor, CountModel],
) -> None:
    monitor, model = shipped
    chosen = choose(monitor, model, ("red_light", "collision"), ("ran_red",))
    found = open_states(monitor, model, chosen, ("red_light", "collision"), 2)
    visits = np.asarray(model.counts.sum(axis=1)).ravel()
    assert len(found) == 4 and found <= set(chosen)
    for name in ("red_light", "collision"):
        risk = {
            code: predictions_of(monitor, model.index[code])[name].risk
            for code, names in chosen.items()
            if name in names
        }
        taken = [code for code in found if code in risk and OPEN[0] <= risk[code] <= OPEN[1]]
        left = [c for c, r in risk.items() if OPEN[0] <= r <= OPEN[1] and c not in found]
        assert len(taken) == 2 and left
        assert min(visits[model.index[c]] for c in taken) >= max(
            visits[model.index[c]] for c in left
        )
    only = open_states(monitor, model, chosen, ("collision",), 2)
    assert only < found and all("collision" in chosen[code] for code in only)


def test_rare_states_are_taken_whenever_they_come(shipped: tuple[Monitor, CountModel]) -> None:
    monitor, model = shipped
    chosen = choose(monitor, model, ("red_light",), ("ran_red",))
    taken = chances(model, chosen, 20_000.0, 8)
    visits = np.asarray(model.counts.sum(axis=1)).ravel()
    for code, chance in taken.items():
        expected = visits[model.index[code]] / visits.sum() * 20_000.0
        assert chance == pytest.approx(min(1.0, 8 / expected))


def test_the_published_predictions_are_those_of_the_model_that_ships(
    shipped: tuple[Monitor, CountModel], repository: Path
) -> None:
    monitor, model = shipped
    folder = repository / "evaluation"
    report = json.loads((folder / "branching" / "results.json").read_text(encoding="utf-8"))
    assert report["model"] == model.fingerprint
    for row in report["rows"]:
        code = model.vocabulary.parse_key(row["key"])
        found = predictions_of(monitor, model.index[code])[row["property"]]
        assert found.risk == pytest.approx(row["risk"], abs=1e-9)


def test_the_page_has_the_figures(repository: Path) -> None:
    folder = repository / "evaluation"
    report = json.loads((folder / "branching" / "results.json").read_text(encoding="utf-8"))
    for row in report["rows"]:
        row["decided"] = math.nan if row["decided"] is None else row["decided"]
    assert tables(report) in (folder / "RESULTS.md").read_text(encoding="utf-8")


def recorded(share: float, half: float, ticks: int) -> dict[str, float]:
    return {"ticks": ticks, "share": share, "low": share - half, "high": share + half}


def test_the_design_effect_compares_with_as_many_independent_ticks() -> None:
    half = 1.959963984540054 * math.sqrt(0.25 / 100)
    assert design_effect(recorded(0.5, half, 100)) == pytest.approx(1.0)
    assert design_effect(recorded(0.5, 2 * half, 100)) == pytest.approx(4.0)
    row = {"risk": 0.5, "lower": 0.4, "upper": 0.75, "horizon": 5}
    wide = widened({**row, "recorded": recorded(0.5, 2 * half, 100)})
    assert (wide.lower, wide.upper) == pytest.approx((4 / 13, 0.9))  # odds 4/9 and 9
    same = widened({**row, "recorded": recorded(0.5, half / 2, 100)})
    assert (same.lower, same.upper) == pytest.approx((0.4, 0.75))


def test_bounds_are_compared_with_recordings_and_futures() -> None:
    found = {"10": {name: Prediction(0.3, 0.2, 0.4, 5) for name in ("red_light", "collision")}}
    row = {"key": "10", "recorded": recorded(0.5, 0.2, 9), "low": 0.41, "high": 0.6}
    rows = [{**row, "property": name} for name in ("red_light", "collision")]
    other = {**row, "property": "red_light", "key": "01"}  # of a state that the model lacks
    told = compare(found, [*rows, other])
    kept = {key: told["red_light"][key] for key in ("states", "recorded", "share_within")}
    assert kept == {"states": 1, "recorded": 1, "share_within": 0}
    assert (told["red_light"]["futures"], told["red_light"]["width"]) == (0, 0.2)


def test_bounds_of_moments_are_compared_by_their_mean_over_the_visits_of_a_state() -> None:
    row = {"key": "10", "horizon": 5, "low": 0.0, "high": 1.0, "recorded": None}
    rows = [{**row, "property": name} for name in ("red_light", "collision")]
    rows.append({**row, "property": "red_light", "key": "01"})  # of a state that nobody came to
    # Forty ticks in twenty recordings, half of them followed by a violation.
    visits = {
        ("red_light", "10"): [Visits(3, 1, 0.9, 0.3, 1.5), Visits(1, 1, 0.7, 0.5, 0.9)] * 10,
        ("collision", "10"): [Visits(2, 0, 0.2, 0.1, 0.4)] * 20,
    }
    told = moment_by_moment(visits, rows)
    assert told["red_light"]["predicted"]["10"] == pytest.approx(
        {"risk": 0.4, "lower": 0.2, "upper": 0.6, "horizon": 5}
    )
    assert (told["red_light"]["states"], told["red_light"]["share_within"]) == (1, 1)
    assert (told["collision"]["states"], told["collision"]["share_within"]) == (1, 0)
    # none of twenty recordings: 0 to 0.17, which the bounds 0.05 to 0.2 meet
    assert told["collision"]["recorded"] == 1


def test_the_bounds_of_the_demo_are_those_of_its_model(repository: Path) -> None:
    folder = repository / "evaluation"
    published = json.loads((folder / "branching" / "bounds.json").read_text(encoding="utf-8"))
    spec = load_spec(repository / "config" / "demo.yaml")
    assert spec.model_path is not None
    model = load_model(spec.model_path)
    assert {published[part]["model"] for part in ("states", "moments")} == {model.fingerprint}
    rows = json.loads((folder / "branching" / "results.json").read_text("utf-8"))["rows"]
    for asked, told in zip(ASKED[:2], published["states"]["bounds"], strict=False):
        found = of_states(spec, asked, model, rows)
        for name in ("red_light", "collision"):
            predicted, before = (part[name].pop("predicted") for part in (found, told))
            assert found[name] == told[name]
            for key, one in predicted.items():
                assert one == pytest.approx(before[key])
    published = json.loads((folder / "branching" / "bounds.json").read_text(encoding="utf-8"))
    page = (folder / "RESULTS.md").read_text(encoding="utf-8")
    assert replaced(page, MARK, shown(published)) == page
