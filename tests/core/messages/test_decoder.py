"""Which interpreter runs: the compiled one where it could be built, else the one in Python."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from shutil import which

import pytest

from forewarn.messages import decoder

PRINT = "from forewarn.messages.decoder import COMPILED; print(COMPILED is None)"


def loaded(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PRINT],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.skipif(
    which("cc") is None or not (Path(sysconfig.get_path("include")) / "Python.h").exists(),
    reason="no C compiler, or no headers of Python",
)
def test_the_extension_is_built_where_it_can_be() -> None:
    assert decoder.COMPILED is not None, "run `make setup`"
    assert loaded(FOREWARN_PURE_PYTHON="") == "False"


def test_python_alone_on_request() -> None:
    assert loaded(FOREWARN_PURE_PYTHON="1") == "True"


def test_a_module_of_another_format_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if decoder.COMPILED is None:
        pytest.skip("the extension module is not built")
    monkeypatch.setattr(decoder, "FORMAT", decoder.FORMAT + 1)
    assert decoder._load() is None
