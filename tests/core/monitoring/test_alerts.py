"""The life of an alert, from its warning until somebody has taken note of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_world import MONITOR, TYPES, serialized, write_world

from forewarn.config.file import load_spec
from forewarn.errors import ConfigError
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import installed_message_type
from forewarn.models.file import load_model
from forewarn.monitoring.alerts import Alert, Alerts, parse_kept
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.session_events import Mute, Release
from forewarn.signals.clock_kinds import Grid

CLOCK = Grid(10.0)
TICK = 17_000_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world(tmp_path_factory.mktemp("world"), seconds=1.0)


@pytest.fixture
def watch(folder: Path) -> LiveSession:
    config = folder / "monitor.yaml"
    assert config.read_text() == MONITOR
    types = {topic: installed_message_type(name) for topic, name in TYPES.items()}
    compiled = compile_spec(load_spec(config))
    return LiveSession(compiled, load_model(folder / "model.json"), types, bounds=False)


class Session:
    def __init__(self, watch: LiveSession, most: int = 200) -> None:
        self.watch, self.alerts, self.tick = watch, Alerts(most), TICK

    def step(self, speed: float, distance: float, times: int = 1) -> list[bool]:
        changed = []
        for _ in range(times):
            now = CLOCK.time_ns(self.tick)
            self.watch.accept("/world/odometry", now, serialized("/world/odometry", speed))
            self.watch.accept("/world/distance", now, serialized("/world/distance", distance))
            changed.append(self.alerts.take(self.watch.tick(self.tick), CLOCK, "incident.mcap"))
            self.tick += 1
        return changed

    def alert(self) -> Alert:
        for _ in range(10):
            self.step(3.0, 5.0)
            found = [a for a in self.alerts.all.values() if a.open and a.name == "brake"]
            if found and found[0].acted_ns:
                return found[0]
        raise AssertionError("no alert")

    def calm(self) -> None:
        self.step(0.0, 5.0)
        self.step(3.0, 30.0, 15)


def test_an_alert_begins_acts_and_ends_with_reasons(watch: LiveSession) -> None:
    session = Session(watch)
    assert not any(session.step(1.0, 30.0, 3))
    found = session.alert()
    assert found.acted_ns == CLOCK.time_ns(session.tick - 1)
    assert 0 < found.warned_ns <= found.acted_ns
    assert (found.intervention, found.incident) == (1, "incident.mcap")
    assert found.risk >= 0.4
    assert "is at least 0.4" in found.reason
    session.calm()
    over = session.alerts.all[found.id]
    assert over.ended_ns > over.acted_ns
    assert over.end_reason.startswith("its risk")
    assert over.unacknowledged
    again = session.alert()
    assert again.id > found.id


def test_it_says_who_ended_it(watch: LiveSession) -> None:
    session = Session(watch)
    found = session.alert()
    watch.release(["brake"])
    session.alerts.command(Release(("brake",), "anna", "all clear"))
    session.step(3.0, 30.0)
    assert session.alerts.all[found.id].end_reason == "released by anna: all clear"
    session.calm()
    found = session.alert()
    watch.mute(["brake"], 100.0)
    session.alerts.command(Mute(("brake",), 100.0, "bob"))
    session.step(3.0, 5.0)
    assert session.alerts.all[found.id].end_reason == "muted by bob"


def test_acknowledging_says_who_and_only_once_for_all(watch: LiveSession) -> None:
    session = Session(watch)
    first = session.alert()
    session.calm()
    second = session.alert()
    with pytest.raises(ConfigError, match="no alert 99"):
        session.alerts.acknowledge([first.id, 99], "anna", "", 5)
    assert session.alerts.all[first.id].unacknowledged, "nothing has changed"
    assert session.alerts.acknowledge([first.id], "anna", "a curtain", 5) == (first.id,)
    kept = session.alerts.all[first.id]
    assert (kept.acknowledged_by, kept.note, kept.acknowledged_ns) == ("anna", "a curtain", 5)
    assert second.id in [alert.id for alert in session.alerts.unacknowledged]
    assert first.id not in session.alerts.acknowledge([], "bob", "", 6)
    assert session.alerts.all[first.id].acknowledged_by == "anna"
    assert session.alerts.unacknowledged == ()
    assert session.alerts.acknowledge([], "bob", "", 7) == ()


def test_whoever_knows_of_a_warning_knows_nothing_of_what_it_asks_for_later(
    watch: LiveSession,
) -> None:
    session = Session(watch)
    watch.set_policy("brake", {"act": 0.95})
    session.step(3.0, 5.0, 3)
    (warned,) = [alert for alert in session.alerts.all.values() if alert.name == "brake"]
    assert (warned.open, warned.acted_ns) == (True, 0)
    assert session.alerts.acknowledge([warned.id], "anna", "fog", 5) == (warned.id,)
    watch.set_policy("brake", {"act": 0.4})
    acting = session.alert()
    assert acting.id == warned.id
    assert acting.unacknowledged
    assert (acting.acknowledged_by, acting.note) == ("", "")


def test_the_first_one_has_taken_note_also_while_the_clock_stands_at_zero(
    watch: LiveSession,
) -> None:
    session = Session(watch)
    found = session.alert()
    assert session.alerts.acknowledge([found.id, found.id], "anna", "a curtain", 0) == (found.id,)
    assert not session.alerts.all[found.id].unacknowledged
    assert session.alerts.acknowledge([found.id], "bob", "", 9) == ()
    assert session.alerts.acknowledge([], "bob", "", 9) == ()
    assert session.alerts.all[found.id].acknowledged_by == "anna"


def test_a_monitor_that_stops_ends_all(watch: LiveSession) -> None:
    session = Session(watch)
    found = session.alert()
    assert session.alerts.end(77, "the monitor stops")
    assert not session.alerts.end(78, "again")
    assert session.alerts.all[found.id].ended_ns == found.acted_ns, "and not before it began"
    assert session.alerts.all[found.id].end_reason == "the monitor stops"


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 6))
def test_a_history_is_bounded_and_forgets_first_what_somebody_knows_of(
    acknowledged: list[bool], most: int
) -> None:
    alerts, told = Alerts(most), 0
    for number, heard in enumerate(acknowledged, 1):
        alerts._begin(_row("rule"), number * 10, "it began")
        alerts.all[number] = alerts.all[number]._replace(acted_ns=number * 10 + 1)
        alerts._end("rule", number * 10 + 2, "it ended")
        if heard:
            told += len(alerts.acknowledge([number], "anna", "", number * 10 + 3))
    assert len(alerts.all) == min(len(acknowledged), most)
    assert len(alerts.all) + alerts.forgotten == len(acknowledged)
    assert list(alerts.all) == sorted(alerts.all)
    # Whatever nobody knows of is kept as long as there is room once the others have gone.
    unacknowledged = acknowledged[:-1].count(False)
    if unacknowledged < most:
        assert len(alerts.unacknowledged) == acknowledged.count(False)


def test_what_nobody_acknowledged_is_there_in_the_next_life(watch: LiveSession) -> None:
    session = Session(watch)
    first = session.alert()
    session.calm()
    second = session.alert()
    kept = parse_kept(json.loads(json.dumps(session.alerts.lasting().data)))
    later = Alerts()
    later.recall(kept)
    assert later.unacknowledged == session.alerts.unacknowledged
    assert {first.id, second.id} <= set(later.all)
    with pytest.raises(ValueError, match="before the first"):
        later.recall(kept)
    open_ones = [alert for alert in later.all.values() if alert.open]
    assert later.go_on(7, "the monitor was killed")
    over = later.all[second.id]
    assert over.end_reason == "the monitor was killed"
    assert over.ended_ns == max(over.warned_ns, over.acted_ns), "the clock has jumped back to 7"
    assert open_ones and not any(alert.open for alert in later.all.values())
    assert not later.go_on(8, "again")
    session.alerts = later
    again = session.alert()
    assert again.id > max(kept.total, second.id), "no number is given twice"


def test_an_alert_that_goes_on_after_a_restart_stays_one(watch: LiveSession) -> None:
    session = Session(watch)
    found = session.alert()
    later = Alerts()
    later.recall(session.alerts.lasting())
    assert later.go_on(CLOCK.time_ns(session.tick), "")
    session.alerts = later
    session.step(3.0, 5.0)
    assert [alert.id for alert in later.all.values() if alert.open and alert.name == "brake"] == [
        found.id
    ]
    session.calm()
    assert later.all[found.id].end_reason.startswith("its risk")


def test_alerts_of_properties_that_are_no_more_are_dropped(watch: LiveSession) -> None:
    session = Session(watch)
    found = session.alert()
    count = len(session.alerts.all)
    assert session.alerts.only(["brake", "another"]) == tuple(
        alert for alert in session.alerts.lasting().alerts if alert.name not in ("brake", "another")
    )
    gone = session.alerts.only(["another"])
    assert found.id in [alert.id for alert in gone]
    assert session.alerts.all == {}
    assert session.alerts.forgotten >= count


@given(st.lists(st.booleans(), max_size=120), st.text(max_size=3000))
def test_what_is_kept_is_bounded_and_comes_back_the_same(heard: list[bool], reason: str) -> None:
    alerts = Alerts()
    for number, known in enumerate(heard, 1):
        alerts._begin(_row("rule"), number * 10, reason)
        alerts.all[number] = alerts.all[number]._replace(acted_ns=number * 10 + 1, risk=0.5)
        alerts._end("rule", number * 10 + 2, "it ended")
        if known:
            alerts.acknowledge([number], "anna", "", number * 10 + 3)
    kept = alerts.lasting()
    assert parse_kept(json.loads(json.dumps(kept.data))) == kept
    assert kept.total == len(heard)
    wanted = [number for number, known in enumerate(heard, 1) if not known]
    assert [alert.id for alert in kept.alerts] == wanted[-50:]
    assert all(alert.reason == reason[:1000] for alert in kept.alerts)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"total": 1, "alerts": [[1, "rule"]]},
        {"total": 0, "alerts": [[1, "r", 1, 2, 3, 1, 0.5, 0, "", "", "", 0, "", ""]]},
        {"total": 1, "alerts": [["1", "r", 1, 2, 3, 1, 0.5, 0, "", "", "", 0, "", ""]]},
        {"total": 1, "alerts": [[1, "r", -1, 2, 3, 1, 0.5, 0, "", "", "", 0, "", ""]]},
        {"total": 1, "alerts": [[True, "r", 1, 2, 3, 1, 0.5, 0, "", "", "", 0, "", ""]]},
        {
            "total": 2,
            "alerts": [[n, "r", 1, 2, 0, 1, None, 0, "", "", "", 0, "", ""] for n in (1, 2)],
        },
        {"total": 2, "alerts": [[2, "r", 1, 2, 3, 1, 0.5, 0, "", "", "", 0, "", ""]] * 2},
    ],
)
def test_what_makes_no_sense_is_refused(data: Any) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        parse_kept(data)


def test_an_alert_beyond_their_number_is_named() -> None:
    alert = [3, "r", 1, 2, 3, 0, 0.5, 0, "", "", "", 0, "", ""]
    with pytest.raises(ValueError, match=r"alerts \[3\] do not rise from 1 to at most 1"):
        parse_kept({"total": 1, "alerts": [alert]})


class _Row(NamedTuple):
    property: str


def _row(name: str) -> Any:
    """Return as much of a row as an alert takes from it when it begins."""
    return _Row(name)
