"""Every command on the corridor's recordings: what it prints, writes and returns."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from forewarn.cli.main import COMMANDS, build_parser, parser_of
from forewarn.config.file import load_spec
from forewarn.files.outputs import alone
from forewarn.learning.observing import wanted_types
from forewarn.logic.specification import compile_spec
from forewarn.models.file import load_model
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.session import Session, run
from forewarn.recordings.registry import open_recording

Run = Callable[..., Any]


def test_help_lists_every_command_and_the_exit_codes(forewarn: Run) -> None:
    result = forewarn("--help")
    assert result.code == 0
    for name, summary in COMMANDS.items():
        group, _, word = name.rpartition(" ")
        out = forewarn(group, "--help").out if group else result.out
        assert word in out
        assert summary in " ".join(out.split())
    assert "0 fine, 1 findings" in result.out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command_has_an_example_and_its_exit_codes(forewarn: Run, name: str) -> None:
    result = forewarn(*name.split(), "--help")
    assert result.code == 0
    assert f"forewarn {name} " in result.out.split("example", 1)[1]
    assert "exit codes: 0" in result.out


HEAVY = {
    "scipy", "shapely", "mcap", "lz4", "plotly", "sklearn", "multiprocessing", "rich.progress",
    "numpy.random",
}  # fmt: skip


@pytest.mark.parametrize(
    ("commands", "heavy"),
    [
        ([["--help"], ["--version"], ["validate", "--help"], ["validate", "config/nav2.yaml"]],
         HEAVY),
        ([[name, "--help"] for name in ("learn", "replay", "tune")],
         {"scipy.optimize", "scipy.stats", "plotly", "sklearn"}),
    ],
    ids=["usual", "some"],
)  # fmt: skip
def test_a_command_loads_only_what_it_needs(commands: list[list[str]], heavy: set[str]) -> None:
    code = (
        f"import sys; from forewarn.cli import main; [main(words) for words in {commands}]; "
        f"print('loaded:', *({heavy} & {{*sys.modules}}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.endswith("loaded:\n"), out.stdout


@pytest.mark.parametrize(
    "module",
    ["forewarn.messages._cdr", "forewarn.expressions.functions._encounters"],
)
def test_a_part_that_is_not_built_is_an_error_and_no_traceback(module: str) -> None:
    code = (
        f"import sys; sys.modules['{module}'] = None; from forewarn.cli import main; "
        "sys.exit(main(['validate', 'config/nav2.yaml']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == "", done.stderr
    assert re.fullmatch(
        r"forewarn: error: forewarn's .* is not built: install forewarn again \(.*\n", done.stderr
    )


def test_all_options_of_all_commands_explain_themselves() -> None:
    parser = build_parser()
    for name in COMMANDS:
        for action in parser_of(parser, name)._actions:
            assert action.help, f"{name} {action.option_strings or action.dest}"


@pytest.mark.parametrize(
    "arguments",
    [["lern"], ["learn"], ["replay", "x"], ["learn", "x", "-c", "y", "-o", "z", "-j", "-1"],
     ["init", "x", "-o", "y", "--rate", "0"], ["explain", "a", "--draw", "svg"],
     ["inspect", "m", "--top", "-3"]],
)  # fmt: skip
def test_wrong_usage_exits_with_2_and_says_how(forewarn: Run, arguments: list[str]) -> None:
    result = forewarn(*arguments)
    assert result.code == 2
    assert "usage: forewarn" in result.err


@pytest.mark.parametrize(("words", "says"), [([], "exit codes:"), (["plan"], "judge plans")])
def test_a_command_left_out_shows_which_there_are(
    forewarn: Run, words: list[str], says: str
) -> None:
    result = forewarn(*words)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("usage: forewarn") and says in result.out


def test_the_version_is_that_of_the_package(forewarn: Run) -> None:
    assert forewarn("--version").out == f"forewarn {version('forewarn')}\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [(["lern", "x"], "forewarn: error: no command 'lern': did you mean learn?"),
     (["plan", "chek"], "forewarn plan: error: no command 'chek': did you mean check?"),
     (["qqq"], "forewarn: error: no command 'qqq' (`forewarn -h` lists all)"),
     (["replay", "x", "-c", "y", "--repot", "z"],
      "forewarn replay: error: unknown argument '--repot': did you mean --report?")],
)  # fmt: skip
def test_a_mistyped_word_is_recognised(forewarn: Run, words: list[str], says: str) -> None:
    result = forewarn(*words)
    assert result.code == 2
    assert says in result.err


def test_a_part_is_as_good_as_a_recording_of_it(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    bag, part = corridor_run.held_out, tmp_path / "part.mcap"
    limits = ("--from", "10", "--to", "50.5")
    assert forewarn("convert", bag, "-o", part, *limits).code == 0
    models = []
    for number, words in enumerate([(part,), (bag, *limits), (f"{bag}::10..50.5",)]):
        models.append(tmp_path / f"{number}.json")
        code = forewarn("learn", *words, "-c", corridor_run.config, "-o", models[-1]).code
        assert code == 0
    first, *others = (load_model(path) for path in models)
    for other in others:
        assert other.states == first.states
        assert (other.counts != first.counts).nnz == 0
        assert other.provenance[0].recording == "held.mcap::10..50.5"
    whole = forewarn("replay", bag, "-c", corridor_run.config, "-m", models[0], "--exit-zero")
    words = (bag, *limits, "-c", corridor_run.config, "-m", models[0])
    result = forewarn("replay", *words, "--exit-zero")
    assert "40.5 s watched" in result.out and "40.5 s watched" not in whole.out
    page = tmp_path / "page.html"
    assert forewarn("report", *words, "-o", page).code == 0 and page.exists()


@pytest.mark.parametrize(
    ("limits", "says"),
    [(("--from", "x"), "argument --from: 'x' (accepted: seconds since the recording began"),
     (("--from", "1e9"), "'1e9' (accepted"),
     (("--from", "900"), "nothing was recorded then (accepted: a part of its"),
     (("--to", "2001-01-01T00:00:00Z"), "nothing was recorded then"),
     (("--from", "20", "--to", "10"), "nothing was recorded then")],
)  # fmt: skip
def test_a_part_that_is_none_says_what_is(
    forewarn: Run, corridor_run: Any, tmp_path: Path, limits: tuple[str, ...], says: str
) -> None:
    result = forewarn("convert", corridor_run.held_out, *limits, "-o", tmp_path / "part.mcap")
    assert result.code == 2
    assert says in result.err


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [("forewarn mer", "merge "), ("forewarn plan ch", "check "),
     ("forewarn replay x --cens", "--censoring "), ("forewarn replay x --censoring w", "weigh "),
     ("forewarn learn -c moni", "monitor.yaml ")],
)  # fmt: skip
def test_bash_completes(forewarn: Run, tmp_path: Path, line: str, offered: str) -> None:
    (tmp_path / "monitor.yaml").write_text("")
    script = tmp_path / "completion.bash"
    assert forewarn("completion", "bash", "-o", script).code == 0
    asked = 'source "$1"; COMP_LINE=$2; COMP_POINT=${#2}; COMP_TYPE=9; _python_argcomplete forewarn'
    done = subprocess.run(
        ["bash", "-c", f'{asked}; printf "%s" "${{COMPREPLY[@]}}"', "-", script, line],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.rstrip() == offered.rstrip(), done.stderr


@pytest.mark.parametrize(
    ("shell", "place"),
    [("/bin/bash", ".local/share/bash-completion/completions/forewarn"),
     ("/usr/bin/zsh", ".local/share/zsh/site-functions/_forewarn"),
     ("/usr/bin/fish", ".config/fish/completions/forewarn.fish")],
)  # fmt: skip
def test_completion_is_written_where_the_shell_looks(
    forewarn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str, place: str
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", shell)
    result = forewarn("completion")
    assert result.code == 0 and str(tmp_path / place) in result.out
    assert "forewarn" in (tmp_path / place).read_text()
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert (
        "the shell 'tcsh' is not known (accepted: bash or zsh or fish)"
        in forewarn("completion").err
    )


def test_init_writes_a_file_that_validates_learns_and_replays(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    path, bag = tmp_path / "new.yaml", corridor_run.recordings[0]
    result = forewarn("init", bag, "-o", path)
    assert result.code == 0
    assert "4 signals (speed, yaw_rate, nearest, bumper)" in result.out
    text = path.read_text()
    assert "# /odom nav_msgs/msg/Odometry, 1800 messages, usually every 0.04 s" in text
    assert forewarn("validate", path, "--bag", bag).code == 0
    model = tmp_path / "m.json"
    assert forewarn("learn", bag, "-c", path, "-o", model).code == 0
    assert load_model(model).size > 3, "thresholds from the data should split the states"
    assert forewarn("replay", corridor_run.held_out, "-c", path, "-m", model).code in (0, 1)


def test_init_does_not_overwrite(forewarn: Run, corridor_run: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("mine")
    result = forewarn("init", corridor_run.held_out, "-o", path)
    assert result.code == 2
    assert "--force" in result.err
    assert path.read_text() == "mine"
    assert forewarn("init", corridor_run.held_out, "-o", path, "--force").code == 0


def test_init_from_a_trace_of_named_values(forewarn: Run, tmp_path: Path) -> None:
    lines = [
        {"t": i / 10, "gap": 5 - i / 20, "mode": "auto" if i % 7 else "off"} for i in range(99)
    ]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = tmp_path / "new.yaml"
    result = forewarn("init", trace, "-o", path, "--json")
    assert result.code == 0
    found = json.loads(result.out)["signals"]
    assert found["gap"]["statistics"]["high"] == 5
    assert set(found["mode"]["statistics"]["texts"]) == {"auto", "off"}
    assert forewarn("validate", path, "--bag", trace).code == 0
    assert forewarn("learn", trace, "-c", path, "-o", tmp_path / "m.json").code == 0


@pytest.mark.parametrize("name", ["robot_localization_test2.bag", "rtamt4ros_example_bag.bag"])
def test_init_from_recordings_of_others(
    forewarn: Run, shared_data: Path, tmp_path: Path, name: str
) -> None:
    path, bag = tmp_path / "new.yaml", shared_data / "bags" / name
    assert forewarn("init", bag, "-o", path).code == 0
    assert forewarn("validate", path, "--bag", bag).code == 0
    assert forewarn("learn", bag, "-c", path, "-o", tmp_path / "m.json").code == 0


def test_learn_tells_what_it_counted(forewarn: Run, corridor_run: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    bags = corridor_run.recordings[0].parent
    result = forewarn("learn", bags, "-c", corridor_run.config, "-o", path, "--json")
    assert result.code == 0
    document = json.loads(result.out)
    model = load_model(path)
    assert document["states"] == model.size
    assert document["transitions"] == int(model.counts.sum())
    assert [r["recording"] for r in document["recordings"]] == [f"run{i}.mcap" for i in range(6)]
    assert sum(r["transitions"] for r in document["recordings"]) == document["transitions"]
    # The first tick comes before the first scan: nothing else is unknown.
    assert [r["unknown"] for r in document["recordings"]] == [1] * 6


def test_merged_models_equal_learning_from_all(
    forewarn: Run, corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    parts = [tmp_path / "a.json", tmp_path / "b.json"]
    halves = [corridor_run.recordings[:2], corridor_run.recordings[2:]]
    for part, half in zip(parts, halves, strict=True):
        assert forewarn("learn", *half, "-c", corridor_run.config, "-o", part).code == 0
    result = forewarn("merge", *parts, "-o", tmp_path / "all.json")
    assert result.code == 0
    assert "2 models, 6 recordings" in result.out
    assert (tmp_path / "all.json").read_bytes() == corridor_model.read_bytes()
    added = tmp_path / "added.json"
    arguments = [*halves[0], "-c", corridor_run.config, "-o", added, "--add-to", parts[1]]
    assert forewarn("learn", *arguments).code == 0
    assert load_model(added).counts.sum() == load_model(corridor_model).counts.sum()


def test_merging_a_recording_twice_is_refused(
    forewarn: Run, corridor_model: Path, tmp_path: Path
) -> None:
    result = forewarn("merge", corridor_model, corridor_model, "-o", tmp_path / "twice.json")
    assert result.code == 2
    told = " ".join(result.err.split())
    assert "6 recordings in several of the models: run0.mcap, run1.mcap, run2.mcap and 3" in told
    assert not (tmp_path / "twice.json").exists()


def test_adding_recordings_that_the_model_has_is_refused(
    forewarn: Run, corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    arguments = ["-c", corridor_run.config, "-o", tmp_path / "more.json"]
    given = ("learn", corridor_run.recordings[0], *arguments, "--add-to", corridor_model)
    result = forewarn(*given)
    assert result.code == 2
    assert "run0.mcap, which the model has already" in " ".join(result.err.split())
    assert not (tmp_path / "more.json").exists()


def test_two_who_add_to_one_model_at_once_do_not_lose_what_one_of_them_learned(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    first, second = corridor_run.recordings[:2]
    config, model = corridor_run.config, tmp_path / "model.json"
    assert forewarn("learn", first, "-c", config, "-o", model).code == 0
    given = ("learn", second, "-c", config, "-o", model, "--add-to", model)
    with alone(model):
        result = forewarn(*given)
    assert result.code == 2
    assert f"{model}: another process adds to it" in result.err.replace("\n", "")
    assert forewarn(*given).code == 0
    assert len(load_model(model).provenance) == 2


def test_models_that_share_recordings_are_refused_where_others_are_added(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    first, second, third = corridor_run.recordings[:3]
    config, one, both = corridor_run.config, tmp_path / "one.json", tmp_path / "both.json"
    assert forewarn("learn", first, "-c", config, "-o", one).code == 0
    added = forewarn("learn", second, "-c", config, "-o", both, "--add-to", one)
    assert added.code == 0 and "several of the models" not in added.err
    arguments = ("learn", third, "-c", config, "-o", tmp_path / "all.json", "--add-to", one)
    result = forewarn(*arguments, "--add-to", both)
    assert result.code == 2
    assert "1 recording in several of the models: run0.mcap" in result.err
    assert not (tmp_path / "all.json").exists()


def test_inspect_names_states_and_ranks_their_risk(
    forewarn: Run, corridor_run: Any, corridor_model: Path
) -> None:
    result = forewarn("inspect", corridor_model, "-c", corridor_run.config, "--json")
    assert result.code == 0
    document = json.loads(result.out)
    model = load_model(corridor_model)
    assert [s["visits"] for s in document["states"]] == sorted(model.visits.tolist(), reverse=True)
    monitor = build_monitor(compile_spec(load_spec(corridor_run.config)), model)
    contact = monitor.properties[1]
    assert contact.table is not None
    for item in document["riskiest"]["no_contact"]:
        row = model.vocabulary.parse_key(item["state"])
        values = contact.table.values[model.index[row]]
        assert item["risk"] in values.tolist()
    risks = [item["risk"] for item in document["riskiest"]["no_contact"]]
    assert risks == sorted(risks, reverse=True)
    assert "nearest<0.6" in document["riskiest"]["no_contact"][0]["name"]
    text = forewarn("inspect", corridor_model, "-c", corridor_run.config, "-n", "2").out
    assert "slow_down: the riskiest states" in text
    assert "the most visited states" in text


def test_replay_tells_alerts_violations_and_lead_times(
    forewarn: Run, corridor_run: Any, corridor_model: Path
) -> None:
    bag, config = corridor_run.held_out, corridor_run.config
    result = forewarn("replay", bag, "-c", config, "-m", corridor_model)
    assert result.code == 1
    assert "VIOLATION" in result.out
    assert "foreseen" in result.out
    document = json.loads(forewarn("replay", bag, "-c", config, "-m", corridor_model, "--json").out)
    events = document["recordings"][0]["events"]
    contacts = [e for e in events if e["event"] == "violation" and e["property"] == "no_contact"]
    found = document["properties"]["no_contact"]
    assert found["violations"] == len(contacts) > 2
    leads = [e["lead"] for e in contacts if e["lead"] is not None]
    assert found["detected"] == len(leads)
    assert found["lead"]["greatest"] == max(leads)
    for contact in contacts:
        if contact["lead"] is not None:
            assert contact["lead"] == pytest.approx((contact["tick"] - contact["alert_tick"]) / 10)
    assert forewarn("replay", bag, "-c", config, "-m", corridor_model, "--exit-zero").code == 0


def test_violations_are_found_without_a_model(forewarn: Run, corridor_run: Any) -> None:
    result = forewarn("replay", corridor_run.held_out, "-c", corridor_run.config, "--json")
    assert result.code == 1
    found = json.loads(result.out)["properties"]["no_contact"]
    assert found["violations"] > 2
    assert found["detected"] == 0
    assert found["calibration"] is None


def test_verdict_lines_hold_the_bits_of_the_monitor(
    forewarn: Run, corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "verdicts.jsonl"
    bag, config = corridor_run.held_out, corridor_run.config
    forewarn("replay", bag, "-c", config, "-m", corridor_model, "--verdicts", path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    monitor = build_monitor(compile_spec(load_spec(config)), load_model(corridor_model))
    with open_recording(bag) as recording:
        session = Session(monitor, wanted_types(monitor.spec, recording))
        samples = recording.read(monitor.spec.topics)
        verdicts = list(run(session, samples, recording.start_ns, recording.end_ns))
    assert len(lines) == len(verdicts)
    for line, verdict in zip(lines, verdicts, strict=True):
        assert (line["tick"], line["time_ns"]) == (verdict.tick, verdict.time_ns)
        for written, prop in zip(line["properties"], verdict.properties, strict=True):
            assert written["violation"] == prop.violation
            assert written["level"] == prop.level.name
            assert tuple(written["automaton"]) == prop.automaton
            for key in ("probability", "lower", "upper"):
                value = getattr(prop, key)
                if math.isnan(value):
                    assert written[key] is None
                else:
                    assert float(written[key]).hex() == float(value).hex()


def test_verdicts_to_stdout_are_nothing_but_json_lines(
    forewarn: Run, corridor_run: Any, corridor_model: Path
) -> None:
    result = forewarn(
        "replay", corridor_run.held_out, "-c", corridor_run.config, "-m", corridor_model,
        "--verdicts", "-",
    )  # fmt: skip
    assert len([json.loads(line) for line in result.out.splitlines()]) == 601


def test_several_recordings_are_scored_together(
    forewarn: Run, corridor_run: Any, corridor_model: Path
) -> None:
    config, (first, second, *_) = corridor_run.config, corridor_run.recordings

    def violations(*bags: Path) -> int:
        result = forewarn("replay", *bags, "-c", config, "-m", corridor_model, "--json")
        return int(json.loads(result.out)["properties"]["no_contact"]["violations"])

    assert violations(first, second) == violations(first) + violations(second)


def test_the_model_named_in_the_monitor_file_is_used(
    forewarn: Run, corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "monitor.yaml"
    path.write_text(corridor_run.config.read_text() + "model: kept.json\n")
    missing = forewarn("replay", corridor_run.held_out, "-c", path)
    assert missing.code == 2
    assert "kept.json does not exist" in missing.err
    (tmp_path / "kept.json").write_bytes(corridor_model.read_bytes())
    document = json.loads(forewarn("replay", corridor_run.held_out, "-c", path, "--json").out)
    assert document["properties"]["no_contact"]["detected"] > 0


def test_a_recording_that_the_model_has_seen_is_pointed_out(
    forewarn: Run, corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    renamed = tmp_path / "fresh.mcap"
    renamed.write_bytes(corridor_run.recordings[2].read_bytes())
    arguments = ["-c", corridor_run.config, "-m", corridor_model]
    assert "flatter" in forewarn("replay", renamed, *arguments).err
    assert "flatter" not in forewarn("replay", corridor_run.held_out, *arguments).err


def test_explain_says_what_is_monitored(forewarn: Run, corridor_run: Any) -> None:
    result = forewarn("explain", "always(near implies eventually[0:2](slow))")
    assert result.code == 0
    assert "within 2 s" in result.out
    assert "22 states" in result.out
    assert forewarn("explain", "always(not near)", "--draw", "dot").out.startswith("digraph")
    of_file = forewarn("explain", "-c", corridor_run.config, "--json")
    assert set(json.loads(of_file.out)) == {"slow_down", "no_contact"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["always(near implies eventualy[0:2](slow))"], ["column 21", "'eventually'"]),
        (["always(near"], ["never closed"]),
        ([], ["FORMULA or -c FILE"]),
    ],
)
def test_explain_refuses_what_is_no_formula(
    forewarn: Run, arguments: list[str], named: list[str]
) -> None:
    result = forewarn("explain", *arguments)
    assert result.code == 2
    for text in named:
        assert text in result.err


def test_validate_warns_of_what_foresees_nothing(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    path = tmp_path / "monitor.yaml"
    path.write_text(corridor_run.config.read_text().replace("horizon: 2.0", "horizon: 0.5"))
    result = forewarn("validate", path)
    assert result.code == 1
    assert "properties.slow_down.horizon" in result.out
    assert "take a longer horizon" in result.out


@pytest.mark.parametrize(
    ("formula", "warned"),
    [
        ("always(crash implies eventually[0:1](close))", True),
        ("always(close implies eventually[0:1](crash))", False),
        ("always(not crash)", False),
        ("always(crash implies close)", False),  # violated at once: only its own name is true
        ("always(once[0:1](crash) implies close)", False),
        ("always(rise(crash) implies next(close))", True),
    ],
)
def test_validate_warns_of_what_a_terminal_label_asks_for_later(
    forewarn: Run, tmp_path: Path, formula: str, warned: bool
) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(
        "rate: 10\nsignals: {d: {timeout: 1}}\npredicates: {close: d < 1}\n"
        "terminal: {crash: d < 0, home: d > 9}\n"
        f"properties: {{p: {{formula: '{formula}', horizon: 2}}}}\n"
    )
    result = forewarn("validate", path)
    assert result.code == int(warned)
    assert ("what crash asks for later cannot be violated" in result.out) == warned


def test_validate_tells_what_an_expression_costs_that_cannot_be_planned(
    forewarn: Run, tmp_path: Path
) -> None:
    path = tmp_path / "monitor.yaml"
    text = """version: 1
