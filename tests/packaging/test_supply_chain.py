"""What is installed: bounded, locked with hashes, and under licences that were looked at."""

from __future__ import annotations

import configparser
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PACKAGES = ("forewarn", "forewarn_ros", "monitor_node", "apollo_bridge", "agent_guard")
LOCKS = sorted((ROOT / "requirements" / "lock").glob("*.txt"))
INPUTS = sorted({*ROOT.glob("requirements/*.txt"), *ROOT.glob("evaluation/*/requirements.txt")})
INTERPRETERS = ("3.10.0", "3.11.0", "3.12.0", "3.13.0")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def requirements(path: Path) -> list[Requirement]:
    lines = (line.split(" #")[0].strip() for line in path.read_text().splitlines())
    return [Requirement(line) for line in lines if line and line[0] not in "#-"]


def own_requirements(package: str) -> list[Requirement]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / package / "setup.cfg")
    extras = "options.extras_require"
    texts = [parser["options"]["install_requires"]]
    texts += list(parser[extras].values()) if parser.has_section(extras) else []
    return [
        Requirement(line)
        for text in texts
        for line in text.splitlines()
        if line and line not in PACKAGES
    ]


def pins(lock: Path) -> list[tuple[Requirement, int]]:
    """Return each line of a lock and how many hashes it has."""
    entries = re.split(r"\n(?=[A-Za-z])", lock.read_text().split("\n", 1)[1])
    found = []
    for entry in entries:
        head, *hashes = re.split(r"\s*\\\n\s*", entry.strip())
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one_hash) for one_hash in hashes), (
            head
        )
        found.append((Requirement(head), len(hashes)))
    return found


def installed_on(lock: Path, version: str) -> dict[str, str]:
    environment = {
        **default_environment(),
        "python_version": version.rpartition(".")[0],
        "python_full_version": version,
        "sys_platform": "linux",
        "platform_machine": "x86_64",
    }
    return {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
        for pin, _ in pins(lock)
        if pin.marker is None or pin.marker.evaluate(environment)
    }


@pytest.mark.parametrize("name", [*map(str, INPUTS), *PACKAGES])
def test_every_requirement_has_an_upper_bound(name: str) -> None:
    wanted = own_requirements(name) if name in PACKAGES else requirements(Path(name))
    for item in wanted:
        assert any(s.operator in ("<", "==", "<=") for s in item.specifier), str(item)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_every_line_of_a_lock_is_one_version_with_hashes(lock: Path) -> None:
    for pin, hashes in pins(lock):
        assert re.fullmatch(r"==[\w.+]+", str(pin.specifier)), str(pin)
        assert pin.url is None
        assert hashes
        assert canonicalize_name(pin.name) not in {canonicalize_name(own) for own in PACKAGES}
    # No index of the machine that made it: whoever installs chooses where from.
    assert "://" not in lock.read_text()
    assert not re.search(r"^\s*--(?!hash=)", lock.read_text(), re.MULTILINE)


@pytest.mark.parametrize("version", INTERPRETERS)
def test_the_locks_give_every_interpreter_what_is_required(version: str) -> None:
    module = script("lock")
    assert {path.stem for path in LOCKS} == set(module.LOCKS)
    for name, parts in module.LOCKS.items():
        pinned = installed_on(ROOT / "requirements" / "lock" / f"{name}.txt", version)
        wanted = [r for part in parts for r in requirements(ROOT / f"requirements/{part}.txt")]
        if name == "setup":
            wanted += [Requirement(line) for line in module.own_requirements()]
        for item in wanted:
            environment = {"python_version": version[:4], "python_full_version": version}
            if item.marker is None or item.marker.evaluate(environment):
                assert item.specifier.contains(pinned[canonicalize_name(item.name)]), str(item)


def test_the_environment_is_what_the_lock_says() -> None:
    from importlib.metadata import version

    current = ".".join(map(str, sys.version_info[:3]))
    for name, pinned in installed_on(ROOT / "requirements/lock/setup.txt", current).items():
        assert version(name) == pinned, f"{name}: run `make setup`"


@pytest.mark.parametrize("installer", ["UV", "PIP"])
def test_a_package_whose_hash_is_another_is_refused(installer: str, tmp_path: Path) -> None:
    module = script("bootstrap")
    lock = tmp_path / "lock.txt"
    lock.write_text(f"forged==1.0 --hash=sha256:{'0' * 64}\n")
    wheel = tmp_path / "forged-1.0-py3-none-any.whl"
    _write_wheel(wheel)
    *options, own = module.locked("setup")
    assert own == ROOT / "requirements" / "lock" / "setup.txt"
    command = [*getattr(module, installer), *options, lock]
    command += ["--no-index", "--find-links", tmp_path, "--target", tmp_path / "out"]
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert result.returncode
    assert re.search("hash mismatch|do not match the hashes", result.stderr, re.IGNORECASE)
    assert not (tmp_path / "out" / "forged-1.0.dist-info").exists()


def _write_wheel(path: Path) -> None:
    from zipfile import ZipFile

    with ZipFile(path, "w") as file:
        about = "forged-1.0.dist-info"
        file.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: forged\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")


def test_no_licence_of_what_runs_is_a_gpl_or_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert script("licences").main() == 0
    listed = capsys.readouterr().out
    for name in ("numpy", "ros-rclpy", "ros-fastdds", "protobuf", "pydantic-core"):
        assert re.search(rf"^{name} ", listed, re.MULTILINE)
    assert "hypothesis" not in listed


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("GPL-3.0-only", True),
        ("GNU General Public License v3 (GPLv3)", True),
        ("AGPL-3.0-or-later", True),
        ("MIT AND GPL-2.0-only", True),
        ("MIT OR GPL-2.0-only", False),
        ("LGPL-2.1-only", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1", False),
        ("Apache-2.0", False),
    ],
)
def test_a_gpl_is_told_from_what_only_looks_like_one(licence: str, expected: bool) -> None:
    assert script("licences").is_gpl(licence) is expected


def test_without_a_database_the_audit_says_so_and_does_not_hang() -> None:
    # A proxy that nobody listens at: refused at once, as in a closed network.
    result = subprocess.run(
        [sys.executable, ROOT / "scripts" / "audit.py"],
        env={"https_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert result.returncode == 0
    assert "audit: not done, the database of vulnerabilities cannot be reached" in result.stdout
