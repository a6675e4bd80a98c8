"""What planning is told, when, and what a version of Apollo cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apollo_bridge.commands import WAYS, Command, Commander, check, way_of
from apollo_bridge.layouts import own_class
from forewarn.config import load_spec
from forewarn.errors import ConfigError

NOW = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
STOP, PULL_OVER, RESUME = 4, 3, 5


def pad(command: Command | None) -> Any:
    assert command is not None
    return own_class("apollo.planning.PadMessage").FromString(command.data)


def test_a_stop_is_written_once_repeated_and_ended() -> None:
    commander = Commander(WAYS["pad"])
    assert commander.update("NONE", False, NOW) is None
    first = pad(commander.update("EMERGENCY_STOP", True, NOW))
    assert first.action == STOP
    assert commander.update("EMERGENCY_STOP", True, NOW + SECOND // 2) is None
    assert (
        commander.update("COMFORTABLE_STOP", True, NOW + SECOND // 2) is None
    )  # the same for Apollo
    second = pad(commander.update("EMERGENCY_STOP", True, NOW + SECOND))
    assert second.action == STOP
    assert second.header != first.header
    assert second.header.sequence_num == first.header.sequence_num + 1
    assert pad(commander.update("NONE", False, NOW + 2 * SECOND)).action == RESUME
    assert commander.update("NONE", False, NOW + 9 * SECOND) is None


def test_while_the_monitor_only_observes_nothing_is_written() -> None:
    commander = Commander(WAYS["pad"])
    for action in ("EMERGENCY_STOP", "PULL_OVER", "NONE"):
        assert commander.update(action, False, NOW) is None


def test_a_warning_is_none_of_plannings_business_and_ends_a_stop() -> None:
    commander = Commander(WAYS["pad"])
    assert commander.update("WARN", True, NOW) is None
    commander.update("EMERGENCY_STOP", True, NOW)
    assert pad(commander.update("WARN", True, NOW)).action == RESUME


def test_a_stop_during_a_pull_over_says_that_it_does_not_pre_empt() -> None:
    commander = Commander(WAYS["pad"])
    assert pad(commander.update("PULL_OVER", True, NOW)).action == PULL_OVER
    stop = commander.update("EMERGENCY_STOP", True, NOW)
    assert pad(stop).action == STOP
    assert stop is not None and "cannot end a PULL_OVER" in stop.remark
    back = commander.update("PULL_OVER", True, NOW)
    assert back is not None and back.remark == ""


def test_what_was_not_written_is_written_again_at_once() -> None:
    commander = Commander(WAYS["pad"])
    commander.update("PULL_OVER", True, NOW)
    commander.not_written()
    assert pad(commander.update("PULL_OVER", True, NOW + 1)).action == PULL_OVER
    commander.update("NONE", False, NOW + 2)
    commander.not_written()
    assert pad(commander.update("NONE", False, NOW + 3)).action == RESUME
    assert commander.update("NONE", False, NOW + 4) is None


def test_action_commands_have_their_own_numbers() -> None:
    commander = Commander(way_of(9, "action"))
    parse = own_class("apollo.external_command.ActionCommand").FromString
    stop = commander.update("EMERGENCY_STOP", True, NOW)
    start = commander.update("NONE", False, NOW)
    assert stop is not None and start is not None
    assert (parse(stop.data).command, parse(start.data).command) == (5, 6)
    assert parse(start.data).command_id == parse(stop.data).command_id + 1


@pytest.mark.parametrize(
    ("version", "way", "text"),
    [(6, "pad", "6 is no version"), (8, "action", "Apollo 8 takes no"), (9, "fax", "by 'fax'")],
)
def test_ways_that_a_version_does_not_have(version: int, way: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        way_of(version, way)


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
        check(spec, 10)
    text = str(caught.value)
    assert "properties.p1.intervention: Apollo 10 cannot do LIMIT_SPEED" in text
    assert "properties.p2.intervention: Apollo 10 cannot do REPLAN" in text
    assert "p0" not in text and "p3" not in text


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
