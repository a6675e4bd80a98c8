"""Fixtures of the tests over real ROS 2 topics."""

from __future__ import annotations

from live_ros import by_steps, domain, probe, start, world

__all__ = ["by_steps", "domain", "probe", "start", "world"]
