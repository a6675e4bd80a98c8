"""``report --fleet``: rates of groups are those of a replay, and clips are parts of recordings."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from forewarn.assessment import replay
from forewarn.cli.main import main
from forewarn.recordings.registry import open_recording
from forewarn.wings.fleet import summary as fleet_summary

MONITOR = """
rate: 10
signals: {gap: {}}
predicates: {near: gap < 2, hit: gap < 1}
properties:
  safe:
    formula: always(not hit)
    horizon: 1
    thresholds: {act: 0.15, release: 0.12}
    enter: 1
    exit: 1
    hold: 0
"""


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "monitor.yaml").write_text(MONITOR)
    for robot, run in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]:
        draw, rows, near = random.Random(f"{robot} {run}"), [], False
        for tick in range(600):
            near = draw.random() < (0.85 if near else 0.02 + 0.02 * robot)
            gap = 5.0 if not near else 0.5 if draw.random() < 0.05 else 1.5
            rows.append({"t": 1000 * run + tick / 10, "gap": gap})
        path = folder / f"r{robot}" / f"{run}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    learned = ["learn", str(folder / "r*" / "*.jsonl"), "-c", str(folder / "monitor.yaml"), "-q"]
    assert main([*learned, "-o", str(folder / "model.json")]) == 0
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert main([*map(str, arguments), "--json", "-q"]) in (0, 1)
    return json.loads(capsys.readouterr().out)


def test_rates_are_those_of_a_replay(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    which = ("-c", given / "monitor.yaml", "-m", given / "model.json")
    page = tmp_path / "fleet.html"
    arguments = ("report", given / "r*" / "*.jsonl", *which, "-o", page, "--fleet")
    grouped = ("--group-by", "robot", "--group-source", "{robot}/*")
    found = run(capsys, *arguments, *grouped, "-n", 0)
    assert [group["name"] for group in found["groups"]] == ["all", "robot=r0", "robot=r1"]
    seen = 0
    for group, paths in zip(found["groups"], ("r*", "r0", "r1"), strict=True):
        replayed = run(capsys, "replay", given / paths / "*.jsonl", *which)
        told = replayed["properties"]["safe"]
        violations, near = group["violations"]["safe"], group["near"]["safe"]
        assert violations["events"] == told["violations"] > 0
        assert near["events"] == told["false_alarms"] > 0
        assert violations["hours"] == pytest.approx(told["hours"])
        assert violations["lower"] < violations["rate"] < violations["upper"]
        assert group["recordings"] == len(replayed["recordings"])
        seen += (violations["events"] + near["events"]) * (group["name"] == "all")
    assert len(found["incidents"]) == seen
    badness = [
        (0, 0) if one["violation"] and one["lead"] is None else
        (1, one["lead"]) if one["violation"] else (2, -one["peak"])
        for one in found["incidents"]
    ]  # fmt: skip
    assert badness == sorted(badness)
    text = page.read_text()
    again = run(capsys, *arguments, *grouped, "-n", 0, "-j", 2)
    assert again == found and page.read_text() == text


def test_each_recording_is_opened_once(
    given: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    opened: list[Path] = []

    def noted(path: Path) -> Any:
        opened.append(path)
        return open_recording(path)

    for module in (fleet_summary, replay):
        monkeypatch.setattr(module, "open_recording", noted)
    which = (
        "-c",
        given / "monitor.yaml",
        "-m",
        given / "model.json",
        "-o",
        tmp_path / "fleet.html",
    )
    grouped = ("--fleet", "--group-by", "robot", "--group-source", "{robot}/*")
    run(capsys, "report", given / "r*" / "*.jsonl", *which, *grouped)
    assert sorted(opened) == sorted(given.glob("r*/*.jsonl"))


def test_clips_of_values_are_pages_that_open_on_the_moment(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    which = ("-c", given / "monitor.yaml", "-m", given / "model.json")
    page, clips = tmp_path / "out" / "fleet.html", tmp_path / "clips"
    page.parent.mkdir()
    arguments = ("report", given / "r1", *which, "-o", page, "--fleet", "--clips", clips, "-n", 2)
    found = run(capsys, *arguments)
    files = [Path(file) for one in found["incidents"] for file in one["clips"]]
    assert sorted(files) == sorted(clips.iterdir()) and len(files) == 2
    links = re.findall(r'<a href="(\.\./clips/[^"]+)">page</a>', page.read_text())
    assert [page.parent.joinpath(link).resolve() for link in links] == files
    for one, file in zip(found["incidents"], files, strict=True):
        opens = float(re.findall(r'"opens":([-0-9.]+)', file.read_text())[0])
        assert opens == pytest.approx(min(one["begin"], 10) + one["at"] - one["begin"], abs=0.11)
    assert main([*map(str, arguments)]) == 2
    assert "has files in it" in capsys.readouterr().err


def test_two_rules_that_break_at_once_have_a_clip_each(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "monitor.yaml"
    again = MONITOR[MONITOR.index("  safe:") :].replace("safe", "too")
    config.write_text(MONITOR + again)
    found = run(
        capsys, "report", given / "r1", "-c", config, "-m", given / "model.json", "-n", 4,
        "-o", tmp_path / "fleet.html", "--fleet", "--clips", tmp_path / "clips",
    )  # fmt: skip
    files = [clip for one in found["incidents"] for clip in one["clips"]]
    assert len({(one["recording"], one["at"]) for one in found["incidents"]}) < 4
    assert len(set(files)) == len(files) == len([*(tmp_path / "clips").iterdir()])


def test_clips_of_messages_are_the_part_of_the_recording(
    corridor_run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    which = ("-c", corridor_run.config, "-m", tmp_path / "model.json")
    learned = ("learn", *corridor_run.recordings, *which[:2], "-o", which[3])
    assert main([*map(str, learned), "-q"]) == 0
    capsys.readouterr()
    clips = tmp_path / "clips"
    page = tmp_path / "fleet.html"
    found = run(
        capsys, "report", corridor_run.held_out, *which, "-o", page, "--fleet", "--clips", clips,
        "-n", 1,
    )  # fmt: skip
    (one,) = found["incidents"]
    (messages,) = (Path(file) for file in one["clips"] if file.endswith(".mcap"))
    with open_recording(messages) as clip, open_recording(corridor_run.held_out) as whole:
        first, last = clip.start_ns, clip.end_ns
        moment = one["start_ns"] + one["at"] * 1e9
        assert first <= moment <= last and last - first < whole.end_ns - whole.start_ns
        kept = [(s.time_ns, s.topic, bytes(s.data)) for s in clip.read()]
        every = [(s.time_ns, s.topic, bytes(s.data)) for s in whole.read()]
    assert kept == [sample for sample in every if first <= sample[0] <= last]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--group-by", "day"), "--group-by: is of a fleet's page (accepted: --fleet as well)"),
        (("--clips", "clips"), "--clips: is of a fleet's page"),
        (("--fleet", "--group-source", "{robot}/*"), "has no effect without --group-by"),
    ],
)
def test_options_that_say_nothing_are_errors(
    given: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    told: str,
) -> None:
    page = tmp_path / "page.html"
    paths = [str(given / "r0"), "-c", str(given / "monitor.yaml"), "-o", str(page)]
    assert main(["report", *paths, *arguments]) == 2
    assert told in capsys.readouterr().err and not page.exists()
