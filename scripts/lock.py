"""Writes requirements/lock: every package that `make setup` installs, with version and hashes.

`make lock` runs it, with the uv of `.venv`. One file serves Python 3.10 to 3.13: a
line holds for the interpreters that its marker names. What installs then takes nothing else
(`--require-hashes`), whatever an index offers by the same name.
"""

import configparser
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "requirements"
LOCK = REQUIREMENTS / "lock"
PACKAGES = ("forewarn", "forewarn_ros", "monitor_node", "apollo_bridge", "agent_guard")
# What each lock is made from; those after the first keep to the versions of the first.
LOCKS = {
    "setup": ("ros-wheels", "build", "dev"),
    "bootstrap": ("bootstrap",),
    "cmake": ("cmake",),
    "oracles": ("oracles",),
    "guard": ("guard",),
    "inspect": ("inspect",),
    "embeddings": ("embeddings",),
    "fleet": ("fleet",),
    "pymodelchecking": ("pymodelchecking",),
    "cyber": ("cyber",),
    "docs": ("docs",),
}
# What these packages ask for is not installed: files of theirs are read, they are not imported.
ALONE = ("embeddings",)
# botocore wants python-dateutil below 3, what builds ROS packages a newer one: they never meet.
FREE = {"fleet": "python-dateutil", "inspect": "python-dateutil"}
HEADER = "# Made by `make lock` from {}: do not edit.\n"


def main():
    """Resolve and write all files; with --upgrade to the newest versions that are allowed."""
    LOCK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        own = work / "own.in"
        own.write_text("\n".join(own_requirements()) + "\n")
        for name, parts in LOCKS.items():
            inputs = [REQUIREMENTS / f"{part}.txt" for part in parts]
            made_from = ", ".join(f"{part}.txt" for part in parts)
            options = ["-c", str(constraints(work, FREE.get(name)))]
            if name == "setup":
                inputs, options = [*inputs, own], []
                made_from += " and each setup.cfg"
            if name in ALONE:
                options.append("--no-deps")
            compile_lock(work, inputs, [*options, *sys.argv[1:]], name, made_from)


def own_requirements():
    """Yield what our packages depend on, without themselves: an index may know others so named."""
    for package in PACKAGES:
        parser = configparser.ConfigParser()
        parser.read(ROOT / package / "setup.cfg")
        lines = parser["options"]["install_requires"].split("\n")
        yield from (line for line in lines if line and line not in PACKAGES)


def constraints(work, free):
    """Return the file with the versions of the first lock, without those of the package `free`."""
    lock = LOCK / "setup.txt"
    if free is None:
        return lock
    kept = work / f"without-{free}.txt"
    lines = (line for line in lock.read_text().splitlines(True) if "==" in line)
    kept.write_text(
        "".join(line.rstrip("\\\n") + "\n" for line in lines if not line.startswith(f"{free}=="))
    )
    return kept


def compile_lock(work, inputs, options, name, made_from):
    """Resolve for all interpreters at once; pyproject.toml says for which platform."""
    target = LOCK / f"{name}.txt"
    # An index that is configured on this machine must leave no trace in the files.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("UV_", "PIP_"))}
    environment = {**kept, "XDG_CONFIG_HOME": str(work), "XDG_CONFIG_DIRS": str(work)}
    command = [
        ROOT / ".venv" / "bin" / "uv", "pip", "compile", "--quiet", "--universal",
        "--python-version", "3.10", "--generate-hashes", "--no-annotate", "--no-header",
        "--no-emit-index-url", "--no-emit-find-links", *options, *inputs, "-o", target,
    ]  # fmt: skip
    subprocess.run([str(word) for word in command], check=True, env=environment, cwd=str(ROOT))
    target.write_text(HEADER.format(made_from) + target.read_text())
    print(f"requirements/lock/{name}.txt")


if __name__ == "__main__":
    main()
