from __future__ import annotations

from pathlib import Path

import pytest

from forewarn.config.file import load_spec
from forewarn.errors import ConfigError
from forewarn.logic.specification import compile_spec

FRAGMENT = """
signals:
  speed: {unit: m/s, description: "ego speed, standing or not"}
  light: {description: colour}
predicates:
  standing: speed < 0.1
  slow: standing or speed < 3
  red: light == 1
properties:
  stop: {formula: "always(red implies eventually[0:1](slow))", horizon: 3}
  crawl: {formula: "always(slow)", horizon: 1}
"""
OTHER = FRAGMENT.replace("stop:", "halt:").replace("crawl:", "creep:")
MAIN = """
include: [{entry}]
rate: 10
signals:
  speed: {{topic: /odom, type: nav_msgs/msg/Odometry, value: twist.twist.linear.x, timeout: 0.5}}
"""


def write(tmp_path: Path, main: str, **fragments: str) -> Path:
    for name, text in fragments.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    path = tmp_path / "main.yaml"
    path.write_text(main)
    return path


def test_a_fragment_brings_its_rules_and_the_file_gives_the_sources(tmp_path: Path) -> None:
    path = write(tmp_path, MAIN.format(entry="law.yaml"), law=FRAGMENT)
    spec = load_spec(path)
    assert list(spec.properties) == ["stop", "crawl"]
    assert spec.signals["speed"].topic == "/odom"
    assert spec.signals["speed"].unit == "m/s"
    assert compile_spec(spec).abstraction.vocabulary.predicates == ("standing", "slow", "red")


def test_only_what_the_chosen_properties_need_is_taken(tmp_path: Path) -> None:
    entry = "{file: law.yaml, properties: [crawl]}"
    spec = load_spec(write(tmp_path, MAIN.format(entry=entry), law=FRAGMENT))
    assert list(spec.properties) == ["crawl"]
    assert list(spec.predicates) == ["standing", "slow"]
    assert list(spec.signals) == ["speed"]


def test_the_including_file_overrides_key_by_key(tmp_path: Path) -> None:
    main = MAIN.format(entry="law.yaml") + (
        "predicates: {standing: speed < 0.5}\n"
        "properties: {stop: {thresholds: {act: 0.9}}, mine: {formula: always(not red)}}\n"
    )
    spec = load_spec(write(tmp_path, main, law=FRAGMENT))
    assert spec.predicates["standing"] == "speed < 0.5"
    assert spec.properties["stop"].thresholds.act == 0.9
    assert spec.properties["stop"].horizon == 3
    assert "mine" in spec.properties


def test_fragments_share_equal_definitions_and_must_not_differ(tmp_path: Path) -> None:
    main = MAIN.format(entry="law.yaml, other.yaml")
    spec = load_spec(write(tmp_path, main, law=FRAGMENT, other=OTHER))
    assert list(spec.properties) == ["stop", "crawl", "halt", "creep"]
    different = OTHER.replace("speed < 0.1", "speed < 0.2")
    with pytest.raises(ConfigError, match=r"other\.yaml.*predicates\.standing.*0\.2.*0\.1"):
        load_spec(write(tmp_path, main, law=FRAGMENT, other=different))
    main += "predicates: {standing: speed < 0.3}\n"
    spec = load_spec(write(tmp_path, main, law=FRAGMENT, other=different))
    assert spec.predicates["standing"] == "speed < 0.3"


@pytest.mark.parametrize(
    ("entry", "fragment", "expected"),
    [
        ("gone.yaml", FRAGMENT, r"gone\.yaml.*cannot be read"),
        ("7", FRAGMENT, r"include\[0\].*7"),
        ("{file: law.yaml, properties: [nope]}", FRAGMENT, r"include\[0\].*'nope'.*stop, crawl"),
        ("{file: law.yaml, properties: stop}", FRAGMENT, r"include\[0\].*'stop'"),
        ("{fil: law.yaml}", FRAGMENT, r"include\[0\]"),
        ("law.yaml", "rate: 10\n", r"law\.yaml: line 1: rate.*accepted.*predicates"),
        ("law.yaml", "- 1\n", r"law\.yaml.*mapping"),
        (
            "law.yaml",
            FRAGMENT.replace("horizon: 3", "horizon: -3"),
            r"law\.yaml: line 10: properties\.stop\.horizon: -3",
        ),
        (
            "law.yaml",
            FRAGMENT.replace("crawl:", "2crawl:"),
            r"law\.yaml: line 11: properties\.2crawl: '2crawl' is no name",
        ),
    ],
)
def test_errors_name_the_file_they_are_in(
    tmp_path: Path, entry: str, fragment: str, expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_spec(write(tmp_path, MAIN.format(entry=entry), law=fragment))


def test_include_must_be_a_list(tmp_path: Path) -> None:
    main = MAIN.format(entry="").replace("[]", "law.yaml")
    with pytest.raises(ConfigError, match=r"line 2: include.*no list"):
        load_spec(write(tmp_path, main, law=FRAGMENT))


def test_every_law_that_ships_can_be_included(repository: Path, tmp_path: Path) -> None:
    laws = sorted((repository / "config" / "laws").glob("*.yaml"))
    assert len(laws) >= 11
    for law in laws:
        path = tmp_path / "main.yaml"
        path.write_text(f"include: [{law}]\nrate: 10\n")
        compiled = compile_spec(load_spec(path))
        assert len(compiled.automata) == len(compiled.spec.properties) >= 1
