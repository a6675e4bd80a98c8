"""A small world for studies: somebody leans and falls, and the recordings of that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

HAND: dict[str, Any] = {
    "version": 1,
    "rate": 10,
    "signals": {name: {"timeout": 0.5} for name in ("lean", "noise", "crashed")},
    "predicates": {"leans": "lean > 0.3"},
    "terminal": {"over": "crashed > 0"},
    "properties": {
        "stands": {"formula": "always(not over)", "horizon": 0.5, "out_of_model": "ignore"}
    },
    "bounds": {"kind": "none"},
}


def write_monitor(path: Path) -> Path:
    """Write the monitor file by hand."""
    path.write_text(yaml.safe_dump(HAND, sort_keys=False), encoding="utf-8")
    return path


def write_run(path: Path, seed: int) -> Path:
    """Write a run that falls when `lean` has been above 0.6 for a while, or never."""
    rng = np.random.default_rng(seed)
    lean, lines = rng.uniform(0.0, 0.4), []
    for tick in range(60):
        lean = min(lean + rng.uniform(-0.05, 0.08 if seed % 2 else 0.04), 1.0)
        values = {"lean": lean, "noise": rng.normal(), "crashed": float(lean > 0.8)}
        lines.append(json.dumps({"t": tick / 10, **values}))
        if lean > 0.8:
            break
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
