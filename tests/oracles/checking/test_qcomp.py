"""The published values of the QComp benchmarks are reproduced, or refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extent import WHOLE
from others_data import DATA
from scipy import sparse

from forewarn.checking.reachability import reach
from forewarn.models.process import DecisionProcess
from forewarn.wings.decisions.mdp import optimal

FOLDER = DATA / "qcomp"


def entries() -> list[Any]:
    manifest = FOLDER / "manifest.json"
    if not FOLDER.is_dir():
        skip = pytest.mark.skip(reason=f"{FOLDER} is absent: benchmarks of others do not ship")
        return [pytest.param({}, marks=skip, id="qcomp")]
    listed = json.loads(manifest.read_text()) if manifest.is_file() else []
    if not listed:
        return [pytest.param({"nothing": manifest}, id="qcomp")]
    return [
        pytest.param(entry, id=Path(entry["file"]).stem) for entry in listed[:: 1 if WHOLE else 6]
    ]


def published(entry: dict[str, Any]) -> float:
    if entry.get("num") is None:
        return float(entry["value"])
    return int(entry["num"]) / int(entry["den"])


@pytest.mark.parametrize("entry", entries())
def test_the_published_value_is_reproduced(entry: dict[str, Any]) -> None:
    assert "nothing" not in entry, f"{entry['nothing']} lists no model"
    loaded = np.load(FOLDER / entry["file"], allow_pickle=False)
    matrix = sparse.csr_matrix(
        (loaded["data"], loaded["indices"], loaded["indptr"]), shape=tuple(loaded["shape"])
    )
    phi, psi = loaded["phi"].astype(bool), loaded["psi"].astype(bool)
    start = int(np.atleast_1d(loaded["init"])[0])
    if entry["kind"] == "dtmc":
        values, _ = reach(matrix, psi, phi)
    else:
        assert entry.get("opt") in ("maximize", "minimize"), (
            f"{entry['file']}: opt is {entry.get('opt')!r}"
        )
        process = DecisionProcess(matrix, loaded["groups"].astype(np.int64))
        values = optimal(process, psi, phi, maximise=entry["opt"] == "maximize").values
    assert values[start] == pytest.approx(published(entry), rel=1e-9, abs=1e-15)
