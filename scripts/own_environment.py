"""Environments of their own, for what is heavy or optional: frameworks, embeddings, the site.

They are in nobody's way: a lock of `requirements/lock` is installed once, beside the packages of
`.venv`, in a folder of ``out`` that is named by a digest of the lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 600
"""Seconds that the installation may take: about 40 with a good network."""


class NotInstalledError(Exception):
    """The packages cannot be had here."""


def folder(name: str) -> Path:
    """Return where the packages of a lock lie; installed if they were not.

    Raises
    ------
    NotInstalledError
        If neither uv nor pip can install them; says why.
    """
    lock = ROOT / "requirements" / "lock" / f"{name}.txt"
    version = "{}.{}".format(*sys.version_info)
    digest = hashlib.sha256(lock.read_bytes() + version.encode()).hexdigest()[:12]
    found = ROOT / "out" / "packages" / f"{name}-{digest}"
    found.parent.mkdir(parents=True, exist_ok=True)
    with (found.parent / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not (found / "complete").exists():
            _install(lock, found)
    return found


def variables(name: str) -> dict[str, str]:
    """Return the environment of a process that can import the packages of a lock."""
    path = [str(folder(name)), *filter(None, [os.environ.get("PYTHONPATH")])]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "LANGSMITH_TRACING": "false"}
    # uv compiles nothing here. Each process would compile what it imports, for seconds.
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def _install(lock: Path, target: Path) -> None:
    program = Path(sys.executable).with_name("uv")
    uv = [program, "pip", "install", "--no-config", "--python", sys.executable]
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--upgrade"]
    arguments = [
        "--quiet", "--only-binary", ":all:", "--require-hashes", "--no-deps", "--target", target,
        "-r", lock,
    ]  # fmt: skip
    reason = ""
    # pip may know of an index that uv is not told of.
    for name, installer in (("uv", uv), ("pip", pip)):
        try:
            result = subprocess.run(
                [str(word) for word in [*installer, *arguments]],
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            reason = f"{name} took more than {LONGEST} s"
            continue
        if not result.returncode:
            (target / "complete").touch()
            return
        errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
        reason = errors[-1] if errors else result.stderr[-300:]
    raise NotInstalledError(reason)
