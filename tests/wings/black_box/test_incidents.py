"""Incidents of a black box: listed, labelled, reported on, heeded in choosing thresholds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.assessment.reliability import outcomes, predicted
from forewarn.assessment.replay import Replaying, replay
from forewarn.assessment.results import scored_runs
from forewarn.monitoring.loading import make_monitor
from forewarn.recordings.registry import open_recording
from forewarn.signals.clock import NANOSECONDS
from forewarn.wings.black_box.box import Kept, LogEntry
from forewarn.wings.black_box.incident_file import IncidentFile, IncidentFolder, label_of
from forewarn.wings.black_box.incidents import confirmed, read_incident, without_prevented

Run = Callable[..., Any]


def write_incident(
    folder: Path, bag: Path, name: str, at: float = 5.0, until: float | None = None, **about: str
) -> Path:
    """Write a recording as an incident.

    Its moment lies `at` seconds from its beginning, and the alert is over after `until` seconds.
    """
    with open_recording(bag) as recording:
        begin, types = recording.start_ns, recording.topics
        first = LogEntry(begin + round(at * NANOSECONDS), "act", name, 0.75, f"{name}: too close")
        home = IncidentFolder(folder, 100, 10**12)
        file = IncidentFile(home.path_at(first.time_ns), first, {"node": "/monitor", **about}, {})
        moments = [first]
        if until is not None:
            over = begin + round(until * NANOSECONDS)
            moments.append(LogEntry(over, "released", name, 0.1, f"{name}: back from ACT to NONE"))
        for sample in recording.read():
            kind, data = types[sample.topic].msgtype, bytes(sample.data)  # type: ignore[arg-type]
            moment = moments.pop(0) if moments else None
            file.write(Kept(sample.time_ns, sample.topic, kind, data, len(data), moment))
        return file.close({})


@pytest.fixture
def rule(corridor_run: Any, corridor_model: Path) -> str:
    monitor, _ = make_monitor(corridor_run.config, corridor_model)
    return next(iter(monitor.spec.properties))


@pytest.fixture
def incident(corridor_run: Any, rule: str, tmp_path: Path) -> Path:
    return write_incident(tmp_path / "incidents", corridor_run.held_out, rule)


def test_a_folder_is_a_table(forewarn: Run, incident: Path, rule: str) -> None:
    result = forewarn("incidents", incident.parent)
    assert result.code == 0, result.text
    assert re.search(rf"act +{rule} +0\.750", result.out)
    (told,) = json.loads(forewarn("incidents", incident.parent, "--json").out)
    assert (told["property"], told["trigger"], told["complete"]) == (rule, "act", True)
    with open_recording(incident) as recording:
        assert told["seconds"] == (recording.end_ns - recording.start_ns) / 1e9
    assert told["bytes"] == incident.stat().st_size


def test_replay_takes_an_incident_as_the_recording_that_it_is(
    forewarn: Run, incident: Path, corridor_run: Any, corridor_model: Path
) -> None:
    both = []
    for bag in (incident, corridor_run.held_out):
        given = (bag, "-c", corridor_run.config, "-m", corridor_model, "--verdicts", "-")
        both.append(forewarn("replay", *given, "--exit-zero", "-q").out)
    assert both[0] == both[1]
    assert both[0].count("\n") > 10


def test_a_label_stands_beside_the_file_and_can_be_taken_away(
    forewarn: Run, incident: Path
) -> None:
    before = incident.read_bytes()
    label = ("incidents", incident.parent, "--label", incident.name)
    result = forewarn(*label, "false-alarm", "--comment", "a curtain")
    assert "false-alarm: a curtain" in result.out
    assert json.loads(label_of(incident).read_text()) == {
        "label": "false-alarm",
        "comment": "a curtain",
    }
    (told,) = json.loads(forewarn("incidents", incident.parent, "--json").out)
    assert told["label"] == {"verdict": "false-alarm", "comment": "a curtain"}
    assert incident.read_bytes() == before
    forewarn(*label, "none")
    assert not label_of(incident).exists()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--label", "nothing.mcap", "true"), "no incident there (accepted: incident-"),
        (("--label", "HERE", "perhaps"), "'perhaps' is no label (accepted: true, false-alarm"),
        (("--comment", "why"), "--comment: there is no label"),
        (("--reports", "pages"), "--reports: there is no monitor file (accepted: -c FILE"),
    ],
)
def test_wrong_words_are_refused(
    forewarn: Run, incident: Path, more: tuple[str, ...], told: str
) -> None:
    words = [incident.name if word == "HERE" else word for word in more]
    result = forewarn("incidents", incident.parent, *words)
    assert result.code == 2
    assert told in " ".join(result.err.split())


def test_a_page_opens_on_the_moment(
    forewarn: Run, incident: Path, corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    given = ("-c", corridor_run.config, "-m", corridor_model, "--reports", tmp_path / "pages")
    assert forewarn("incidents", incident, *given).code == 0
    page = (tmp_path / "pages" / f"{incident.stem}.html").read_text()
    found = re.search(r'id="timeline0-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert json.loads(found[1])["opens"] == pytest.approx(5.0, abs=0.1)


def test_what_is_torn_or_no_incident_is_told(
    forewarn: Run, incident: Path, corridor_run: Any
) -> None:
    torn = incident.with_name(incident.name.replace(".mcap", "-torn.mcap"))
    torn.write_bytes(incident.read_bytes()[: incident.stat().st_size // 2])
    result = forewarn("incidents", incident.parent)
    assert result.code == 1
    assert "torn: it was not completed" in result.err
    result = forewarn("incidents", corridor_run.held_out)
    assert result.code == 1
    assert "is no incident (accepted: a file that a node's black box wrote)" in result.err
    label_of(incident).write_text('{"label": "maybe"}')
    assert "'maybe' (accepted: true, false-alarm)" in forewarn("incidents", incident).err
    result = forewarn("incidents", incident, "--label", incident.name, "true")
    assert result.code == 0, "a new label takes the place of one that cannot be read"
    assert " true " in result.out
    result = forewarn("incidents", corridor_run.held_out, "--label", "held.mcap", "true")
    assert result.code == 2
    assert "is no incident" in result.err
    assert not label_of(corridor_run.held_out).exists()
    assert forewarn("incidents", incident.parent / "nowhere").code == 2


def test_an_alert_that_people_call_right_is_no_false_alarm(
    forewarn: Run, corridor_run: Any, corridor_model: Path, rule: str, tmp_path: Path
) -> None:
    monitor, _ = make_monitor(corridor_run.config, corridor_model)
    with open_recording(corridor_run.held_out) as recording:
        run = replay(Replaying(monitor), recording)
    (scored,) = scored_runs(monitor, [run], rule)
    path = write_incident(tmp_path, corridor_run.held_out, rule)
    incident = read_incident(path)
    assert confirmed(rule, run, scored, [incident]) == (scored, 0), "nobody has said anything"
    label_of(path).write_text('{"label": "true"}')
    heeded, count = confirmed(rule, run, scored, [read_incident(path)])
    assert count == 1
    assert heeded.confirmed is not None
    (row,) = np.flatnonzero(heeded.confirmed)
    assert abs(run.start_ns + row / scored.rate * 1e9 - incident.first.time_ns) <= 1e9 / scored.rate
    assert confirmed("another", run, scored, [read_incident(path)])[1] == 0
    given = ("-c", corridor_run.config, "-m", corridor_model, "--false-alarms-per-hour", 5)
    result = forewarn("tune", corridor_run.held_out, *given, "--incidents", tmp_path)
    assert f"{rule}: 1 incident of these recordings labelled true" in result.err
    assert "an incident is there because" in forewarn("tune", path, *given).err


def test_only_incidents_with_a_label_are_read_where_labels_are_heeded(
    forewarn: Run, incident: Path, corridor_run: Any, corridor_model: Path, rule: str
) -> None:
    incident.with_name("incident-20261123T011500-000Z-torn.mcap").write_bytes(b"")
    given = ("-c", corridor_run.config, "-m", corridor_model, "--false-alarms-per-hour", 5)
    arguments = ("tune", corridor_run.held_out, *given, "--incidents", incident.parent)
    result = forewarn(*arguments)
    assert result.code in (0, 1), result.err
    assert f"{rule}: 0 incidents of these recordings labelled true" in result.err
    gone = incident.with_name("incident-20261123T011600-000Z.label.json")
    gone.write_text('{"label": "true"}')
    assert f"{gone}: its incident is gone" in forewarn(*arguments).err
    assert f"{gone}: its incident is gone" in forewarn("incidents", incident.parent).err
    label_of(incident).write_text("{")
    result = forewarn(*arguments)
    assert result.code == 2
    assert f"{label_of(incident)}: is no label" in result.err


@pytest.mark.parametrize("violated", [False, True])
def test_what_somebody_may_have_prevented_is_not_calibrated_on(
    forewarn: Run,
    corridor_run: Any,
    corridor_model: Path,
    rule: str,
    tmp_path: Path,
    violated: bool,
) -> None:
    """Which ticks are judged is told by looking at each of them."""
    monitor, _ = make_monitor(corridor_run.config, corridor_model)
    with open_recording(corridor_run.held_out) as recording:
        run = replay(Replaying(monitor), recording)
    at = [track.name for track in run.tracks].index(rule)
    track = run.tracks[at]
    assert track.horizon is not None
    breaches = np.flatnonzero(track.violation)
    following = {row + k for row in breaches for k in range(-60, 1)}
    calm = next(row for row in range(50, len(track.ticks)) if row not in following)
    begin = int(breaches[len(breaches) // 2]) - 3 if violated else calm
    path = write_incident(
        tmp_path, corridor_run.held_out, rule, begin / track.rate, (begin + 8) / track.rate
    )
    label_of(path).write_text('{"label": "true"}')
    heeded, count = without_prevented(run, [read_incident(path)])
    assert count == (not violated)
    before, after = run.predictions[at], heeded.predictions[at]
    if violated:
        assert len(after.risk) == len(before.risk)
        assert heeded.tracks[at] is track
    else:
        lost = range(begin - track.horizon, begin + 8)
        judged = predicted(track) & outcomes(track)[1]
        gone = int(judged[lost.start : lost.stop].sum())
        assert 0 < gone == len(before.risk) - len(after.risk)
        assert after.censored == before.censored + gone
        kept = np.flatnonzero(judged)
        kept = kept[(kept < lost.start) | (kept >= lost.stop)]
        assert np.array_equal(after.risk, track.probability[kept])
        assert np.array_equal(after.followed, outcomes(track)[0][kept])
    others = [part for n, part in enumerate(heeded.predictions) if n != at]
    assert [len(part.risk) for part in others] == [
        len(part.risk) for n, part in enumerate(run.predictions) if n != at
    ]
    if violated:
        return
    given = ("-c", corridor_run.config, "-o", tmp_path / "model.json")
    arguments = ("learn", corridor_run.recordings[0], *given, "--calibration", "none", "--json")
    calibrating = ("--calibrate", corridor_run.held_out)
    result = forewarn(*arguments, *calibrating, "--incidents", tmp_path)
    assert "1 alert labelled true without a violation" in result.err
    plain = json.loads(forewarn(*arguments, *calibrating).out)["calibration"][rule]["before"]
    told = json.loads(result.out)["calibration"][rule]["before"]
    assert told["ticks"] < plain["ticks"]
    result = forewarn(*arguments, "--incidents", tmp_path)
    assert result.code == 2
    assert "--incidents: nothing is calibrated (accepted: --calibrate as well)" in result.err
