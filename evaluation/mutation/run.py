"""Mutation testing of what decides: ``make mutants``, or ``make mutants MUTANTS="policy feed"``.

mutmut changes one operator, value or argument at a time in a copy of the sources and runs the
tests that `modules.yaml` names against each change. A change that no test notices is a finding
unless that file explains it; so is an explanation that fits no such change any more. mutmut gets
an environment of its own below ``out/``, which sees the packages of the present one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "mutation"
TOOL = "mutmut==3.8.1"
SOURCES = ("forewarn/src/forewarn", "monitor_node/src/monitor_node")
ALSO = ("tests", "ros2_ws/src/forewarn_msgs", "config")
UNNOTICED = ("survived", "no tests")
STRICT = re.compile(r"\bstrict=(?:True|False|None)|[\s,]")
SETTINGS = """\
[mutmut]
source_paths=src
only_mutate=
    src/{module}
also_copy=
    ros2_ws
    config
    impatience.py
timeout_constant=4
timeout_multiplier=5
pytest_add_cli_args_test_selection=
{tests}
pytest_add_cli_args=
    -p
    no:cacheprovider
    -p
    impatience
    -W
    error::DeprecationWarning
    --import-mode=importlib
    --hypothesis-profile=impatient
"""
# What fails once need not be made small: the mutant is dead. Nor does a law need hundreds of
# examples to notice a wrong operator, be it that its test asks for them.
#
# Each mutant is tried in a child of the process in which all tests have passed: what those keep
# was made by the unchanged code, be it at the import of a test or in a cache.
IMPATIENCE = """\
import os
import sys

from hypothesis import HealthCheck, Phase, settings

EXAMPLES = 50

settings.register_profile(
    "impatient",
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
    max_examples=EXAMPLES,
)


def pytest_configure(config):
    here = os.getcwd() + os.sep
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith(here + "tests" + os.sep):
            del sys.modules[name]
        elif file.startswith(here):
            for kept in list(vars(module).values()):
                getattr(kept, "cache_clear", bool)()


def pytest_collection_modifyitems(items):
    for item in items:
        asked = getattr(item.obj, "_hypothesis_internal_use_settings", None)
        if asked is not None and asked.max_examples > EXAMPLES:
            item.obj._hypothesis_internal_use_settings = settings(asked, max_examples=EXAMPLES)
"""


# Run by mutmut's own Python: its command `show` takes a second for each mutant.
ANSWERS = """\
import json
from mutmut.__main__ import (
    SourceFileMutationData, get_diff_for_mutant, status_by_exit_code, walk_mutatable_files
)

answers = []
for path in walk_mutatable_files():
    data = SourceFileMutationData(path=path)
    data.load()
    for name, code in data.exit_code_by_key.items():
        status = status_by_exit_code[code]
        seen = status in ("killed", "timeout", "not checked")
        answers.append((name, status, "" if seen else get_diff_for_mutant(name, path=path)))
