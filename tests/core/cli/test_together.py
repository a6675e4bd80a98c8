"""``learn-states`` and ``refine``: recordings that belong together are held out together."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from learned_runs import SPEC, record

BY_ROBOT = "learning: {group_by: robot, group_source: '{robot}/*'}\n"
BOUND = ("--query", "Pmax(fire) <= 0.3")


@pytest.fixture
def config(tmp_path: Path):
    def written(*more: str, spec: str = SPEC) -> Path:
        path = tmp_path / "monitor.yaml"
        path.write_text(spec + "".join(more))
        return path

    return written


@pytest.fixture
def robots(tmp_path: Path) -> list[Path]:
    """Two recordings of each of four robots, in a folder for each."""
    for robot in range(4):
        (tmp_path / f"r{robot}").mkdir()
        for number in range(2):
            path = tmp_path / f"r{robot}" / f"{number}.jsonl"
            record(path, 10 * robot + number, 15, share=0.1 + 0.1 * robot)
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            path.write_text("".join(json.dumps({**row, "robot": robot}) + "\n" for row in rows))
    return sorted(tmp_path.glob("r*/*.jsonl"))


def said(forewarn, *arguments: object) -> dict:
    found = forewarn(*arguments, "--json")
    assert found.code in (0, 1), found.err
    return json.loads(found.out)


def test_the_number_of_leaves_is_chosen_on_groups_that_were_left_out(forewarn, config, robots):
    spec = SPEC.replace("{key: {},", "{key: {}, robot: {},")
    asked = ("--folds", "4", "--leaf-size", "2")
    by_signal = said(
        forewarn, "learn-states", *robots, "-c", config(spec=spec), *asked, "--group", "robot"
    )
    alone = said(forewarn, "learn-states", *robots, "-c", config(spec=spec), *asked)
    command = ("learn-states", *robots, "-c", config(BY_ROBOT, spec=spec), *asked)
    together = said(forewarn, *command)
    assert together["sizes"] == by_signal["sizes"] != alone["sizes"]
    assert "120 recordings in 4 groups of robot: those of a group are" in forewarn(*command).err
    twice = forewarn(*command, "--group", "robot")
    assert twice.code == 2 and "learning.group_by" in twice.err and "one of them" in twice.err


def test_one_group_chooses_no_number_of_leaves(forewarn, config, robots):
    found = forewarn("learn-states", *robots[:2], "-c", config(BY_ROBOT))
    assert found.code == 0 and "one group of recordings cannot choose" in found.err


@pytest.mark.parametrize("said_by", ["the file", "--group"])
def test_splits_are_tried_on_groups_that_were_left_out(forewarn, config, robots, said_by):
    spec = SPEC.replace("{key: {},", "{key: {}, robot: {},")
    more, extra = (BY_ROBOT, ()) if said_by == "the file" else ("", ("--group", "robot"))
    command = ("refine", *BOUND, "-c", config(more, spec=spec), *extra)
    # Of four groups the third is held out.
    held_out, others = robots[4:6], [*robots[:4], *robots[6:]]
    by_hand = said(forewarn, *command, *others, "--held-out", *held_out)
    assert said(forewarn, *command, *robots) == by_hand
    few = forewarn(*command, *robots[:4])
    assert few.code == 2 and "2 groups (accepted: three or more" in few.err
    torn = forewarn(*command, *robots[:-1], "--held-out", robots[-1])
    assert torn.code == 2 and "is held out, and others of its group" in torn.err


def test_what_is_held_out_is_not_learned_from(forewarn, config, robots, tmp_path):
    command = ("refine", *BOUND, "-c", config(), *robots)
    found = forewarn(*command, "--held-out", robots[0])
    assert found.code == 2 and "is learned from and held out" in found.err
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(robots[0].read_bytes())
    found = forewarn(*command, "--held-out", copy)
    assert found.code == 2 and "holds the same data as" in found.err


def test_no_value_is_asked_for_that_one_group_alone_has(forewarn, config, tmp_path):
    # The runs of each robot have a room of their own. Only one robot lights the stove.
    for robot in range(6):
        (tmp_path / f"r{robot}").mkdir()
        path = tmp_path / f"r{robot}" / "runs.jsonl"
        record(path, robot, 20, share=0.3 if robot == 0 else 0.0)
        path.write_text(path.read_text().replace('"kitchen"', f'"room{robot}"'))
    spec = SPEC.replace("[key, room]", "[room]")
    runs = sorted(tmp_path.glob("r*/runs.jsonl"))
    words = ("refine", *runs, *BOUND, "--text", "value")
    alone = said(forewarn, *words, "-c", config(spec=spec))
    together = said(forewarn, *words, "-c", config(BY_ROBOT, spec=spec))
    assert "room == 'room0'" in [one["condition"] for one in alone["rounds"]]
    assert {one["condition"] for one in together["rounds"]} <= {"room == 'hall'"}


LABELS = """\
clock: steps
signals: {weight: {}, solved: {}}
predicates: {heavy: weight > 90}
properties: {p: {template: absence, event: heavy, horizon: 2}}
"""


def test_a_label_that_a_robot_has_is_judged_on_other_robots(forewarn, config, tmp_path):
    chance = random.Random(4)
    for robot in range(12):
        (tmp_path / f"r{robot}").mkdir()
        rows = []
        for run in range(10):
            row = {"run": f"{robot}-{run}", "weight": (robot * 7) % 12 + chance.random() / 2}
            rows += [row, {**row, "solved": (robot // 2) % 2 == 0}]
        path = tmp_path / f"r{robot}" / "runs.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs = sorted(tmp_path.glob("r*/runs.jsonl"))
    words = ("learn-states", *runs, "--label", "solved")
    alone = said(forewarn, *words, "-c", config(spec=LABELS))
    together = said(forewarn, *words, "-c", config(BY_ROBOT, spec=LABELS))
    # The weight tells which robot it is: that is right for its other runs, not for other robots.
    assert alone["right"] > 110 and together["right"] < 90
    assert alone["upper"] - alone["lower"] < 0.1 < together["upper"] - together["lower"]
    few = forewarn(*words[:2], *runs[1:5], *words[-2:], "-c", config(BY_ROBOT, spec=LABELS))
    assert few.code == 2 and "in 5 groups" in few.err and "3 runs or more of each kind" in few.err
