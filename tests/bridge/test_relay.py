"""Interventions through the lives of the bridge: what the first message after a start means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apollo_bridge.commander import Commander
from apollo_bridge.commands import WAYS
from apollo_bridge.layouts import own_class
from apollo_bridge.relay import Memory, Relay
from forewarn.errors import RecordingError
from forewarn.monitoring.intervention import Intervention

NOW = 1_700_000_000_000_000_000
PAD = "/apollo/planning/pad"
STOP, RESUME = 4, 5
NOTHING = Intervention("NONE", id=0, active=False, reason="the monitor was activated")
STOPPING = Intervention("EMERGENCY_STOP", id=1, active=True, reason="red_light: 0.8")
OVER = Intervention("NONE", id=1, active=False, reason="no property alerts any more")


class Logged:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str) -> None:
        self.lines.append(f"info: {text}")

    def warning(self, text: str, *, throttle_duration_sec: float = 0.0) -> None:
        self.lines.append(f"warning: {text}")


class Bridge:
    """One life of a bridge; what it writes is decoded."""

    def __init__(self, path: Path | None, *, way: str = "pad", may_act: bool = True) -> None:
        self.log = Logged()
        self.written: list[Any] = []
        self.connected = True
        self.relay = Relay(Commander(WAYS[way]), Memory(path), may_act, self.log)
        self.relay.start(self.write)

    def write(self, target: str, data: bytes) -> bool:
        if self.connected:
            kind = WAYS["pad"].message if target == PAD else WAYS["action"].message
            message = own_class(kind).FromString(data)
            self.written.append(message.action if target == PAD else message.command)
        return self.connected


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.json"


def test_what_is_about_a_time_too_long_ago_takes_nothing_back(journal: Path) -> None:
    first = Bridge(journal)
    first.relay.intervene(STOPPING, NOW, fresh=False)
    assert first.written == [STOP]
    first.relay.intervene(OVER, NOW, fresh=False)
    second = Bridge(journal)  # the first was killed
    second.relay.intervene(OVER, NOW, fresh=False)
    assert (first.written, second.written) == ([STOP], [])
    assert "stays in force" in second.log.lines[-1]
    second.relay.update(NOW + 1)
    assert second.written == [RESUME]


def test_an_intervention_that_ended_while_no_bridge_ran_is_ended_by_the_next(journal: Path) -> None:
    first = Bridge(journal)
    first.relay.intervene(NOTHING, NOW)
    first.relay.intervene(STOPPING, NOW)
    assert first.written == [STOP]
    second = Bridge(journal)  # the first was killed
    assert "STOP from before may be in force" in second.relay.remark
    second.relay.update(NOW)
    assert second.written == []  # nothing before the monitor speaks
    second.relay.intervene(OVER, NOW + 1)
    assert second.written == [RESUME]
    assert "ended while no bridge ran: STOP from before is ended now" in second.log.lines[0]
    assert second.relay.remark == ""
    third = Bridge(journal)
    third.relay.intervene(OVER, NOW + 2)
    assert (third.written, third.relay.remark) == ([], "")


def test_an_intervention_that_still_holds_is_taken_over(journal: Path) -> None:
    first = Bridge(journal)
    first.relay.intervene(STOPPING, NOW)
    for path in (journal, None):
        second = Bridge(path)
        second.relay.intervene(STOPPING, NOW + 1)
        assert second.written == [STOP]
        assert "was there before the bridge" in second.log.lines[0]
        second.relay.intervene(OVER, NOW + 2)
        assert second.written == [STOP, RESUME]


def test_without_a_journal_it_can_only_be_said(journal: Path) -> None:
    bridge = Bridge(None)
    bridge.relay.intervene(OVER, NOW)
    assert bridge.written == []  # it may be an operator's STOP that is in force
    assert "intervention 1 ended before this bridge came" in bridge.relay.remark
    assert "RESUME_CRUISE ends that" in bridge.relay.remark
    bridge.relay.intervene(STOPPING._replace(id=2), NOW + 1)
    assert (bridge.written, bridge.relay.remark) == ([STOP], "")


def test_a_monitor_that_never_intervened_needs_no_word() -> None:
    bridge = Bridge(None)
    bridge.relay.intervene(NOTHING, NOW)
    assert (bridge.written, bridge.relay.remark, bridge.log.lines) == ([], "", [])
    observing = Bridge(None, may_act=False)
    observing.relay.intervene(OVER, NOW)
    assert observing.relay.remark == ""


def test_what_comes_while_the_bridge_runs_is_nothing_special() -> None:
    bridge = Bridge(None)
    bridge.relay.intervene(NOTHING, NOW)
    bridge.relay.intervene(STOPPING, NOW)
    bridge.relay.intervene(OVER, NOW)
    assert bridge.written == [STOP, RESUME]
    assert bridge.relay.remark == ""
    assert bridge.log.lines == []  # nothing is held up by words
    bridge.relay.log_changes()
    assert bridge.log.lines == [
        "info: STOP: red_light: 0.8",
        "info: RESUME_CRUISE: no property alerts any more",
    ]


def test_what_was_not_written_is_not_remembered_and_tried_again(journal: Path) -> None:
    bridge = Bridge(journal)
    bridge.connected = False
    bridge.relay.intervene(STOPPING, NOW)
    assert "STOP was not written: there is no connection" in bridge.relay.remark
    assert not journal.exists()
    bridge.connected = True
    bridge.relay.update(NOW + 1)
    assert (bridge.written, bridge.relay.remark) == ([STOP], "")
    assert Memory(journal).left == {PAD: "STOP"}


def test_soon_after_connecting_an_end_is_written_several_times(journal: Path) -> None:
    # Readers may not have found the bridge's writer yet, and Cyber keeps nothing for them.
    second = 1_000_000_000
    Bridge(journal).relay.intervene(STOPPING, NOW)
    later = Bridge(journal)
    later.relay.connected(NOW)
    later.relay.intervene(OVER, NOW)
    for number in range(1, 8):
        later.relay.update(NOW + number * second)
    assert later.written == [RESUME] * 4
    # Long after connecting once is enough.
    later.relay.intervene(STOPPING._replace(id=2), NOW + 20 * second)
    later.relay.intervene(OVER, NOW + 20 * second + 1)
    for number in range(21, 25):
        later.relay.update(NOW + number * second)
    assert later.written == [RESUME] * 4 + [STOP, RESUME]
    # A new intervention stops the repeating.
    later.relay.connected(NOW + 30 * second)
    later.relay.intervene(STOPPING._replace(id=3), NOW + 30 * second)
    later.relay.intervene(OVER, NOW + 30 * second)
    later.relay.intervene(STOPPING._replace(id=4), NOW + 30 * second)
    later.relay.update(NOW + 31 * second)
    assert later.written[6:] == [STOP, RESUME, STOP, STOP]


def test_stopping_the_bridge_names_what_stays_in_force() -> None:
    bridge = Bridge(None)
    bridge.relay.intervene(STOPPING, NOW)
    bridge.relay.stop()
    assert bridge.log.lines[-1] == (
        "warning: STOP stays in force in Apollo; RESUME_CRUISE ends a stop"
    )
    bridge.relay.intervene(OVER, NOW)
    assert bridge.written == [STOP]
    # The same process goes on: the end that was missed is written.
    bridge.relay.start(bridge.write)
    bridge.relay.intervene(OVER, NOW + 1)
    assert bridge.written == [STOP, RESUME]
    assert bridge.relay.remark == ""


def test_a_service_that_nobody_answers_is_called_again_and_told() -> None:
    bridge = Bridge(None, way="action")
    bridge.relay.intervene(STOPPING, NOW)
    bridge.relay.answered(WAYS["action"].target, "no node answers")
    bridge.relay.update(NOW + 1)
    assert bridge.written == [5, 5]
    bridge.relay.answered(WAYS["action"].target, "no node answers")
    assert bridge.relay.remark == "no node answers"
    bridge.relay.update(NOW + 2)
    bridge.relay.answered(WAYS["action"].target, "")
    assert bridge.relay.remark == ""


def test_a_damaged_journal_is_kept_and_named_for_the_life_of_the_bridge(journal: Path) -> None:
    Bridge(journal).relay.intervene(STOPPING, NOW)
    torn = journal.read_bytes()[:-1]
    journal.write_bytes(torn)
    bridge = Bridge(journal)
    bridge.relay.intervene(OVER, NOW)
    assert bridge.written == []
    bridge.relay.intervene(STOPPING, NOW)
    assert bridge.written == [STOP]
    assert bridge.relay.lost
    assert "end the command" in bridge.relay.remark
    assert journal.with_name("journal.json.damaged-1").read_bytes() == torn
    assert not Bridge(journal).relay.lost


def test_what_is_no_journal_is_not_written_over(journal: Path) -> None:
    journal.write_text('{"in_force": "somebody else\'s"}')
    with pytest.raises(RecordingError, match="is no journal of ours"):
        Bridge(journal)


def test_a_journal_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    bridge = Bridge(tmp_path / "absent" / "journal.json")
    bridge.relay.intervene(STOPPING, NOW)
    assert bridge.written == [STOP]
    assert "No such file or directory" in bridge.relay.remark


def test_a_second_monitor_does_not_end_what_the_first_asked_for() -> None:
    bridge = Bridge(None)
    bridge.relay.intervene(STOPPING, NOW, "a", alone=True)
    for k in range(3):
        bridge.relay.intervene(NOTHING, NOW + 2 * k + 1, "b", alone=False)
        bridge.relay.intervene(STOPPING, NOW + 2 * k + 2, "a", alone=False)
    assert bridge.written == [STOP]
    assert "several monitors speak" in bridge.relay.remark
    bridge.relay.intervene(OVER, NOW + 10, "a", alone=False)
    assert bridge.written == [STOP, RESUME]
    bridge.relay.intervene(STOPPING, NOW + 11, "b", alone=False)
    assert bridge.written == [STOP, RESUME, STOP]  # any monitor's stop counts


def test_a_restarted_monitor_is_followed_once_the_graph_has_forgotten_the_old_one() -> None:
    bridge = Bridge(None)
    bridge.relay.intervene(STOPPING, NOW, "a")
    bridge.relay.intervene(NOTHING, NOW + 1, "b", alone=False)
    assert bridge.written == [STOP]
    bridge.relay.update(NOW + 2, alone=True)
    assert bridge.written == [STOP, RESUME]
    assert bridge.relay.remark == ""
