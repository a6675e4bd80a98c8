"""Notebooks print what they show, without a notebook."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.ipynb"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_cell_prints_what_it_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    document = json.loads((DOCS / name).read_text(encoding="utf-8"))
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert any(cell["outputs"] for cell in cells)
    for cell in cells:
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile("".join(cell["source"]), name, "exec"), names)
        shown = "".join(line for output in cell["outputs"] for line in output["text"])
        assert printed.getvalue() == shown
