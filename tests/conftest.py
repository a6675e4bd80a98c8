"""What all tests share."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Generator, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "scripts")]  # what several folders of tests share
from extent import WHOLE, examples  # noqa: E402 - it lies beside

# Threads that wait for each other by spinning; OpenBLAS reads it when numpy is imported.
os.environ["OMP_NUM_THREADS"] = "1"
TERMINAL = (
    "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TERM", "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)  # fmt: skip
"""What a shell or a continuous integration says of its terminal; it changes what is printed."""
settings.register_profile(
    "patient",  # the health check goes by the clock as the deadline does
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(  # with a seed, 100
    "repeatable", settings.get_profile("patient"), derandomize=True, max_examples=examples(50)
)


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same inputs on every machine unless a seed is named, however slow it is."""
    if not config.getoption("--hypothesis-profile"):
        seeded = config.getoption("--hypothesis-seed")
        settings.load_profile("patient" if seeded else "repeatable")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let workers begin to collect at different folders, and read what another has rewritten.

    Half of what it takes to collect all tests is rewriting their assertions. Workers that begin
    together at the same file all do it.
    """
    config = session.config
    if not hasattr(config, "workerinput") or config.args != config.getini("testpaths"):
        return (yield)
    number, workers = int(config.workerinput["workerid"][2:]), config.workerinput["workercount"]
    config.args = folders_from(number / workers)
    with pytest.MonkeyPatch.context() as patch:  # only here: tests edit modules that they import
        patch.setattr(sys, "dont_write_bytecode", False)
        return (yield)


def folders_from(share: float) -> list[str]:
    """Return all folders and files of tests; those with the first `share` of the text come last."""
    core = ROOT / "tests" / "core"
    places = [place for folder in (core.parent, core) for place in sorted(folder.iterdir())]
    sizes = {
        str(place): sum(file.stat().st_size for file in [place, *place.rglob("test_*.py")])
        for place in places
        if place != core and (place.match("test_*.py") or any(place.rglob("test_*.py")))
    }
    ends = list(accumulate(sizes.values()))
    begin = bisect_right(ends, share * ends[-1])
    return [*sizes][begin:] + [*sizes][:begin]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Show why tests were tried again: one that passes then leaves no other trace."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"tried again: {report.nodeid} ({report.when})")
        terminalreporter.line(report.longreprtext)
        for name, text in report.sections:
            terminalreporter.line(f"{name}:\n{text}")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Spare the garbage collector what was collected: ten thousand tests and their modules.

    Each of its full rounds went through all of them, for half a second.
    """
    gc.freeze()


def files_in_order(items: list[pytest.Item]) -> list[Path]:
    """Return the files of tests: those with slow tests first, then those with many.

    Live tests mostly wait, and all others need the processor. Each kind is spread over the run by
    its number of tests: when live tests came last, they waited beside each other.
    """
    many = Counter(item.path for item in items)
    slow, live = (
        {item.path for item in items if item.get_closest_marker(name)} for name in ("slow", "ros")
    )
    files = sorted(many, key=lambda path: (-many[path], path))
    share: dict[Path, float] = {}
    for kind in (live, many.keys() - live):
        own = [path for path in files if path in kind]
        ends = [*accumulate(many[path] for path in own)]
        share |= {path: end / ends[-1] for path, end in zip(own, ends, strict=True)}
    return sorted(files, key=lambda path: (path not in slow, share[path]))


@pytest.fixture(scope="session", autouse=True)
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's terminal out of what is printed, and ROS out of the home and the network.

    The home may be read-only, and no node starts where its log cannot be written. On a network
    the same tests may run beside us, with nodes of the same names.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in TERMINAL:
            patch.delenv(name, raising=False)
        patch.setenv("ROS_LOG_DIR", str(tmp_path_factory.mktemp("ros-log")))
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        yield


@pytest.fixture(scope="session", autouse=True)
def prompt_fast_dds(surroundings: None, request: pytest.FixtureRequest) -> None:
    """Let the writers of live tests ask for acknowledgements at once.

    Fast DDS reads its profile once in a process, when the first node is made. If a test makes that
    node without the profile, all later tests of the process wait three seconds for each message.
    The monitors that tests start are left alone.
    """
    live = any(item.get_closest_marker("ros") is not None for item in request.session.items)
    if live and importlib.util.find_spec("rclpy") is not None:
        from live_ros import Probe, free_domain

        from monitor_node.lockstep import prompt_acknowledgements

        with prompt_acknowledgements(), free_domain() as domain:
            Probe(domain).close()


@pytest.fixture(autouse=True)
def levels_of_logs() -> Iterator[None]:
    """Give the levels of the logs back: studies and benchmarks that run in a test set them.

    A later test in the same process reads what is logged.
    """
    logs = [logging.getLogger(), logging.getLogger("agent_guard")]
    levels = [log.level for log in logs]
    yield
    for log, level in zip(logs, levels, strict=True):
        log.setLevel(level)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of recordings and models made by others; skip where it is absent."""
    from others_data import DATA as folder

    if not folder.is_dir():
        pytest.skip(
            f"{folder} is absent: recordings and models of others do not ship with Forewarn"
        )
    return folder


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Try what goes by a clock once more: a busy machine can take longer than any fair limit.

    What is broken fails twice; the closing lines of a run name what was tried again. Workers that
    share the tests hand them out by file.
    """
    if hasattr(config, "workerinput"):
        order = {path: place for place, path in enumerate(files_in_order(items))}
        items.sort(key=lambda item: order[item.path])
    for item in items:
        if item.get_closest_marker("long") is not None and not WHOLE:
            item.add_marker(pytest.mark.skip(reason="takes long: `make test-long` runs it"))
        if any(item.get_closest_marker(name) is not None for name in ("ros", "clocked")):
            item.add_marker(pytest.mark.flaky(reruns=1))
