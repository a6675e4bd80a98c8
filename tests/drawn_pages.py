"""A monitor of the corridor, a run of it, and a browser to look at pages with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Page, find_chromium

from forewarn.assessment.replay import RecordedRun, Replaying, replay
from forewarn.config.file import load_spec
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.step import Monitor
from forewarn.recordings.registry import open_recording
from forewarn.reports.html import render


@pytest.fixture(scope="session")
def learned(corridor_run: Any) -> tuple[Monitor, CountModel]:
    compiled = compile_spec(load_spec(corridor_run.config))
    model = learn(corridor_run.recordings, compiled.spec, compiled.abstraction).model
    return build_monitor(compiled, model), model


@pytest.fixture(scope="session")
def replayed(corridor_run: Any, learned: tuple[Monitor, CountModel]) -> RecordedRun:
    with open_recording(corridor_run.held_out) as recording:
        return replay(Replaying(learned[0], keep_signals=True), recording)


@pytest.fixture(scope="session")
def page(learned: tuple[Monitor, CountModel], replayed: RecordedRun) -> str:
    return render(*learned, [replayed])


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Yield a headless Chromium, the same for all tests: starting one takes seconds."""
    if find_chromium() is None:
        pytest.skip("no Chromium here: install chromium to see the report drawn")
    shown = Page(tmp_path_factory.mktemp("profile"))
    yield shown
    shown.close()


@pytest.fixture
def look(browser: Page, tmp_path: Path) -> Callable[..., Page]:
    """Return a function that opens a page in the browser and waits until it is drawn."""

    def show(text: str, width: int = 1400, scheme: str = "light") -> Page:
        file = tmp_path / "report.html"
        file.write_text(text, encoding="utf-8")
        browser.console.clear()
        browser.requests.clear()
        browser.resize(width, 1000)
        browser.prefer(scheme)
        browser.open(file)
        return browser

    return show
