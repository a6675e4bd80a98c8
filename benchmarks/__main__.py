"""Measure everything: ``python -m benchmarks``, or some of it: ``python -m benchmarks core``.

Every module beside this one is a benchmark of its own with a command line; each runs in its own
process, so that none sees another's caches. ``--write`` puts the figures into RESULTS.md: only
those during which other processes used next to nothing of the machine.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks._harness import Usage, machine, put

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "RESULTS.md"
FIRST = ("core", "latency", "reading", "extraction", "checking")
IDLE = 0.05  # the share of all cores that others may use while figures are taken


def names() -> list[str]:
    """Return the benchmarks, in a fixed order."""
    found = [file.stem for file in FOLDER.glob("*.py") if not file.stem.startswith("_")]
    return sorted(found, key=lambda name: (FIRST.index(name) if name in FIRST else 99, name))


def busy() -> bool:
    """Return whether others keep the machine busy now."""
    before = Usage.now()
    time.sleep(3.0)
    share = Usage.now().others_since(before)
    if share > IDLE:
        print(f"others use {share:.0%} of the machine (at most {IDLE:.0%}): stop them, or measure "
              "without --write", file=sys.stderr)  # fmt: skip
    return share > IDLE


def take(name: str, write: bool) -> bool:
    """Run one benchmark, print its figures, write them if that is asked for; tell if it is well."""
    print(f"\n## {name}\n", flush=True)
    before, load = Usage.now(), os.getloadavg()[0]
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    done = subprocess.run(command, cwd=FOLDER.parent, stdout=subprocess.PIPE, text=True)
    share = Usage.now().others_since(before)
    if not done.stdout.strip():  # skipped, or failed: standard error says why
        return not done.returncode
    figures = (
        f"{machine()}. Load average {load:.2f} before and {os.getloadavg()[0]:.2f} after; "
        f"others used {share:.1%} of the machine.\n\n{done.stdout.strip()}"
    )
    print(figures, flush=True)
    disturbed = share > IDLE
    if write and not disturbed:
        put(name, figures, RESULTS)
    elif write:
        print(f"not written: others used more than {IDLE:.0%}", file=sys.stderr)
    return not done.returncode and not (write and disturbed)


def main() -> int:
    """Run the benchmarks that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(names())}")
    parser.add_argument("--write", action="store_true", help="put the figures into RESULTS.md")
    options = parser.parse_args()
    chosen = options.names or names()
    unknown = [name for name in chosen if name not in names()]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r} (accepted: {', '.join(names())})")
    if options.write and busy():
        return 2
    failed = [name for name in chosen if not take(name, options.write)]
    if failed:
        print(f"\nfailed, disturbed, or below target: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
