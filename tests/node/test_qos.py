"""What to ask for, given what is offered; and what a bag says was offered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from monitor_node.qos import Quality, follow, missing, offered, profile, recorded_qualities

LOSSY, LATCHED = Quality(reliable=False), Quality(latched=True)


@pytest.mark.parametrize(
    ("offers", "wanted"),
    [
        ([], Quality()),
        ([Quality()], Quality()),
        ([LOSSY], LOSSY),
        ([LATCHED], LATCHED),
        ([LATCHED, Quality()], Quality()),
        ([Quality(), LOSSY], LOSSY),
        ([LATCHED, LATCHED], LATCHED),
    ],
)
def test_as_much_as_all_publishers_give(offers: list[Quality], wanted: Quality) -> None:
    assert follow(offers) == wanted
    assert [missing(offer, wanted) for offer in offers] == [""] * len(offers)


def test_what_does_not_match_is_named() -> None:
    assert missing(LOSSY, Quality()) == "reliability"
    assert missing(Quality(), LATCHED) == "durability"
    assert missing(LOSSY, LATCHED) == "reliability and durability"


@pytest.mark.parametrize("quality", [Quality(), LOSSY, LATCHED, Quality(False, True)])
def test_profiles_and_back(quality: Quality) -> None:
    assert offered(profile(quality, 7)) == quality
    assert profile(quality, 7).depth == 7


def test_system_defaults_count_as_reliable() -> None:
    default = QoSProfile(
        depth=1,
        reliability=ReliabilityPolicy.SYSTEM_DEFAULT,
        durability=DurabilityPolicy.SYSTEM_DEFAULT,
    )
    assert offered(default) == Quality()


class Bag:
    """A recording of which only path and tables are looked at."""

    def __init__(self, path: Path, tables: dict[str, dict[str, str]]) -> None:
        self.path, self._tables = path, tables

    def metadata(self) -> dict[str, dict[str, str]]:
        return self._tables


def entry(profiles: Any) -> str:
    topic = {"topic_metadata": {"name": "/a", "offered_qos_profiles": profiles}}
    return str({"rosbag2_bagfile_information": {"topics_with_message_count": [topic]}})


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        ([{"reliability": "best_effort", "durability": "volatile"}], {"/a": LOSSY}),
        ([{"reliability": 1, "durability": 1}], {"/a": LATCHED}),
        ("- reliability: 2\\n  durability: 1\\n", {"/a": Quality(False, True)}),
        ([{"reliability": 1}, {"reliability": 2}], {"/a": LOSSY}),
        ("", {}),
        ([], {}),
    ],
)
def test_the_metadata_of_bags(tmp_path: Path, profiles: Any, expected: dict[str, Quality]) -> None:
    text = entry(profiles).replace("\\\\n", "\\n")
    if isinstance(profiles, str) and profiles:
        text = entry("@").replace("'@'", f'"{profiles}"')
    (tmp_path / "metadata.yaml").write_text(text)
    assert recorded_qualities(Bag(tmp_path, {})) == expected  # type: ignore[arg-type]
    embedded = Bag(tmp_path / "bag.mcap", {"rosbag2": {"serialized_metadata": text}})
    assert recorded_qualities(embedded) == expected  # type: ignore[arg-type]


def test_broken_metadata_says_nothing(tmp_path: Path) -> None:
    for text in ("a: [", "7", "{}"):
        (tmp_path / "metadata.yaml").write_text(text)
        assert recorded_qualities(Bag(tmp_path, {})) == {}  # type: ignore[arg-type]
