"""Make the whole study from nothing, or go on where it stopped: simulate, check, judge, print.

    make study                      # 80 runs a scenario, under two hours on two cores
    make study STUDY_SEEDS=20       # a look at it

SUMO (900 MB) goes into a virtual environment of its own, `.study-venv`.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from evaluation.foresight.study import main as judge
from evaluation.harness.command import command
from evaluation.harness.runs import pass_over
from evaluation.study.rivals import SCENARIOS
from forewarn.monitoring.loading import load_bare

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REQUIREMENTS = ROOT / "evaluation" / "sumo" / "requirements.txt"
# Compared with bags in every study: the first training run of each.
SAMPLE = ("s3", "s5", "s6", "s7")
TRAINING_SHARE = 0.625


class Job(NamedTuple):
    """Runs of one part of one scenario."""

    scenario: str
    part: str
    runs: int


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


def parts_of(runs: int) -> dict[str, int]:
    """Return how many runs of a scenario are for learning, and how many for judging."""
    train = max(round(runs * TRAINING_SHARE), 2)
    return {"train": train, "test": max(runs - train, 1)}


def jobs_for(runs: int) -> list[Job]:
    """Return what to simulate; the slowest scenario first, so that no core waits for it."""
    slow_first = sorted(SCENARIOS, key=lambda name: name != "s6")
    return [Job(name, part, n) for name in slow_first for part, n in parts_of(runs).items()]


def simulate(python: Path, folder: Path, job: Job) -> None:
    """Simulate the runs of a job that are missing."""
    options = ["--scenario", job.scenario, "--part", job.part, "--runs", str(job.runs)]
    _run(python, "evaluation.study.record", "--folder", str(folder), *options)
    print(f"study: {job.scenario} {job.part}: {job.runs} runs", flush=True)


def _run(python: Path, module: str, *options: str) -> None:
    command = [str(python), "-m", module, *options]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def disagreements(monitor_file: Path, bag: Path, trace: Path) -> list[str]:
    """Return the signals of which two recordings of one run do not say the same to the bit."""
    compiled = load_bare(monitor_file)
    ours, theirs = (pass_over(compiled, path) for path in (trace, bag))
    names = [n for n in ours.signals if ours.signals[n].tobytes() != theirs.signals[n].tobytes()]
    states = [run.codes[run.tracks[0].state].tobytes() for run in (ours, theirs)]
    return names if states[0] == states[1] else [*names, "the state"]


def check_sample(python: Path, folder: Path) -> None:
    """Record a sample of the runs as bags too; raises RuntimeError if they say anything else."""
    for scenario in SAMPLE:
        trace = folder / scenario / "train" / "00001.jsonl.gz"
        bag = folder / "bags" / f"{scenario}_00001"
        if trace.exists():
            shutil.rmtree(bag, ignore_errors=True)
            options = ["--scenario", scenario, "--seed", "1", "--output", str(bag)]
            _run(python, "evaluation.sumo.scenarios", *options)
            found = disagreements(HERE / f"{scenario}.yaml", bag, trace)
            if found:
                raise RuntimeError(f"{scenario}: bag and trace disagree: {', '.join(found)}")
            print(f"study: {scenario}: bag and trace of seed 1 agree to the bit", flush=True)


def main(
    runs: int = 80,
    folder: Path = ROOT / "out" / "study",
    environment: Path = ROOT / ".study-venv",
    jobs: int = 2,
    write: bool = False,
) -> None:
    """Make the study with so many runs a scenario, in so many processes."""
    python = python_of(environment, REQUIREMENTS)
    with ThreadPoolExecutor(jobs) as pool:
        for work in [pool.submit(simulate, python, folder, job) for job in jobs_for(runs)]:
            work.result()
    check_sample(python, folder)
    judge(folder, sizes=[parts_of(runs)["train"]], write=write)


if __name__ == "__main__":
    command(main)
