"""The pages of abstract, refine, check and anomalies, read back in a browser, against --json."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from learned_runs import SPEC, record

from forewarn.cli.main import main

HOSTILE = "<script>x</script>"
BOUND = "Pmax(fire) <= 0.05"
Look = Callable[..., Any]
WHOLE = ("Chain", "Tree", "Process", "Rounds", "Counterexamples", "Surprise", "Steps", "Remarks")


class Made:
    """The pages of the four commands, and what they said as JSON."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        config, model = folder / "monitor.yaml", folder / "model.json"
        config.write_text(SPEC)
        runs = record(folder / "runs.jsonl", 0, 90)
        self.learn_states = self.run("learn-states", runs, "-c", config, page="learn-states")
        self.refine = self.run(
            "refine", runs, "-c", config, "--query", BOUND, "--rounds", 4, "--write",
            "--save", folder / "refined.json", page="refine",
        )  # fmt: skip
        self.run("learn", record(folder / "more.jsonl", 1, 200), "-c", config, "-o", model)
        self.check = self.run("check", model, BOUND, "Pmin(fire, 9)", page="check")
        normal = record(folder / "normal.jsonl", 2, 60)
        today = record(folder / "today.jsonl", 3, 30, odd=7, strange=HOSTILE)
        self.anomalies = self.run(
            "anomalies", today, "-c", config, "-m", model, "--calibrate", normal, "-n", 100,
            "--save", folder / "anomalies.json", page="anomalies",
        )  # fmt: skip
        config.write_text(config.read_text() + "anomaly: {file: anomalies.json}\n")
        self.run(
            "report", today, "-c", config, "-m", model, "--refinement", folder / "refined.json",
            "-o", folder / "whole.html",
        )  # fmt: skip

    def run(self, *words: object, page: str = "") -> Any:
        out, err = io.StringIO(), io.StringIO()
        given = [str(word) for word in (*words, "--json", "-q")]
        given += ["--report", str(self.folder / f"{page}.html")] if page else []
        with redirect_stdout(out), redirect_stderr(err):
            code = main(given)
        assert code in (0, 1), err.getvalue()
        return json.loads(out.getvalue())

    def page(self, name: str) -> str:
        return (self.folder / f"{name}.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("learned"))


@pytest.fixture
def opened(browser: Any, made: Made) -> Look:
    """Return a function that opens a page by its name, loaded anew only if another one is open."""

    def show(name: str) -> Any:
        file = made.folder / f"{name}.html"
        if browser.evaluate("location.href") != file.as_uri():
            browser.resize(1400, 1000)
            browser.prefer("light")
            browser.open(file)
        return browser

    return show


def texts(shown: Any, selector: str) -> list[str]:
    found: list[str] = shown.evaluate(
        f"[...document.querySelectorAll({selector!r})].map(e => e.textContent)"
    )
    return found


def cells(shown: Any, section: str, table: int = 0) -> list[list[str]]:
    found: list[list[str]] = shown.evaluate(
        f"[...document.querySelectorAll('#{section} table')[{table}].tBodies[0].rows]"
        ".map(row => [...row.cells].map(cell => cell.innerText.replace(/\\s+/g, ' ').trim()))"
    )
    return found


def drawn(shown: Any, holder: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = shown.evaluate(
        f"(t => ({{x: t.x, y: t.y, text: t.text}}))"
        f"(document.getElementById({holder!r}).data.find(t => t.name === {name!r}))"
    )
    return found


@pytest.mark.parametrize("name", ["learn-states", "refine", "check", "anomalies"])
def test_nothing_fails_is_fetched_or_wider_than_a_phone(look: Look, made: Made, name: str) -> None:
    for width, scheme in ((1400, "light"), (390, "dark")):
        shown = look(made.page(name), width, scheme)
        assert shown.console == []
        assert shown.evaluate("document.body.dataset.problems") == ""
        assert all(url.startswith(("file:", "data:", "blob:")) for url in shown.requests)
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        # Every picture has a name for those who do not see it.
        assert all(
            shown.evaluate("[...document.querySelectorAll('svg[role]')].map(e => e.ariaLabel)")
        )


def test_the_tree_is_the_one_that_was_learned(opened: Look, made: Made) -> None:
    shown = opened("learn-states")
    leaves = made.learn_states["leaves"]
    told = dict(zip(texts(shown, ".leaf b"), texts(shown, ".leaf .remark"), strict=True))
    assert told.keys() == leaves.keys()
    for name, kinds in leaves.items():
        assert told[name].startswith(f"{sum(kinds.values())} moments; {next(iter(kinds))}")
    rows = [[str(i), one["condition"], f"{one['gain']:.3f}"]
            for i, one in enumerate(made.learn_states["splits"], 1)]  # fmt: skip
    assert [[order, text, gain] for order, text, _, gain in cells(shown, "splits")] == rows
    sizes = drawn(shown, "sizes-plot", "loss")
    assert sizes["x"] == [one["leaves"] for one in made.learn_states["sizes"]]
    assert sizes["y"] == pytest.approx(
        [one["loss"] for one in made.learn_states["sizes"]], abs=1e-6
    )


def test_every_round_of_a_refinement_is_told(opened: Look, made: Made) -> None:
    shown, said = opened("refine"), made.refine
    rows = cells(shown, "rounds")
    assert len(rows) == len(said["rounds"]) > 0
    for row, one in zip(rows, said["rounds"], strict=True):
        before, after = one["before"], one["after"]
        assert row[1:4] == [one["leaf"], one["condition"], f"{one['gain']:.3f}"]
        assert row[4] == f"{one['lost']:.3g}"
        assert all(leaf in row[5] for leaf in one["path"])
        assert row[6] == f"{before['leaves']} to {after['leaves']}"
        assert row[7] == (
            f"{before['estimate']:.3g} [{before['lower']:.3g}, {before['upper']:.3g}] to "
            f"{after['estimate']:.3g} [{after['lower']:.3g}, {after['upper']:.3g}]"
        )
        assert row[8] == f"{before['loss']:.3f} to {after['loss']:.3f}"
    answers = [*(one["before"] for one in said["rounds"]), said["answer"]]
    estimate = drawn(shown, "rounds-plot", "estimate with its bounds")
    assert estimate["y"] == pytest.approx([one["estimate"] for one in answers], abs=1e-6)
    losses = drawn(shown, "rounds-plot", "held-out loss")
    assert losses["y"] == pytest.approx([one["loss"] for one in answers], abs=1e-6)
    assert drawn(shown, "rounds-plot", "the bound")["y"] == [0.05, 0.05]


def test_counterexamples_say_what_runs_bear_out(opened: Look, made: Made) -> None:
    shown, said = opened("refine"), made.refine
    ways = texts(shown, "#ways div.path")
    assert len(ways) == len(said["paths"]) > 0
    for text, way in zip(ways, said["paths"], strict=True):
        assert ("real: " in text) == bool(way["runs"])
        walked = (
            f"{one} \N{RIGHTWARDS ARROW}" if i % 2 else one for i, one in enumerate(way["path"])
        )
        assert text.endswith("".join(walked))
    dashed = sum(len(way["path"][::2]) - way["seen"] for way in said["paths"])
    assert len(texts(shown, "#ways .unseen")) == dashed
    part = said["critical"]
    assert f"{len(part['states'])} states (the smallest) reach the goal with" in (
        " ".join(texts(shown, "#ways .lead"))
    )
    assert ", ".join(part["states"]) in texts(shown, "#ways p.path")


def test_the_process_of_a_refinement_adds_up(opened: Look, made: Made) -> None:
    shown = opened("refine")
    rows = cells(shown, "process")
    assert sum(int(times) for _, _, times, *_ in rows) == sum(
        flow["times"] for flow in made.refine["flows"]
    )
    names = texts(shown, "#process svg text.strong")
    assert set(names) == set(made.refine["leaves"])
    policy = {state: action for state, action, *_ in rows if action.endswith(" policy")}
    for state, action in policy.items():
        assert made.refine["leaves"][state]["action"] == action.removesuffix(" policy")


def test_answers_are_those_of_check(opened: Look, made: Made) -> None:
    shown = opened("check")
    for number, said in enumerate(made.check["queries"], 1):
        rows = cells(shown, f"answer{number}")
        place = 4 if said["query"] == BOUND else 3
        assert {row[place] for row in rows} == set(said["values"])
        for row in rows:
            key = row[place]
            figures = [f"{said[kind][key]:.6g}" for kind in ("values", "lower", "upper")]
            assert row[:3] == figures
    bound, bounded = made.check["queries"]
    assert len(texts(shown, "#ways1 div.path")) == len(bound["paths"]) > 0
    assert f"{bound['critical']['probability']:.4g}" in " ".join(texts(shown, "#ways1 .lead"))
    assert "paths" not in bounded and "no one policy" in " ".join(texts(shown, "#ways2 .none"))


def test_every_step_of_an_anomalous_run_is_drawn(opened: Look, made: Made) -> None:
    shown, said = opened("anomalies"), made.anomalies
    odd = [run for run in said["runs"] if run["anomalous"]]
    assert any("run=3-7" in run["recording"] for run in odd)
    crosses = drawn(shown, "runs-plot", "anomalous runs")
    assert crosses["y"] == pytest.approx([run["value"] for run in odd], abs=1e-6)
    dots = drawn(shown, "runs-plot", "runs")
    assert len(dots["x"]) + len(crosses["x"]) == len(said["runs"])
    shown.evaluate("document.querySelectorAll('details').forEach(e => {e.open = true})")
    shown.wait("[...document.querySelectorAll('#steps .plot')].every(e => e.data)")
    shown.settle()
    for number, run in enumerate(odd):
        steps = sorted(run["steps"], key=lambda step: step["time"])
        assert len(steps) == run["transitions"]
        found = drawn(shown, f"steps{number}", "surprise")
        assert found["x"] == [step["time"] for step in steps]
        assert found["y"] == pytest.approx([step["surprise"] for step in steps], abs=1e-6)
        found = drawn(shown, f"steps{number}", "p")
        assert found["y"] == pytest.approx([step["p"] for step in steps], rel=1e-5)
        assert drawn(shown, f"steps{number}", "limit")["y"][0] == pytest.approx(
            run["limit"], abs=1e-6
        )
        table = cells(shown, "steps", number)
        assert [row[4] for row in table] == [f"{step['surprise']:.2f}" for step in run["steps"]]
        assert all(next(iter(step["expected"])) in row[6]
                   for row, step in zip(table, run["steps"], strict=True))  # fmt: skip


def test_the_report_of_a_replay_holds_all_of_it(look: Look, made: Made) -> None:
    shown = look(made.page("whole"))
    assert shown.console == [] and shown.evaluate("document.body.dataset.problems") == ""
    titles = texts(shown, "nav a")
    assert [one for one in titles if one in WHOLE] == list(WHOLE)
    assert len(cells(shown, "rounds")) == len(made.refine["rounds"])
    assert len(texts(shown, "#ways div.path")) == len(made.refine["paths"])
    odd = [run for run in made.anomalies["runs"] if run["anomalous"]]
    assert drawn(shown, "runs-plot", "anomalous runs")["y"] == pytest.approx(
        [run["value"] for run in odd], abs=1e-6
    )
    # The tree is that of the monitor file, with what the model counts in its leaves.
    model = json.loads((made.folder / "model.json").read_text())
    told = dict(zip(texts(shown, ".leaf b"), texts(shown, ".leaf .remark"), strict=True))
    counted = dict.fromkeys(told, 0)
    for step in model["actions"]:
        counted[step["state"].partition(":")[0]] += sum(step["counts"])
    assert {name: text.split(" moments")[0] for name, text in told.items()} == {
        name: f"{number:,}" for name, number in counted.items()
    }
    assert sum(int(row[2].replace(",", "")) for row in cells(shown, "process")) == sum(
        counted.values()
    )


def test_what_recordings_say_is_text_and_no_markup(opened: Look) -> None:
    shown = opened("anomalies")
    assert HOSTILE in " ".join(cells(shown, "steps")[0])
    assert not texts(shown, "td script")
