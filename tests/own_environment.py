"""The environment with agent frameworks, for the tests of agent_guard.

They are heavy and in nobody's way: `requirements/lock/guard.txt` is installed once, beside the
packages of `.venv`, in a folder of ``out`` that is named by a digest of the lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "lock" / "guard.txt"
LONGEST = 600
"""Seconds that the installation may take: about 40 with a good network."""


class NotInstalledError(Exception):
    """The frameworks cannot be had here."""


def folder() -> Path:
    """Return where they lie; installed if they were not.

    Raises
    ------
    NotInstalledError
        If pip cannot install them; says why.
    """
    version = "{}.{}".format(*sys.version_info)
    digest = hashlib.sha256(LOCK.read_bytes() + version.encode()).hexdigest()[:12]
    found = ROOT / "out" / "agent-frameworks" / digest
    found.parent.mkdir(parents=True, exist_ok=True)
    with (found.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (found / "complete").exists():
            _install(found)
    return found


def variables() -> dict[str, str]:
    """Return the environment of a process that can import them."""
    path = [str(folder()), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "LANGSMITH_TRACING": "false"}


def _install(target: Path) -> None:
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
        "--only-binary", ":all:", "--require-hashes", "--no-deps", "--target", target, "--upgrade",
        "-r", LOCK,
    ]  # fmt: skip
    try:
        result = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotInstalledError(f"pip took more than {LONGEST} s") from error
    if result.returncode:
        said = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        raise NotInstalledError(said[-1] if said else result.stderr[-300:])
    (target / "complete").touch()
