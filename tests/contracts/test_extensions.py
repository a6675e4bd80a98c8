"""What another package adds by entry points: a kind of states, an actuator, a command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from forewarn.cli.main import main
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigErrors, InputError
from forewarn.learning.shard_key import code_version
from forewarn.logic.specification import compile_spec
from forewarn.monitoring.intervention import NOTHING, Intervention
from forewarn.registry import ACTUATORS, extension, extensions
from forewarn.testing.estimators import EstimatorContract
from forewarn.testing.sections import SectionContract
from monitor_node.actuators import loading
from monitor_node.testing import Switchboard

PACKAGE = '''
"""A package of somebody else."""
from dataclasses import dataclass

import zones
from forewarn.cli.options import argument
from forewarn.config.fields import Misfit, Section
from forewarn_ros.status import Severity, Status

KIND = zones.KIND


class Horn(Section):
    volume: float = 1.0


class Speaker(Section):
    level: float

    @classmethod
    def misfits(cls, spec):
        if spec.others["speaker"].level > 10:
            yield Misfit(("speaker", "level"), "too loud", "at most 10")


def speaker_parts(monitor, compiled, recordings, readers):
    return [("speaker", "Speaker", f"<p>{len(recordings)} heard</p>")]


class Half:
    name = "half"

    def settings(self, problem):
        return ((0.5,),)

    def table(self, sample, setting):
        return sample.risk * setting[0]

    def words(self, setting):
        return f"the chain's risk times {setting[0]}"


HALF = Half()


class ACTUATOR:
    """Blows while a stop is asked for."""

    name = "horn"

    def __init__(self, node, spec):
        self._publisher = node.create_publisher(None, "/horn", 1)
        self._asked = False

    def demand(self, demand, now):
        if demand.stops != self._asked:
            self._asked = demand.stops
            self._publisher.publish(demand.stops)

    def poll(self, now):
        pass

    def status(self, now):
        return Status("actuator horn", Severity.OK, "blows" if self._asked else "is quiet", {})

    def owes(self):
        return self._asked

    def resume(self):
        self._asked = True

    def close(self):
        pass


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
[forewarn.sections]
speaker = forewarn_theirs:Speaker
[forewarn.report_sections]
speaker = forewarn_theirs:speaker_parts
[forewarn.estimators]
half = forewarn_theirs:HALF
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
def test_states_estimator_and_section_of_another_package_work_from_learn_to_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, runs, model = tmp_path / "m.yaml", tmp_path / "runs", tmp_path / "m.json"
    more = "states: {kind: my_zones, limits: [1, 2]}\nspeaker: {level: 5}"
    text = TEXT.format(more=more).replace("horizon: 1", "horizon: 1, estimator: half")
    config.write_text(text)
    runs.mkdir()
    for run in range(6):
        lines = [json.dumps({"t": t / 10, "x": 0.5 + (t + 3 * run) % 20 / 10}) for t in range(99)]
        (runs / f"{run}.jsonl").write_text("\n".join(lines) + "\n")
    given = ["-c", str(config), str(runs)]
    assert main(["learn", *given, "-o", str(model)]) == 0
    assert '"asked": "half"' in model.read_text() and "middle" in model.read_text()
    assert main(["replay", *given, "-m", str(model), "--exit-zero"]) == 0
    page = tmp_path / "r.html"
    assert main(["report", *given, "-m", str(model), "-o", str(page), "-q"]) == 0
    assert "<p>6 heard</p>" in page.read_text()
    config.write_text(text.replace("level: 5", "level: 11"))
    assert main(["validate", str(config)]) == 2
    assert "speaker.level: too loud (accepted: at most 10)" in capsys.readouterr().out


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
def test_the_node_commands_an_actuator_of_another_package() -> None:
    text = TEXT.format(more="predicates: {high: x > 2}\nactuators: {horn: {volume: 2}}")
    spec = parse_spec(parse_document(text)).actuators
    loading.check_messages(spec)
    ((name, section),) = loading.named(spec).items()
    board, heard = Switchboard(), list[bool]()
    board.create_subscription(None, "/horn", heard.append, 1)
    actuator = loading.module(name).ACTUATOR(board, section)
    for asked in (Intervention("EMERGENCY_STOP"), Intervention("EMERGENCY_STOP"), NOTHING):
        actuator.demand(asked, 0.0)
    assert heard == [True, False] and not actuator.owes()


@pytest.mark.usefixtures("theirs")
class TestTheirEstimator(EstimatorContract):
    name = "half"


@pytest.mark.usefixtures("theirs")
class TestTheirSection(SectionContract):
    key = "speaker"
    file = TEXT.format(more="predicates: {high: x > 2}\nspeaker: {level: 5}")
    wrong: ClassVar[dict[str, tuple[str, str]]] = {"level: 5": ("level: loud", "speaker.level")}


@pytest.mark.usefixtures("theirs")
def test_a_command_of_another_package_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hello", "robot"]) == 0
    assert "hello robot" in capsys.readouterr().out


def test_without_a_package_there_is_nothing_to_find(capsys: pytest.CaptureFixture[str]) -> None:
    assert extensions(ACTUATORS) == []
    assert extension(ACTUATORS, "horn") is None
    assert main(["hello", "robot"]) == 2
    assert "no command 'hello'" in capsys.readouterr().err
