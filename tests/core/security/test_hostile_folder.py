"""Commands run in a folder that came with recordings: what lies there under a module's name."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from forewarn.cli import main

NAMES = (
    "json", "numpy", "pickle", "socket", "selectors", "struct", "signal", "subprocess", "threading",
    "multiprocessing", "concurrent", "forewarn", "monitor_node", "scipy", "runpy", "os", "resource",
)  # fmt: skip
TEXT = """
version: 1
rate: 10
signals: {x: {timeout: 0.1}}
predicates: {high: x > 0.5}
properties:
  calm: {formula: always(not high), horizon: 2}
"""
PRISM = "dtmc\nmodule m\n s: [0..1] init 0;\n [] s=0 -> 1/2: (s'=0) + 1/2: (s'=1);\n [] s=1 -> (s'=1);\nendmodule\nlabel \"on\" = s=1;\n"  # noqa: E501
READING = """
    import sys
    from monitor_node import model_subprocess
    model_subprocess.SMALL = 0
    print(len(model_subprocess.load_in_subprocess(sys.argv[1], 10**6).states))
"""
REGROWING = """
    import sys
    from types import SimpleNamespace
    from monitor_node.regrowing import Regrowing
    Regrowing._run(SimpleNamespace(_closed=False), "validate", sys.argv[1])
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "monitor.yaml").write_text(TEXT)
    (folder / "chain.prism").write_text(PRISM)
    for seed in range(2):
        draw = random.Random(seed)
        rows = [{"t": k / 10, "x": draw.gauss(0, 1)} for k in range(50)]
        (folder / f"{seed}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recordings = map(str, folder.glob("*.jsonl"))
    where = ["-c", str(folder / "monitor.yaml"), "-o", str(folder / "model.json")]
    assert main(["learn", *recordings, *where]) == 0
    return folder / "model.json"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a folder of modules that leave a file behind when they are imported."""
    for name in NAMES:
        text = f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + '\\n')\n"
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def run(folder: Path, program: str, *arguments: object) -> str:
    """Run a program of this environment in a folder, and return its output."""
    command = [Path(sys.executable).with_name(program), *arguments]
    done = subprocess.run(
        [*map(str, command)], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ran(hostile: Path) -> str:
    found = hostile / "ran"
    return found.read_text() if found.exists() else ""


def test_python_runs_what_lies_in_the_folder(hostile: Path) -> None:
    """So what follows can fail."""
    run(hostile, "python", "-c", "import json")
    assert ran(hostile) == "json\n"


@pytest.mark.parametrize(
    "command",
    ["learn", *(pytest.param(one, marks=pytest.mark.long) for one in ("check", "import"))],
)
def test_a_command_runs_nothing_that_lies_in_its_folder(
    hostile: Path, model: Path, command: str
) -> None:
    own = model.parent
    recordings, config = sorted(own.glob("?.jsonl")), own / "monitor.yaml"
    arguments = {
        "learn": (*recordings, "-c", config, "-o", "new.json", "-j", 2),
        "check": (model, 'P>=1/2 [ F "high" ]'),
        "import": (own / "chain.prism", "-o", "new.json", "--rate", 10),
    }[command]
    if command in ("check", "import"):
        pytest.importorskip("stormpy")
    run(hostile, "forewarn", command, *arguments)
    assert not ran(hostile)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(READING, id="a model read apart"),
        pytest.param(REGROWING, id="a tree grown anew", marks=pytest.mark.long),
    ],
)
def test_a_node_runs_nothing_that_lies_in_its_folder(
    hostile: Path, model: Path, tmp_path_factory: pytest.TempPathFactory, script: str
) -> None:
    program = tmp_path_factory.mktemp("program") / "node.py"
    program.write_text(textwrap.dedent(script))
    given = model if script == READING else model.with_name("monitor.yaml")
    run(hostile, "python", program, given)
    assert not ran(hostile)
