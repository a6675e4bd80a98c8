"""Asks a database of known vulnerabilities about every package of the lock, if it can be reached.

`make lint` runs it. Without the database it says so and ends well: what was not asked is no error
of the project.
"""

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).resolve().parents[1] / "requirements" / "lock" / "setup.txt"
# For an answer, and for all of them together; where nothing answers, one is enough to know.
ANSWER, ALL = 5, 120


def main():
    """Print what is known against the packages; 1 if there is something."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", LOCK, "--disable-pip"]
    command += ["--timeout", ANSWER, "--progress-spinner", "off", "--format", "json"]
    try:
        result = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, timeout=ALL
        )
    except subprocess.TimeoutExpired:
        return not_done(f"no answer within {ALL} s")
    try:
        packages = json.loads(result.stdout)["dependencies"]
    except (ValueError, KeyError):
        lines = result.stderr.strip().splitlines() or ["no answer"]
        return not_done(lines[-1][:160])
    asked = [package for package in packages if "skip_reason" not in package]
    if not asked:
        return not_done(f"it knows none of {len(packages)} packages")
    found = [
        f"{item['name']} {item['version']}: {known['id']}, "
        f"mended in {', '.join(known['fix_versions']) or 'no version'}"
        for item in asked
        for known in item["vulns"]
    ]
    for line in found:
        print(f"audit: error: {line}", file=sys.stderr)
    print(f"audit: {len(asked)} of {len(packages)} packages asked about, {len(found)} findings")
    return 1 if found else 0


def not_done(reason):
    """Say why nothing was asked."""
    print(f"audit: not done, the database of vulnerabilities cannot be reached: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
