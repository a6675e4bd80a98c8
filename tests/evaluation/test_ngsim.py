"""Recorded traffic: read, and converted without a look ahead."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.foresight.commonroad import backward_slope, load_scene
from evaluation.foresight.ngsim import trace_lines
from forewarn.errors import InputError

STEPS = 30
LANE = """
<lanelet id="{id}">
  <leftBound><point><x>0</x><y>{left}</y></point><point><x>300</x><y>{left}</y></point></leftBound>
  <rightBound><point><x>0</x><y>{right}</y></point><point><x>300</x><y>{right}</y></point></rightBound>
</lanelet>"""
STATE = """
<{tag}><position><point><x>{x}</x><y>{y}</y></point></position>
<orientation><exact>0</exact></orientation><time><exact>{t}</exact></time>
<velocity><exact>{v}</exact></velocity></{tag}>"""


def car(number: int, path: list[tuple[float, float, float]], old_layout: bool) -> str:
    """Return a car of 4 m by 2 m; `path` gives x, y and speed of each step."""
    states = [
        STATE.format(tag="state" if t else "initialState", x=x, y=y, t=t, v=v)
        for t, (x, y, v) in enumerate(path)
    ]
    body = (
        "<shape><rectangle><length>4</length><width>2</width></rectangle></shape>"
        f"{states[0]}<trajectory>{''.join(states[1:])}</trajectory>"
    )
    if old_layout:
        return f'<obstacle id="{number}"><role>dynamic</role>{body}</obstacle>'
    return f'<dynamicObstacle id="{number}">{body}</dynamicObstacle>'


def scene_file(folder: Path, *, old_layout: bool = False, last: float = 10.0) -> Path:
    """Two lanes; car 1 follows car 2, and car 3 changes from the left lane to between them.

    `last` is the speed of car 2 at the last step.
    """
    ego = [(20 + 1.0 * t, 0.0, 10.0) for t in range(STEPS)]
    lead = [(70 + 1.0 * t, 0.0, 10.0 if t < STEPS - 1 else last) for t in range(STEPS)]
    side = [(40 + 1.0 * t, max(3.5 - 0.2 * t, 0.0), 10.0) for t in range(STEPS)]
    cars = [car(n + 1, path, old_layout) for n, path in enumerate((ego, lead, side))]
    lanes = LANE.format(id=11, left=1.75, right=-1.75) + LANE.format(id=12, left=5.25, right=1.75)
    path = folder / "scene.xml"
    path.write_text(
        f'<commonRoad timeStepSize="0.1">{lanes}{"".join(cars)}</commonRoad>', encoding="utf-8"
    )
    return path


def ego_lines(path: Path) -> list[dict[str, Any]]:
    scene = load_scene(path)
    return list(trace_lines(scene, scene.cars[0]))


@pytest.mark.parametrize("old_layout", [False, True])
def test_the_gap_is_between_bumpers_and_a_cut_in_is_seen_once(
    tmp_path: Path, old_layout: bool
) -> None:
    lines = ego_lines(scene_file(tmp_path, old_layout=old_layout))
    # Car 3 comes within 1.5 m of the lane's centre when 3.5 - 0.2 t < 1.5.
    cut = [row for row, line in enumerate(lines) if line["lead_cuts_in"]]
    assert cut == [11]
    assert [line["lead_distance"] for line in lines[:11]] == pytest.approx([46.0] * 11)
    assert [line["lead_distance"] for line in lines[11:]] == pytest.approx([16.0] * (STEPS - 11))
    # Two metres a second to the right, 0.7 m to go.
    assert lines[7]["side_crossing"] == pytest.approx((2.1 - 1.5) / 2.0)
    assert lines[20]["side_crossing"] == math.inf


def test_a_line_holds_nothing_from_the_future(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    before = ego_lines(scene_file(tmp_path))
    after = ego_lines(scene_file(other, last=3.0))
    assert before[:-1] == after[:-1]


def test_a_gap_in_a_record_is_an_error(tmp_path: Path) -> None:
    path = scene_file(tmp_path)
    text = path.read_text(encoding="utf-8").replace(
        "<time><exact>9</exact></time>", "<time><exact>99</exact></time>", 1
    )
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="gaps"):
        load_scene(path)


def test_round_cars_and_measured_intervals_are_read(tmp_path: Path) -> None:
    path = scene_file(tmp_path)
    text = path.read_text(encoding="utf-8").replace(
        "<rectangle><length>4</length><width>2</width></rectangle>",
        "<circle><radius>1.5</radius></circle>",
    )
    ends = "<intervalStart>8</intervalStart><intervalEnd>12</intervalEnd>"
    text = text.replace("<velocity><exact>10.0</exact></velocity>", f"<velocity>{ends}</velocity>")
    path.write_text(text, encoding="utf-8")
    first = load_scene(path).cars[0]
    assert (first.length, first.width) == (3.0, 3.0)
    assert first.speed.tolist() == [10.0] * STEPS


def test_a_slope_looks_back_only() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0, 3.0, 3.0])
    slope = backward_slope(values, 0.5, 2)
    assert np.isnan(slope[0])
    assert slope[1:].tolist() == [2.0, 2.0, 2.0, 1.0, 0.0]
