"""Fixtures of the tests of actuators: stand-in interfaces and planners, over real ROS 2 topics."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from acting import live
from live_ros import domain, probe, start, world
from planners import installed, interfaces

__all__ = ["domain", "installed", "interfaces", "live", "probe", "start", "world"]
