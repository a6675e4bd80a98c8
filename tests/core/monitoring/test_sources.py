"""What an intervention rests on, from a session by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from small_world import MONITOR, TYPES, serialized

from forewarn.config.file import load_spec
from forewarn.logic.specification import compile_spec
from forewarn.messages.definitions import installed_message_type
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.sources import Lapses, Source, sources_of

NOW = 1_700_000_000


@pytest.fixture
def watch(tmp_path: Path) -> LiveSession:
    file = tmp_path / "monitor.yaml"
    file.write_text(MONITOR)
    types = {topic: installed_message_type(name) for topic, name in TYPES.items()}
    return LiveSession(compile_spec(load_spec(file)), None, types)


def feed(watch: LiveSession, topic: str, value: float, time_ns: int) -> None:
    watch.accept(topic, time_ns, serialized(topic, value))


def sources(watch: LiveSession, tick: int, lapses: Lapses) -> dict[str, Source]:
    verdict = watch.tick(tick).verdict
    names = watch.monitor.abstraction.signals
    lapses.since = lapses.at(verdict.time_ns, names, verdict.values)
    ages = watch.feed.ages(tick)
    nodes = {"/world/odometry": ("/base",)}
    found = sources_of(watch.monitor, verdict, ages, lapses.since, nodes)
    return {source.signal: source for source in found}


def test_ages_of_derived_signals_are_those_of_the_oldest_they_need(watch: LiveSession) -> None:
    tick = NOW * 10
    feed(watch, "/world/odometry", 2.0, NOW * 10**9 - 300_000_000)
    feed(watch, "/world/distance", 6.0, NOW * 10**9 - 100_000_000)
    found = sources(watch, tick, Lapses())
    assert found["ttc"].age == found["speed"].age == 0.3
    assert found["distance"].age == 0.1
    assert (found["ttc"].value, found["ttc"].text) == (3.0, "3")
    assert found["speed"].publishers == ("/base",)
    assert found["distance"].publishers == found["ttc"].publishers == ()
    assert "moving" in found["speed"].predicates
    assert not any(source.unknown_since_ns for source in found.values())


def test_what_is_unknown_comes_first_and_tells_since_when(watch: LiveSession) -> None:
    tick, lapses = NOW * 10, Lapses()
    feed(watch, "/world/odometry", 2.0, NOW * 10**9)
    first = sources(watch, tick, lapses)
    assert list(first)[:2] == ["distance", "ttc"] or list(first)[:2] == ["ttc", "distance"]
    assert (first["distance"].age, first["distance"].stamp_ns) == (math.inf, 0)
    later = sources(watch, tick + 1, lapses)
    assert later["distance"].unknown_since_ns == NOW * 10**9
    feed(watch, "/world/distance", 6.0, NOW * 10**9 + 150_000_000)
    assert sources(watch, tick + 2, lapses)["distance"].unknown_since_ns == 0
    again = sources(watch, tick + 20, lapses)
    assert again["distance"].unknown_since_ns == NOW * 10**9 + 2 * 10**9
