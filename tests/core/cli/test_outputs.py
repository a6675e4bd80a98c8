"""What each command writes with -o and the like: devices stay devices, links stay links."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forewarn.models.file import load_model
from forewarn.recordings.registry import open_recording

Cli = Callable[..., Any]
COMMANDS = [
    "init", "learn", "merge", "replay", "verdicts", "report", "tune", "convert", "export", "import",
]  # fmt: skip

BUDGET = ("--false-alarms-per-hour", 1e6, "--alert-share", 0.99)


@pytest.fixture
def writing(
    corridor_run: Any, corridor_model: Path, shared_data: Path
) -> Callable[[str, Path], tuple[object, ...]]:
    """Return a function from a command and what it is to write to all its arguments."""
    bag, config = corridor_run.held_out, ("-c", corridor_run.config)
    model = ("-m", corridor_model)
    chain = shared_data / "probguard" / "av" / "s1"

    def arguments(command: str, target: Path) -> tuple[object, ...]:
        return {
            "init": ("init", bag, "-o", target),
            "learn": ("learn", corridor_run.recordings[0], *config, "-o", target),
            "merge": ("merge", corridor_model, "-o", target),
            "replay": ("replay", bag, *config, *model, "--exit-zero", "--report", target),
            "verdicts": ("replay", bag, *config, *model, "--exit-zero", "--verdicts", target),
            "report": ("report", bag, *config, *model, "-o", target),
            "tune": (
                "tune", bag, *config, *model, *BUDGET, "--plot", target,
            ),
            "convert": ("convert", bag, "-o", target),
            "export": ("export", corridor_model, "-f", "prism", "-o", target),
            "import": ("import", chain, "-o", target),
        }[command]  # fmt: skip

    return arguments


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """Return a full disk of our own: a mistake must not cost the machine its device."""
    path = tmp_path / "full"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        path.open("wb").close()
    except PermissionError:
        pytest.skip("devices cannot be made here")
    return path


# Whole, line by line, and message by message: each way to write meets a link to a device once.
@pytest.mark.parametrize(
    ("command", "linked"),
    [*((one, False) for one in COMMANDS), ("learn", True), ("verdicts", True), ("convert", True)],
)
def test_a_full_device_is_an_error_and_stays_a_device(
    forewarn: Cli, writing: Any, full: Path, tmp_path: Path, command: str, linked: bool
) -> None:
    before = full.stat()
    target = full
    if linked:
        target = tmp_path / "link"
        target.symlink_to(full)
    result = forewarn(*writing(command, target))
    assert result.code == 2
    assert f"{target}: cannot be written" in result.err
    assert "No space left on device" in result.err
    after = full.stat()
    assert (after.st_rdev, after.st_ino, after.st_mode) == (
        before.st_rdev,
        before.st_ino,
        before.st_mode,
    )
    assert {path.name for path in tmp_path.iterdir()} == {"full", "link"} if linked else {"full"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_fifo_gets_what_a_file_gets(
    forewarn: Cli, writing: Any, tmp_path: Path, command: str
) -> None:
    fifo, plain = tmp_path / "fifo", tmp_path / "plain"
    os.mkfifo(fifo)
    found: list[bytes] = []
    # Opened for both, it is open before the command begins: nothing waits for anything.
    ready = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    thread = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
    thread.start()
    result = forewarn(*writing(command, fifo))
    os.close(ready)
    thread.join()
    assert result.code == 0, result.err
    assert forewarn(*writing(command, plain)).code == 0
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    if command in ("replay", "report", "tune"):  # a plot's names are random
        assert abs(len(found[0]) - plain.stat().st_size) < 1000
        assert found[0].rstrip().endswith((b"</html>", b"</svg>"))
    else:
        assert found[0] == plain.read_bytes()


@pytest.mark.parametrize(
    "command", [one_command for one_command in COMMANDS if one_command != "convert"]
)
def test_a_link_stays_and_its_file_is_replaced(
    forewarn: Cli, writing: Any, tmp_path: Path, command: str
) -> None:
    (tmp_path / "there").mkdir()
    file, link = tmp_path / "there" / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    arguments = writing(command, link)
    assert forewarn(*arguments, *(["--force"] if command == "init" else [])).code == 0
    assert link.is_symlink()
    assert len(file.read_bytes()) > 100
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [path.name for path in file.parent.iterdir()] == ["file"]


def test_tune_writes_into_a_linked_file_and_keeps_its_mode(
    forewarn: Cli, edited: Any, corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    file = edited("rate:", "rate:")
    file.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    before = file.read_text()
    result = forewarn(
        "tune", corridor_run.held_out, "-c", link, "-m", corridor_model,
        *BUDGET, "--write",
    )  # fmt: skip
    assert result.code == 0
    assert file.read_text() != before
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize("command", ["learn", "convert"])
def test_what_goes_to_stdout_is_not_mixed_with_words(
    writing: Any, tmp_path: Path, command: str
) -> None:
    arguments = [str(item) for item in writing(command, Path("/dev/stdout"))]
    for options in ([], ["--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "forewarn", *arguments, *options],
            capture_output=True,
            check=True,
        )
        path = tmp_path / f"copy{len(options)}.mcap"
        path.write_bytes(done.stdout)
        if command == "learn":
            assert load_model(path).size > 1
        else:
            with open_recording(path) as recording:
                assert recording.count > 100
                assert not recording.warnings
        assert b"states" in done.stderr or b"messages" in done.stderr


def test_verdicts_stay_as_they_were_if_the_replay_fails(
    forewarn: Cli, corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    path, damaged = tmp_path / "verdicts.jsonl", tmp_path / "damaged.mcap"
    path.write_text("old")
    damaged.write_bytes(b"no recording")
    result = forewarn(
        "replay", corridor_run.held_out, damaged, "-c", corridor_run.config, "-m", corridor_model,
        "--verdicts", path,
    )  # fmt: skip
    assert result.code == 2
    assert path.read_text() == "old"
