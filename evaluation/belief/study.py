"""The expected risk beside premise's (CAV 2021): the same number, what a step costs, the limit.

    python -m evaluation.belief.study --premise DIR [--write]

DIR is a checkout of https://github.com/monitoring-MDPs/premise; it runs as it is, in an
environment of its own, which is made in `--folder`. README.md says what is compared.
"""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evaluation.belief.worlds import Hidden, Programme, Reading, World
from evaluation.harness.command import command
from evaluation.harness.environment import python_of
from evaluation.harness.page import publish, resampled, rounded, table, told
from forewarn.monitoring.belief import LIMIT, Filter, beginning, follow
from forewarn.monitoring.step import Monitor
from forewarn.signals.snapshots import Snapshot

HERE = Path(__file__).resolve().parent
MARK = "belief"
NEXT = "@next"
DEADLINE = 600_000
"""Milliseconds that premise may take for a step."""

WORLDS = (
    World("16 states", 4, noisy=2, silent=1),
    World("64 states", 6, noisy=2, silent=3),
    World("128 states", 7, noisy=2, silent=5),
)
"""Random chains, of which premise gets PRISM programmes."""

LARGE = (
    World("1,024 states", 10, noisy=2, silent=8),
    World("1,024 states, six predicates known", 10, noisy=2, silent=2),
    World("4,096 states", 12, noisy=2, silent=10),
)
"""Too large to write down for premise: only the limit is judged, against no limit."""


@dataclass(frozen=True)
class Example:
    """A model of premise's, as its experiments name it.

    It is monitored by so many of premise's methods: all but the first take minutes on large models.
    """

    name: str
    file: str
    constants: str
    bad: str
    horizon: int | None = None
    methods: int = 1

    @property
    def risk(self) -> str:
        """The risk as premise asks for it."""
        bound = "" if self.horizon is None else f"<={self.horizon}"
        return f'Pmax=? [F{bound} "{self.bad}"]'


EXAMPLES = (
    Example("airportA-7", "airportA-7.nm", "DMAX=50,PMAX=30", "crash"),
    Example("refuelA-12-50", "refuel.nm", "N=12,ENERGY=50", "empty", 12),
    Example("evadeV-6-3", "evade-monitoring.nm", "N=6,RADIUS=3", "crash", 12, methods=4),
)
"""Some of premise's models, under the names of its experiments."""


@dataclass(frozen=True)
class Method:
    """One of premise's ways to monitor."""

    name: str
    kind: str
    exact: bool
    steps: int
    runs: int


Run = dict[str, Any]
"""What one run gave, figures by name: sums over its steps, and the greatest differences."""


class Judged(NamedTuple):
    """The runs of one of premise's methods on a model with so many states."""

    model: str
    states: int
    method: Method
    runs: list[Run]


@contextmanager
def premise_side(
    python: Path, premise: Path, folder: Path, job: Mapping[str, Any]
) -> Iterator[Callable[[int], list[dict[str, str]]]]:
    """Yield a function that lets premise monitor the run of a seed, and returns its rows."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{job['name']}.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    for old in folder.glob(f"stats/{job['name']}-*/*"):
        old.unlink()
    for old in folder.glob(f"stats/{job['name']}-*"):
        old.rmdir()
    arguments = [python, HERE / "premise_side.py", premise.resolve(), file.resolve()]
    with (
        (folder / f"{job['name']}.log").open("w") as log,
        subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None

        def wait() -> None:
            for line in process.stdout:  # type: ignore[union-attr]
                if line.strip() == NEXT:
                    return
            raise OSError(f"premise ended: see {log.name}")

        def run(seed: int) -> list[dict[str, str]]:
            process.stdin.write(f"{seed}\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            wait()
            (found,) = folder.glob(f"stats/{job['name']}-*/*-{seed}.csv")
            with found.open(encoding="utf-8") as rows:
                return list(csv.DictReader(rows))

        wait()
        try:
            yield run
        finally:
            process.stdin.close()
            process.stdout.close()


def job_of(name: str, method: Method, **given: Any) -> dict[str, Any]:
    """Return what premise's side is told to do."""
    plain = {"constants": "", "uniform": False, "deadline": DEADLINE}
    kind = {"kind": method.kind, "exact": method.exact, "steps": method.steps}
    return {"name": name.replace(",", "").replace(" ", "-"), **plain, **kind, **given}


