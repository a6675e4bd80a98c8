"""Monitors of other kinds: every one has a page that draws and reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.assessment.replay import RecordedRun, Replaying, replay
from forewarn.config.file import load_spec
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.recordings.registry import open_recording
from forewarn.reports.html import render
from forewarn.reports.timeline import INACTIVE, timeline

CHANGES = {
    "history": ("rate: 10\n", "rate: 10\nhistory: 2\n"),
    "unbounded": ("horizon: 2.0", "horizon: unbounded"),
    "no bounds": ("rate: 10\n", "rate: 10\nbounds: {kind: none}\n"),
    "inactive": ("rate: 10\n", "rate: 10\nactive_when: speed > 0.1\n"),
    "close levels": (
        "{warn: 0.2, act: 0.4, release: 0.1}",
        "{warn: 0.0801, act: 0.0851, release: 0.05}",
    ),
    "upper": ("horizon: 1.0", "horizon: 1.0\n    risk_measure: upper"),
    "escalating": (
        "enter: 1\n",
        "enter: 1\n    intervention: LIMIT_SPEED\n    speed_limit: 0.5\n"
        "    escalation: [{after: 0.5, action: EMERGENCY_STOP}]\n",
    ),
}


def variant(corridor_run: Any, folder: Path, *names: str) -> tuple[Any, Any, RecordedRun]:
    """Return monitor, model and the replay of a monitor file that is a little different."""
    text = corridor_run.config.read_text()
    for name in names:
        old, new = CHANGES[name]
        assert old in text
        text = text.replace(old, new)
    config = folder / "monitor.yaml"
    config.write_text(text)
    compiled = compile_spec(load_spec(config))
    model = learn(corridor_run.recordings[:2], compiled.spec, compiled.abstraction).model
    monitor = build_monitor(compiled, model)
    with open_recording(corridor_run.held_out) as recording:
        return monitor, model, replay(Replaying(monitor, keep_signals=True), recording)


@pytest.mark.parametrize(
    "names", [("history", "no bounds", "inactive", "escalating"), ("unbounded", "upper")]
)
def test_its_page_draws_without_a_complaint(
    corridor_run: Any, tmp_path: Path, names: tuple[str, ...], look: Any
) -> None:
    monitor, model, run = variant(corridor_run, tmp_path, *names)
    shown = look(render(monitor, model, [run]))
    shown.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    shown.settle()
    assert shown.console == []
    assert shown.evaluate("document.body.dataset.problems") == ""
    assert "undefined" not in shown.evaluate("document.body.innerText")
    assert "NaN" not in shown.evaluate("document.body.innerText")


def test_phases_that_are_not_monitored_are_marked(corridor_run: Any, tmp_path: Path) -> None:
    monitor, _, run = variant(corridor_run, tmp_path, "inactive")
    drawn = timeline(monitor, run)
    (strip,) = [t for t in drawn.rows[0]["traces"] if t.get("equals") == INACTIVE and
                t["column"].startswith("missing")]  # fmt: skip
    inactive = run.tracks[0].status == PropertyStatus.INACTIVE
    assert 50 < inactive.sum() < 550
    assert ((drawn.columns[strip["column"]].values == INACTIVE) == inactive).all()


def test_the_lanes_of_a_monitor_with_history_are_those_of_the_present(
    corridor_run: Any, tmp_path: Path
) -> None:
    _, _, run = variant(corridor_run, tmp_path, "history")
    assert run.lanes.names == ("fast", "nearest<0.6", "nearest<1", "nearest<1.6", "contact")


def test_a_stronger_wish_after_a_while_is_shown(corridor_run: Any, tmp_path: Path) -> None:
    monitor, _, run = variant(corridor_run, tmp_path, "escalating")
    drawn = timeline(monitor, run)
    (row,) = [one_row for one_row in drawn.rows if one_row["key"] == "asked"]
    assert {"limit speed", "emergency stop"} <= set(row["yaxis"]["ticktext"])


@pytest.mark.parametrize("width", [1400, 390])
def test_names_of_levels_are_whole_and_do_not_cover_each_other(
    corridor_run: Any, tmp_path: Path, look: Any, width: int
) -> None:
    """`forewarn tune` writes levels of three digits, and small ones close to each other."""
    monitor, model, run = variant(corridor_run, tmp_path, "close levels")
    shown = look(render(monitor, model, [run]), width)
    boxes = shown.evaluate(
        "[...document.querySelectorAll('#timeline0 .annotation-text')].map(e => "
        "[e.textContent, e.getBoundingClientRect()]).map(([t, b]) => "
        "[t, b.left, b.right, b.top, b.bottom])"
    )
    levels = {text: box for text, *box in boxes if text in ("act 0.0851", "warn 0.0801")}
    act, warn = levels["act 0.0851"], levels["warn 0.0801"]
    assert warn[1] <= act[0] or act[3] <= warn[2]
    ends = shown.evaluate("document.getElementById('timeline0').getBoundingClientRect().right")
    assert max(act[1], warn[1]) <= ends


def test_a_trace_of_named_values_has_a_page(tmp_path: Path, look: Any) -> None:
    """JSON lines have no topics and no date."""
    config, trace = tmp_path / "monitor.yaml", tmp_path / "run.jsonl"
    config.write_text(
        "version: 1\nrate: 10\nsignals: {gap: {unit: m}, mode: {}}\n"
        "predicates: {close: gap < 5, automatic: mode == 'auto'}\n"
        "properties:\n  apart: {formula: always(not close), horizon: 1}\n"
    )
    lines = [
        f'{{"t": {i / 10}, "gap": {abs(30 - i) / 2}, "mode": "{"auto" if i > 5 else "manual"}"}}'
        for i in range(60)
    ]
    trace.write_text("\n".join(lines) + "\n")
    compiled = compile_spec(load_spec(config))
    model = learn([trace], compiled.spec, compiled.abstraction).model
    monitor = build_monitor(compiled, model)
    with open_recording(trace) as recording:
        run = replay(Replaying(monitor, keep_signals=True), recording)
    shown = look(render(monitor, model, [run]))
    assert shown.console == []
    drawn = shown.evaluate(
        "document.getElementById('timeline0').data.filter(t => t.name === 'gap')[0].y"
    )
    assert np.allclose(drawn[:60], [abs(30 - i) / 2 for i in range(60)][: len(drawn)])
    labels = shown.evaluate(
        "[...document.querySelectorAll('#timeline0 [class$=tick] text')].map(e => e.textContent)"
    )
    assert {"auto", "manual"} <= set(labels)
