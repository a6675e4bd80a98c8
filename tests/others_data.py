"""Where recordings and models of others are: `FOREWARN_DATA` names the folder."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(
    os.environ.get("FOREWARN_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)
