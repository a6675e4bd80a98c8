"""Environments of the studies' own: what a simulator or a rival needs is no part of Forewarn's."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path


def python_of(folder: Path, requirements: Path) -> Path:
    """Return the interpreter of a virtual environment with some packages; make it if need be."""
    python, stamp = folder / "bin" / "python", folder / "requirements.sha256"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
        print(f"installing what {requirements} says into {folder}", flush=True)
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--clear", "-p", sys.executable, folder], check=True)
        install = [uv, "pip", "install", "--quiet", "--python", python, "-r", requirements]
        subprocess.run(install, check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return python
