"""The script that holds Cyber RT: its frames, and where it finds Cyber's Python package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from apollo_bridge import cyber_process
from apollo_bridge.cyber_process import Frames, frame


def test_frames_cut_anywhere() -> None:
    wanted = [(2, b"one"), (3, b""), (6, b"\0" * 9)]
    data = b"".join(frame(kind, payload) for kind, payload in wanted)
    for cut in range(len(data) + 1):
        frames = Frames()
        assert [*frames.feed(data[:cut]), *frames.feed(data[cut:])] == wanted


def load_in(folder: Path) -> subprocess.CompletedProcess[str]:
    """Load Cyber's package in an interpreter that sees only the standard library and a folder."""
    script = Path(cyber_process.__file__)
    code = (
        f"import sys; sys.path[:0] = [{str(script.parent)!r}, {str(folder)!r}]; "
        "import cyber_process; sys.path.pop(0); "  # as the script does, for it would hide `cyber`
        "print(*(m.__name__ for m in cyber_process.load_cyber()))"
    )
    return subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True)


def package(folder: Path, *modules: str) -> None:
    for name in modules:
        path = folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


@pytest.mark.parametrize(
    "modules",
    [
        ("pycyber.cyber", "pycyber.proto.role_attributes_pb2"),
        ("cyber.python.cyber_py3.cyber", "cyber.proto.role_attributes_pb2"),
    ],
)
def test_the_wheel_and_apollos_own_package_are_found(
    tmp_path: Path, modules: tuple[str, str]
) -> None:
    package(tmp_path, *modules)
    done = load_in(tmp_path)
    assert done.stdout.split() == list(modules), done.stderr


def test_without_either_both_are_named(tmp_path: Path) -> None:
    done = load_in(tmp_path)
    assert done.returncode != 0
    assert "pycyber.cyber: No module named 'pycyber'; cyber.python.cyber_py3.cyber:" in done.stderr