rate: 10
signals:
  sides: {topic: /objects, type: visualization_msgs/msg/MarkerArray, value: "VALUE"}
predicates:
  near: max(sides, default=0) > 1
properties:
  clear: {formula: always(not near)}
"""
    path.write_text(text.replace("VALUE", "[m.points[i].x for i, m in enumerate(markers)]"))
    result = forewarn("validate", path)
    assert result.code == 1
    assert "signals.sides.value" in result.out
    assert "element by element" in result.out
    assert "us for each element" in result.out
    path.write_text(text.replace("VALUE", "[m.points[0].x for m in markers]"))
    assert forewarn("validate", path).code == 0


def test_validate_warns_of_thresholds_on_a_bound_that_there_is_not(
    forewarn: Run, corridor_run: Any, tmp_path: Path
) -> None:
    path = tmp_path / "monitor.yaml"
    text = corridor_run.config.read_text().replace("enter: 1", "risk_measure: upper")
    path.write_text(text)
    assert forewarn("validate", path).code == 0
    path.write_text(text + "bounds: {kind: none}\n")
    result = forewarn("validate", path)
    assert result.code == 1
    assert "properties.no_contact.risk_measure" in result.out


def test_quiet_keeps_warnings_and_drops_remarks(forewarn: Run, corridor_run: Any) -> None:
    loud = forewarn("replay", corridor_run.held_out, "-c", corridor_run.config)
    quiet = forewarn("replay", corridor_run.held_out, "-c", corridor_run.config, "-q")
    assert "note: without a model" in loud.err
    assert "note:" not in quiet.err
    assert "warning: held.mcap" in quiet.err


def test_the_installed_command_and_the_module_are_the_same(corridor_run: Any) -> None:
    command = [sys.executable, "-m", "forewarn", "validate", str(corridor_run.config)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert "valid" in done.stdout