class Ours:
    """Forewarn over the readings of a run: whole steps, and beliefs alone."""

    def __init__(self, monitor: Monitor, limit: int = LIMIT) -> None:
        assert monitor.filter is not None
        self.monitor = monitor
        # Each remembers readings of its own, as a monitor that lives on does.
        self.filter: Filter = replace(monitor.filter, limit=limit, _memo={})

    def steps(self, readings: Sequence[Reading]) -> tuple[list[float], float]:
        """Return the expected risk at each tick, and seconds of processor time."""
        state, found, spent = self.monitor.start(), [], 0.0
        for tick, reading in enumerate(readings):
            snapshot = Snapshot(tick, reading)
            begun = time.thread_time()
            state, verdict = self.monitor.step(state, snapshot)
            spent += time.thread_time() - begun
            found.append(verdict.properties[0].expected.probability)
        return found, spent

    def beliefs(self, readings: Sequence[Reading]) -> Beliefs:
        """Return the same, of beliefs alone."""
        (compiled,) = self.monitor.properties
        belief, past, spent = beginning(compiled.live.initial), None, 0.0
        risks, sizes, left_out = [], [], []
        for tick, reading in enumerate(readings):
            observation, past, *_ = self.monitor.abstraction.observe(Snapshot(tick, reading), past)
            begun = time.thread_time()
            belief, figure = follow(self.filter, compiled, belief, observation)
            spent += time.thread_time() - begun
            risks.append(figure.probability)
            sizes.append(len(belief))
            left_out.append(figure.left_out)
        return Beliefs(risks, spent, sizes, left_out)


@dataclass(frozen=True)
class Beliefs:
    """Beliefs over a run: expected risks, seconds, product states held, and what was left out."""

    risks: list[float]
    seconds: float
    sizes: list[int]
    left_out: list[float]


def compared(
    ours: Ours, exact: Ours, readings: Sequence[Reading], rows: Sequence[Mapping[str, str]]
) -> Run:
    """Return how one run of premise's compares; `readings` may begin before premise's rows."""
    held, all_held = ours.beliefs(readings), exact.beliefs(readings)
    whole, seconds = ours.steps(readings)
    theirs = [_number(row["Risk"]) for row in rows]
    begin = len(readings) - len(theirs)
    apart = [abs(a - b) for a, b in zip(held.risks[begin:], theirs, strict=True)]
    return Run(
        steps=len(theirs),
        premise=sum(float(row["TotalTime"]) for row in rows),
        belief=held.seconds * len(theirs) / len(readings),
        step=seconds * len(theirs) / len(readings),
        apart=max(apart),
        apart_without_limit=max(
            abs(a - b) for a, b in zip(all_held.risks[begin:], theirs, strict=True)
        ),
        same=max(abs(a - b) for a, b in zip(whole, held.risks, strict=True)) == 0.0,
        mean=sum(theirs) / len(theirs),
        **of_limit(held, all_held),
    )


def _number(text: str) -> float:
    """Return a number of premise's; exact ones have thousands of digits, of which 400 will do."""
    above, _, below = text.partition("/")
    longest = max(len(above), len(below))
    if not below or longest <= 400:
        return float(Fraction(text))
    return float(Fraction(int(above[: -(longest - 400)] or "0"), int(below[: -(longest - 400)])))


def of_limit(held: Beliefs, all_held: Beliefs) -> dict[str, float]:
    """Return what the limit of a belief costs in a run, and how large beliefs are without it."""
    apart = [abs(a - b) for a, b in zip(held.risks, all_held.risks, strict=True)]
    return {
        "largest": max(all_held.sizes),
        "cut": sum(left > 0 for left in held.left_out) / len(apart),
        "left_out": max(held.left_out),
        "limit_apart": max(apart),
        "limit_apart_mean": sum(apart) / len(apart),
    }


def ratio(runs: Sequence[Run], of: str) -> float:
    """Return premise's processor time as a multiple of ours."""
    return sum(run["premise"] for run in runs) / sum(run[of] for run in runs)


