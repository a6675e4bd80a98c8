"""The reference pages say what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import compile_spec


def test_the_readme_names_only_commands_that_exist(repository: Path) -> None:
    from forewarn.cli.main import COMMANDS

    text = (repository / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^forewarn ([a-z]+)", text, re.M))
    assert named <= set(COMMANDS)


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs" / "reference" / "monitor-file.md").read_text(encoding="utf-8")


def test_the_example_is_valid(page: str) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.S)
    compiled = compile_spec(parse_spec(parse_document(example)))
    assert compiled.abstraction.vocabulary.predicates == ("fast", "ttc<1", "ttc<2", "ttc<4")
