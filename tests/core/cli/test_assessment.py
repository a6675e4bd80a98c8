"""Whether data suffice: coverage, the Markov test and the choice of estimator, as told by learn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.checking.sensitivity import reach_sensitivity
from forewarn.learning.coverage import coverage
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.models.file import load_model

Run = Callable[..., Any]

BLINKER = """\
version: 1
rate: 10
signals: {x: {}}
predicates: {lit: x > 0.5}
properties: {p: {formula: always(not lit), horizon: 0.5}}
"""


def blinker(folder: Path, extra: str = "") -> tuple[Path, Path]:
    """Write a light that is on for two ticks of six, so that one tick does not tell the next."""
    trace, config = folder / "trace.jsonl", folder / "m.yaml"
    lines = [{"t": i / 10, "x": float(i % 6 < 2)} for i in range(3000)]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config.write_text(BLINKER + extra)
    return trace, config


def test_each_state_is_told_what_it_lacks(forewarn: Run, corridor_run: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    arguments = ["learn", corridor_run.held_out, "-c", corridor_run.config, "-o", path,
                 "--epsilon", "0.2", "--per-transition"]  # fmt: skip
    document = json.loads(forewarn(*arguments, "--json").out)["coverage"]
    model = load_model(path)
    expected = coverage(model, 0.2, 0.05)
    assert (document["factor"], document["share"]) == (1.0, expected.share)
    for i, code in enumerate(model.states):
        found = document["states"][model.vocabulary.key(code)]
        assert found["visits"] == model.visits[i]
        assert found["required"] == expected.required[i]
        assert found["missing"] == max(expected.required[i] - model.visits[i], 0)
    text = forewarn(*arguments).out
    lacking = np.flatnonzero(expected.missing)
    most = int(lacking[np.lexsort((-model.visits[lacking], -expected.missing[lacking]))][0])
    rows = text.split("with too few visits, most lacking first\n", 1)[1].splitlines()
    assert rows[1].split()[0] == model.vocabulary.key(model.states[most])
    assert f"{expected.missing[most]:,}" in rows[1]


def test_the_error_of_the_risk_counts_unless_told_otherwise(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    path = tmp_path / "m.json"
    arguments = ["learn", corridor_run.held_out, "-c", corridor_run.config, "-o", path]
    document = json.loads(forewarn(*arguments, "--json").out)["coverage"]
    model = load_model(path)
    # The longest horizon of the corridor's properties is 2 s, 20 ticks.
    factor = reach_sensitivity(model, estimate_chain(model), 20)
    assert document["horizon"] == 2.0
    assert document["factor"] == factor > 1
    assert document["share"] == coverage(model, factor=factor).share
    assert document["transition_share"] == coverage(model).share > document["share"]


def test_recordings_after_enough_are_not_read(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.mcap"
    damaged.write_bytes(b"\x89MCAP0\r\nand then nothing that makes sense")
    bags = [*corridor_run.recordings, damaged]
    path = tmp_path / "m.json"
    arguments = ["learn", *bags, "-c", corridor_run.config, "-o", path,
                 "--per-transition", "--delta", "0.9"]  # fmt: skip
    # Two processes have begun with later recordings by then: they do not count either.
    easy = forewarn(*arguments, "--epsilon", "0.9", "-j", "2", "--json")
    assert easy.code == 0
    document = json.loads(easy.out)
    read = len(document["recordings"])
    assert 0 < read < 6
    assert document["unread"] == [str(bag) for bag in bags[read:]]
    assert document["coverage"]["complete"]
    alone = tmp_path / "alone.json"
    forewarn("learn", *bags[:read], "-c", corridor_run.config, "-o", alone)
    assert path.read_bytes() == alone.read_bytes()
    path.unlink()
    text = forewarn(*arguments, "--epsilon", "0.9").out
    assert f"enough: the last {7 - read} of 7 recordings were not read" in text
    assert path.read_bytes() == alone.read_bytes()
    hard = forewarn(*arguments, "--epsilon", "0.01")
    assert hard.code == 2
    assert "damaged.mcap" in hard.err


def test_all_recordings_are_read_if_they_are_not_enough(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    arguments = [*corridor_run.recordings[:2], "-c", corridor_run.config, "-o", tmp_path / "m"]
    result = forewarn("learn", *arguments, "--epsilon", "0.01")
    assert result.code == 0
    assert "not enough yet: all recordings were read" in result.out
    plain = forewarn("learn", *arguments)
    assert "all recordings were read" not in plain.out


def test_counts_that_are_added_count_as_data(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    rest = corridor_run.recordings[1:2]
    assert forewarn("learn", *rest, "-c", corridor_run.config, "-o", other).code == 0
    arguments = ["learn", corridor_run.recordings[0], "-c", corridor_run.config, "-o",
                 tmp_path / "m.json", "--per-transition", "--epsilon", "0.5", "--delta", "0.5",
                 "--json"]  # fmt: skip
    alone = json.loads(forewarn(*arguments).out)["coverage"]["share"]
    added = json.loads(forewarn(*arguments, "--add-to", other).out)["coverage"]["share"]
    assert alone < added


def test_a_recording_that_comes_twice_is_refused_while_it_is_read(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.mcap"
    copy.write_bytes(corridor_run.recordings[0].read_bytes())
    result = forewarn("learn", corridor_run.recordings[0], copy, "-c", corridor_run.config, "-o",
                      tmp_path / "m.json", "--epsilon", "0.01")  # fmt: skip
    assert result.code == 2
    assert "copy.mcap: holds the same data" in result.err
    assert not (tmp_path / "m.json").exists()


def test_the_bar_shows_the_coverage(
    forewarn: Run, corridor_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    arguments = [corridor_run.held_out, "-c", corridor_run.config, "-o", tmp_path / "m"]
    result = forewarn("learn", *arguments, "--per-transition", "--epsilon", "0.2", "--json")
    share = json.loads(result.out)["coverage"]["share"]
    assert f"coverage {100 * share:.3g} %" in result.err


def test_without_a_horizon_a_chain_that_never_ends_is_never_covered(
    forewarn: Run, tmp_path: Path
) -> None:
    trace, config = blinker(tmp_path)
    config.write_text(BLINKER.replace("horizon: 0.5", "horizon: unbounded"))
    arguments = ["learn", trace, "-c", config, "-o", tmp_path / "m.json", "--epsilon", "0.5"]
    result = forewarn(*arguments)
    assert result.code == 0
    assert "set a horizon, or ask for --per-transition" in result.out
    document = json.loads(forewarn(*arguments, "--json").out)["coverage"]
    assert (document["factor"], document["share"], document["horizon"]) == ("inf", 0.0, None)
    assert not document["complete"]
    assert json.loads(forewarn(*arguments, "--per-transition", "--json").out)["coverage"][
        "complete"
    ]


def test_states_that_are_not_markov_are_named_with_what_to_do(
    forewarn: Run, tmp_path: Path
) -> None:
    trace, config = blinker(tmp_path)
    arguments = ["learn", trace, "-c", config, "-o", tmp_path / "m.json"]
    text = forewarn(*arguments, "--assess").out
    assert text.startswith("too few data for the guarantee: ")
    assert "; 2 states are not Markov\n" in text
    assert "in 2 of 2 states the next state depends on the one before" in text
    assert "add a predicate that separates the cases, or set `history: 2`" in text
    found = json.loads(forewarn(*arguments, "--json").out)["markov"]
    lit = next(test for test in found["states"] if test["name"] == "lit")
    # Which of its two ticks it is decides what comes next: one bit, and half of the visits each.
    assert lit["information"] == pytest.approx(1.0, abs=0.01)
    assert lit["violated"]
    assert lit["visits"] == 999


def test_with_history_the_advice_is_another(forewarn: Run, tmp_path: Path) -> None:
    # Three ticks on and nine off: even two ticks do not tell the third.
    trace, config = blinker(tmp_path, "history: 2\n")
    lines = [{"t": i / 10, "x": float(i % 12 < 3)} for i in range(6000)]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = forewarn("learn", trace, "-c", config, "-o", tmp_path / "m.json", "--assess").out
    assert "are not Markov" in text
    assert "`history: 2` is set already" in text


def test_a_chain_that_is_markov_passes(forewarn: Run, tmp_path: Path) -> None:
    trace, config = blinker(tmp_path)
    draw = np.random.default_rng(5)
    lines = [{"t": i / 10, "x": float(draw.random() < 0.4)} for i in range(5000)]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = forewarn("learn", trace, "-c", config, "-o", tmp_path / "m.json", "--assess").out
    assert "Markov test: passed in all 2 states" in text
    easy = ["--per-transition", "--epsilon", "0.2"]
    text = forewarn("learn", trace, "-c", config, "-o", tmp_path / "m.json", *easy).out
    assert text.startswith("enough for the guarantee: every state has the visits that were asked")


def contact_risk(model: CountModel, smoothing: Smoothing) -> np.ndarray[Any, Any]:
    """Return the probability of a contact within a second, by plain matrix products."""
    step = estimate_chain(model, smoothing).to_csr().toarray()
    goal = model.terminal.astype(float)
    values = goal
    for _ in range(10):
        values = np.where(model.terminal, goal, step @ values)
    return values


def test_the_risk_is_told_under_three_estimators(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    path = tmp_path / "m.json"
    arguments = ["learn", corridor_run.held_out, "-c", corridor_run.config, "-o", path]
    found = json.loads(forewarn(*arguments, "--json").out)["estimators"]["no_contact"]
    names = ["alpha: sparse", "alpha: 1", "maximum likelihood"]
    assert [item["name"] for item in found] == names
    model = load_model(path)
    own = contact_risk(model, model.smoothing)
    seen = model.visits > 0
    for item, alpha in zip(found, ("sparse", 1.0, "none"), strict=True):
        values = contact_risk(model, Smoothing(alpha))  # type: ignore[arg-type]
        mean = np.average(values[seen], weights=model.visits[seen])
        assert item["mean"] == pytest.approx(mean, abs=1e-9)
        apart = np.abs(values - own)[seen]
        assert item["difference"] == pytest.approx(apart.max(), abs=1e-9)
    text = forewarn(*arguments, "--assess").out
    row = next(line for line in text.splitlines() if line.startswith("no_contact"))
    assert row.split()[1:5] == ["alpha:", "sparse", "(chosen)", f"{found[0]['mean']:.4f}"]


def test_assess_prints_all_of_it(forewarn: Run, corridor_run: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    arguments = ["learn", corridor_run.held_out, "-c", corridor_run.config, "-o", path]
    short, long = forewarn(*arguments).out, forewarn(*arguments, "--assess").out
    assert "most lacking first" not in short
    model = load_model(path)
    for i in np.flatnonzero(~model.terminal):
        key = model.vocabulary.key(model.states[int(i)])
        assert key not in short
        assert key in long
    assert "alpha: sparse (chosen)" in long
    if "are not Markov" in short:
        assert "bits from before" in long


def test_a_guarantee_is_told_on_request(forewarn: Run, corridor_run: Any, tmp_path: Path) -> None:
    arguments = ["learn", *corridor_run.recordings[:2], "-c", corridor_run.config, "-o",
                 tmp_path / "m.json"]  # fmt: skip
    assert "for the guarantee" not in forewarn(*arguments).out
    first = forewarn(*arguments, "--assess").out.splitlines()[0]
    document = json.loads(forewarn(*arguments, "--json").out)
    assert document["guarantee"] == first
    model = load_model(tmp_path / "m.json")
    live = ~model.terminal
    covered = int((coverage(model).covered & live).sum())
    assert first.startswith("too few data for the guarantee: ")
    assert f"{covered} of {int(live.sum())} states ha" in first


@pytest.mark.parametrize("command", ["learn", "inspect"])
@pytest.mark.parametrize("value", ["0", "1", "-0.1", "nan", "much", "1e400"])
@pytest.mark.parametrize("option", ["--epsilon", "--delta"])
def test_a_probability_that_is_none(forewarn: Run, command: str, option: str, value: str) -> None:
    rest = ["x.mcap", "-c", "m.yaml", "-o", "o"] if command == "learn" else ["m.json"]
    result = forewarn(command, *rest, f"{option}={value}")
    assert result.code == 2
    assert f"argument {option}: '{value}' (accepted: a number between 0 and 1)" in result.err


def test_inspect_tells_the_coverage_of_each_state(
    forewarn: Run, corridor_run: Any, corridor_model: Path
) -> None:
    model = load_model(corridor_model)
    plain = coverage(model, 0.1, 0.2)
    options = ["--epsilon", "0.1", "--delta", "0.2"]
    document = json.loads(forewarn("inspect", corridor_model, *options, "--json").out)["coverage"]
    assert document["per_transition"]
    missing = {key: state["missing"] for key, state in document["states"].items()}
    assert missing == {
        model.vocabulary.key(code): int(lacks)
        for code, lacks in zip(model.states, plain.missing, strict=True)
    }
    text = forewarn("inspect", corridor_model, *options, "--top", "0").out
    row = next(line for line in text.splitlines() if line.startswith("0000 "))
    assert f"{plain.missing[model.index[0]]:,}" in row
    whole = ["inspect", corridor_model, "-c", corridor_run.config, *options, "--json"]
    with_file = json.loads(forewarn(*whole).out)["coverage"]
    assert with_file["horizon"] == 2.0
    assert with_file["factor"] == reach_sensitivity(model, estimate_chain(model), 20)
    assert json.loads(forewarn(*whole, "--per-transition").out)["coverage"]["factor"] == 1.0


def test_learn_says_what_was_never_seen(forewarn: Run, tmp_path: Path) -> None:
    config, trace = tmp_path / "m.yaml", tmp_path / "run.jsonl"
    config.write_text(
        "rate: 10\nsignals: {v: {timeout: 1}, d: {timeout: 1}}\n"
        "predicates: {moving: v > 0.5, bad: d < 1}\n"
        "properties: {p: {formula: always(not bad), horizon: 2}}\n"
    )
    lines = [{"t": k / 10, "v": float(k // 3 % 2), "d": 5.0} for k in range(40)]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    learned = forewarn("learn", trace, "-c", config, "-o", tmp_path / "m.json")
    assert learned.code in (0, 1), learned.err
    said = learned.out + learned.err
    assert "nothing that leads to a violation of p was seen" in said.splitlines()[0]
    assert "0.0000" not in said
    shown = forewarn("inspect", tmp_path / "m.json", "-c", config)
    assert (
        "p: no state has a risk above 0: a violation, or a way to one, was never seen" in shown.out
    )
    assert "0.0000" not in shown.out


def test_a_rule_of_which_nothing_is_foreseen_is_told_what_to_do(
    forewarn: Run, tmp_path: Path
) -> None:
    trace, config = blinker(tmp_path)
    lines = [{"t": i / 10, "x": float(i % 60 == 7)} for i in range(3000)]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    model, hint = tmp_path / "m.json", "p: 50 of 50 missed: nothing in these signals changes before"
    assert forewarn("learn", trace, "-c", config, "-o", model).code == 0
    assert hint in forewarn("replay", trace, "-c", config, "-m", model).out
    assert hint not in forewarn("replay", trace, "-c", config).out
    low = BLINKER.replace("0.5}}", "0.5, thresholds: {act: 0.05}}}")
    config.write_text(low)
    assert hint not in forewarn("replay", trace, "-c", config, "-m", model).out
