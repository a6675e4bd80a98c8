"""The notebook prints what it shows, without a notebook."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "howto" / "guard.ipynb"


def test_every_cell_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    cells = [c for c in json.loads(NOTEBOOK.read_text())["cells"] if c["cell_type"] == "code"]
    assert len(cells) == 4
    for cell in cells:
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
        shown = "".join(line for output in cell["outputs"] for line in output["text"])
        assert printed.getvalue() == shown
