"""The set-up: which Python it takes, what it says when it cannot go on, that it is done once."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

PACKAGES = ("forewarn", "forewarn_ros", "monitor_node", "apollo_bridge", "agent_guard")
SCRIPT = Path(__file__).parents[2] / "scripts" / "bootstrap.py"


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the script as a module that works in an empty folder, with nothing on the PATH."""
    spec = importlib.util.spec_from_file_location("bootstrap", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "candidates", list)
    monkeypatch.delenv("FOREWARN_PYTHON", raising=False)
    return module


@pytest.fixture
def interpreter(tmp_path: Path) -> Callable[[str, str], str]:
    """Return a maker of executables that stand for a Python."""

    def make(name: str, script: str) -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_skips_a_shim_that_fails(
    bootstrap: ModuleType,
    interpreter: Callable[[str, str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shim = interpreter("shim", "echo 'python3.10: command not found' >&2; exit 127")
    works = interpreter("works", f'exec {shlex.quote(sys.executable)} "$@"')
    monkeypatch.setattr(bootstrap, "candidates", lambda: [shim, works])
    assert bootstrap.find_python() == works


def test_skips_other_versions(
    bootstrap: ModuleType, interpreter: Callable[[str, str], str]
) -> None:
    assert bootstrap.version_of(interpreter("old", "echo 3 9 cpython")) is None
    assert bootstrap.version_of(interpreter("new", "echo 3 14 cpython")) is None
    assert bootstrap.version_of(interpreter("other", "echo 3 11 pypy")) is None
    assert bootstrap.version_of(interpreter("good", "echo 3 12 cpython")) == 12


def test_says_which_interpreters_lack_what(
    bootstrap: ModuleType,
    interpreter: Callable[[str, str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # As Debian's Python without python3-venv: it runs, but cannot import ensurepip.
    lame = interpreter("lame", 'case "$2" in *ensurepip*) exit 1;; esac; echo 3 11 cpython')
    monkeypatch.setattr(bootstrap, "candidates", lambda: [lame])
    with pytest.raises(bootstrap.SetupError, match=f"ensurepip: {lame}.*FOREWARN_PYTHON"):
        bootstrap.find_python()


def test_refuses_a_wrong_choice_of_the_user(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOREWARN_PYTHON", "/nowhere/python3")
    with pytest.raises(bootstrap.SetupError, match="FOREWARN_PYTHON=/nowhere/python3 is not"):
        bootstrap.find_python()


def test_says_what_to_install_without_rights(
    bootstrap: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 1000)
    with pytest.raises(bootstrap.SetupError, match=r"run `sudo apt-get install g\+\+ make`"):
        bootstrap.apt_install("g++ make", "what builds messages")


def test_repairs_the_include_paths_of_the_wheels(
    bootstrap: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported = (
        tmp_path / ".venv/share/std_msgs/cmake/export_std_msgs__rosidl_generator_pyExport.cmake"
    )
    exported.parent.mkdir(parents=True)
    exported.write_text(
        '  INTERFACE_INCLUDE_DIRECTORIES "/opt/python/cp310-cp310/include/python3.10;'
        '/opt/python/cp310-cp310/lib/python3.10/site-packages/numpy/_core/include"\n'
    )
    answers = {"sysconfig.get_path('include')": "/py/include", "numpy.get_include()": "/np/include"}
    monkeypatch.setattr(bootstrap, "ask", answers.__getitem__)
    bootstrap.repair_wheels()
    assert exported.read_text() == '  INTERFACE_INCLUDE_DIRECTORIES "/py/include;/np/include"\n'


def test_an_environment_made_elsewhere_is_not_ours(bootstrap: ModuleType, tmp_path: Path) -> None:
    bootstrap.VENV.mkdir()
    stamp = bootstrap.VENV / "stamp.json"
    bootstrap.STAMP = stamp
    stamp.write_text('{"prefix": "/elsewhere/.venv", "python": "1"}')
    assert bootstrap.read_stamp() == {}
    stamp.write_text(f'{{"prefix": "{bootstrap.VENV}", "python": "1"}}')
    assert bootstrap.read_stamp()["python"] == "1"


def test_a_linked_environment_of_somebody_else_is_not_emptied(
    bootstrap: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "pyvenv.cfg").write_text("")
    bootstrap.VENV.symlink_to(tmp_path / "theirs")
    with pytest.raises(bootstrap.SetupError, match=r"\.venv is a link to .*theirs: remove it"):
        bootstrap.ensure_venv({})
    assert (tmp_path / "theirs" / "pyvenv.cfg").exists()


def test_without_a_network_it_fails_with_one_line_that_says_what_to_do(
    repository: Path, tmp_path: Path
) -> None:
    for folder in ("requirements", "scripts", *PACKAGES):
        skip = shutil.ignore_patterns("src", "__pycache__")
        shutil.copytree(repository / folder, tmp_path / folder, ignore=skip)
    environment = dict(os.environ, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull, HOME=str(tmp_path))
    environment["FOREWARN_PYTHON"] = os.path.realpath(sys.executable)
    environment.pop("PIP_FIND_LINKS", None)
    result = subprocess.run(
        [sys.executable, tmp_path / "scripts" / "bootstrap.py"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("setup: error: ")
    assert "check the network" in line
    assert ".ros/setup.log" in line
    assert "No matching distribution" in (tmp_path / ".ros" / "setup.log").read_text()


@pytest.mark.skipif(not SCRIPT.parents[1].joinpath(".venv").exists(), reason="not set up")
def test_second_run_does_nothing(repository: Path) -> None:
    # What it would do again is seen from its messages: it has none when nothing is due.
    command = [sys.executable, SCRIPT]
    subprocess.run(command, capture_output=True, check=True, timeout=280)
    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert again.stdout == ""
