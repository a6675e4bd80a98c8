"""Measure everything: ``python -m benchmarks``, or some of it: ``python -m benchmarks core``.

Every module beside this one is a benchmark of its own with a command line; each runs in its own
process, so that none sees another's caches.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FIRST = ("core", "latency", "reading", "extraction", "checking")


def names() -> list[str]:
    """Return the benchmarks, in a fixed order."""
    found = [file.stem for file in FOLDER.glob("*.py") if not file.stem.startswith("_")]
    return sorted(found, key=lambda name: (FIRST.index(name) if name in FIRST else 99, name))


def machine() -> str:
    """Describe the machine and the versions that matter."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "rosbags"))
    return f"{model}, Python {platform.python_version()}, {packages}"


def main() -> int:
    """Run the benchmarks that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(names())}")
    chosen = parser.parse_args().names or names()
    unknown = [name for name in chosen if name not in names()]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r} (accepted: {', '.join(names())})")
    print(machine(), flush=True)
    failed = []
    for name in chosen:
        print(f"\n== {name}", flush=True)
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=FOLDER.parent)
        if done.returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed, or below target: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
