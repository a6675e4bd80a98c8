"""A file, folder or number that is not what the command line takes: the error says what it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forewarn.cli import validate_model

Cli = Callable[..., Any]


@pytest.mark.parametrize("name", [".", "folder", "nowhere/file"])
@pytest.mark.parametrize("command", ["learn", "report", "replay", "tune", "merge"])
def test_an_output_that_cannot_be_written_is_told_before_the_work(
    forewarn: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    # Nothing else is there either: what is wrong with the output comes first.
    arguments = {
        "learn": ("bags", "-c", "c.yaml", "-o", name),
        "report": ("bags", "-c", "c.yaml", "-o", name),
        "replay": ("bags", "-c", "c.yaml", "--report", name),
        "tune": ("bags", "-c", "c.yaml", "--false-alarms-per-hour", "1", "--plot", name),
        "merge": ("model.json", "-o", name),
    }[command]
    result = forewarn(command, *arguments)
    assert result.code == 2
    problem = "there is no folder nowhere" if name == "nowhere/file" else "is a folder"
    assert f"forewarn {command}: error: {name}: {problem} (accepted: " in result.err


def test_a_folder_is_never_overwritten_by_force(
    forewarn: Cli, corridor_run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = forewarn("init", corridor_run.held_out, "-o", ".", "--force")
    assert result.code == 2
    assert ".: is a folder (accepted: the name of a file to write)" in result.err
    assert not list(tmp_path.iterdir())


def test_what_is_no_plain_file_is_refused_and_not_waited_for(
    forewarn: Cli, corridor_run: Any, edited: Callable[[str, str], Path], tmp_path: Path
) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    folder.mkdir()
    for item in (pipe, tmp_path / "run.mcap", tmp_path / "run.bag", folder / "metadata.yaml"):
        os.mkfifo(item)
    config = corridor_run.config
    including = edited("version: 1", "version: 1\ninclude: [pipe]")
    for path in (pipe, including):
        result = forewarn("validate", path)
        assert result.code == 2
        assert f"{pipe}: cannot be read: it is a named pipe, no plain file" in result.text
    for bag in (pipe, tmp_path / "run.mcap", tmp_path / "run.bag"):
        result = forewarn("replay", bag, "-c", config)
        assert result.code == 2
        assert "cannot be opened (it is a named pipe, no plain file)" in result.err
    result = forewarn("replay", folder, "-c", config)
    assert result.code == 2
    assert "holds no recording" in result.err
    result = forewarn("validate", "/dev/zero")
    assert "/dev/zero: cannot be read: it is a device, no plain file" in result.text


@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        (("explain", "always(a)", "--rate", "1e308"), "from 0.001 to 1000"),
        (("init", "BAG", "-o", "n.yaml", "--rate", "1e-320"), "from 0.001 to 1000"),
        (("init", "BAG", "-o", "n.yaml", "--seconds", "1e308"), "at most 1e+09"),
        (("init", "BAG", "-o", "n.yaml", "--seconds", "nan"), "at most 1e+09"),
        (("import", "place", "-o", "n.json", "--rate", "inf"), "from 0.001 to 1000"),
    ],
)
def test_a_number_beyond_all_use_is_refused(
    forewarn: Cli, arguments: tuple[str, ...], accepted: str
) -> None:
    result = forewarn(*arguments)
    assert result.code == 2
    assert accepted in result.err


def test_validate_says_that_a_horizon_takes_too_long(
    forewarn: Cli,
    edited: Callable[[str, str], Path],
    corridor_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = edited("horizon: 2.0", "horizon: 1.0e+5")
    monkeypatch.setattr(validate_model, "SOLVING", 0.0)
    result = forewarn("validate", long, "-m", corridor_model)
    assert result.code == 1
    assert "a horizon of up to 100000 s is not computed within 0 s" in result.text
    assert "(accepted: a shorter horizon" in result.text


def test_a_model_in_the_place_of_a_monitor_file(forewarn: Cli, corridor_model: Path) -> None:
    result = forewarn("validate", corridor_model)
    assert result.code == 2
    assert f"{corridor_model}: is a model file (accepted: a monitor file" in result.text


def test_folders_in_the_place_of_monitor_file_and_model(
    forewarn: Cli, corridor_run: Any, tmp_path: Path
) -> None:
    result = forewarn("replay", corridor_run.held_out, "-c", tmp_path)
    assert f"{tmp_path}: cannot be read: Is a directory (accepted: a YAML file)" in result.err
    result = forewarn("replay", corridor_run.held_out, "-c", corridor_run.config, "-m", tmp_path)
    assert f"{tmp_path}: cannot be read: Is a directory (accepted: a model file" in result.err


def test_models_that_cannot_be_merged_say_what_differs(
    forewarn: Cli, corridor_run: Any, corridor_model: Path, edited: Any, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    config = edited("fast: speed > 0.3", "quick: speed > 0.3")
    config.write_text(config.read_text().replace("not fast", "not quick"))
    assert forewarn("learn", corridor_run.held_out, "-c", config, "-o", other, "-q").code == 0
    result = forewarn("merge", corridor_model, other, "-o", tmp_path / "both.json")
    assert result.code == 2
    assert f"{other}: predicates: models of different predicates" in result.err
    assert "['fast'] and ['quick']" in result.err


@pytest.mark.parametrize(
    ("option", "value", "accepted"),
    [("-j", "two", "a whole number, 0 or more"), ("-j", "-1", "a whole number, 0 or more")],
)
def test_a_number_that_is_none(forewarn: Cli, option: str, value: str, accepted: str) -> None:
    result = forewarn("learn", "bags", "-c", "c.yaml", "-o", "m.json", f"{option}{value}")
    assert result.code == 2
    assert f"argument -j/--jobs: '{value}' (accepted: {accepted})" in result.err
