"""``learn`` from recordings without a violation, and what `replay` and a live session say then."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extent import WHOLE
from normal_drives import SPEC, drive
from others_data import DATA
from sklearn.metrics import roc_auc_score

from evaluation.foresight import sequor
from forewarn.cli.main import main
from forewarn.models.file import load_model
from forewarn.monitoring.loading import make_monitor
from forewarn.monitoring.run_anomaly import RunVerdict, in_words
from forewarn.signals.snapshots import Snapshot
from forewarn.wings.anomalies.normal_moments import NormalMoments


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance = tmp_path_factory.mktemp("normal"), random.Random(4)
    (folder / "plain.yaml").write_text(SPEC)
    (folder / "m.yaml").write_text(SPEC + "anomaly: {}\n")
    for name, number in (("past", 30), ("new", 20)):
        (folder / name).mkdir()
        for i in range(number):
            (folder / name / f"{i:02}.jsonl").write_text(drive(chance))
    (folder / "strange.jsonl").write_text(drive(chance, strange=17))
    said = main(["learn", f"{folder}/past", "-c", f"{folder}/plain.yaml", "-o", f"{folder}/m.json"])
    assert said == 0
    return folder


def normal_of(path: Path) -> NormalMoments:
    (found,) = load_model(path).sections["normal_moments"]
    return found


def replayed(folder: Path, capsys: pytest.CaptureFixture[str], name: str, *words: str) -> Any:
    given = ["replay", f"{folder}/{name}", "-c", f"{folder}/m.yaml", "-m", f"{folder}/m.json"]
    main([*given, *words])
    out = capsys.readouterr()
    return json.loads(out.out) if "--json" in words else out.out + out.err


def test_learning_from_successes_says_what_it_keeps_and_how_it_is_used(folder, tmp_path, capsys):
    given = ["learn", f"{folder}/past", "-c", f"{folder}/plain.yaml", "-o", f"{tmp_path}/m.json"]
    assert main(given) == 0
    out, err = capsys.readouterr()
    assert "normal: 30 recordings without a violation, kept as 1200 moments of 2 signals" in out
    assert "at most 5 % of new normal runs as long as these (22 runs compared" in out
    assert "`anomaly: {}` in the monitor file" in out
    assert "not compared: mode is no number" in err
    assert normal_of(tmp_path / "m.json").signals == ("gap", "speed")


def test_a_replay_says_since_when_a_run_is_unlike_normal_ones_and_by_which_signals(folder, capsys):
    text = replayed(folder, capsys, "strange.jsonl")
    assert "anomalous run  since  distance" in text and "1.70" in text and "speed 7" in text
    assert "1 of 1 run anomalous; of normal runs at most 5 %" in text
    (run,) = replayed(folder, capsys, "strange.jsonl", "--json")["recordings"][0]["runs"]
    assert run["verdict"] == "ANOMALOUS" and run["statistic"] == "distance"
    assert run["worst"]["expected"][0] == "speed" and run["value"] > run["limit"]
    assert run["p_value"] == pytest.approx(1 / 23) and run["not_judged"] == 0
    many = replayed(folder, capsys, "new", "--json")["recordings"]
    assert sum(one["runs"][0]["verdict"] == "ANOMALOUS" for one in many) <= 4


def test_unknown_signals_and_missed_moments_are_said(folder, tmp_path, capsys):
    lines = [json.loads(line) for line in (folder / "strange.jsonl").read_text().splitlines()]
    for line in lines[20:25]:
        del line["speed"]
    for line in lines[30:34]:
        del line["speed"], line["gap"]
    (folder / "gaps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = " ".join(replayed(folder, capsys, "gaps.jsonl").split())
    # A value is known for 0.15 s: one tick more than it is there.
    assert "3 of 40 moments were not judged" in text
    assert "4 of 40 moments were judged by the signals that were known" in text


def test_a_run_longer_than_all_normal_ones_is_said(folder, capsys):
    (folder / "long.jsonl").write_text(drive(random.Random(1), length=41))
    said = " ".join(replayed(folder, capsys, "long.jsonl").split())
    assert "1 of 1 run had more moments than any normal run (40)" in said
    assert "more moments" not in replayed(folder, capsys, "strange.jsonl")


def test_a_live_session_says_the_same_at_each_tick(folder):
    monitor, _ = make_monitor(folder / "m.yaml", folder / "m.json")
    normal, state = normal_of(folder / "m.json"), monitor.start()
    far = 0.0
    for tick, line in enumerate((folder / "strange.jsonl").read_text().splitlines()):
        values = json.loads(line)
        row = [values["gap"], values["speed"]]
        state, verdict = monitor.step(state, Snapshot(tick, (*row, "auto"), ()))
        told = verdict.anomaly
        assert told is not None
        far = max(far, normal.nearest(row).distance)
        assert told.value == far and told.transitions == tick + 1
        assert told.since == (17 if far > told.limit else -1)
    assert told.verdict == RunVerdict.ANOMALOUS
    assert "farthest from normal moments: speed 7" in in_words(told)
    detector = monitor.detector
    assert detector is not None
    again = detector.load(
        json.loads(json.dumps(detector.dump(state.run))), monitor.abstraction.vocabulary
    )
    assert again == state.run


def learned(folder: Path, out: Path, numbers: range, *words: str, config: str = "m.yaml") -> int:
    files = [str(folder / "past" / f"{i:02}.jsonl") for i in numbers]
    return main(["learn", *files, "-c", f"{folder}/{config}", "-o", str(out), *words])


def test_merge_keeps_the_moments_of_the_most_recordings_and_says_so(folder, tmp_path, capsys):
    few, many, none, merged = (tmp_path / f"{name}.json" for name in ("few", "many", "no", "all"))
    assert learned(folder, few, range(8)) == learned(folder, many, range(8, 24)) == 0
    assert learned(folder, none, range(24, 30), config="plain.yaml") == 0
    capsys.readouterr()
    for order in ((few, many, none), (none, many, few)):
        assert main(["merge", *map(str, order), "-o", str(merged)]) == 0
        assert f"normal moments in {few} are left out" in (err := capsys.readouterr().err)
        assert "of the most recordings (16) are kept" in err and str(many) not in err
        kept, alone = normal_of(merged), normal_of(many)
        assert kept.greatest == alone.greatest and (kept.moments == alone.moments).all()
    assert main(["inspect", str(merged)]) == 0
    assert "normal: 16 recordings without a violation, kept as" in capsys.readouterr().out
    assert main(["inspect", str(merged), "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)["normal_moments"]
    assert (facts["recordings"], facts["longest"]) == (16, normal_of(merged).longest)
    assert facts["limit"] == normal_of(merged).limit(facts["alpha"])


def test_adding_to_a_model_keeps_the_moments_of_the_most_recordings(folder, tmp_path, capsys):
    few, more, most = (tmp_path / f"{name}.json" for name in ("few", "more", "most"))
    assert learned(folder, few, range(8)) == 0
    assert learned(folder, more, range(8, 10), "--add-to", str(few)) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "normal moments stay those of 8 recordings added to" in said
    assert normal_of(more).recordings == normal_of(few).recordings
    assert learned(folder, most, range(10, 30), "--add-to", str(more)) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "normal moments of 8 recordings added to are left out" in said
    assert len(normal_of(most).recordings) == 20
    assert learned(folder, most, range(8, 30), "--add-to", str(few), config="plain.yaml") == 0
    assert normal_of(most).recordings == normal_of(few).recordings


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{alpha: 0.01}", "anomaly.alpha: calibrated on 22 normal runs"),
        ("{test: cusum}", "anomaly.test: the test cusum needs `file`"),
    ],
)
def test_what_cannot_be_promised_is_an_error(folder, tmp_path, capsys, section, problem):
    (tmp_path / "m.yaml").write_text(f"{SPEC}anomaly: {section}\n")
    given = ["replay", f"{folder}/strange.jsonl", "-c", f"{tmp_path}/m.yaml"]
    assert main([*given, "-m", f"{folder}/m.json"]) == 2
    assert problem in capsys.readouterr().err


def test_a_model_without_normal_moments_is_an_error(folder, tmp_path, capsys):
    few = [str(path) for path in sorted((folder / "past").iterdir())[:6]]
    given = ["-c", f"{folder}/plain.yaml", "-o", f"{tmp_path}/m.json"]
    assert main(["learn", *few, *given]) == 0
    given = ["replay", few[0], "-c", f"{folder}/m.yaml", "-m", f"{tmp_path}/m.json"]
    capsys.readouterr()
    assert main(given) == 2
    assert "keeps no moments of normal runs" in capsys.readouterr().err


def test_where_the_section_asks_for_it_runs_with_violations_are_left_out(folder, tmp_path, capsys):
    lines = [json.dumps({"t": t / 10, "gap": 2.0 - t, "speed": 9.0, "mode": "x"}) for t in range(5)]
    (tmp_path / "hit.jsonl").write_text("\n".join(lines))
    given = ["-c", f"{folder}/m.yaml", "-o", f"{tmp_path}/m.json"]
    assert main(["learn", f"{tmp_path}/hit.jsonl", f"{folder}/past", *given]) == 0
    assert "normal: 30 recordings without a violation" in capsys.readouterr().out
    mixed, alone = normal_of(tmp_path / "m.json"), normal_of(folder / "m.json")
    assert (mixed.moments == alone.moments).all()
    assert main(["learn", f"{tmp_path}/hit.jsonl", *given]) == 2
    assert "0 runs without a violation" in capsys.readouterr().err


@pytest.mark.skipif(not (DATA / "robots/sequor").exists(), reason="no ../shared/data/robots")
def test_crashes_of_a_real_robot_are_unlike_its_safe_runs(tmp_path):
    """Published trials: a trial and its mirror image are learned from together, or not at all."""
    (tmp_path / "trials").mkdir()
    for path in trials():
        (tmp_path / "trials" / path.name).symlink_to(path)
    traces = sequor.write_traces(tmp_path / "trials", tmp_path / "traces")
    (tmp_path / "groups.csv").write_text(
        "\n".join(["recording,group", *(f"{path.name},{mirrored(path)}" for path in traces)])
    )
    spec = (sequor.HERE / "sequor_hand.yaml").read_text()
    group = f"learning: {{group_by: group, group_source: {tmp_path}/groups.csv}}\nanomaly: {{}}\n"
    (tmp_path / "m.yaml").write_text(spec + group)
    safe = [path for path in traces if path.name[:2] in sequor.SAFE]
    folds: list[list[Path]] = [[] for _ in range(5)]
    for at, alike in enumerate(sorted({mirrored(path) for path in safe})):
        folds[at % 5] += [path for path in safe if mirrored(path) == alike]
    crashed = [path for path in traces if path.name[:2] in sequor.CRASHES]
    calm, far = [], []
    for fold in folds:
        learned = [str(path) for path in safe if path not in fold]
        given = ["-c", f"{tmp_path}/m.yaml", "-o", f"{tmp_path}/m.json", "-q"]
        assert main(["learn", *learned, *given]) == 0
        normal = normal_of(tmp_path / "m.json")
        calm += [farthest(normal, path) for path in fold]
        far.append([farthest(normal, path) for path in crashed])
    scores = [*calm, *np.mean(far, axis=0)]
    area = roc_auc_score([0] * len(calm) + [1] * len(crashed), scores)
    assert area >= 0.93


def trials() -> list[Path]:
    """Return the safe trials, and crashes: each third one, or all of them."""
    every = sorted((DATA / "robots/sequor").glob("*.json.gz"))
    crashed = [path for path in every if path.name[:2] in sequor.CRASHES]
    safe = [path for path in every if path.name[:2] in sequor.SAFE]
    return [*safe, *(crashed if WHOLE else crashed[::3])]


def mirrored(path: Path) -> str:
    speeds = [round(json.loads(line)["speed"], 1) for line in path.read_text().splitlines()]
    return str(abs(hash(tuple(speeds))))


def farthest(normal: NormalMoments, path: Path) -> float:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return max(normal.nearest([row[name] for name in normal.signals]).distance for row in rows)
