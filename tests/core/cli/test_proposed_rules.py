"""The rules that ``forewarn init`` proposes: what the data say, and what can be foreseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import others_data
import pytest

from forewarn.cli.init.axes import mounting_of, proposals
from forewarn.cli.init.draft import _timeout
from forewarn.cli.init.rules import cruise_of
from forewarn.config.file import load_spec, parse_spec
from forewarn.config.includes import KINDS, RULES, with_fragments
from forewarn.config.yaml_text import load_document, parse_document
from forewarn.logic.specification import compile_spec
from forewarn.signals.clock_kinds import clock_of


@pytest.mark.parametrize("kind", KINDS)
def test_ten_rules_of_each_kind_can_be_included(kind: str) -> None:
    data = load_document(RULES / f"{kind}.yaml").data
    assert len(data["properties"]) == 10
    sources = {
        name: {"topic": "/all", "type": "std_msgs/msg/Float64", "value": "data"}
        for name, signal in data["signals"].items()
        if "value" not in signal
    }
    clock = "clock: steps" if kind == "agent" else "rate: 10"
    if kind == "agent":
        sources = {name: {} for name in sources}
    text = f"version: 1\n{clock}\ninclude: ['rules:{kind}']\nsignals: {json.dumps(sources)}\n"
    spec = parse_spec(with_fragments(parse_document(text)))
    assert list(spec.properties) == list(data["properties"])
    compile_spec(spec)


def test_unknown_rules_are_refused(forewarn: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("version: 1\nrate: 10\ninclude: ['rules:boat']\n")
    result = forewarn("validate", path)
    assert result.code == 2
    assert "no rules for 'boat' ship (accepted: rules:mobile_base, rules:arm" in result.out


def readings(force: np.ndarray, orientation: tuple[float, ...]) -> np.ndarray:
    rows = np.zeros((len(force), 8))
    rows[:, :3], rows[:, 3:7] = force, orientation
    return rows


@pytest.mark.parametrize(
    ("gravity", "axis"),
    [((0, 0, 9.8), "z"), ((0, 9.7, 0.5), "y"), ((-9.8, 0, 0), "-x"), ((0, 7, 7), "")],
)
def test_gravity_tells_which_axis_is_up(gravity: tuple[float, ...], axis: str) -> None:
    force = np.random.default_rng(3).normal(gravity, 0.3, (200, 3))
    mounting = mounting_of(readings(force, (0, 0, 0, 0)))
    assert mounting.gravity and not mounting.oriented
    assert mounting.axis == axis
    values = {each.name: each.value for each in proposals(mounting)}
    assert values["shock"] == "abs(norm(linear_acceleration) - 9.81)"
    if axis == "y":
        assert values["turn_rate"] == "angular_velocity.y"
        assert "acceleration" not in values, "which of the others is forward nobody knows"


def test_a_sensor_without_gravity_takes_none_off() -> None:
    force = np.random.default_rng(3).normal(0, 0.3, (200, 3))
    (shock,) = [
        p for p in proposals(mounting_of(readings(force, (0, 0, 0, 1)))) if p.name == "shock"
    ]
    assert shock.value == "norm(linear_acceleration)"


def test_the_highest_mode_is_the_cruise() -> None:
    rng = np.random.default_rng(3)
    speeds = np.concatenate(
        [np.zeros(300), rng.uniform(0, 0.985, 200), rng.normal(0.985, 0.004, 500)]
    )
    assert cruise_of(speeds) == pytest.approx(0.985, abs=0.02)
    assert cruise_of(np.zeros(100)) == 0


def test_bursts_do_not_make_a_signal_unknown() -> None:
    gaps = ([0.001] * 4 + [0.5]) * 50
    assert _timeout(gaps, clock_of(10.0)) == pytest.approx(1.5)
    assert _timeout([0.05] * 50, clock_of(10.0)) == pytest.approx(0.25)


def drive(seed: int) -> list[dict[str, Any]]:
    """A robot that cruises at 0.985 m/s, and now and then comes near to something."""
    rng = np.random.default_rng(seed)
    gap = np.full(1200, 4.0) + rng.normal(0, 0.1, 1200)
    for start in range(100, 1200, 200):
        gap[start : start + 40] = np.linspace(4, 0.2, 40)
    hits = np.full(1200, 0.1) + rng.uniform(0, 0.1, 1200)
    hits[rng.choice(1200, 6, replace=False)] = 12.0
    speed = 0.985 + rng.normal(0, 0.004, 1200)
    return [
        {"t": i / 10, "speed": s, "front_dist": g, "shock": h, "mode": "auto", "battery": 0.8}
        for i, (s, g, h) in enumerate(zip(speed.tolist(), gap.tolist(), hits.tolist(), strict=True))
    ]


def test_rules_say_how_often_they_are_broken_and_whether_they_can_be_foreseen(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    trace, path = tmp_path / "run.jsonl", tmp_path / "m.yaml"
    trace.write_text("".join(json.dumps(line) + "\n" for line in drive(1)))
    result = forewarn("init", trace, "-o", path, "--json")
    assert result.code == 0
    found = json.loads(result.out)
    assert found["kind"] == "mobile_base"
    near, shock = found["rules"]["keeps_distance"], found["rules"]["no_shock"]
    assert near["violations"] == near["precursors"]["foreseen"] == 6
    assert shock["violations"] == 6
    assert shock["precursors"]["foreseen"] <= 2
    spec, text = load_spec(path), path.read_text()
    assert "too_fast: abs(speed) > 1.2\n" in text, "no rule follows its cruise"
    assert "no precursor in these signals" in text
    assert not {"no_mode", "no_battery_high"} & spec.properties.keys()
    assert forewarn("validate", path, "--bag", trace).code == 0
    assert forewarn("learn", trace, "-c", path, "-o", tmp_path / "m.json").code == 0


SEQUOR = others_data.DATA / "robots" / "sequor"


@pytest.mark.skipif(not SEQUOR.exists(), reason="no ../shared/data/robots beside the repository")
def test_arrays_of_a_trace_become_numbers(forewarn: Callable[..., Any], tmp_path: Path) -> None:
    bags = sorted(SEQUOR.glob("N5_*"))[:4]
    assert forewarn("init", *bags, "-o", tmp_path / "m.yaml").code == 0
    signals = load_spec(tmp_path / "m.yaml").signals
    assert signals["speed"].value == "norm(lin_vel)"
    assert signals["obj_pos_distance"].value == "norm(obj_pos)"


def test_what_was_missed_is_told_with_what_comes_before(
    forewarn: Callable[..., Any], tmp_path: Path
) -> None:
    config, lines = tmp_path / "m.yaml", drive(2)
    config.write_text(
        "rate: 10\nsignals: {front_dist: {timeout: 1}, shock: {timeout: 1}}\n"
        "predicates: {near: front_dist < 0.6, hit: shock > 8}\n"
        "properties: {far: {formula: always(not near)}, calm: {formula: always(not hit)}}\n"
    )
    trace, held_out = tmp_path / "run.jsonl", tmp_path / "held_out.jsonl"
    for path, some in ((trace, lines), (held_out, drive(3))):
        path.write_text("".join(json.dumps(line) + "\n" for line in some))
    assert forewarn("learn", trace, "-c", config, "-o", tmp_path / "m.json").code == 0
    result = forewarn("replay", held_out, "-c", config, "-m", tmp_path / "m.json", "--exit-zero")
    assert "far: 6 of 6 missed: before them front_dist is low; a predicate `front_dist < " in (
        result.out
    )
    assert "calm: 6 of 6 missed: nothing in these signals changes before" in result.out
