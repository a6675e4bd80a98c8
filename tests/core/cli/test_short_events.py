"""Events that are over within a tick: what commands make of them, and what they say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corridor import bumper, write_recording

from forewarn.models.file import load_model

FILE = """
rate: 10
signals: {bumper: {topic: /bumper, type: std_msgs/msg/Bool, value: data, timeout: 1WITHIN}}
predicates: {hit: bumper}
properties: {no_hit: {formula: always(not hit), horizon: 1, breach_clear_time: 0}}
"""
TOLD = "faster than the ticks (10 Hz): /bumper (100 Hz). Only the newest message of a tick is read"


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Return a recording of 100 Hz with eight hits of one message each."""
    messages = [
        bumper(1_700_000_000_000_000_000 + n * 10_000_000, n % 100 == 55) for n in range(801)
    ]
    return write_recording(tmp_path / "run.mcap", messages)


@pytest.mark.parametrize(
    ("within", "hits", "told"),
    [("", 0, True), (", within: last", 0, False), (", within: any", 8, False)],
)
def test_hits_that_are_over_within_a_tick(
    forewarn: Callable[..., Any], tmp_path: Path, bag: Path, within: str, hits: int, told: bool
) -> None:
    config, model = tmp_path / "monitor.yaml", tmp_path / "model.json"
    config.write_text(FILE.replace("WITHIN", within))
    checked = forewarn("validate", config, "--bag", bag)
    assert checked.code == 0
    assert (TOLD in " ".join(checked.text.split())) is told
    assert forewarn("learn", bag, "-c", config, "-o", model).code == 0
    assert load_model(model).size == 1 + bool(hits)
    found = forewarn("replay", bag, "-c", config, "--json")
    assert json.loads(found.out)["properties"]["no_hit"]["violations"] == hits
