"""Ctrl-C at the worst of moments: while a command, or a process that works for it, imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MAIN = "import sys; from forewarn.cli import main; sys.exit(main())"

# Sends SIGINT to those processes in the midst of importing that module.
INTERRUPTED_IMPORT = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r} and {condition}:
            sys.meta_path.remove(self)
            for process in {processes}:
                os.kill(process, signal.SIGINT)

sys.meta_path.insert(0, Finder())
"""


def run(tmp_path: Path, *arguments: object, **where: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose processes all begin with the interruption."""
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_IMPORT.format(**where))
    inherited = os.environ.get("PYTHONPATH")
    return subprocess.run(
        [sys.executable, "-c", MAIN, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(tmp_path), inherited)))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("module", ["numpy", "numpy.linalg._linalg", "forewarn.config"])
def test_imports_are_interrupted_in_one_word(tmp_path: Path, module: str) -> None:
    done = run(
        tmp_path, "explain", "always(a)", module=module, condition="True", processes="[os.getpid()]"
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_processes_that_learn_say_nothing(tmp_path: Path, corridor_run: Any) -> None:
    # Both are told, as from a terminal, while the child is importing what it needs.
    done = run(
        tmp_path,
        *("learn", *corridor_run.recordings[:2], "-c", corridor_run.config),
        *("-o", tmp_path / "model.json", "-j", 2),
        module="forewarn.learning",
        condition="'--multiprocessing-fork' in sys.orig_argv",
        processes="[os.getppid(), os.getpid()]",
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    assert not (tmp_path / "model.json").exists()
