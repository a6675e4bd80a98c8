"""Make the whole study from nothing, or go on where it stopped: simulate, check, judge, print.

    make study                      # 80 runs a scenario, under two hours on two cores
    make study STUDY_SEEDS=20       # a look at it

SUMO (900 MB) goes into a virtual environment of its own, `.study-venv`.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from evaluation.study.agreement import disagreements
from evaluation.study.analysis import SCENARIOS
from evaluation.study.analysis import main as analyse
from evaluation.study.table import main as tabulate

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "evaluation" / "sumo" / "requirements.txt"
# Compared with bags in every study: the first training run of each.
SAMPLE = ("s3", "s5", "s6", "s7")
TRAINING_SHARE = 0.625


class Job(NamedTuple):
    """Runs of one part of one scenario."""

    scenario: str
    part: str
    runs: int


def study_python(folder: Path) -> Path:
    """Return the interpreter of a virtual environment with SUMO; make it unless it is there."""
    python = folder / "bin" / "python"
    stamp = folder / "requirements.sha256"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == wanted):
        print(f"study: installing SUMO into {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "-r", str(REQUIREMENTS)], check=True
        )
        stamp.write_text(wanted, encoding="utf-8")
    return python


def jobs_for(runs: int) -> list[Job]:
    """Return what to simulate; the slowest scenario first, so that no core waits for it."""
    train = max(round(runs * TRAINING_SHARE), 2)
    parts = {"train": train, "test": max(runs - train, 1)}
    slow_first = sorted(SCENARIOS, key=lambda name: name != "s6")
    return [Job(name, part, count) for name in slow_first for part, count in parts.items()]


def simulate(python: Path, folder: Path, job: Job) -> None:
    """Simulate the runs of a job that are missing."""
    command = [str(python), "-m", "evaluation.study.record", "--folder", str(folder)]
    command += ["--scenario", job.scenario, "--part", job.part, "--runs", str(job.runs)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    print(f"study: {job.scenario} {job.part}: {job.runs} runs", flush=True)


def check_sample(python: Path, folder: Path) -> None:
    """Record a sample of the runs as bags too; raises RuntimeError if they say anything else."""
    for scenario in SAMPLE:
        trace = folder / scenario / "train" / "00001.jsonl.gz"
        bag = folder / "bags" / f"{scenario}_00001"
        if not trace.exists():
            continue
        shutil.rmtree(bag, ignore_errors=True)
        command = [str(python), "-m", "evaluation.sumo.scenarios", "--scenario", scenario]
        command += ["--seed", "1", "--output", str(bag)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        found = disagreements(bag, trace)
        if found:
            raise RuntimeError(f"{scenario}: bag and trace disagree: {found[0]}")
        print(f"study: {scenario}: bag and trace of seed 1 agree to the bit", flush=True)


def main() -> None:
    """Make the study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=80, help="a scenario (default: 80)")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "study")
    parser.add_argument("--venv", type=Path, default=ROOT / ".study-venv")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--output", type=Path, help="default: results.json in the folder")
    arguments = parser.parse_args()
    python = study_python(arguments.venv)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        work = [
            pool.submit(simulate, python, arguments.folder, job) for job in jobs_for(arguments.runs)
        ]
        for one_job in work:
            one_job.result()
    check_sample(python, arguments.folder)
    output = arguments.output or arguments.folder / "results.json"
    train = max(round(arguments.runs * TRAINING_SHARE), 2)
    options = ["--folder", str(arguments.folder), "--output", str(output), "--train", str(train)]
    options += ["--test", str(max(arguments.runs - train, 1)), "--jobs", str(arguments.jobs)]
    analyse([*options, "--sumo", str(python)])
    tabulate([str(output)])


if __name__ == "__main__":
    sys.exit(main())
