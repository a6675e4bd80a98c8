"""The step of a monitor stands alone: what it loads is small, and no part of a wing."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

PROGRAM = """
import json, sys
import {module}
found = {{}}
for name, module in sys.modules.items():
    file = getattr(module, "__file__", None) or ""
    if name.split(".")[0] == "forewarn" and file.endswith(".py"):
        found[name] = sum(1 for _ in open(file, encoding="utf-8"))
print(json.dumps({{"ours": found, "all": [*sys.modules]}}))
"""
SOLVERS = ("scipy.sparse.linalg", "scipy.optimize", "scipy.stats", "stormpy", "sklearn")
WINGS = (
    "forewarn.wings",
    "forewarn.recordings",
    "forewarn.learning",
)


def loaded(module: str) -> dict[str, Any]:
    command = [sys.executable, "-c", PROGRAM.format(module=module)]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))


def test_the_step_loads_little_of_ours_and_no_wing() -> None:
    found = loaded("forewarn.monitoring.step")
    assert "forewarn.monitoring.policy" in found["ours"], "the step was loaded"
    assert len(found["ours"]) <= 60
    assert sum(found["ours"].values()) <= 12_000
    assert not [name for name in found["all"] if name.startswith(WINGS + SOLVERS)]
