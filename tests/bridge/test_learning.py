"""``forewarn learn`` and ``forewarn replay`` over records, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

MONITOR = """\
version: 1
rate: 50
signals:
  speed: {channel: /apollo/canbus/chassis, message: apollo.canbus.Chassis, value: speed_mps}
  auto: {channel: /apollo/canbus/chassis, message: apollo.canbus.Chassis,
         value: driving_mode == COMPLETE_AUTO_DRIVE}
predicates:
  fast: speed > 6
bins:
  speed: [2, 4]
active_when: auto
properties:
  slow_down:
    formula: always(fast implies eventually[0:1](not fast))
    horizon: 2.0
    thresholds: {warn: 0.2, act: 0.5, release: 0.1}
"""


def write_drives(folder: Path, apollo: Any) -> None:
    """Write two segments: a car whose speed swings between 0 and 10 m/s with a period of 4 s."""
    for number in range(2):
        messages = []
        for step in range(6000):
            time_ns = 10**18 + (number * 6000 + step) * 10_000_000
            phase = (number * 6000 + step) % 400
            speed = phase / 20 if phase < 200 else (400 - phase) / 20
            message = apollo.chassis(speed, driving_mode=1)
            messages.append(apollo.Written(time_ns, apollo.CHASSIS, message))
        data = apollo.record_bytes([messages[:3000], messages[3000:]])
        (folder / f"d.record.{number:05d}").write_bytes(data)


def test_learns_and_replays_a_segmented_record(forewarn: Any, tmp_path: Path, apollo: Any) -> None:
    folder = tmp_path / "drive"
    folder.mkdir()
    write_drives(folder, apollo)
    config, model = tmp_path / "monitor.yaml", tmp_path / "model.json"
    config.write_text(MONITOR)
    learned = forewarn("learn", folder, "-c", config, "-o", model, "--json")
    assert learned.returncode in (0, 1), learned.stderr
    counts = json.loads(model.read_text())
    # 120 s at 50 Hz: one recording, without a break between its segments.
    assert len(counts["provenance"]) == 1
    assert counts["provenance"][0]["ticks"] >= 6000 - 2
    assert counts["provenance"][0]["transitions"] == counts["provenance"][0]["ticks"] - 1
    replayed = forewarn("replay", folder, "-c", config, "-m", model, "--json")
    assert replayed.returncode in (0, 1), replayed.stderr
    # Speed is above 6 for 1.6 s of every 4: the obligation of 1 s is violated each time.
    assert '"violations"' in replayed.stdout


def test_a_wrong_channel_or_message_is_named(forewarn: Any, tmp_path: Path, apollo: Any) -> None:
    path = tmp_path / "x.record"
    path.write_bytes(apollo.record_bytes([apollo.drive(5)]))
    config = tmp_path / "monitor.yaml"
    for old, new, text, key in (
        (
            "channel: /apollo/canbus/chassis",
            "channel: /apollo/chassis",
            "is not in the recording",
            "channel",
        ),
        (
            "apollo.canbus.Chassis",
            "apollo.canbus.Chasis",
            "has type apollo.canbus.Chassis",
            "message",
        ),
        ("value: speed_mps", "value: speed", "did you mean 'speed_mps'", "value"),
    ):
        config.write_text(MONITOR.replace(old, new))
        result = forewarn("learn", path, "-c", config, "-o", tmp_path / "model.json")
        assert result.returncode == 2
        assert text in result.stderr
        checked = forewarn("validate", config, "--bag", path)
        assert checked.returncode == 2
        assert f"signals.speed.{key}: " in checked.stdout


def test_a_channel_that_nobody_published_is_not_in_a_record_and_may_be_missing(
    forewarn: Any, tmp_path: Path, apollo: Any
) -> None:
    # Of pads above all: the signal has a default, which counts as long as nobody spoke.
    config, model = tmp_path / "monitor.yaml", tmp_path / "model.json"
    config.write_text(
        MONITOR.replace(
            "signals:",
            "signals:\n  asked: {channel: /apollo/planning/pad, timeout: never, default: false,\n"
            "    message: apollo.planning.PadMessage, value: action == STOP}",
        ).replace("active_when", "intervened_when: asked\nactive_when")
    )
    runs = []
    for number in range(3):
        runs.append(tmp_path / f"{number}.record")
        runs[-1].write_bytes(apollo.record_bytes([apollo.sawtooth(10, (number + 1) * 10**18)]))
    refused = forewarn("learn", runs[0], "-c", config, "-o", model)
    assert refused.returncode == 2
    assert "the topic /apollo/planning/pad is not in the recording" in refused.stderr
    for jobs in (1, 2):
        learned = forewarn(
            "learn", *runs[:2], "-c", config, "-o", model, "--allow-missing", "-j", jobs,
            "--calibrate", runs[2],
        )  # fmt: skip
        assert learned.returncode == 0, learned.stderr
        assert "channel /apollo/planning/pad is not in the recording" in learned.stderr
        counted = json.loads(model.read_text())["provenance"]
        # 50 Hz, and the last message, at 9.99 s, belongs to the tick at 10 s.
        assert [item["transitions"] for item in counted] == [500, 500]
    for way in (("-m", model), ("--folds", 2)):
        recordings = runs[2:] if way[0] == "-m" else runs
        tuned = forewarn(
            "tune", *recordings, "-c", config, *way, "--false-alarms-per-hour", 1, "--allow-missing"
        )
        assert "is not in the recording" not in tuned.stderr
        assert tuned.returncode in (0, 1), tuned.stderr


def test_a_channel_needs_its_message(forewarn: Any, tmp_path: Path) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(
        MONITOR.replace(", message: apollo.canbus.Chassis, value: speed_mps", ", value: speed_mps")
    )
    result = forewarn("validate", config)
    assert result.returncode == 2
    assert "channel and message go together" in result.stdout


def test_init_drafts_a_valid_monitor_file_from_a_record(
    forewarn: Any, example_record: Path, tmp_path: Path
) -> None:
    config = tmp_path / "draft.yaml"
    drafted = forewarn("init", example_record, "-o", config)
    assert drafted.returncode == 0, drafted.stderr
    text = config.read_text()
    assert "channel: /apollo/canbus/chassis" in text
    assert "message: apollo.canbus.Chassis" in text
    checked = forewarn("validate", config, "--bag", example_record)
    assert checked.returncode in (0, 1), checked.stdout


def test_fields_are_checked_without_a_record(
    forewarn: Any,
    repository: Path,
    shared_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("APOLLO_MAP", str(shared_data / "apollo" / "borregas_ave.base_map.bin"))
    text = (repository / "config" / "apollo.yaml").read_text()
    config = tmp_path / "monitor.yaml"
    config.write_text(text)
    assert forewarn("validate", config).returncode == 0
    config.write_text(text.replace("value: brake_percentage", "value: brake_percent"))
    wrong = forewarn("validate", config)
    assert wrong.returncode == 2
    assert "signals.brake.value" in wrong.stdout
    assert "did you mean 'brake_percentage'" in wrong.stdout
