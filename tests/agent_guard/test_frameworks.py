"""Runs the tests of `frameworks/` where frameworks are: in one process, told one by one."""

from __future__ import annotations

import ast
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from own_environment import NotInstalledError, variables

FOLDER = Path(__file__).parent / "frameworks"


def names() -> list[str]:
    """Return the tests that are there: module and function."""
    found = []
    for path in sorted(FOLDER.glob("test_*.py")):
        found += [
            f"{path.stem}::{node.name}"
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        ]
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return what went wrong in each test, by name; nothing if all is well."""
    try:
        environment = variables("guard")
    except NotInstalledError as error:
        pytest.skip(f"LangChain cannot be installed here: {error}")
    report = tmp_path_factory.mktemp("frameworks") / "report.xml"
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
        "-W", "ignore", f"--junitxml={report}", "-o", "junit_family=xunit1", str(FOLDER),
    ]  # fmt: skip
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert report.exists(), ran.stdout + ran.stderr
    found: dict[str, list[str]] = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        module, name = str(case.get("classname")).split(".")[-1], str(case.get("name"))
        wrong = [f"{name}: {e.text}" for e in case if e.tag in ("failure", "error", "skipped")]
        found.setdefault(f"{module}::{name.partition('[')[0]}", []).extend(wrong)
    assert found, ran.stdout + ran.stderr
    return found


@pytest.mark.parametrize("name", names())
def test_in_a_framework(results: dict[str, list[str]], name: str) -> None:
    assert name in results, f"it was not run, but {sorted(results)}"
    assert not results[name], "\n".join(results[name])
