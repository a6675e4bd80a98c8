"""Fixtures of the tests over real ROS 2 topics."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from live_ros import domain, probe, prompt_fast_dds, start, world

__all__ = ["domain", "probe", "prompt_fast_dds", "start", "world"]
