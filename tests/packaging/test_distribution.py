"""What pip and uv install: a wheel and a source distribution, in empty environments without ROS."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PIP_OPTIONS = ("--disable-pip-version-check", "--quiet", "--no-cache-dir")
UV = Path(sys.executable).with_name("uv")
LONGEST = 900
COMPILED = ["_cdr", "_encounters", "_trees"]


def bootstrap() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "scripts" / "bootstrap.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@lru_cache
def interpreter(minor: int) -> str | None:
    """Return an interpreter of a version, with what makes environments; None without any."""
    module = bootstrap()
    for path in module.candidates():
        # One that lies in an environment of ours has what must not be found.
        ours = Path(path).is_relative_to(sys.prefix)
        if f"3.{minor}" in path and not ours and module.version_of(path, module.NEEDED) == minor:
            return path
    return None


@pytest.fixture(params=[10, 11, 13])
def minor(request: pytest.FixtureRequest) -> int:
    """Return a minor version of Python that is on this machine.

    3.12 has the wheel of 3.11 and 3.13, and lacks nothing that 3.13 has.
    """
    number: int = request.param
    if interpreter(number) is None:
        pytest.skip(f"there is no Python 3.{number} with ssl, venv and ensurepip on this machine")
    return number


def run(*command: object, folder: Path) -> str:
    """Run a command as in a shell that knows nothing of ROS; returns what it printed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AMENT", "PYTHON", "COLCON"))}
    result = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**kept, "VIRTUAL_ENV": ""},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the source distribution, made from what git would give."""
    folder = tmp_path_factory.mktemp("sdist")
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.so", "build")
    shutil.copytree(ROOT / "forewarn", folder / "forewarn", ignore=skip)
    command = [sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", folder]
    run(*command, folder=folder / "forewarn")
    [made] = folder.glob("*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel_of(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Return what gives the wheel for a version: that of 3.11 serves the later ones."""

    @lru_cache
    def build(minor: int) -> Path:
        if minor > 11 and interpreter(11) is not None:
            return build(11)
        folder = tmp_path_factory.mktemp(f"wheel-{minor}")
        pip = [interpreter(minor), "-m", "pip", "wheel", *PIP_OPTIONS, "--no-deps"]
        run(*pip, "--wheel-dir", folder, sdist, folder=folder)
        [found] = folder.glob("*.whl")
        return found

    return build


def test_the_source_distribution_has_what_a_build_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        about = archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert about is not None
        text = about.read().decode()
    assert {"LICENSE", "README.md", "setup.py", "package.xml", "src/forewarn/py.typed"} <= names
    sources = ("messages/_cdr.c", "wings/scores/_trees.c", "expressions/functions/_encounters.c")
    assert {f"src/forewarn/{source}" for source in sources} <= names
    assert "Requires-Python: >=3.10" in text
    for extra in ("learn", "agents", "apollo", "storm"):
        assert f"Provides-Extra: {extra}\n" in text
    assert (ROOT / "forewarn" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(LONGEST)
def test_it_installs_in_an_empty_environment(
    minor: int, wheel_of: Callable[[int], Path], tmp_path: Path
) -> None:
    wheel = wheel_of(minor)
    # One wheel serves every Python from 3.11 on: it keeps to the stable ABI.
    assert f"-{'cp310-cp310' if minor == 10 else 'cp311-abi3'}-" in wheel.name
    with ZipFile(wheel) as archive:
        compiled = [name for name in archive.namelist() if name.endswith(".so")]
    assert sorted(Path(name).name.partition(".")[0] for name in compiled) == COMPILED
    assert all(("abi3" in name) == (minor > 10) for name in compiled)
    run(interpreter(minor), "-m", "venv", "--without-pip", "environment", folder=tmp_path)
    python = tmp_path / "environment" / "bin" / "python"
    pip = (
        *(sys.executable, "-m", "pip", "--python", python),
        *("install", *PIP_OPTIONS, "--no-compile", wheel),
    )
    if minor == 10:
        run(*pip, folder=tmp_path)
    else:
        try:  # uv takes a tenth of pip's time, but knows no index of pip's configuration
            run(UV, "pip", "install", "--quiet", "-p", python, wheel, folder=tmp_path)
        except AssertionError:
            run(*pip, folder=tmp_path)
    printed = run("sh", ROOT / "scripts" / "try_installed.sh", python, folder=tmp_path)
    assert printed.startswith(f"forewarn {wheel.name.split('-')[1]}\n")
    assert "transitions -> model.json" in printed
    assert "VIOLATION" in printed
    assert run(python.with_name("forewarn"), "--version", folder=tmp_path).startswith("forewarn ")
    listed = run(UV, "pip", "list", "--quiet", "-p", python, folder=tmp_path)
    assert "numpy" in listed
    assert "rclpy" not in listed
