"""What another package adds by entry points: a kind of states, an actuator, a command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.cli.main import main
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigErrors, InputError
from forewarn.learning.shard_key import code_version
from forewarn.logic.specification import compile_spec
from forewarn.registry import ACTUATORS, extension, extensions

PACKAGE = '''
"""A package of somebody else."""
from dataclasses import dataclass

import zones
from forewarn.cli.options import argument
from forewarn.config.fields import Section

KIND = zones.KIND


class Horn(Section):
    volume: float = 1.0


INTERFACES = ()
DESCRIPTION, EPILOG = "Say hello.", ""


@dataclass(frozen=True, kw_only=True)
class Options:
    whom: str = argument("who is greeted", "WHOM")


def run(options: Options, output) -> int:
    output.say(f"hello {options.whom}")
    return 0
'''
POINTS = """
[forewarn.state_kinds]
my_zones = forewarn_theirs:KIND
[forewarn.actuator_sections]
horn = forewarn_theirs:Horn
[forewarn.actuators]
horn = forewarn_theirs
broken = forewarn_nowhere
[forewarn.commands]
hello = forewarn_theirs
"""
TEXT = """
rate: 10
signals: {{x: {{timeout: 1}}}}
{more}
properties: {{calm: {{formula: always(not high), horizon: 1}}}}
"""


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the package for the time of a test."""
    info = tmp_path / "forewarn_theirs-1.0.dist-info"
    info.mkdir()
    (tmp_path / "forewarn_theirs.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: forewarn-theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("forewarn_theirs", None)


@pytest.mark.usefixtures("theirs")
def test_a_kind_of_states_of_another_package_is_learned_and_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, trace, model = tmp_path / "m.yaml", tmp_path / "run.jsonl", tmp_path / "m.json"
    config.write_text(TEXT.format(more="states: {kind: my_zones, limits: [1, 2]}"))
    lines = [json.dumps({"t": tick / 10, "x": 0.5 + tick % 20 / 10}) for tick in range(100)]
    trace.write_text("\n".join(lines) + "\n")
    assert main(["learn", "-c", str(config), str(trace), "-o", str(model)]) == 0
    assert main(["replay", "-c", str(config), "-m", str(model), str(trace), "--exit-zero"]) == 0
    assert "middle" in model.read_text()
    capsys.readouterr()


@pytest.mark.usefixtures("theirs")
def test_shards_are_asked_anew_when_a_kind_of_states_has_another_version() -> None:
    code_version.cache_clear()
    assert "forewarn-theirs 1.0" in code_version()
    code_version.cache_clear()


@pytest.mark.usefixtures("theirs")
def test_a_section_of_another_package_s_actuator_is_read_and_its_problems_name_their_keys() -> None:
    text = TEXT.format(more="predicates: {high: x > 2}\nactuators: {horn: {volume: 2}}")
    spec = parse_spec(parse_document(text))
    assert spec.actuators.others["horn"].volume == 2.0
    assert compile_spec(spec).spec.actuators.twist is None
    assert extension(ACTUATORS, "horn").INTERFACES == ()
    with pytest.raises(ConfigErrors, match=r"horn\.volume: Input should be a valid number"):
        parse_spec(parse_document(text.replace("volume: 2", "volume: loud")))
    with pytest.raises(ConfigErrors, match="tuba"):
        parse_spec(parse_document(text.replace("horn", "tuba")))
    with pytest.raises(InputError, match=r"'broken' of forewarn\.actuators .* does not load"):
        extension(ACTUATORS, "broken")


@pytest.mark.usefixtures("theirs")
def test_a_command_of_another_package_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hello", "robot"]) == 0
    assert "hello robot" in capsys.readouterr().out


def test_without_a_package_there_is_nothing_to_find(capsys: pytest.CaptureFixture[str]) -> None:
    assert extensions(ACTUATORS) == []
    assert extension(ACTUATORS, "horn") is None
    assert main(["hello", "robot"]) == 2
    assert "no command 'hello'" in capsys.readouterr().err
