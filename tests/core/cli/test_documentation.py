"""The reference pages say what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from forewarn.cli.reference import reference
from forewarn.config import MonitorSpec, Section, parse_spec
from forewarn.config.danger import DangerSpec
from forewarn.config.sections import (
    AnomalySpec,
    BoundsSpec,
    ConstraintSpec,
    EscalationStep,
    LearningSpec,
    PropertySpec,
    ShapeSpec,
    ShieldSpec,
    SignalSpec,
    Thresholds,
)
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import compile_spec


def test_the_command_line_reference_is_what_the_parsers_say(repository: Path) -> None:
    written = (repository / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert written == reference(), "run: python -m forewarn.cli.reference > docs/reference/cli.md"


def test_the_readme_names_only_commands_that_exist(repository: Path) -> None:
    from forewarn.cli.main import COMMANDS

    text = (repository / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^forewarn ([a-z]+)", text, re.M))
    assert named <= set(COMMANDS)


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs" / "reference" / "monitor-file.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "section",
    [MonitorSpec, SignalSpec, ShapeSpec, ConstraintSpec, PropertySpec, Thresholds, EscalationStep,
     LearningSpec, BoundsSpec, AnomalySpec, ShieldSpec, DangerSpec],
)  # fmt: skip
def test_every_key_is_explained(page: str, section: type[Section]) -> None:
    for name, field in section.model_fields.items():
        key = field.alias or name
        if key != "file":
            assert re.search(rf"[`\[{{ ]{key}[`:]", page), f"{section.__name__}.{key}"


@pytest.mark.parametrize(
    ("section", "heading"),
    [(MonitorSpec, "Top level"), (PropertySpec, "properties"), (LearningSpec, "learning"),
     (BoundsSpec, "bounds")],
)  # fmt: skip
def test_defaults_are_the_real_ones(page: str, section: type[Section], heading: str) -> None:
    part = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    for row in re.findall(r"^\| `(\w+)` \| ([^|]+) \|", part, re.M):
        key, shown = row[0], row[1].strip().strip("`")
        field = section.model_fields.get(key)
        if field is None or isinstance(field.default, (dict, tuple, Section)):
            continue
        if field.is_required():
            assert shown == "required"
        elif isinstance(field.default, (int, float)) and not isinstance(field.default, bool):
            assert float(shown) == field.default, key
        elif field.default is not None and field.default != "":
            assert shown.lower() == str(field.default).lower(), key


def test_the_example_is_valid(page: str) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.S)
    compiled = compile_spec(parse_spec(parse_document(example)))
    assert compiled.abstraction.vocabulary.predicates == ("fast", "ttc<1", "ttc<2", "ttc<4")