def row_of(model: str, states: int, method: Method, runs: Sequence[Run]) -> dict[str, Any]:
    """Return the figures of one method on one model, with intervals over whole runs."""
    steps = sum(run["steps"] for run in runs)
    found: dict[str, Any] = {
        "model": model, "states": states, "method": method.name, "runs": len(runs),
        "steps": steps, "largest": max(run["largest"] for run in runs),
        "apart": rounded(max(run["apart"] for run in runs), 2),
        "apart_without_limit": rounded(max(run["apart_without_limit"] for run in runs), 2),
        "mean_risk": rounded(sum(run["mean"] for run in runs) / len(runs)),
    }  # fmt: skip
    for of in ("premise", "belief", "step"):
        found[f"{of}_us"] = rounded(1e6 * sum(run[of] for run in runs) / steps, 3)
    for of in ("belief", "step"):
        found |= resampled(
            f"{of}_ratio", lambda drawn, of=of: ratio(drawn, of), runs, resamples=1000
        )
    if not all(run["same"] for run in runs):
        raise AssertionError(f"{model}: a belief alone is another one than that of a step")
    return found


def limit_row(name: str, states: int, runs: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return what the limit costs on one model."""
    return {
        "model": name, "states": states, "runs": len(runs),
        "largest": max(run["largest"] for run in runs),
        "cut": rounded(sum(run["cut"] for run in runs) / len(runs)),
        "left_out": rounded(max(run["left_out"] for run in runs), 3),
        "apart": rounded(max(run["limit_apart"] for run in runs), 2),
        "apart_mean": rounded(sum(run["limit_apart_mean"] for run in runs) / len(runs), 2),
    }  # fmt: skip


METHODS = (
    Method("filtering", "filtering", exact=False, steps=100, runs=20),
    Method("filtering, exact numbers", "filtering", exact=True, steps=20, runs=5),
    Method("filtering with its reduction", "reducing", exact=False, steps=20, runs=5),
    Method("unfolding, exact numbers", "unfolding", exact=True, steps=10, runs=5),
)


def of_world(world: World, python: Path, premise: Path, folder: Path) -> Iterator[Judged]:
    """Yield what each of premise's methods says of a random chain."""
    monitor, model = world.monitor()
    programme = Programme(world, monitor, model)
    file = folder / f"{world.width}.prism"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(programme.text, encoding="utf-8")
    by_z = {z: reading for reading, z in programme.z.items()}
    asked = {"file": str(file.resolve()), "bad": "violated", "model": f"{world.width}.model.json"}
    # A conjunction, since premise has Storm end a run where a plain label holds.
    asked["risk"] = f'Pmax=? [F<={world.horizon} ("violated" & !"init")]'
    for method in METHODS:
        ours, exact = Ours(monitor), Ours(monitor, 1 << 40)
        job = job_of(f"{world.width}-{method.kind}-{method.exact}", method, **asked)
        runs = []
        with premise_side(python, premise, folder, job) as run:
            told_of = json.loads((folder / asked["model"]).read_text(encoding="utf-8"))
            read = _readings(told_of, by_z)
            for seed in range(method.runs):
                rows = run(seed)
                readings = [read[int(row["Observation"])] for row in rows]
                runs.append(compared(ours, exact, readings, rows))
        places = len(told_of["observations"])
        yield Judged(f"random chain, {world.name}", places, method, runs)


def _readings(told_of: Mapping[str, Any], by_z: Mapping[int, Reading]) -> dict[int, Reading]:
    """Return what each observation of premise's model means."""
    found = {}
    for observation, valuation in zip(told_of["observations"], told_of["valuations"], strict=True):
        parts = dict(part.split("=") for part in valuation.strip("[]").split("&") if "=" in part)
        z = int({name.strip(): value for name, value in parts.items()}["z"])
        if z in by_z:
            found[observation] = by_z[z]
    return found


def of_example(example: Example, python: Path, premise: Path, folder: Path) -> Iterator[Judged]:
    """Yield what each of premise's methods says of a model of its own, choices drawn evenly."""
    asked = {
        "file": str((premise / "examples" / example.file).resolve()), "bad": example.bad,
        "constants": example.constants, "risk": example.risk, "uniform": True,
        "model": f"{example.name}.model.json",
    }  # fmt: skip
    hidden, told_of = None, {}
    for method in METHODS[: example.methods]:
        job = job_of(f"{example.name}-{method.kind}-{method.exact}", method, **asked)
        runs = []
        with premise_side(python, premise, folder, job) as run:
            if hidden is None:
                told_of = json.loads((folder / asked["model"]).read_text(encoding="utf-8"))
                hidden = Hidden.of(told_of, example.horizon)
            ours, exact = Ours(hidden.monitor), Ours(hidden.monitor, 1 << 40)
            for seed in range(method.runs):
                rows = run(seed)
                readings = [hidden.reading(int(row["Observation"])) for row in rows]
                begin = hidden.exactly(told_of["initial"])
                runs.append(compared(ours, exact, [begin, *readings], rows))
        yield Judged(example.name, len(told_of["observations"]), method, runs)


def of_large(world: World, runs: int, steps: int) -> list[dict[str, float]]:
    """Return what the limit costs where premise does not serve; runs are drawn from the chain."""
    monitor, model = world.monitor()
    held, whole = Ours(monitor), Ours(monitor, 1 << 40)
    matrix = model.counts.toarray() / model.counts.sum(axis=1)
    found = []
    for seed in range(runs):
        rng, state, readings = np.random.default_rng(seed), 0, []
        for _ in range(steps):
            state = int(rng.choice(model.size, p=np.asarray(matrix)[state]))
            said, shares = zip(*world.readings(state), strict=True)
            readings.append(said[rng.choice(len(said), p=[float(share) for share in shares])])
        found.append(of_limit(held.beliefs(readings), whole.beliefs(readings)))
    return found


def _us(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def text_of(found: Mapping[str, Any]) -> str:
    """Return both tables."""
    head = ("model", "states", "premise by", "runs, steps", "greatest difference", "premise, us",
            "belief, us", "premise / belief", "premise / whole step")  # fmt: skip
    rows = [
        [row["model"], f"{row['states']:,}", row["method"], f"{row['runs']}, {row['steps']:,}",
         f"{row['apart']:.0e}", *(_us(row[f"{of}_us"]) for of in ("premise", "belief")),
         *(told(row, f"{of}_ratio", "{:,.3g}") for of in ("belief", "step"))]
        for row in found["premise"]
    ]  # fmt: skip
    limits = ("model", "product states at most", "steps with some left out", "left out at most",
              "expected risk apart: mean", "at most")  # fmt: skip
    cuts = [
        [row["model"], f"{row['largest']:,}", f"{row['cut']:.0%}", f"{row['left_out']:.2g}",
         f"{row['apart_mean']:.1e}", f"{row['apart']:.1e}"]
        for row in found["limit"]
    ]  # fmt: skip
    return f"{table(head, rows)}\n{table(limits, cuts)}"


def main(premise: Path, folder: Path = Path("out/belief"), write: bool = False) -> None:
    """Let both monitor the same runs, run by run in turn, and judge the limit."""
    if not (premise / "premise" / "monitoring.py").is_file():
        raise FileNotFoundError(f"{premise} is no checkout of monitoring-MDPs/premise")
    python = python_of(folder / "venv", HERE / "requirements.txt")
    found: dict[str, Any] = {"premise": [], "limit": []}
    sources = [of_world(world, python, premise, folder) for world in WORLDS]
    sources += [of_example(example, python, premise, folder) for example in EXAMPLES]
    for judged in itertools.chain(*sources):
        row = row_of(*judged)
        print(*row.values(), flush=True)
        found["premise"].append(row)
        if judged.method is METHODS[0]:
            found["limit"].append(limit_row(judged.model, judged.states, judged.runs))
    for world in LARGE:
        runs = of_large(world, 10, 50)
        found["limit"].append(limit_row(f"random chain, {world.name}", 2**world.width, runs))
    publish(MARK, text_of(found), found, HERE / "results.json", folder, write=write)


if __name__ == "__main__":
    command(main)
