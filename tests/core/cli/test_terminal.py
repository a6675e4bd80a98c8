"""What long commands show in a terminal of 80 columns, and what Ctrl-C leaves."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
from pathlib import Path
from typing import Any

import pytest
from learned_runs import SPEC, record

from forewarn.cli.main import main

MAIN = "import sys; from forewarn.cli import main; sys.exit(main())"
COLUMNS = 80
QUERY = ("--query", "Pmax(fire) <= 0.05")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "monitor.yaml").write_text(SPEC)
    record(tmp_path / "runs.jsonl", 0, 60)
    record(tmp_path / "normal.jsonl", 1, 30)
    words = ("learn", tmp_path / "runs.jsonl", "-c", tmp_path / "monitor.yaml", "-q")
    assert main([*map(str, words), "-o", str(tmp_path / "model.json")]) == 0
    return tmp_path


def shown(folder: Path, *words: object, stop: str = "", colour: bool = False) -> tuple[int, str]:
    """Run a command in a terminal; press Ctrl-C when it shows `stop`."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        # Who starts tests in the background may ignore it, and their children with them.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ.update({"TERM": "xterm-256color"} | ({} if colour else {"NO_COLOR": "1"}))
        os.execv(sys.executable, [sys.executable, "-c", MAIN, *map(str, words)])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    found = b""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # the command has ended
            part = b""
        if not part:
            break
        found += part
        if stop and stop.encode() in found:
            os.write(terminal, b"\x03")
            stop = ""
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, re.sub(rf"\x1b\[[0-9;?]*[A-Z{'' if colour else 'm'}a-ln-z]", "", found.decode())


@pytest.mark.parametrize(
    ("words", "bars"),
    [
        (("learn-states", "runs.jsonl", "-c", "monitor.yaml"),
         ("reading 60 recordings", "choosing the number of leaves", "growing the tree")),
        (("refine", "runs.jsonl", "-c", "monitor.yaml", *QUERY), ("refining: 2 leaves, 1 ",)),
        (("check", "model.json", QUERY[1]), ("checking Pmax(fire) <= 0.05",)),
        (("anomalies", "runs.jsonl", "-c", "monitor.yaml", "-m", "model.json",
          "--calibrate", "normal.jsonl"), ("reading 30 recordings", "reading 60 recordings")),
    ],
)  # fmt: skip
def test_bars_are_seen_and_fit(folder: Path, words: tuple[str, ...], bars: tuple[str, ...]) -> None:
    code, text = shown(folder, *words, "--report", "page.html")
    assert code in (0, 1), text
    for bar in bars:
        assert bar in text
    # What a bar draws is drawn over; lines that end are those that stay.
    frames = re.split(r"[\r\n]", text)
    assert max(len(frame) for frame in frames if "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in frame) <= 80
    assert (folder / "page.html").read_text().endswith("</html>\n")


def test_tables_fit_and_break_no_word(
    corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    words = ("-c", corridor_run.config, "-m", corridor_model)
    code, text = shown(tmp_path, "replay", corridor_run.held_out, *words)
    assert code in (0, 1), text
    lines = re.split(r"[\r\n]+", text)
    assert max(len(line) for line in lines if "\N{BOX DRAWINGS HEAVY HORIZONTAL}" not in line) <= 80
    # Too many columns for rows: figures stand below each other, with their names before them.
    for name in ("violations", "foreseen", "median lead", "false/h", "precision", "recall", "ECE"):
        assert any(line.startswith(f"{name}  ") for line in lines)
    plain, coloured = (
        shown(tmp_path, "replay", corridor_run.held_out, *words, colour=colour)[1]
        for colour in (False, True)
    )
    assert "VIOLATION" in plain and "\x1b[1;31mVIOLATION" not in plain
    assert "\x1b[1;31mVIOLATION" in coloured and "\x1b[33malert" in coloured


def test_the_only_property_needs_no_column(
    corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    config, name = tmp_path / "monitor.yaml", "slow_down_when_anything_is_near"
    text = corridor_run.config.read_text().replace("slow_down:", f"{name}:")
    config.write_text(re.sub(r"\n  no_contact:.*(\n   .*)*", "", text))
    words = ("-c", config, "-m", corridor_model)
    _, text = shown(tmp_path, "replay", corridor_run.held_out, *words)
    assert re.search(r" time +event", text), text


def test_ctrl_c_leaves_nothing_half(folder: Path) -> None:
    record(folder / "many.jsonl", 2, 3000)  # so that the command is still at work
    before = {path.name for path in folder.iterdir()}
    text = (folder / "monitor.yaml").read_text()
    words = ("--save", "refined.json", "--report", "page.html", "--write")
    code, said = shown(
        folder,
        "refine",
        "many.jsonl",
        "-c",
        "monitor.yaml",
        *QUERY,
        *words,
        stop="reading",
    )
    assert code == 130 and said.rstrip().endswith("interrupted"), said[-2000:]
    assert {path.name for path in folder.iterdir()} == before
    assert (folder / "monitor.yaml").read_text() == text
