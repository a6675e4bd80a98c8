"""Builds packages of messages with colcon, for tests; what is built is kept until one changes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest


def built(sources: Path, kept: Path, work: Path) -> Path:
    """Return the prefix at which the packages in a folder are installed.

    Parameters
    ----------
    sources : Path
        The folder.
    kept : Path
        Where prefixes are kept, one for each state of the sources.
    work : Path
        An empty folder to build in.
    """
    texts = [path.read_bytes() for path in sorted(sources.rglob("*")) if path.is_file()]
    digest = hashlib.sha256(b"\0".join([sys.version.encode(), *texts])).hexdigest()[:16]
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / f"{digest}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # another worker may be building them
        if not (kept / digest / "share").is_dir():
            _build(sources, kept / digest, work)
    return kept / digest


def _build(sources: Path, prefix: Path, work: Path) -> None:
    colcon = Path(sysconfig.get_path("scripts")) / "colcon"
    if not colcon.exists():
        pytest.skip("colcon is not installed: `make setup` installs it")
    shutil.copytree(sources, work / "src", ignore=shutil.ignore_patterns("COLCON_IGNORE"))
    variables = {
        **os.environ,
        "AMENT_PREFIX_PATH": sys.prefix,
        "CMAKE_PREFIX_PATH": sys.prefix,
        "PATH": os.pathsep.join([str(colcon.parent), os.environ.get("PATH", "")]),
    }
    variables.pop("PYTHONPATH", None)
    done = subprocess.run(
        [
            *(colcon, "--log-base", "log", "build", "--base-paths", "src", "--build-base", "build"),
            *("--merge-install", "--install-base", work / "install"),
            *("--cmake-args", f"-DPython3_EXECUTABLE={sys.executable}", "-DBUILD_TESTING=OFF"),
        ],
        cwd=work,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with tempfile.TemporaryDirectory(dir=prefix.parent) as draft:
        # Whole or not at all: whoever builds may be stopped.
        whole = shutil.copytree(work / "install", Path(draft) / "install", symlinks=True)
        whole.rename(prefix)
