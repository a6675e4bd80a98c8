"""What the journal of a monitor keeps, and what it says of one that is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import RecordingError
from forewarn.files.journal import JournalFile
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.monitoring.build import compile_spec
from forewarn.monitoring.checkpoint import remember
from forewarn.monitoring.live_session import LiveSession
from forewarn_ros.status import Severity, Status
from monitor_node.journal import FORMAT, NO_ALERTS, Journal

TEXT = """
rate: 10
startup_grace: 0
signals: {a: {timeout: never}, b: {timeout: never}}
predicates: {pa: a, pb: b}
properties: {rule: {formula: "always(pa implies eventually[0:0.5](pb))", horizon: 1.0}}
"""


def watch(tick: int | None = None, a: float = 0.0) -> LiveSession:
    """Return a monitor, be it after one tick."""
    found = LiveSession(compile_spec(parse_spec(parse_document(TEXT))), None, {})
    if tick is not None:
        found.accept("", tick * 100_000_000, {"a": a, "b": 0.0})
        found.tick(tick)
    return found


def idle(tick: int) -> dict[str, Any]:
    return {"tick": tick, "pending": False, "violations": [0]}


def test_the_file_is_replaced_as_a_whole_and_only_when_something_changed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, 60.0)
    assert journal.left is None
    journal.write(idle(1), [])
    first = path.stat()
    journal.write(idle(2), [])
    assert path.stat().st_mtime_ns == first.st_mtime_ns
    journal.write({**idle(3), "pending": True}, ["autoware"])
    journal.write({**idle(4), "pending": True}, ["autoware"])
    found = Journal(path, 60.0).left
    assert found is not None
    assert (found.memory["tick"], found.owing) == (4, ("autoware",))
    assert [one_path.name for one_path in tmp_path.iterdir()] == ["journal"]


def test_what_a_damaged_journal_has_lost_is_an_error_until_somebody_acknowledges_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    Journal(path, 60.0).write(idle(1), ["autoware"])
    torn = path.read_bytes()[:-9]
    path.write_bytes(torn)
    journal = Journal(path, 60.0, ["autoware"])
    assert journal.left is None
    assert path.with_name("journal.damaged-1").read_bytes() == torn
    journal.write(idle(2), [])
    for life in (journal, Journal(path, 60.0)):  # also after another crash
        assert life.status().level == 2
        for told in ("obligations", "mutes", "autoware", "journal.damaged-1", "acknowledge"):
            assert told in life.status().message
    assert "obligations" in life.acknowledge()
    assert life.status().level == 0
    life.write(idle(2), [])
    assert Journal(path, 60.0).status().level == 0


def test_what_a_life_that_does_not_act_leaves_in_force_is_an_error_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal(path, 60.0, ["autoware", "twist"]).write(idle(1), ["autoware", "twist"])
    for tick in (2, 3):  # it only observes, and so does the one after it
        observing = Journal(path, 60.0)
        assert observing.status().level == 2
        assert observing.status().message.count("asked for something by autoware") == 1
        observing.write(idle(tick), [])
    acting = Journal(path, 60.0, ["autoware"])
    assert acting.left is not None
    assert acting.left.owing == ("autoware",), "it takes that back, at last"
    acting.write(idle(4), [])
    assert Journal(path, 60.0).left.owing == ()  # type: ignore[union-attr]


def test_what_was_left_in_force_is_over_once_somebody_has_looked(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal(path, 60.0, ["nav2"]).write(idle(1), ["nav2"])
    observing = Journal(path, 60.0)
    assert "by nav2" in observing.acknowledge()
    observing.write(idle(2), [])
    after = Journal(path, 60.0)
    assert (after.status().level, after.left.owing) == (0, ())  # type: ignore[union-attr]


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "absent" / "journal", 60.0)
    journal.write(idle(1), [])
    assert journal.status().level == 2


def test_an_alert_that_could_not_be_written_is_no_error_once_it_is_over_and_the_disk_is_back(
    tmp_path: Path,
) -> None:
    """What was to be kept was what had been written last, and so nobody tried again."""
    path = tmp_path / "journal"
    journal = Journal(path, 60.0)
    journal.write(idle(1), [])
    path.unlink()
    path.mkdir()
    journal.write({**idle(2), "pending": True}, [])
    assert journal.status().level == Severity.ERROR
    journal.write(idle(3), [])
    assert journal.status().level == Severity.ERROR
    path.rmdir()
    journal.write(idle(4), [])
    assert journal.status().level == Severity.OK
    assert Journal(path, 60.0).left is not None


@pytest.mark.parametrize(
    ("a", "recalled"),
    [(0.0, "counts and mutes of tick 5"), (1.0, "obligations and alerts of tick 5")],
)
def test_a_restart_goes_on_where_the_former_life_ended(
    tmp_path: Path, a: float, recalled: str
) -> None:
    path, before = tmp_path / "journal", watch(5, a)
    Journal(path, 2.0).keep(before, ["nav2", "twist"])
    journal, after = Journal(path, 2.0, ["nav2"]), watch()
    assert journal.left is not None
    assert journal.left.owing == ("nav2", "twist")
    told = {"file": path, "recalled": "nothing"}
    assert journal.status() == Status("journal", Severity.OK, "recalled: nothing", told)
    assert journal.recall(after, 25) == json.loads(json.dumps(remember(before)))
    assert remember(after)["properties"] == remember(before)["properties"]
    told = {"file": path, "recalled": recalled}
    assert journal.status() == Status("journal", Severity.OK, f"recalled: {recalled}", told)
    assert journal.recall(watch(), 25) is None
    assert journal.recalled == recalled


def test_what_is_older_than_allowed_is_not_recalled(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal(path, 2.0).keep(watch(5, 1.0), [])
    journal = Journal(path, 2.0)
    with pytest.raises(RecordingError, match="21 ticks old") as caught:
        journal.recall(watch(), 26)
    assert journal.status().message == f"recalled: nothing: {caught.value}"
    assert journal.left is None


@pytest.mark.parametrize("formula", ["0:0.5", "0:0.4"])
def test_an_orderly_end_before_the_first_tick_keeps_mutes_alone(
    tmp_path: Path, formula: str
) -> None:
    path, before = tmp_path / "journal", watch(5, 1.0)
    before.mute(["rule"], 60.0, "works")
    Journal(path, 2.0).keep(before, ["nav2"])
    assert Journal(path, 2.0).left.memory["pending"]  # type: ignore[union-attr]
    idler = LiveSession(
        compile_spec(parse_spec(parse_document(TEXT.replace("0:0.5", formula)))), None, {}
    )
    journal = Journal(path, 2.0, ["nav2"])
    idler.end()
    journal.keep(idler, ["nav2"])
    assert Journal(path, 2.0).left.owing == ("nav2",)  # type: ignore[union-attr]
    journal.settle([])  # once it is confirmed
    last, after = Journal(path, 2.0, ["nav2"]), watch()
    assert last.left is not None and last.left.owing == ()
    if formula == "0:0.4":  # whose mutes mean another rule
        assert not last.left.memory["mutes"]
        return
    assert last.recall(after, 25) is not None
    assert last.recalled == "counts and mutes of tick 5"
    assert [muted.name for muted in after.silenced()] == ["rule"]
    assert remember(after)["properties"] == remember(watch())["properties"]


ACTING = TEXT.replace("horizon: 1.0", "horizon: 1.0, thresholds: {act: 0.3}, enter: 1")
ACTING += "mode: act\n"


def acting(text: str = ACTING, rate: Any = 10.0) -> LiveSession:
    """Return a monitor that alerts while `a` is 1 and `b` is 0."""
    compiled = compile_spec(parse_spec(parse_document(text)))
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    for number in range(100):
        counter.add(number, number // 50)
    model = build_model(counter, rate=rate, digest=compiled.abstraction.digest)
    return LiveSession(compiled, model, {})


def left_alerting(path: Path, text: str = ACTING, rate: Any = 10.0) -> None:
    """Leave a journal of a monitor that was killed while it alerted, at tick 5."""
    before = acting(text, rate)
    before.accept("", 500_000_000, {"a": 1.0, "b": 0.0})
    request = before.tick(before.feed.moments.following(500_000_000)).request
    assert request is not None
    Journal(path, 2.0).keep(before, ["nav2"])


def test_of_an_old_journal_alerts_that_asked_for_something_go_on(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    left_alerting(path)
    for first in (26, 2):  # too old, or ahead of the clock
        journal, after = Journal(path, 2.0, ["nav2"]), acting()
        memory = journal.recall(after, first)
        assert memory is not None
        assert memory["tick"] == first - 1
        assert after.tick(first).request.active  # type: ignore[union-attr]
        assert journal.status().message.startswith("recalled: alerts alone, until they may end: ")
        assert f"{first - 5} ticks old" in journal.recalled


def test_an_alert_goes_on_in_another_monitor_file_that_has_its_property(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    left_alerting(path)
    other = ACTING.replace("0:0.5", "0:0.4").replace("{rule", "{new: {formula: always(pb)}, rule")
    journal, after = Journal(path, 60.0, ["nav2"]), acting(other)
    assert journal.recall(after, 7) is not None
    request = after.tick(7).request
    assert request is not None
    assert (request.active, request.id, request.properties[-1]) == (True, 1, "rule")
    assert (journal.lost, journal.status().level) == ("", Severity.OK)
    assert "another monitor file" in journal.recalled


def test_what_a_property_asked_for_that_is_gone_is_an_error_until_somebody_looks(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    left_alerting(path)
    journal, after = Journal(path, 60.0, ["nav2"]), acting(ACTING.replace("rule:", "law:"))
    with pytest.raises(RecordingError, match="another monitor file"):
        journal.recall(after, 7)
    after.tick(7)
    journal.keep(after, [])
    for life in (journal, Journal(path, 60.0)):  # also after another crash
        assert life.status().level == Severity.ERROR
        assert "because of rule is over: the monitor file has no such" in life.status().message
    assert "rule" in life.acknowledge()
    assert life.status().level == Severity.OK


@pytest.mark.parametrize("broken", [{"names": None}, {"properties": [[]]}])
def test_an_alert_that_cannot_be_read_is_an_error_until_somebody_looks(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    path = tmp_path / "journal"
    left_alerting(path)
    entry = Journal(path, 60.0).left
    assert entry is not None
    Journal(path, 60.0).write({**entry.memory, **broken}, [])
    journal = Journal(path, 60.0)
    with pytest.raises(RecordingError):
        journal.recall(acting(ACTING.replace("0:0.5", "0:0.4")), 7)
    assert journal.status().level == Severity.ERROR
    assert "limited or stopped the robot, it is over" in journal.lost


def test_an_alert_of_steps_goes_on_though_nobody_knows_how_many_were_missed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    steps = ACTING.replace("rate: 10", "clock: steps").replace("startup_grace: 0\n", "")
    steps = steps.replace("0:0.5", "0:5").replace("horizon: 1.0", "horizon: 10")
    left_alerting(path, steps, "steps")
    journal, after = Journal(path, 60.0), acting(steps, "steps")
    first = after.feed.moments.following(0)
    assert journal.recall(after, first) is not None
    after.accept("", 600_000_000, {"a": 0.0, "b": 0.0})
    request = after.tick(first).request
    assert request is not None
    assert request.active
    assert "those in between are not counted" in journal.recalled


def test_a_first_life_recalls_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", 2.0)
    assert journal.recall(watch(), 1) is None
    assert (journal.left, journal.lost, journal.recalled) == (None, "", "nothing")


@pytest.mark.parametrize(
    ("actuators", "duty"),
    [
        ([], ""),
        (
            ["nav2", "twist"],
            ", and if it limited or stopped the robot by nav2 or twist, that stays until you take "
            "it back",
        ),
    ],
)
@pytest.mark.parametrize(
    ("body", "reason"),
    [({"memory": {}, "owing": []}, "'lost'"), ({"owing": [], "lost": ""}, "'memory'")],
)
def test_it_is_said_word_for_word_what_may_be_lost(
    tmp_path: Path, actuators: list[str], duty: str, body: dict[str, Any], reason: str
) -> None:
    path = tmp_path / "journal"
    JournalFile(path, "monitor", FORMAT).write({**body, "alerts": NO_ALERTS.data})
    journal = Journal(path, 2.0, actuators)
    expected = (
        f"{path} is damaged ({reason}) and was kept as {path}.damaged-1: obligations, alerts, "
        f"counts and mutes of the former life are lost{duty}; look at the robot, then call "
        "~/acknowledge"
    )
    assert journal.lost == expected
    told = {"file": path, "recalled": "nothing"}
    assert journal.status() == Status("journal", Severity.ERROR, expected, told)
    assert (journal.acknowledge(), journal.acknowledge()) == (expected, "")


def test_a_journal_of_another_format_is_damaged_and_one_of_another_process_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal"
    JournalFile(path, "monitor", FORMAT - 1).write({})
    assert f"format {FORMAT - 1}, not {FORMAT}" in Journal(path, 2.0).lost
    JournalFile(path, "bridge", FORMAT).write({})
    with pytest.raises(RecordingError, match="no journal of ours"):
        Journal(path, 2.0)


def test_what_could_not_be_written_is_an_error_until_it_can(tmp_path: Path) -> None:
    path = tmp_path / "absent" / "journal"
    journal = Journal(path, 2.0)
    journal.write(idle(1), [])
    problem = journal.status().message
    assert str(path) in problem
    journal.lost = "all"
    journal.write(idle(1), [])
    assert journal.status().message == f"{problem}; all"
    path.parent.mkdir()
    journal.write(idle(1), [])
    assert (journal.status().level, journal.status().message) == (Severity.ERROR, "all")
    assert Journal(path, 2.0).lost == "all"


@pytest.mark.parametrize("changed", ["owing", "lost", "memory"])
def test_whatever_changes_is_kept(tmp_path: Path, changed: str) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, 2.0)
    journal.write(idle(1), [])
    before = path.stat().st_ino  # a file that is replaced is another one
    journal.write(idle(1), [])
    assert path.stat().st_ino == before
    journal.lost = "all" if changed == "lost" else ""
    memory = {**idle(1), "violations": [1]} if changed == "memory" else idle(1)
    journal.write(memory, ["twist"] if changed == "owing" else [])
    found = Journal(path, 2.0)
    assert found.left is not None
    assert (found.left.memory, found.left.owing, found.lost) == (
        memory,
        ("twist",) if changed == "owing" else (),
        journal.lost,
    )
