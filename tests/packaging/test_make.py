"""`make test` says how long it took, and passes on how it ended."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize(("arguments", "ends_well"), [("--version", True), ("--nonsense", False)])
def test_the_tests_say_how_long_they_took(
    repository: Path, arguments: str, ends_well: bool
) -> None:
    # -o: the set-up is as new as can be, for these tests run in it.
    command = ["make", "-o", "setup", "test", f"PYTEST_ARGS={arguments}"]
    # Under `make test` this make would think itself a part of that one, and say so.
    outer = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, env=environment)
    assert (done.returncode == 0) == ends_well
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"make test: \d+ min \d+ s, set-up included", last)
