"""All problems of a monitor file are found in one pass: as many as if each stood alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forewarn.config.file import load_spec
from forewarn.errors import ConfigError, ConfigErrors
from forewarn.logic.specification import all_problems, compile_spec

SCAN = "topic: /scan, type: sensor_msgs/msg/LaserScan"
GOOD = f"""\
version: 1
rate: 10
signals:
  speed: {{topic: /odom, type: nav_msgs/msg/Odometry, value: twist.twist.linear.x, timeout: 0.5}}
  near: {{{SCAN}, value: min(ranges), timeout: 0.5}}
  far: {{{SCAN}, value: max(ranges), timeout: 0.5}}
predicates:
  fast: speed > 0.5
  close: near < 1
  open: far > 5
bins: {{near: [2, 3]}}
terminal: {{bumped: near < 0.1}}
properties:
  slow_down: {{formula: "always(close implies eventually[0:2](not fast))", horizon: 5}}
  stay_open:
    formula: always(open)
    horizon: 5
learning: {{alpha: sparse}}
"""


class Mistake(NamedTuple):
    """A change that makes a file wrong, with the key path that the error names."""

    old: str
    new: str
    key: str


MISTAKES = (
    Mistake("version: 1\n", "version: 1\nextra: 3\n", "extra"),
    Mistake("alpha: sparse", "alhpa: 1", "learning.alhpa"),
    Mistake("linear.x, timeout: 0.5", "linear.x, timeout: -1", "signals.speed.timeout"),
    Mistake("min(ranges)", "min(ranges", "signals.near.value"),
    Mistake("far: {", "far: {topik: /x, ", "signals.far.topik"),
    Mistake("speed > 0.5", "sped > 0.5", "predicates.fast"),
    Mistake("far > 5", "far > ", "predicates.open"),
    Mistake("near: [2, 3]", "near: [3, 2]", "bins.near"),
    Mistake("near < 0.1", "bumper", "terminal.bumped"),
    Mistake("always(close", "always(close))", "properties.slow_down.formula"),
    Mistake("always(open)", "always(opened)", "properties.stay_open.formula"),
    Mistake("    horizon: 5\n", "    horizon: -5\n", "properties.stay_open.horizon"),
)


def problems(folder: Path, text: str) -> list[str]:
    """Return what is wrong, each as key path and problem.

    What may have been meant is left out: it is among the names that could be read.
    """
    path = folder / "monitor.yaml"
    path.write_text(text)
    try:
        with all_problems(path):
            compile_spec(load_spec(path))
    except ConfigErrors as error:
        assert all(one.file == str(path) for one in error.errors)
        told = (f"{one.key.rpartition(': ')[2]}: {one.problem}" for one in error.errors)
        return [one.partition("; did you mean")[0] for one in told]
    return []


@cache
def problems_alone(folder: Path, mistake: Mistake) -> list[str]:
    """Return what is wrong if one mistake is the only one."""
    return problems(folder, GOOD.replace(mistake.old, mistake.new, 1))


def test_the_good_file_is_good(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD) == []


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.key)
def test_one_mistake_is_one_problem(tmp_path: Path, mistake: Mistake) -> None:
    assert mistake.old in GOOD
    (found,) = problems_alone(tmp_path, mistake)
    assert found.startswith(f"{mistake.key}: ")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(st.sampled_from(MISTAKES), min_size=2))
def test_many_mistakes_are_as_many_problems(tmp_path: Path, mistakes: set[Mistake]) -> None:
    text, alone = GOOD, set()
    for mistake in mistakes:
        text = text.replace(mistake.old, mistake.new, 1)
        alone.update(problems_alone(tmp_path, mistake))
    found = problems(tmp_path, text)
    assert len(found) == len(set(found))
    assert set(found) == alone


def test_what_is_no_yaml_is_one_problem(tmp_path: Path) -> None:
    path = tmp_path / "monitor.yaml"
    path.write_text("rate: [")
    with pytest.raises(ConfigError, match="no valid YAML"), all_problems(path):
        load_spec(path)


def test_what_is_raised_of_other_files_stays(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), all_problems(tmp_path / "none.yaml"):
        print(1 // 0)
