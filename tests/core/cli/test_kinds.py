"""Conditions that are neither true nor false are errors of the monitor file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

SCAN = "{topic: /scan, type: sensor_msgs/msg/LaserScan, value: ranges}"


def test_validate_says_so_with_file_and_key(
    forewarn: Callable[..., Any], corridor_run: Any, tmp_path: Path
) -> None:
    text = corridor_run.config.read_text()
    path = tmp_path / "monitor.yaml"
    path.write_text(
        text.replace("fast: speed > 0.3", "fast: speed > 'a lot'\n  wide: ranges < 3")
        .replace("  bumper:", f"  ranges: {SCAN}\n  bumper:")
        .replace("always(not contact)", "always(not contact and ranges < 2)")
    )
    result = forewarn("validate", path, "--bag", corridor_run.held_out)
    assert result.code == 2
    for key, told in (
        ("predicates.fast", "a number compared with text"),
        ("predicates.wide", "an array of numbers is neither true nor false"),
        ("properties.no_contact.formula", "an array of numbers is neither true nor false"),
    ):
        assert f"{path}: {key}: " in result.out
        (line,) = [one_line for one_line in result.out.splitlines() if f"{key}:" in one_line]
        assert told in line
    assert "accepted: any(...) or all(...) of it" in result.out
