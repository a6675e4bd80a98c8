"""Bounds of the risk that come later than the first verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from forewarn_msgs.msg import RiskDetails
from live_ros import Probe, Process, of
from small_world import MONITOR

from forewarn.cli import main

pytestmark = pytest.mark.ros
Start = Callable[..., Process]
SLOW = f"{MONITOR}bounds: {{samples: 10000}}\n"  # some ticks at the least


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Return a monitor file whose bounds take a while."""
    file = tmp_path / "slow.yaml"
    file.write_text(SLOW)
    return file


def test_ticks_begin_before_the_bounds_are_there_and_replay_to_the_same_bits(
    start: Start, probe: Probe, slow: Path, tmp_path: Path
) -> None:
    record = tmp_path / "record.mcap"
    process = start(config=str(slow), record=str(record), autostart=False)
    assert probe.change("configure")  # so that the probe is there before the bounds are
    assert probe.change("activate")
    probe.wait_for_status("model", "OK", "loaded; bounds are being computed")
    probe.wait(lambda: probe.text("model") == "loaded", "bounds")
    known = len(probe.risks)
    probe.wait(lambda: len(probe.risks) > known + 2, "ticks with bounds")
    assert probe.change("deactivate")
    assert process.stop() == 0
    kinds = [of(risk, "brake").details.bounds_kind for risk in probe.risks]
    assert (kinds[0], kinds[-1]) == (RiskDetails.BOUNDS_NONE, RiskDetails.BOUNDS_CREDIBLE)
    assert kinds == sorted(kinds)
    assert math.isnan(of(probe.risks[0], "brake").details.upper)
    assert main(["verify", str(record)]) == 0
    changed = bytearray(record.read_bytes())
    changed[len(changed) // 3] ^= 16
    record.write_bytes(changed)
    assert main(["verify", str(record)]) == 1


def test_nothing_is_compared_with_bounds_that_are_not_there(start: Start, probe: Probe) -> None:
    start(autostart=False)
    assert probe.change("configure")
    refused = probe.set(properties__brake__risk_measure="upper")  # bounds come with a tick
    assert not refused.successful
    assert "not computed yet" in refused.reason
    assert probe.change("activate")
    probe.wait(lambda: probe.risks and of(probe.risks[-1], "brake").details.bounds_kind, "bounds")
    assert probe.set(properties__brake__risk_measure="upper").successful


def test_a_figure_that_no_bounds_back_is_refused_or_told(
    start: Start, probe: Probe, tmp_path: Path
) -> None:
    file = tmp_path / "monitor.yaml"
    file.write_text(MONITOR + "bounds: {kind: none}\n")
    process = start(config=str(file), autostart=False)
    assert probe.change("configure")
    refused = probe.set(properties__brake__risk_measure="upper")
    assert not refused.successful
    assert "risk_measure: upper needs bounds" in refused.reason
    assert probe.set(properties__brake__act=0.5).successful
    assert probe.change("cleanup")
    text = MONITOR.replace("    enter: 1\n", "    enter: 1\n    risk_measure: upper\n")
    file.write_text(text + "bounds: {kind: none}\n")
    assert probe.change("configure")
    assert "brake: risk_measure upper without bounds: only violations" in process.output
    assert probe.set(properties__brake__act=0.6).successful


def test_bounds_come_first_where_a_parameter_depends_on_them(
    start: Start, probe: Probe, tmp_path: Path
) -> None:
    file = tmp_path / "monitor.yaml"
    file.write_text(f"{MONITOR}bounds: {{samples: 2000}}\n")
    start(config=str(file), **{"properties.brake.risk_measure": "upper"})
    probe.wait(lambda: probe.risks, "a tick")
    assert of(probe.risks[0], "brake").details.bounds_kind == RiskDetails.BOUNDS_CREDIBLE
