"""Events of a session: one type for each kind, and the bytes that records have always held."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.errors import RecordingError
from forewarn.monitoring import session_events
from forewarn.monitoring.session_events import (
    Acknowledge,
    Activate,
    Beginning,
    ClockHeard,
    Event,
    GoalDecided,
    ModelChange,
    Mute,
    PolicyChange,
    Recall,
    Release,
    Reset,
    Start,
    UnknownEvent,
    decode,
    encode,
)

# The texts are those that the node wrote before events had types.
WRITTEN: list[tuple[Event, str]] = [
    (
        Activate(10.0, 0, {"/odom": "/car/odom"}),
        '{"event":"activate","rate":10.0,"settle_ns":0,"inputs":{"/odom":"/car/odom"}}',
    ),
    (ClockHeard(12), '{"event":"clock","time_ns":12}'),
    (Start("activated", 3, 300), '{"event":"start","reason":"activated","tick":3,"time_ns":300}'),
    (
        Beginning("activated", 3, 300, model=None, bounded=False, shift_ns=7),
        '{"event":"start","reason":"activated","tick":3,"time_ns":300,"model":null,'
        '"bounded":false,"shift_ns":7}',
    ),
    (
        Beginning("a", 3, 300, model="m.json", tables="t.bin", shift_ns=0),
        '{"event":"start","reason":"a","tick":3,"time_ns":300,"model":"m.json","bounded":true,'
        '"tables":"t.bin","shift_ns":0}',
    ),
    (
        Recall(4, {"tick": None, "mutes": {"brake": None}}),
        '{"event":"recall","first":4,"memory":{"tick":null,"mutes":{"brake":null}}}',
    ),
    (Reset(("brake", "stop")), '{"event":"reset","properties":["brake","stop"]}'),
    (
        Release(("brake",), "ann", ""),
        '{"event":"release","properties":["brake"],"requester":"ann","reason":""}',
    ),
    (Mute(("brake",), 30.0), '{"event":"mute","properties":["brake"],"duration":30.0}'),
    (
        Mute(("brake",), math.inf, "ann", "bench"),
        '{"event":"mute","properties":["brake"],"duration":"inf","requester":"ann",'
        '"reason":"bench"}',
    ),
    (
        Acknowledge("all", "ann", "seen"),
        '{"event":"acknowledge","lost":"all","requester":"ann","reason":"seen"}',
    ),
    (
        PolicyChange("brake", {"act": 0.3}),
        '{"event":"policy","property":"brake","values":{"act":0.3}}',
    ),
    (
        GoalDecided("arm", "/go/goal", 7, "AAE=", False, "WARN", True, "a", True, 1.0, "a: b"),
        '{"event":"goal","guard":"arm","topic":"/go/goal","tick":7,"goal":"AAE=","passes":false,'
        '"action":"WARN","active":true,"property":"a","certain":true,"risk":1.0,"reason":"a: b"}',
    ),
    (ModelChange(None, "1f"), '{"event":"model","model":null,"digest":"1f"}'),
    (
        ModelChange("m.json", "1f", "t.bin"),
        '{"event":"model","model":"m.json","digest":"1f","tables":"t.bin"}',
    ),
    (UnknownEvent({"event": "zap", "power": 3}), '{"event":"zap","power":3}'),
]


@pytest.mark.parametrize(("event", "text"), WRITTEN)
def test_an_event_is_written_as_ever_and_read_back(event: Event, text: str) -> None:
    assert encode(event) == text
    assert decode(text) == event


def test_every_kind_of_event_is_among_those_examples() -> None:
    assert {type(event) for event, _ in WRITTEN} == set(get_args(Event))


def test_a_field_of_a_newer_version_makes_an_event_unknown_and_is_kept() -> None:
    text = '{"event":"reset","properties":["brake"],"depth":2}'
    event = decode(text)
    assert isinstance(event, UnknownEvent)
    assert event.kind == "reset"
    assert encode(event) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "'' is no event"),
        ("hello", "'hello' is no event"),
        ("[1]", r"'\[1\]' is no event"),
        ('{"kind":"reset"}', "is no event"),
        ('{"event":7}', "is no event"),
        ('{"event":"reset"}', "event reset.properties: Field required"),
        ('{"event":"clock","time_ns":"soon"}', "event clock.time_ns: Input should be a valid int"),
        ('{"event":"start","shift_ns":0}', "event start.reason: Field required"),
    ],
)
def test_what_is_no_event_is_refused_with_the_place(text: str, complaint: str) -> None:
    with pytest.raises(RecordingError, match=complaint):
        decode(text)


@given(st.text() | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.text() | st.sampled_from(["event", "tick", "model", "properties"]), inner),
).map(json.dumps) | st.builds(
    lambda kind, rest: json.dumps({**rest, "event": kind}),
    st.sampled_from([event.kind for event, _ in WRITTEN]),
    st.dictionaries(
        st.sampled_from(["properties", "duration", "time_ns", "model", "digest", "values"]),
        st.none() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    ),
))  # fmt: skip
def test_any_text_gives_an_event_or_an_error_in_words(text: str) -> None:
    try:
        event = decode(text)
    except RecordingError:
        return
    assert isinstance(event, get_args(Event))


HANDLERS = {
    "forewarn/src/forewarn/assessment/published.py",
    "forewarn/src/forewarn/assessment/record_replay.py",
}


@pytest.mark.long
def test_mypy_names_every_place_that_misses_a_new_kind_of_event(tmp_path: Path) -> None:
    head = "@dataclass(frozen=True)\nclass "
    source = Path(session_events.__file__).read_text()
    source = source.replace(f"{head}Reset", f'{head}Zap:\n    kind = "zap"\n\n\n{head}Reset')
    source = source.replace("    | Recall\n", "    | Recall\n    | Zap\n")
    changed = tmp_path / "session_events.py"
    changed.write_text(source)
    root = Path(__file__).parents[3]
    original = Path(session_events.__file__).relative_to(root)
    options = ["--follow-imports=skip", "--disable-error-code=misc", "--disable-error-code=import"]
    options += [f"--cache-dir={tmp_path / 'cache'}", "--shadow-file", str(original), str(changed)]
    result = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(original), *sorted(HANDLERS)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert {line.split(":")[0] for line in result.stdout.splitlines() if '"Zap"' in line} == (
        HANDLERS
    ), result.stdout
