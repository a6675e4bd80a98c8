"""What the planning of a version of Apollo can be told, and what it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apollo_bridge.commands import WAYS, asks_for_limits, check, way_of
from forewarn.config.file import load_spec
from forewarn.errors import ConfigError


@pytest.mark.parametrize(
    ("version", "way", "text"),
    [(6, "pad", "6 is no version"), (8, "action", "Apollo 8 takes no"), (9, "fax", "by 'fax'")],
)
def test_ways_that_a_version_does_not_have(version: int, way: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        way_of(version, way)


def test_action_is_a_service_and_tcp_carries_channels_only() -> None:
    assert way_of(9, "action") == WAYS["action"]
    with pytest.raises(ConfigError, match="'action' is a service of Cyber RT, and cyber_bridge"):
        way_of(9, "action", "tcp")
    assert way_of(9, "pad", "tcp") == WAYS["pad"]


def spec_with(folder: Path, *interventions: str) -> Any:
    properties = "".join(
        f"  p{number}: {{formula: always(not fast), intervention: {action}"
        f"{', speed_limit: 3' if action == 'LIMIT_SPEED' else ''}}}\n"
        for number, action in enumerate(interventions)
    )
    path = folder / "monitor.yaml"
    path.write_text(
        "version: 1\nrate: 10\nsignals:\n  speed: {}\npredicates:\n  fast: speed > 5\n"
        f"properties:\n{properties}"
    )
    return load_spec(path)


def test_what_apollo_cannot_do_is_an_error_that_names_the_property(tmp_path: Path) -> None:
    spec = spec_with(tmp_path, "WARN", "LIMIT_SPEED", "REPLAN", "PULL_OVER")
    with pytest.raises(ConfigError) as caught:
        check(spec, 8)
    text = str(caught.value)
    assert "properties.p1.intervention: Apollo 8 cannot do LIMIT_SPEED" in text
    assert "properties.p2.intervention: Apollo 8 cannot do REPLAN" in text
    assert "p0" not in text and "p3" not in text
    assert "LIMIT_SPEED" not in text.split("accepted")[-1]


@pytest.mark.parametrize("version", [9, 10, 11])
def test_limits_of_speed_are_possible_from_apollo_9_on(tmp_path: Path, version: int) -> None:
    spec = spec_with(tmp_path, "WARN", "LIMIT_SPEED")
    assert check(spec, version) == [
        "p1: a limit of speed can be given only for a route that is sent while the bridge runs"
    ]
    assert asks_for_limits(spec)
    assert not asks_for_limits(spec_with(tmp_path, "WARN", "PULL_OVER"))


def test_a_comfortable_stop_is_remarked_upon(tmp_path: Path) -> None:
    assert check(spec_with(tmp_path, "COMFORTABLE_STOP", "EMERGENCY_STOP"), 9) == [
        "p0: Apollo knows one kind of stop, with hazard lights"
    ]


def test_escalations_are_checked_as_well(tmp_path: Path) -> None:
    spec = spec_with(tmp_path, "WARN")
    path = tmp_path / "monitor.yaml"
    text = path.read_text().replace(
        "intervention: WARN",
        "intervention: PULL_OVER, escalation: [{after: 2, action: EMERGENCY_STOP}]",
    )
    path.write_text(text)
    assert check(load_spec(path), 9) == [
        "p0: STOP cannot end a PULL_OVER that has begun: Apollo goes on pulling over"
    ]
    path.write_text(text.replace("EMERGENCY_STOP", "REPLAN"))
    with pytest.raises(ConfigError, match=r"properties\.p0\.escalation\[0\]\.action: Apollo 9"):
        check(load_spec(path), 9)
    assert check(spec, 9) == []
