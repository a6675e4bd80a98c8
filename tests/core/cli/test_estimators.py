"""Commands where a property's risk is not the chain's alone."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn import load_monitor
from forewarn.cli import main
from forewarn.config.file import load_spec
from forewarn.models.calibration_map import METHODS
from forewarn.models.file import VERSION, load_model
from forewarn.monitoring.build import build_monitor, compile_for
from forewarn.monitoring.composition import Composition, Push, composition_of, risk_facts
from forewarn.monitoring.composition import in_words as composition_in_words
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.reasons import explain_risk, in_words
from forewarn.monitoring.sources import Remedies

TEXT = """\
rate: 10
signals:
  gap: {timeout: never}
  closing: {timeout: never}
  near: {value: "1 / (1 + exp(gap - 3 * closing))"}
bins: {gap: [1, 2, 4], closing: [0, 1]}
terminal: {crash: gap < 0}
properties:
  no_crash: {formula: always(not crash), horizon: 1, estimator: ensemble, scores: [near]}
  stays_off: {formula: "always(gap<1 implies eventually[0:1](not gap<1))", horizon: 2}
"""


def drive(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    gap, closing, lines = rng.uniform(3, 6), 0.5, []
    for tick in range(120):
        if rng.random() < 0.08:
            closing = float(rng.normal(0.2, 1.2))
        gap = min(gap - closing / 10, 7.0)
        lines.append(json.dumps({"t": tick / 10, "gap": gap, "closing": closing}))
        if gap < 0:
            break
    path.write_text("\n".join(lines) + "\n")
    return path


def ticks(path: Path) -> list[dict[str, Any]]:
    """Return the verdicts of a file, without the lines about recordings."""
    lines = map(json.loads, path.read_text().splitlines())
    return [line for line in lines if "properties" in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("estimators")
    (found / "monitor.yaml").write_text(TEXT)
    for part, seeds in (("bags", range(40)), ("more", range(40, 50)), ("kept", range(50, 60))):
        (found / part).mkdir()
        for seed in seeds:
            drive(found / part / f"{seed}.jsonl", seed)
    return found


@pytest.fixture(scope="module")
def learned(folder: Path) -> tuple[Path, str, str]:
    """Return the model, and what `learn` wrote to both outputs."""
    path = folder / "model.json"
    words = ("learn", folder / "bags", "-c", folder / "monitor.yaml", "-o", path)
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        assert main([*map(str, words)]) == 0
    return path, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def model(learned: tuple[Path, str, str]) -> Path:
    return learned[0]


def test_learn_says_what_the_risk_is_made_of(learned: tuple[Path, str, str]) -> None:
    path, out, err = learned
    assert "no_crash: the risk combines " in out
    assert "from 40 recordings" in out
    assert "details: --assess" in out
    assert "log loss" not in out
    assert "stays_off: the risk" not in out
    assert "the risk of stays_off is the chain's alone" in err
    assert json.loads(path.read_text())["version"] == VERSION
    (estimate,) = load_model(path).estimates
    assert estimate.recordings == 40
    losses = {loss.name: loss.log_loss for loss in estimate.losses}
    assert min(losses, key=lambda name: losses[name]) != "chain"


def test_inspect_validate_and_explain_say_it_too(
    forewarn: Callable[..., Any], folder: Path, model: Path
) -> None:
    config = folder / "monitor.yaml"
    shown = forewarn("inspect", model, "-c", config)
    assert "no_crash: the risk combines " in shown.out
    assert "weighted sum of log-odds: " in shown.out
    assert "log loss" in shown.out
    document = json.loads(forewarn("inspect", model, "-c", config, "--json", "-q").out)
    assert document["estimates"]["no_crash"]["recordings"] == 40
    told = forewarn("explain", "-c", config)
    assert "estimated from recordings by ensemble, with the scores near" in told.out
    assert told.out.count("estimated from recordings") == 1
    checked = forewarn("validate", config, "-m", model)
    assert "monitor.yaml: valid" in checked.text
    assert "signals.near" not in checked.text  # the stack uses it
    assert "the risk combines " in checked.text


def test_what_explains_a_risk_tells_the_sum_that_it_is(folder: Path, model: Path) -> None:
    counts = load_model(model)
    watch = LiveSession(compile_for(load_spec(folder / "monitor.yaml"), counts), counts, {})
    monitor, remedies = watch.monitor, Remedies()
    assert monitor.model is not None
    compiled = monitor.properties[0]
    assert compiled.table is not None
    summed = told = lowered = 0
    lines = (folder / "kept" / "52.jsonl").read_text().splitlines()
    for tick, line in enumerate(map(json.loads, lines)):
        read = {key: line[key] for key in ("gap", "closing")}
        watch.accept("", tick * 100_000_000, read)
        verdict, rows, request = watch.tick(tick)
        risk, state = verdict.properties[0].probability, verdict.observation.state
        assert state is not None
        if state < 0:
            assert risk_facts(monitor, verdict, "no_crash")[0].endswith("that is no estimate")
            continue
        place = (compiled, monitor.model.index[state], 0)
        found = composition_of(*place, verdict.values)
        assert found is not None and found.risk == risk
        if math.isfinite(found.table):
            assert risk == pytest.approx(1 / (1 + math.exp(-found.log_odds)), rel=1e-9)
            (push,) = found.pushes
            assert push.log_odds == pytest.approx(3 * line["closing"] - line["gap"], rel=1e-6)
            assert sum(weight for _, weight in found.estimates) > 0
            summed += 1
        unseen = verdict.properties[0]._replace(in_model=False)
        other = verdict._replace(properties=(unseen, *verdict.properties[1:]))
        (fact,) = risk_facts(monitor, other, "no_crash")
        assert fact.endswith("is by near alone: the model has never seen this state")
        alone = composition_of(*place, None)
        assert alone is not None and alone.without == ("near",)
        assert alone.risk == compiled.table.values[place[1], 0]
        if request is not None and request.property == "no_crash":
            told += any("of near (" in fact for fact in request.evidence)
        why = explain_risk(monitor, "no_crash", state, 0, values=verdict.values)
        assert why is not None and why.published == risk and why.made_of == found
        best = why.changes[0]
        lower = remedies.of(monitor, verdict, rows[0])
        assert lower == "" or lower.endswith(f"lower it most: to {best.risk:.3g}")
        lowered += lower != ""
        assert all("by the chain alone" in one for one in in_words(why, monitor.clock)[:1])
    assert summed > 20 and told and lowered


def test_what_is_certain_is_no_estimate(folder: Path, model: Path) -> None:
    counts = load_model(model)
    monitor = build_monitor(compile_for(load_spec(folder / "monitor.yaml"), counts), counts)
    compiled = monitor.properties[0]
    assert compiled.table is not None
    for value, word in ((0.0, "impossible"), (1.0, "certain"), (math.nan, "never seen")):
        table = replace(compiled.table, values=np.full_like(compiled.table.values, value))
        changed = replace(compiled, table=table)
        found = composition_of(changed, 0, 0, None)
        assert found is not None and word in composition_in_words(found)


def test_a_score_may_be_all_of_it() -> None:
    alone = Composition((), 0.0, (Push("near", 1.0, -1.5),), 0.18, False)
    assert composition_in_words(alone) == "its log-odds -1.50 are those of near"
    both = alone._replace(estimates=(("bayes", 0.6), ("multi_step", 0.2)), table=0.5)
    weighed = both._replace(pushes=(Push("near", 0.5, -1.5),), calibrated=True)
    assert composition_in_words(weighed) == (
        "its log-odds -0.25 are +0.50 of the table (0.60 bayes + 0.20 multi_step) and -0.75 of "
        "near "
        "(0.50 times -1.50), then calibrated"
    )


def test_inspect_and_report_tell_it_of_states(
    forewarn: Callable[..., Any], folder: Path, model: Path, tmp_path: Path
) -> None:
    config = folder / "monitor.yaml"
    words = ("inspect", model, "-c", config, "--why", "--top", 2)
    shown = forewarn(*words)
    made = r"are those of the table \((0\.\d\d \w+( \+ )?){1,4}\), as it is while near is unknown"
    assert re.search(made, shown.out)
    assert "the chain alone says 0." in shown.out
    document = json.loads(forewarn(*words, "--json", "-q").out)
    for state in document["riskiest"]["no_crash"]:
        why = document["reasons"]["no_crash"][state["state"]]
        assert why["made_of"]["risk"] == state["risk"] != why["risk"]
    whys = document["reasons"]["stays_off"].values()
    assert all(why["made_of"] is None for why in whys)
    page = tmp_path / "page.html"
    arguments = ("report", folder / "kept" / "50.jsonl", "-c", config, "-m", model, "-o", page)
    assert forewarn(*arguments, "-q").code in (0, 1)
    sentence = "those of the chain alone; scores move the risk of a state at each"
    assert re.search(rf"{sentence} (tick|step), and are left out here\.", page.read_text())


def test_replay_tells_bounds_from_recordings(
    forewarn: Callable[..., Any], folder: Path, model: Path, tmp_path: Path
) -> None:
    lines = tmp_path / "verdicts.jsonl"
    result = forewarn(
        "replay", folder / "kept", "-c", folder / "monitor.yaml", "-m", model,
        "--verdicts", lines, "--exit-zero",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "95 % bounds by bootstrap over 40 recordings" in result.text
    seen = 0
    for verdict in ticks(lines):
        prop = verdict["properties"][0]
        if prop["lower"] is not None and 0 < prop["probability"] < 1:
            assert prop["lower"] <= prop["probability"] <= prop["upper"]
            seen += prop["lower"] < prop["upper"]
    assert seen > 100


def test_a_merged_model_chooses_anew_and_says_so(
    forewarn: Callable[..., Any], folder: Path, model: Path, tmp_path: Path
) -> None:
    config, more = folder / "monitor.yaml", tmp_path / "more.json"
    assert forewarn("learn", folder / "more", "-c", config, "-o", more, "-q").code == 0
    merged = tmp_path / "merged.json"
    result = forewarn("merge", model, more, "-o", merged)
    assert result.code == 0, result.err
    assert "is left out: a monitor chooses again" in result.text
    assert load_model(merged).estimates == ()
    shown = forewarn("inspect", merged, "-c", config)
    assert "from 50 recordings" in shown.text
    added = tmp_path / "added.json"
    learned = forewarn("learn", folder / "more", "-c", config, "--add-to", model, "-o", added, "-q")
    assert learned.code == 0, learned.err
    assert load_model(added).estimates[0].recordings == 50


@pytest.fixture(scope="module")
def plain(folder: Path, model: Path) -> list[dict[str, Any]]:
    """Return the verdicts on `more` without a calibration."""
    lines = folder / "plain.jsonl"
    words = ("replay", folder / "more", "-c", folder / "monitor.yaml", "-m", model)
    assert main([*map(str, words), "--verdicts", str(lines), "--exit-zero"]) == 0
    return ticks(lines)


@pytest.mark.parametrize("method", METHODS)
def test_what_learn_calibrates_comes_after_the_scores(
    forewarn: Callable[..., Any],
    folder: Path,
    plain: list[dict[str, Any]],
    tmp_path: Path,
    method: str,
) -> None:
    config, path, lines = folder / "monitor.yaml", tmp_path / "mended.json", tmp_path / "it.jsonl"
    mended = ("--calibrate", folder / "kept", "--calibration", method)
    assert forewarn("learn", folder / "bags", "-c", config, "-o", path, "-q", *mended).code == 0
    said = ("--verdicts", lines, "--exit-zero")
    assert forewarn("replay", folder / "more", "-c", config, "-m", path, *said).code == 0
    maps = {one.name: one for one in load_model(path).recalibration}
    changed = 0
    for before, after in zip(plain, ticks(lines), strict=True):
        one, other = before["properties"][0], after["properties"][0]
        if one["probability"] is None or one["status"] == "VIOLATED":
            continue
        expected = maps["no_crash"].at(one["probability"])
        assert other["probability"] == pytest.approx(expected, abs=1e-12)
        changed += other["probability"] != one["probability"]
    assert changed > 100


@pytest.fixture(scope="module")
def said_to_be(folder: Path) -> Callable[[str, Any], Path]:
    """Return a function that writes recordings in which the score is a source signal."""

    def write(name: str, value: Any) -> Path:
        found = folder / name
        found.mkdir()
        for path in sorted((folder / "bags").iterdir()):
            lines = map(json.loads, path.read_text().splitlines())
            told = (json.dumps(line | {"near": value}) for line in lines)
            (found / path.name).write_text("\n".join(told) + "\n")
        (folder / f"{name}.yaml").write_text(
            re.sub(r"near: \{value.*\}", "near: {timeout: never}", TEXT)
        )
        return found

    return write


@pytest.mark.parametrize("value", ["high", [0.2, 0.4], 1.5], ids=["text", "list", "above"])
def test_learn_leaves_out_a_score_that_is_no_probability_and_says_so(
    value: Any,
    said_to_be: Callable[[str, Any], Path],
    folder: Path,
    forewarn: Callable[..., Any],
    request: pytest.FixtureRequest,
) -> None:
    bags = said_to_be(request.node.callspec.id, value)
    config, file = bags.with_suffix(".yaml"), folder / "left_out.json"
    result = forewarn("learn", bags, "-c", config, "-o", file, "-j1")
    assert result.code == 0
    assert "in [0, 1] before a violation: near left out" in " ".join(result.out.split())
    (estimate,) = load_model(file).estimates
    assert estimate.scored is None


def test_scores_count_from_five_recordings_with_a_violation_on_and_states_from_two(
    said_to_be: Callable[[str, Any], Path], folder: Path, forewarn: Callable[..., Any]
) -> None:
    bags, file = said_to_be("some", 0.3), folder / "some.json"
    paths = sorted(bags.iterdir())
    crashed = [at for at, path in enumerate(paths, 1) if '"gap": -' in path.read_text()]
    found = {}
    for count in (crashed[at] for at in (0, 1, 3, 4)):
        arguments = ["learn", *paths[:count], "-c", bags.with_suffix(".yaml"), "-o", file, "-j1"]
        assert forewarn(*arguments).code == 0
        (estimate,) = load_model(file).estimates
        found[estimate.with_violations] = estimate
    assert [*found] == [1, 2, 4, 5]
    for violated, estimate in found.items():
        assert estimate.chosen == ("ensemble" if violated >= 2 else "chain")
        assert (estimate.scored is not None) is (violated >= 5)
        left_out = f"{violated} recordings with a violation (scores: 5 or more): near left out"
        assert (left_out in estimate.reason) is (2 <= violated < 5)


def test_a_score_that_is_no_probability_counts_as_unknown(
    said_to_be: Callable[[str, Any], Path], folder: Path, forewarn: Callable[..., Any]
) -> None:
    bags, file = said_to_be("told", 0.3), folder / "told.json"
    config = bags.with_suffix(".yaml")
    assert forewarn("learn", bags, "-c", config, "-o", file, "-q").code == 0
    monitor = load_monitor(config, file)

    def risk(near: Any) -> float:
        step = monitor.start().step({"gap": 3.0, "closing": 0.5, "near": near})
        found: float = step.properties["no_crash"].probability
        return found

    assert risk(0.9) != risk(None)
    for near in ("high", [0.9], [], np.array([0.9]), math.inf, -0.1, 2**70):
        assert risk(near) == risk(None)
