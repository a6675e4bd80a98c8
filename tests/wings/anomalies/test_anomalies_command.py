"""``forewarn anomalies``: normal runs and strange ones, by steps and by ticks."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from forewarn.cli.main import main
from forewarn.wings.anomalies.calibration import RULES

SPEC = """\
version: 1
clock: steps
signals: {errors: {}, done: {}}
predicates: {failing: errors >= 1, stuck: errors >= 3}
terminal: {finished: done}
properties:
  not_stuck: {formula: "always(not stuck)", horizon: 5, enter: 1, hold: 0,
    thresholds: {warn: 0.05, act: 0.1, release: 0.02}}
"""
TREE = """\
states:
  kind: tree
  variables: [errors]
  tree: {if: errors > 1, then: many, else: few}
"""


def normal(chance: random.Random, name: str) -> list[dict[str, object]]:
    """It tests or reads, and mends what fails."""
    errors, lines = 0, []
    for _ in range(chance.randint(6, 14)):
        mends = errors and chance.random() < 0.9
        action = "fix" if mends else chance.choice(["read", "test"])
        lines.append({"run": name, "errors": errors, "done": False, "action": action})
        tested, failed = action == "test", chance.random() < 0.5
        errors = errors + 1 if tested and failed else max(0, errors - (action == "fix"))
    return [*lines, {"run": name, "errors": errors, "done": True}]


def write(path: Path, runs: Sequence[Sequence[dict[str, object]]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for run in runs for line in run))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("anomalies")
    chance = random.Random(1)
    (folder / "monitor.yaml").write_text(SPEC)
    (folder / "tree.yaml").write_text(SPEC + TREE)
    write(folder / "past.jsonl", [normal(chance, f"past-{i}") for i in range(80)])
    write(folder / "normal.jsonl", [normal(chance, f"normal-{i}") for i in range(59)])
    write(folder / "fresh.jsonl", [normal(chance, f"fresh-{i}") for i in range(60)])
    deletes, breaks = normal(chance, "deletes"), normal(chance, "breaks")
    deletes[2]["action"] = "delete"
    for line in breaks[4:]:
        line["errors"] = 4
    write(folder / "odd.jsonl", [deletes, breaks, normal(chance, "fine")])
    for kind in ("monitor", "tree"):
        config, model = folder / f"{kind}.yaml", folder / f"{kind}.json"
        past = str(folder / "past.jsonl")
        assert main(["learn", past, "-c", str(config), "-o", str(model), "-q"]) == 0
    return folder


def asked(folder: Path, which: str, kind: str = "monitor") -> list[Path | str]:
    files = [folder / f"{which}.jsonl", "-c", folder / f"{kind}.yaml"]
    return ["anomalies", *files, "-m", folder / f"{kind}.json"]


@pytest.mark.parametrize("kind", ["monitor", "tree"])
def test_the_strange_step_is_named_with_what_was_expected(forewarn, folder, kind):
    given = (*asked(folder, "odd", kind), "--calibrate", folder / "normal.jsonl")
    found = forewarn(*given, "--json")
    assert found.code == 1
    deletes, breaks, fine = json.loads(found.out)["runs"]
    assert deletes["anomalous"] and breaks["anomalous"] and not fine["anomalous"]
    assert deletes["p_value"] == pytest.approx(1 / 60)
    step = deletes["steps"][0]
    assert (step["time"], step["action"], step["part"]) == (2, "delete", "choice")
    assert deletes["since"] == 2 and deletes["likelihood"] == "-inf"
    assert set(step["expected"]) <= {"read", "test", "fix"} and step["p"] <= 1 / 60 + 1e-9
    assert breaks["steps"][0]["time"] == 3 and breaks["steps"][0]["part"] == "outcome"
    assert fine["since"] is None
    printed = forewarn(*given)
    assert "odd.jsonl::run=deletes: anomalous (p = 0.0167" in printed.out
    assert "choice: " in printed.out and "2 of 3 runs anomalous" in printed.out
    assert "drift" not in printed.out  # three runs are too few


@pytest.mark.parametrize("rule", RULES)
def test_fresh_runs_are_seldom_told_and_do_not_drift(forewarn, folder, rule):
    found = forewarn(
        *asked(folder, "fresh"), "--calibrate", folder / "normal.jsonl", "--test", rule, "--json",
        "--period", 4,
    )  # fmt: skip
    result = json.loads(found.out)
    assert result["anomalous"] <= 9 and len(result["runs"]) == 60 and result["period"] == 4
    assert result["drift"]["since"] is None
    assert found.code == int(result["anomalous"] > 0)


def test_what_is_surprising_is_chosen(forewarn, folder):
    for what, told in (("choice", [True, False]), ("outcome", [False, True])):
        found = forewarn(
            *asked(folder, "odd"), "--calibrate", folder / "normal.jsonl",
            "--statistic", what, "--json",
            "--alpha", "0.02",
        )  # fmt: skip
        parts = [run["steps"][0]["part"] for run in json.loads(found.out)["runs"]]
        assert parts == [what] * 3
        runs = json.loads(found.out)["runs"]
        assert runs[told.index(True)]["anomalous"]


def test_drift_is_told_at_the_end(forewarn, folder, tmp_path):
    chance = random.Random(5)
    runs = [normal(chance, f"r{i}") for i in range(24)]
    for run in runs[10:]:
        run[3]["action"] = "delete"
    trace = write(tmp_path / "month.jsonl", runs)
    found = forewarn(
        "anomalies", trace, *asked(folder, "odd")[2:], "--calibrate", folder / "normal.jsonl"
    )
    assert found.code == 1 and "drift: runs become more surprising, first seen at" in found.out


def test_a_calibration_is_kept_and_used_again(forewarn, folder, tmp_path):
    kept = tmp_path / "anomalies.json"
    odd = asked(folder, "odd")
    first = forewarn(
        *odd,
        "--calibrate",
        folder / "normal.jsonl",
        "--save",
        kept,
        "--statistic",
        "choice",
        "--json",
    )
    assert forewarn(*odd, "--calibration", kept, "--json").out == first.out
    strict = forewarn(*odd, "--calibration", kept, "--alpha", "0.001")
    assert strict.code == 2 and "999 or more" in strict.err
    other = forewarn(*odd, "--calibration", kept, "--statistic", "outcome")
    assert other.code == 2 and "was calibrated with choice, and not with outcome" in other.err
    tree = forewarn(*asked(folder, "odd", "tree"), "--calibration", kept)
    assert tree.code == 2 and str(kept) in tree.err and "another abstraction" in tree.err
    again = forewarn(*asked(folder, "normal"), "--calibration", kept)
    assert again.code == 2 and "was calibrated on" in again.err
    missing = forewarn(*odd, "--calibration", tmp_path / "none.json")
    assert missing.code == 2 and "none.json" in missing.err


def test_nothing_but_a_calibration_is_written_over(forewarn, folder, tmp_path):
    taken = tmp_path / "notes.json"
    taken.write_text("{}")
    given = (*asked(folder, "odd"), "--calibrate", folder / "normal.jsonl", "--save")
    found = forewarn(*given, taken)
    assert found.code == 2 and "is not written over" in found.err and taken.read_text() == "{}"
    free = tmp_path / "free.json"
    assert forewarn(*given, free).code == forewarn(*given, free).code == 1


def test_a_run_that_ends_too_early_is_told_where_ends_count(forewarn, folder, tmp_path):
    """With `recording_end: absorb` the end is an outcome; a crashed run has no end label."""
    config, model = tmp_path / "monitor.yaml", tmp_path / "model.json"
    config.write_text(SPEC + "learning: {recording_end: absorb}\n")
    forewarn("learn", folder / "past.jsonl", "-c", config, "-o", model)
    cut = write(tmp_path / "cut.jsonl", [normal(random.Random(9), "cut")[:3]])
    found = forewarn(
        "anomalies", cut, "-c", config, "-m", model, "--calibrate", folder / "normal.jsonl",
        "--json",
    )  # fmt: skip
    (run,) = json.loads(found.out)["runs"]
    assert run["anomalous"] and run["transitions"] == 3
    assert run["steps"][0]["following"] == "end" and run["steps"][0]["time"] == 2


def test_interventions_break_a_run(forewarn, folder, tmp_path):
    config, model = tmp_path / "monitor.yaml", tmp_path / "model.json"
    held = SPEC.replace("done: {}", "done: {}, held: {}") + "intervened_when: held\n"
    config.write_text(held)
    runs = [normal(random.Random(i), f"r{i}") for i in range(40)]
    for line in (line for run in runs for line in run):
        line["held"] = False
    trace = write(tmp_path / "past.jsonl", runs[:20])
    forewarn("learn", trace, "-c", config, "-o", model)
    for line in runs[39][2:4]:
        line["held"] = True
    found = forewarn(
        "anomalies", write(tmp_path / "one.jsonl", runs[39:]), "-c", config, "-m", model,
        "--calibrate", write(tmp_path / "normal.jsonl", runs[20:39]), "--json",
    )  # fmt: skip
    (run,) = json.loads(found.out)["runs"]
    assert run["transitions"] == len(runs[39]) - 1 - 3


def test_runs_that_the_model_was_learned_from_are_refused_to_calibrate_on(forewarn, folder):
    found = forewarn(*asked(folder, "odd"), "--calibrate", folder / "past.jsonl")
    assert found.code == 2 and "this model was learned from this recording" in found.err
    judged = forewarn(*asked(folder, "past"), "--calibrate", folder / "normal.jsonl")
    assert judged.err.count("the model was learned from it") == 80


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "required"),
        (("--calibrate", "NORMAL", "--alpha", "0.6"), "at most 0.5"),
        (("--calibrate", "NORMAL", "--alpha", "0.01"), "59 normal runs"),
        (("--calibrate", "NORMAL", "--test", "prefix", "--period", "200"), "no checkpoint"),
        (("--calibrate", "NORMAL", "COPY"), "the same data"),
        (("--calibrate", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_is_refused(forewarn, folder, tmp_path, arguments, said):
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes((folder / "normal.jsonl").read_bytes())
    files = {"NORMAL": folder / "normal.jsonl", "COPY": copy}
    named = [files.get(word, word) for word in arguments]
    found = forewarn(*asked(folder, "odd"), *named)
    assert found.code == 2 and said in found.err


def test_a_run_without_a_known_state_is_not_judged_and_said_so(forewarn, folder, tmp_path):
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"errors": null, "done": false}\n' * 3)
    found = forewarn(
        "anomalies", trace, *asked(folder, "odd")[2:], "--calibrate", folder / "normal.jsonl"
    )
    assert found.code == 0 and "not judged" in found.err and "0 of 0 runs" in found.out


def test_unknown_states_break_a_run(forewarn, folder, tmp_path):
    line = {"errors": 0, "done": False, "action": "read"}
    lines = [line, line, {**line, "errors": None}, {**line, "errors": 4}, {**line, "errors": 4}]
    trace = write(tmp_path / "gap.jsonl", [lines])
    found = forewarn(
        "anomalies", trace, *asked(folder, "odd")[2:], "--calibrate", folder / "normal.jsonl",
        "--json",
    )  # fmt: skip
    (run,) = json.loads(found.out)["runs"]
    assert run["transitions"] == 2  # nothing joins the step before the gap to the one after


def test_ticks_without_actions(forewarn, corridor_run, corridor_model, drive, record, tmp_path):
    (tmp_path / "normal").mkdir()
    for seed in range(40, 50):
        record(tmp_path / "normal" / f"run{seed}.mcap", drive(seed, 20.0))
    fresh = tmp_path / "fresh.mcap"
    record(fresh, drive(50, 20.0))
    found = forewarn(
        "anomalies", fresh, "-c", corridor_run.config, "-m", corridor_model, "--calibrate",
        tmp_path / "normal", "--alpha", "0.1", "--test", "checkpoints", "--period", "2.5", "--json",
    )  # fmt: skip
    result = json.loads(found.out)
    assert result["statistic"] == "outcome" and result["period"] == 25
    # Each episode is a run: a crash ends one.
    assert result["normal_runs"] == 15
    runs = result["runs"]
    run = runs[0]
    assert sum(one["transitions"] for one in runs) > 150 and run["steps"][0]["action"] is None
    assert 0 <= run["steps"][0]["time"] < 20
    choice = forewarn(
        "anomalies", fresh, "-c", corridor_run.config, "-m", corridor_model, "--calibrate",
        tmp_path / "normal", "--statistic", "choice",
    )  # fmt: skip
    assert choice.code == 2 and "counts no actions" in choice.err


@pytest.fixture(scope="module")
def live(folder: Path) -> Path:
    """Return the folder with monitor files that judge while they watch."""
    for rule in ("conformal", "prefix", "cusum", "checkpoints", "quantile"):
        given = [*map(str, asked(folder, "fresh")), "--calibrate", str(folder / "normal.jsonl")]
        given += ["--test", rule, "--period", "3", "--save", str(folder / f"{rule}.anomalies")]
        assert main([*given, "-q"]) in (0, 1)
        section = f"anomaly: {{file: {rule}.anomalies}}\n"
        (folder / f"{rule}.yaml").write_text(f"{SPEC}{section}model: monitor.json\n")
    return folder


@pytest.mark.parametrize("rule", ["conformal", "prefix", "cusum", "checkpoints"])
def test_replay_says_while_a_run_lasts_what_anomalies_says_when_it_is_over(forewarn, live, rule):
    asks = (*asked(live, "odd"), "--calibration", live / f"{rule}.anomalies", "--json")
    runs = json.loads(forewarn(*asks).out)["runs"]
    verdicts = live / "verdicts.jsonl"
    replayed = ("replay", live / "odd.jsonl", "-c", live / f"{rule}.yaml", "--verdicts", verdicts)
    assert forewarn(*replayed).code in (0, 1)
    lines = [json.loads(line) for line in verdicts.read_text().splitlines()]
    ends = [
        lines[i - 1]["anomaly"]
        for i in range(1, len(lines) + 1)
        if i == len(lines) or "recording" in lines[i]
    ]
    assert len(ends) == len(runs) == 3
    assert any(run["anomalous"] for run in runs)
    for run, row in zip(runs, ends, strict=True):
        assert row["transitions"] == run["transitions"] and row["test"] == rule
        assert (row["verdict"] == "ANOMALOUS") == run["anomalous"]
        for ours, theirs in (("value", "value"), ("limit", "limit"), ("p_value", "p_value")):
            assert row[ours] == run[theirs], ours
        worst = run["steps"][0]
        assert row["worst"]["surprise"] == worst["surprise"]
        assert row["worst"]["action"] == worst["action"]
        expected = zip(
            row["worst"]["expected"], row["worst"]["expected_probabilities"], strict=True
        )
        assert dict(expected) == worst["expected"]
        since = None if run["since"] is None else run["since"] + 1
        assert (None if row["since"] < 0 else row["since"]) == since


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("{file: nowhere.anomalies}", ["nowhere.anomalies", "cannot be read"]),
        ("{file: monitor.json}", ["monitor.json", "format", "accepted"]),
        ("{file: quantile.anomalies}", ["anomaly.test", "when it is over", "conformal, prefix"]),
        ("{file: conformal.anomalies, alpha: 0.001}", ["anomaly.alpha", "59", "accepted: 999"]),
    ],
)
def test_a_file_that_does_not_fit_is_refused(forewarn, live, section, words):
    config = live / "unfit.yaml"
    config.write_text(f"{SPEC}anomaly: {section}\nmodel: monitor.json\n")
    found = forewarn("replay", live / "odd.jsonl", "-c", config)
    assert found.code == 2
    assert all(word in found.err for word in words), found.err
    checked = forewarn("validate", config)
    assert checked.code != 0 and all(word in checked.err + checked.out for word in words)


def test_a_file_of_another_model_is_refused(forewarn, live):
    config = live / "tree-live.yaml"
    config.write_text(f"{SPEC}{TREE}anomaly: {{file: conformal.anomalies}}\nmodel: tree.json\n")
    found = forewarn("replay", live / "odd.jsonl", "-c", config)
    assert found.code == 2 and "conformal.anomalies: abstraction: was calibrated" in found.err
    bare = live / "bare.yaml"
    bare.write_text(f"{SPEC}anomaly: {{file: conformal.anomalies}}\n")
    found = forewarn("replay", live / "odd.jsonl", "-c", bare)
    assert found.code == 2 and "anomaly: surprise needs a model" in found.err