print(json.dumps(answers))
"""


class Change(NamedTuple):
    """One changed place: the function, its lines before and after, without their indents."""

    function: str
    was: str
    becomes: str


class Subject(NamedTuple):
    """A module, the tests that are to notice its changes, and those that none can notice."""

    module: str
    tests: list[str]
    explained: dict[Change, str]

    @property
    def name(self) -> str:
        """The module as it is imported."""
        return self.module.removesuffix(".py").replace("/", ".")


def subjects(text: str) -> list[Subject]:
    """Read `modules.yaml`."""
    return [
        Subject(
            item["module"],
            item["tests"],
            {
                Change(place["in"], place["was"], place["becomes"]): place["why"]
                for place in item.get("explained", [])
            },
        )
        for item in yaml.safe_load(text)
    ]


def change(name: str, diff: str) -> Change:
    """Return what a mutant changes, from its name and the diff that mutmut shows."""
    lines = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    was, becomes = (
        " ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    function = name.rpartition(".")[2].rpartition("__mutmut_")[0]
    return Change(function.removeprefix("x_").rpartition("ǁ")[2], was, becomes)


def is_guard(item: Change) -> bool:
    """Tell whether a change does no more than to weaken an assertion.

    Those matter only where the program is wrong already. To compare the lengths of what is zipped
    (`strict=True`) is one of them.
    """
    before, after = (STRICT.sub("", lines) for lines in (item.was, item.becomes))
    return before == after or item.was.startswith("assert ")


def findings(subject: Subject, unnoticed: list[Change]) -> list[str]:
    """Return what is wrong: changes without an explanation, explanations without a change."""
    counted = Counter(item for item in unnoticed if not is_guard(item))
    unexplained = [f"not noticed: {item}" for item in counted if item not in subject.explained]
    return unexplained + [f"stale: {item}" for item in subject.explained if item not in counted]


def tool() -> Path:
    """Return mutmut's program; install it if it is not there."""
    folder = OUT / "tool"
    program = folder / "bin" / "mutmut"
    if not program.exists():
        venv.create(folder)
        python, uv = folder / "bin" / "python", Path(sys.executable).with_name("uv")
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, TOOL], check=True)
        own = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        # A path in a .pth file: what is installed there as editable, forewarn above all, is not
        # seen, so that only the changed copy can be imported.
        Path(own, "project.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return program


def copy(subject: Subject) -> Path:
    """Copy the sources and their tests; what mutmut found there before stays."""
    folder = OUT / "work" / subject.name
    ignored = shutil.ignore_patterns("__pycache__")
    for source, place in [
        *((one_source, f"src/{Path(one_source).name}") for one_source in SOURCES),
        *((also, also) for also in ALSO),
    ]:
        shutil.rmtree(folder / place, ignore_errors=True)
        shutil.copytree(ROOT / source, folder / place, ignore=ignored)
    tests = "\n".join(f"    {test}" for test in subject.tests)
    (folder / "setup.cfg").write_text(SETTINGS.format(module=subject.module, tests=tests))
    (folder / "impatience.py").write_text(IMPATIENCE)
    return folder


def called(folder: Path, *command: str | Path) -> str:
    """Run a command in `folder` and return what it prints; end the program if it fails."""
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": "src:."},
        capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{command[0]}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def answers(subject: Subject, folder: Path) -> list[tuple[str, str, str]]:
    """Return name, outcome and diff of each mutant of the module."""
    found = json.loads(called(folder, tool().with_name("python"), "-c", ANSWERS))
    return [
        (name, outcome, diff)
        for name, outcome, diff in found
        if name.startswith(f"{subject.name}.")
    ]


def try_all(subject: Subject, again: bool, processes: int) -> list[str]:
    """Try every change of one module, print the figures, and return what is wrong."""
    begin, folder = time.monotonic(), OUT / "work" / subject.name
    if not again:
        shutil.rmtree(folder, ignore_errors=True)
    run = (tool(), "run", "--max-children", str(processes))
    called(copy(subject), *run)  # of what was tried before, only functions that have changed since
    found = answers(subject, folder)
    left = [name for name, outcome, _ in found if again and outcome in UNNOTICED]
    if left:
        called(folder, *run, *left)
        found = answers(subject, folder)
    outcomes = Counter(outcome for _, outcome, _ in found)
    unnoticed = [change(name, diff) for name, outcome, diff in found if outcome in UNNOTICED]
    wrong = findings(subject, unnoticed)
    if not found:
        wrong.append("mutmut found nothing to change")
    figures = [f"{outcomes[one_outcome]} {one_outcome}" for one_outcome in sorted(outcomes)]
    guards = sum(map(is_guard, unnoticed))
    figures += [
        f"{len(subject.explained)} explained",
        f"{guards} guards",
        f"{time.monotonic() - begin:.0f} s",
    ]
    print(f"{subject.module}: {len(found)} mutants,", ", ".join(figures))
    print(*(f"  {item}" for item in wrong), sep="\n", flush=True)
    return wrong


def main() -> int:
    """Try all changes and print those that no test notices."""
    known = subjects(Path(__file__).with_name("modules.yaml").read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="end of a module's name")
    parser.add_argument(
        "--again",
        action="store_true",
        help="try only what nothing noticed last, and what has changed",
    )
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    chosen = [
        item
        for item in known
        if not options.names or any(f".{item.name}".endswith(f".{n}") for n in options.names)
    ]
    if not chosen:
        listed = ", ".join(item.name for item in known)
        parser.error(f"no module ends with {' or '.join(options.names)} (accepted: {listed})")
    OUT.mkdir(parents=True, exist_ok=True)
    wrong = [
        finding for item in chosen for finding in try_all(item, options.again, options.processes)
    ]
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
