"""Whatever happens to a monitor, its planners and its clock: nobody is let go but by the rules.

A real node with all its actuators lives several lives beside robots that come, go and refuse.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import rclpy
from beside import FILES, Beside
from extent import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from live_ros import free_domain
from lives import Lives, steady
from rclpy.context import Context
from rclpy.lifecycle import TransitionCallbackReturn
from switchboard import modules

from forewarn.config.file import load_spec
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.models.file import save_model
from forewarn.monitoring.build import compile_spec
from monitor_node.testing import Switchboard

pytestmark = pytest.mark.ros


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    """Return a context of the test's own."""
    with free_domain() as domain:
        found = Context()
        rclpy.init(context=found, domain_id=domain)
        yield found
        rclpy.shutdown(context=found)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all monitor files and their model."""
    folder = tmp_path_factory.mktemp("lives")
    for name, text in FILES.items():
        (folder / f"{name}.yaml").write_text(text)
    compiled = compile_spec(load_spec(folder / "same.yaml"))
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    for tick in range(600):
        counter.add(tick, (tick // 5) % 3)
    counter.end_recording()
    model = build_model(counter, rate=10.0, digest=compiled.abstraction.digest)
    save_model(model, folder / "model.json")
    return folder


OFTEN = {"values": 3, "wait": 3, "restart": 2, "autoware": 2, "nav2": 2, "apollo": 2}
SELDOM = (
    "jump",
    "mute",
    "release",
    "reset",
    "acknowledge",
    "change",
    "deactivate",
    "kill",
    "gate",
    "hang",
    "fail",
    "odd",
)
WHAT = [*SELDOM, *(what for what, times in OFTEN.items() for _ in range(times))]
Event = st.tuples(st.sampled_from(WHAT), st.integers(0, 1000))
LIMITED, ASIDE, CALM = 1, 3, 2
OVER = ("values", CALM), ("wait", 8)
REFUSES, SLOWER, SAME = ("autoware", 1), ("nav2", 14), ("restart", 0)
# What seldom comes about by chance: something happens just when an alert acts or is about to end.
Alert = st.tuples(st.sampled_from([LIMITED, ASIDE]), st.integers(0, 8)).map(
    lambda drawn: [("values", drawn[0]), ("wait", drawn[1])]
)
Turn = st.one_of(
    st.integers(0, 5).map(lambda number: [("values", CALM), ("jump", number)]),
    st.just([("kill", 0), ("values", CALM), SAME]),
    st.just([*OVER, REFUSES, ("values", LIMITED), ("values", ASIDE)]),
    st.just([*OVER, SLOWER, ("values", LIMITED)]),
    st.just([("fail", 0), ("wait", 2), ("fail", 0)]),
    Event.map(lambda event: [event]),
)
Story = st.tuples(Alert, Turn).map(lambda parts: [*parts[0], *parts[1], ("wait", 3)])
Events = st.lists(st.one_of(Event.map(lambda event: [event]), Story), max_size=6).map(
    lambda parts: [event for part in parts for event in part]
)


@contextmanager
def lived(context: Context, files: Path) -> Iterator[Beside]:
    """Begin a life, with nothing left of others, and end it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in modules():
            patch.setitem(sys.modules, name, module)
        for old in ("journal", "bridge"):
            (files / old).unlink(missing_ok=True)
        lives = Lives(context, files, Switchboard())
        steady(lives, patch)
        beside = Beside(lives, files)
        try:
            yield beside
        finally:
            if lives.node is not None:
                lives.kill()


@pytest.mark.parametrize("manner", ["accept", "refuse", "silent"])
def test_who_is_cleaned_up_before_a_stop_is_taken_back_says_so(
    context: Context, files: Path, manner: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with lived(context, files) as beside:
        for event in (*OVER, ("values", ASIDE), ("wait", 1)):
            beside.do(*event)
        assert beside.autoware.requests
        beside.autoware.manner = manner
        node = beside.lives.node
        assert node is not None
        assert node.trigger_deactivate() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_cleanup() == TransitionCallbackReturn.SUCCESS
        assert bool(beside.autoware.requests) == (manner != "accept")
        told = "what was asked of autoware may stay in force: its end was not confirmed"
        assert (told in capfd.readouterr().err) == (manner != "accept")


@pytest.mark.parametrize(("asks", "limit"), [(LIMITED, 0.5), (ASIDE, 0.0)])
def test_what_a_killed_life_has_left_stays_until_the_first_tick(
    context: Context, files: Path, asks: int, limit: float
) -> None:
    with lived(context, files) as beside:
        for event in (*OVER, ("values", asks), ("kill", 0)):
            beside.do(*event)
        lives = beside.lives
        assert beside.autoware.allowed == limit
        lives.begin(files / "same.yaml")
        beside.autoware._read()  # the table is told of whenever anybody changes it
        lives.now += 1.0
        assert lives.node is not None
        for timer in list(lives.node.timers):
            timer.callback()
        assert beside.autoware.allowed == limit


@given(Events)
@example([*OVER, REFUSES, ("values", LIMITED), ("values", ASIDE), ("kill", 0), SAME, ("wait", 8)])
@settings(
    max_examples=examples(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
def test_nobody_is_let_go_but_by_the_rules_or_a_person(
    context: Context, files: Path, events: list[tuple[str, int]]
) -> None:
    with lived(context, files) as beside:
        for what, number in events:
            beside.do(what, number)
        beside.calm_down()
