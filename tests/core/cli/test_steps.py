"""Each command on traces of steps: nothing is in seconds, runs are episodes, actions count."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from forewarn.cli.main import main
from forewarn.models.file import load_model

SPEC = """\
version: 1
clock: steps
signals:
  errors: {}
  done: {}
predicates:
  failing: errors >= 1
  stuck: errors >= 3
terminal:
  finished: done
properties:
  not_stuck: {formula: "always(not stuck)", horizon: 5, enter: 1, hold: 0,
    thresholds: {warn: 0.05, act: 0.1, release: 0.02}}
"""

GOOD, BAD = [0, 0, 1, 0, 0, 1, 0], [0, 1, 1, 2, 2, 3, 3]
CALLS = ("read", "write", "test")


def run_lines(name: str, errors: list[int]) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = [
        {"run": name, "errors": e, "done": False, "action": CALLS[i % 3]}
        for i, e in enumerate(errors)
    ]
    return [*lines, {"run": name, "errors": errors[-1], "done": True}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a monitor file and two traces, whose runs are interleaved."""
    (tmp_path / "monitor.yaml").write_text(SPEC)
    for part, count in (("learn", 12), ("test", 4)):
        runs = [run_lines(f"{part}-{i}", BAD if i % 4 == 0 else GOOD) for i in range(count)]
        mixed = [line for lines in zip(*runs, strict=True) for line in lines]
        (tmp_path / f"{part}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in mixed))
    return tmp_path


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out + said.err


@pytest.fixture
def model(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    path = folder / "model.json"
    code, said = call(
        capsys, "learn", folder / "learn.jsonl", "-c", folder / "monitor.yaml", "-o", path
    )
    assert code == 0, said
    assert "learn.jsonl::run=learn-0" in said
    assert "8 steps" in said and " s " not in said
    return path


def test_learn_takes_each_run_for_an_episode(model: Path) -> None:
    found = load_model(model)
    assert found.rate == "steps"
    assert int(found.starts.sum()) == 12
    assert len(found.provenance) == 12
    assert int(found.counts.sum()) == 12 * 7  # eight lines a run, and nothing from run to run
    assert {step.action for step, _ in found.steps} == set(CALLS)


def test_replay_foresees_in_steps(
    folder: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("replay", folder / "test.jsonl", "-c", folder / "monitor.yaml", "-m", model)
    code, said = call(capsys, *asked, "--verdicts", folder / "verdicts.jsonl")
    assert code == 1
    assert "5..5 steps" in said
    assert "32 steps watched" in said
    assert not [line for line in said.splitlines() if line.rstrip().endswith(" s")]
    lines = [json.loads(x) for x in (folder / "verdicts.jsonl").read_text().splitlines()]
    assert len([x for x in lines if "tick" in x]) == 4 * 8
    main([*map(str, asked), "--json", "-q"])
    document = json.loads(capsys.readouterr().out)
    assert [Path(r["path"]).name for r in document["recordings"]][1] == "test.jsonl::run=test-1"
    [lead] = [e["lead"] for e in document["recordings"][0]["events"] if e["event"] == "violation"]
    assert lead == int(lead) >= 1


def test_one_run_by_its_address(
    folder: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("-c", folder / "monitor.yaml", "-m", model)
    code, _ = call(capsys, "replay", f"{folder / 'test.jsonl'}::run=test-1", *asked)
    assert code in (0, 1)
    code, said = call(capsys, "replay", f"{folder / 'test.jsonl'}::run=nobody", *asked)
    assert code == 2
    assert "there is no run 'nobody'" in said and "test-0" in said


def test_runs_that_the_model_knows_are_told_although_steps_have_no_length(
    folder: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("-c", folder / "monitor.yaml", "-m", model)
    code, said = call(capsys, "replay", folder / "learn.jsonl", *asked)
    assert said.count("learned from this very recording") == 1
    assert "learn.jsonl::run=learn-0, and 11 more recordings like it: the model was" in said
    code, said = call(capsys, "replay", folder / "test.jsonl", *asked)
    assert "learned from this" not in said and "(not learned from)" in said
    code, said = call(
        capsys,
        "learn", folder / "learn.jsonl", "-c", folder / "monitor.yaml", "-o", folder / "two.json",
        "--calibrate", f"{folder / 'learn.jsonl'}::run=learn-3",
    )  # fmt: skip
    assert code == 2 and "this model was learned from this recording" in said


def test_tune(folder: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = call(
        capsys,
        "tune", folder / "test.jsonl", "-c", folder / "monitor.yaml", "-m", model,
        "--false-alarms-per-hour", 100, "--plot", folder / "tune.html",
    )  # fmt: skip
    assert code in (0, 1), said
    assert "4 runs" in said and "steps watched" in said and "in 3,600 steps" in said
    assert "an hour" not in said
    assert "in 3,600 steps" in (folder / "tune.html").read_text()


def test_report(folder: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = folder / "report.html"
    code, said = call(
        capsys,
        "report", folder / "test.jsonl", "-c", folder / "monitor.yaml", "-m", model, "-o", page,
    )  # fmt: skip
    assert code == 0, said
    text = page.read_text()
    assert '"unit":"steps"' in text
    assert "lead, steps" in text and "within 5 steps" in text
    assert "lead, s<" not in text and "within 5 s" not in text.replace("within 5 steps", "")


def test_validate_inspect_explain_check(
    folder: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = folder / "monitor.yaml"
    code, said = call(capsys, "validate", config, "-m", model, "--bag", folder / "test.jsonl")
    assert code == 0, said
    code, said = call(capsys, "inspect", model, "-c", config, "--why")
    assert code == 0, said
    assert "by steps" in said and "96 steps" in said and "Hz" not in said
    code, said = call(capsys, "explain", "-c", config)
    assert code == 0, said
    code, said = call(capsys, "explain", "always(a implies eventually[0:4](b))", "--rate", "steps")
    assert code == 0 and "4 steps" in said
    code, said = call(
        capsys, "explain", "always(a implies eventually[0:4 s](b))", "--rate", "steps"
    )
    assert code == 2 and "a bound of 4 s: the clock is steps" in said


def of_ticks(text: str) -> list[str]:
    """Return the lines of a text or page that speak of ticks; code and keys of JSON may."""
    text = re.sub(
        r"<script(?! type=.application/json).*?</script>|<style.*?</style>", "", text, flags=re.S
    )
    found = re.finditer(r".{0,40}\bticks?\b(?!\"\s*:).{0,40}", text)
    return [each[0] for each in found]


DANGER = """\
learned_score:
  soon: {for: not_stuck, from: [errors]}
"""


def test_every_command_counts_steps_and_no_ticks(
    folder: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, tests = folder / "monitor.yaml", folder / "test.jsonl"
    asked = ("-c", config, "-m", model)
    scored = folder / "scored.yaml"
    scored.write_text(SPEC + DANGER)
    missing = folder / "missing.jsonl"
    lines = [json.loads(line) for line in tests.read_text().splitlines()]
    missing.write_text(
        "".join(json.dumps(x) + "\n" for x in [{**lines[0], "errors": "x"}, *lines[1:]])
    )
    told = [
        call(capsys, "learn", folder / "learn.jsonl", "-c", scored, "-o", folder / "scored.json",
             "--calibrate", tests, "--assess"),
        call(capsys, "replay", missing, *asked),
        call(capsys, "report", tests, "-c", scored, "-m", folder / "scored.json",
             "-o", folder / "report.html"),
        call(capsys, "inspect", folder / "scored.json", "-c", scored),
        call(capsys, "explain", "-c", config),
        call(capsys, "explain", "always(a implies prev(b since next(a)))", "--rate", "steps"),
        call(capsys, "tune", tests, *asked, "--plot", folder / "tune.html",
             "--false-alarms-per-hour", 100),
        call(capsys, "compare", config, folder / "learn.jsonl", "--folds", 3),
        call(capsys, "validate", config, "-m", model, "--bag", missing),
        call(capsys, "export", model, "--format", "prism", "-o", folder / "chain.prism"),
        call(capsys, "export", model, "--format", "jani", "-o", folder / "chain.jani"),
    ]  # fmt: skip
    assert not [said for code, said in told if code == 2]
    assert "(1 step)" in told[1][1]
    assert "one step is one step of the monitor" in (folder / "chain.prism").read_text()
    pages = [
        path.read_text() for path in folder.iterdir() if path.suffix in (".html", ".prism", ".jani")
    ]
    assert len(pages) == 4
    for text in [said for _, said in told] + pages:
        assert not of_ticks(text)
    assert "steps judged" in (folder / "report.html").read_text()


def test_init_drafts_a_file_of_steps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, draft = folder / "learn.jsonl", folder / "draft.yaml"
    code, said = call(capsys, "init", trace, "-o", draft, "--rate", "10")
    assert code == 2
    assert "no time (key t)" in said and "steps" in said
    code, said = call(capsys, "init", trace, "-o", draft)
    assert code == 0, said
    text = draft.read_text()
    assert "clock: steps" in text and "rate:" not in text.replace("--rate", "")
    assert "  run:" not in text and "  action:" not in text
    code, said = call(capsys, "validate", draft)
    assert code == 0, said


def test_ticks_refuse_lines_without_times(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = folder / "monitor.yaml"
    config.write_text(SPEC.replace("clock: steps", "rate: 1"))
    code, said = call(
        capsys, "learn", folder / "learn.jsonl", "-c", config, "-o", folder / "m.json"
    )
    assert code == 2
    assert "learn.jsonl" in said and "no time (key t)" in said and "clock: steps" in said


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"errors": 1, "done": false}', "1 lines do not say by 'run'"),
        ('{"run": [1], "errors": 1, "done": false}', "run: [1] is no name of a run"),
        ('{"run": "a", "t": 3, "errors": 1}', "has a time, and lines before it have none"),
    ],
)
def test_a_line_that_does_not_fit(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, expected: str
) -> None:
    trace = folder / "learn.jsonl"
    trace.write_text(trace.read_text() + line + "\n")
    code, said = call(
        capsys, "learn", trace, "-c", folder / "monitor.yaml", "-o", folder / "m.json"
    )
    assert code == 2
    assert expected in said


def test_the_howto_shows_a_file_that_is_valid(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (repository / "docs" / "howto" / "steps.md").read_text(encoding="utf-8")
    path = tmp_path / "monitor.yaml"
    path.write_text(text.split("```yaml\n")[1].split("```")[0])
    code, said = call(capsys, "validate", path)
    assert code == 0, said


def test_the_howto_can_be_followed_as_it_is_written(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    text = (repository / "docs" / "howto" / "steps.md").read_text(encoding="utf-8")

    def blocks(language: str) -> list[str]:
        return [part.split("```")[0] for part in text.split(f"```{language}\n")[1:]]

    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python")[0], "runs.py", "exec"), {})
    Path("monitor.yaml").write_text(blocks("yaml")[0])
    model = ("-c", "monitor.yaml", "-m", "model.json")
    (learned, replayed), (told,) = blocks("text")[:2], [t for t in blocks("text") if "drift" in t]
    for words, shown in (
        (("learn", "past.jsonl", "-c", "monitor.yaml", "-o", "model.json"), learned),
        (("replay", "today.jsonl", *model), replayed),
        (("anomalies", "today.jsonl", *model, "--calibrate", "normal.jsonl",
          "--save", "anomalies.json"), told),
    ):  # fmt: skip
        _, said = call(capsys, *words)
        lines = "".join(f"{line.rstrip()}\n" for line in said.splitlines())
        for part in shown.split("...\n"):
            assert part in lines
    watched = next(block for block in blocks("yaml") if block.startswith("anomaly:"))
    Path("live.yaml").write_text(blocks("yaml")[0] + watched)
    run = ("today.jsonl::run=today-3", "-c", "live.yaml", "-m", "model.json")
    main(["replay", *run, "--verdicts", "-", "-q"])
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    (row,) = (row["anomaly"] for row in rows if row["tick"] == 3)
    shown = json.loads(next(block for block in blocks("json") if '"ANOMALOUS"' in block))
    assert {name: row[name] for name in ("verdict", "since", "p_value", "normal_runs")} == {
        name: shown[name] for name in ("verdict", "since", "p_value", "normal_runs")
    }
    assert round(row["value"], 3) == shown["value"] and round(row["limit"], 3) == shown["limit"]
    assert row["step"]["expected"] == shown["step"]["expected"]
