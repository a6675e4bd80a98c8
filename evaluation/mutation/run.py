"""Mutation testing of what turns a risk into an action: ``python evaluation/mutation/run.py``.

mutmut changes one operator, value or argument at a time in a copy of the sources and runs the
tests of `monitoring` against each. What no test notices is printed. mutmut gets an environment of
its own below ``out/``, which sees the packages of the present one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "mutation"
TOOL = "mutmut==3.8.1"
MODULES = ("policy", "intervention")
COPIED = {
    "forewarn/src/forewarn": "src/forewarn",
    "tests/core/monitoring": "tests/core/monitoring",
    "tests/core/conftest.py": "tests/core/conftest.py",
    "tests/conftest.py": "tests/conftest.py",
    "ros2_ws/src/forewarn_msgs/msg": "ros2_ws/src/forewarn_msgs/msg",
}
SETTINGS = f"""\
[mutmut]
source_paths=src
only_mutate=
{"".join(f"    src/forewarn/monitoring/{module}.py{chr(10)}" for module in MODULES)}
also_copy=
    ros2_ws
pytest_add_cli_args_test_selection=tests
pytest_add_cli_args=
    -p
    no:cacheprovider
    --import-mode=importlib
    --hypothesis-seed=0
"""


def tool() -> Path:
    """Return mutmut's program; install it if it is not there."""
    folder = OUT / "tool"
    program = folder / "bin" / "mutmut"
    if not program.exists():
        venv.create(folder, with_pip=True)
        python = folder / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", TOOL], check=True)
        own = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        # A path in a .pth file: what is installed there as editable, forewarn above all, is not
        # seen, so that only the changed copy can be imported.
        Path(own, "project.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return program


def copy() -> Path:
    """Copy the sources and their tests."""
    folder = OUT / "work"
    shutil.rmtree(folder, ignore_errors=True)
    for source, target in COPIED.items():
        origin, place = ROOT / source, folder / target
        place.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, place)
    (folder / "setup.cfg").write_text(SETTINGS)
    return folder


def main() -> int:
    """Try all changes and print those that no test notices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    processes = parser.parse_args().processes
    OUT.mkdir(parents=True, exist_ok=True)
    program, folder = tool(), copy()
    environment = {**os.environ, "PYTHONPATH": "src"}

    def mutmut(*arguments: str) -> str:
        command = [str(program), *arguments]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace"
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    mutmut("run", "--max-children", str(processes))
    lines = [line.split(": ") for line in mutmut("results", "--all", "true").splitlines()]
    outcomes = {line[0].strip(): line[1].strip() for line in lines if len(line) == 2}
    outcomes = {name: each for name, each in outcomes.items() if ".x" in name}
    for name, outcome in outcomes.items():
        if outcome != "killed":
            print(f"{name}: {outcome}\n{mutmut('show', name)}")
    for module in MODULES:
        mine = Counter(each for name, each in outcomes.items() if f".{module}." in name)
        print(f"{module}: {mine.total()} mutants, {dict(mine)}")
    return int(not outcomes)


if __name__ == "__main__":
    sys.exit(main())
