"""Queries about a model: what Storm says, what the exit code says, and what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.cli import main
from forewarn.config.file import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.models.file import load_model, save_model
from forewarn.monitoring.build import build_monitor

Run = Callable[..., Any]


@pytest.fixture
def storm() -> None:
    pytest.importorskip("stormpy", reason="queries are answered by Storm")


def within(model: CountModel, steps: int, smoothing: Smoothing | None = None) -> Any:
    """Return the probability of a contact within some steps, by plain matrix products."""
    step = estimate_chain(model, smoothing).to_csr().toarray()
    goal = model.terminal.astype(float)
    values = goal
    for _ in range(steps):
        values = np.where(model.terminal, goal, step @ values)
    return values


@pytest.mark.usefixtures("storm")
@pytest.mark.parametrize("unsmoothed", [False, True])
def test_a_number_for_every_state_and_for_the_first_ones(
    forewarn: Run, corridor_model: Path, unsmoothed: bool
) -> None:
    arguments = ["check", corridor_model, 'P=? [ F<=10 "contact" ]']
    if unsmoothed:
        arguments.append("--unsmoothed")
    document = json.loads(forewarn(*arguments, "--json").out)
    model = load_model(corridor_model)
    expected = within(model, 10, Smoothing("none") if unsmoothed else None)
    (found,) = document["queries"]
    assert document["smoothed"] is not unsmoothed
    for code, value in zip(model.states, expected, strict=True):
        assert found["values"][model.vocabulary.key(code)] == pytest.approx(value, abs=1e-9)
    mean = np.average(expected, weights=model.starts)
    assert found["initial"] == pytest.approx(mean, abs=1e-9)
    assert document["starts"] == {
        model.vocabulary.key(model.states[i]): int(model.starts[i])
        for i in np.flatnonzero(model.starts)
    }
    text = forewarn(*arguments, "--top", "3")
    assert text.code == 0
    begin = int((model.starts > 0).sum())
    told = f"over the {begin} state{'' if begin == 1 else 's'} that episodes begin in"
    assert f"{mean:.6g} on average {told}" in text.out
    assert len(text.out.strip().splitlines()) == 2 + 1 + 3


@pytest.mark.usefixtures("storm")
def test_a_threshold_decides_the_exit_code(forewarn: Run, corridor_model: Path) -> None:
    model = load_model(corridor_model)
    expected = within(model, 20)
    worst = expected[model.starts > 0].max()
    holds = f'P<{worst + 0.01:.6f} [ F<=20 "contact" ]'
    fails = f'P<{worst - 0.001:.6f} [ F<=20 "contact" ]'
    assert forewarn("check", corridor_model, holds).code == 0
    result = forewarn("check", corridor_model, fails)
    assert result.code == 1
    below = int((expected < worst - 0.001).sum())
    assert f"holds in {below} of {model.size} states" in result.out
    # One query that fails is enough, wherever it stands.
    both = forewarn("check", corridor_model, fails, holds, "--json")
    assert both.code == 1
    assert [query["fine"] for query in json.loads(both.out)["queries"]] == [False, True]


@pytest.mark.parametrize(
    ("query", "code"),
    [("EF contact", 0), ("AG !contact", 1), ("AG (contact | EF contact)", 0), ("AF contact", 1),
     ('E [ !contact U "nearest<0.6" ]', 0), ("AG (contact => AX contact)", 0)],
)  # fmt: skip
def test_ctl_over_what_was_counted(
    forewarn: Run, corridor_model: Path, query: str, code: int
) -> None:
    result = forewarn("check", corridor_model, query, "--unsmoothed")
    assert result.code == code
    assert "smoothing" not in result.err


def test_ctl_over_smoothed_counts_is_pointed_out(forewarn: Run, corridor_model: Path) -> None:
    assert "--unsmoothed asks about" in forewarn("check", corridor_model, "EF contact").err


@pytest.mark.usefixtures("storm")
def test_a_property_is_computed_twice(
    forewarn: Run, corridor_run: Any, corridor_model: Path
) -> None:
    config = corridor_run.config
    arguments = ["check", corridor_model, "slow_down", "no_contact", "-c", config]
    found = json.loads(forewarn(*arguments, "--json").out)["queries"]
    model = load_model(corridor_model)
    monitor = build_monitor(compile_spec(load_spec(config)), model)
    for item, compiled in zip(found, monitor.properties, strict=True):
        assert compiled.table is not None
        for code, row in model.index.items():
            value = item["values"][model.vocabulary.key(code)]
            letter = int(compiled.row_classes[row])
            if letter < 0:
                assert value == 0.0
                continue
            (state,) = compiled.successors((compiled.automaton.initial,), (letter,))
            assert value == pytest.approx(compiled.table.values[row, state], abs=1e-9)
        assert any("own solver is at most" in note for note in item["notes"])


@pytest.mark.usefixtures("storm")
def test_a_property_that_reaches_its_threshold_is_a_finding(
    forewarn: Run, corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    config = tmp_path / "m.yaml"
    text = corridor_run.config.read_text()
    config.write_text(text.replace("{warn: 0.2, act: 0.4, release: 0.1}",
                                   "{warn: 0, act: 0.000001, release: 0.0000001}"))  # fmt: skip
    low = forewarn("check", corridor_model, "no_contact", "-c", config)
    assert low.code == 1
    assert "act 1e-06 is reached in" in low.out
    high = forewarn("check", corridor_model, "no_contact", "-c", corridor_run.config)
    assert high.code == 0
    assert "act 0.4 is reached in none" in high.out


@pytest.mark.usefixtures("storm")
def test_comparisons_stand_for_the_predicates_of_the_monitor_file(
    forewarn: Run, corridor_run: Any, corridor_model: Path
) -> None:
    pairs = [('P=? [F<=5 "speed > 0.3"]', 'P=? [F<=5 "fast"]'),
             ('P=? [F<=5 "speed <= 0.3"]', 'P=? [F<=5 !"fast"]')]  # fmt: skip
    for ours, theirs in pairs:
        result = forewarn("check", corridor_model, ours, theirs, "-c", corridor_run.config,
                          "--json")  # fmt: skip
        first, second = json.loads(result.out)["queries"]
        assert first["values"] == second["values"]
        assert "was understood as" in result.err or first["notes"]
    without = forewarn("check", corridor_model, pairs[0][0])
    assert without.code == 2
    assert "'speed > 0.3' is not known" in without.err


@pytest.mark.usefixtures("storm")
def test_without_first_states_every_observed_state_counts(
    forewarn: Run, corridor_model: Path, tmp_path: Path
) -> None:
    from dataclasses import replace

    model = load_model(corridor_model)
    path = tmp_path / "m.json"
    save_model(replace(model, starts=np.zeros_like(model.starts)), path)
    result = forewarn("check", path, 'P=? [ F<=10 "contact" ]', "--json")
    found = json.loads(result.out)["queries"][0]["initial"]
    assert found == pytest.approx(within(model, 10)[model.observed].mean(), abs=1e-9)
    assert "does not tell where episodes begin" in result.err


@pytest.mark.usefixtures("storm")
@pytest.mark.parametrize(
    ("query", "named"),
    [
        ('P=? [ F "kontact" ]', ["'kontact' is not known", "fast, nearest<0.6", "contact)"]),
        ("AG !kontact", ["'kontact'", "accepted"]),
        ("P=? [ F<=", ["P=? [ F<=", "expecting"]),
        ('P=? [ G<=3 "fast" ]', ["write !(F<=k ...)"]),
        ("AG (fast", ["column 9", "'the end'", "accepted: )"]),
        ('R=? [ F "contact" ]', ["reward"]),
        ("", ["column 1"]),
    ],
)
def test_a_query_that_is_none_names_itself_and_what_would_be_accepted(
    corridor_model: Path, capfd: pytest.CaptureFixture[str], query: str,
    named: list[str],
) -> None:  # fmt: skip
    code = main(["check", str(corridor_model), query])
    captured = capfd.readouterr()
    assert code == 2
    assert f"{corridor_model}: {query}" in captured.err
    for text in named:
        assert text in captured.err
    assert captured.out == "", "what Storm prints must not mix with results"


def test_without_storm_the_message_says_how_to_get_it(
    forewarn: Run, corridor_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "stormpy", None)
    assert forewarn("check", corridor_model, "EF contact").code == 0  # found on the graph
    result = forewarn("check", corridor_model, 'P=? [F "contact"]')
    assert result.code == 2
    assert "Storm, which is not there" in result.err
    assert "pip install 'stormpy<2'" in result.err


def test_a_model_of_another_monitor_file(
    forewarn: Run, corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    config = tmp_path / "m.yaml"
    config.write_text(corridor_run.config.read_text().replace("speed > 0.3", "speed > 0.4"))
    result = forewarn("check", corridor_model, "slow_down", "-c", config)
    assert result.code == 2
    assert f"{corridor_model}: digest" in result.err
    missing = forewarn("check", tmp_path / "none.json", "EF contact")
    assert missing.code == 2
    assert "none.json" in missing.err
