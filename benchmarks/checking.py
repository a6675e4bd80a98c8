"""How fast risk tables are solved, beside Storm's product, build and check in the same run.

Chains of random states with eight successors, a countdown of K = 100 steps, four terminal states.
Both sides work to a relative precision of 1e-6; Storm's engines that do not reach it on this
model are shown and left out of the comparison. With 16,384 states Storm takes minutes and
gigabytes: ``--quick`` leaves that out. Exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.checking import ENDED, risk_table
from forewarn.checking.credible import Question, credible_tables
from forewarn.checking.general import product_graph
from forewarn.models import Chain, CountModel, Smoothing, estimate_chain
from forewarn.properties import Automaton, compile_formula, parse_formula
from forewarn.vocabulary import Vocabulary

BOUND = 100
SUCCESSORS = 8
TERMINALS = 4
PRECISION = 1e-6
MEMORY_LIMIT = 200
# (linear equations, method), tried in this order; the others are slower still.
ENGINES = (
    ("gmmxx", "jacobi"),
    ("eigen", "jacobi"),
    ("native", "optimistic_value_iteration"),
    ("native", "sound_value_iteration"),
    ("native", "gauss_seidel"),
)


class Problem(NamedTuple):
    """A chain, the automaton, and the letter class of each state."""

    chain: Chain
    automaton: Automaton
    classes: NDArray[np.int64]


class Figure(NamedTuple):
    """One line of the result; times in seconds."""

    name: str
    ours: float
    storm: float | None = None
    engine: str = ""
    target: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times faster than Storm."""
        return None if self.storm is None else self.storm / self.ours

    @property
    def missed(self) -> bool:
        """Whether the target (a ratio, or seconds where there is no comparison) is missed."""
        if self.target is None:
            return False
        return self.ours > self.target if self.ratio is None else not self.ratio >= self.target


def problem(n: int, seed: int = 1) -> Problem:
    """Return a random chain of `n` states, a tenth of which trigger and a tenth answer."""
    rng = np.random.default_rng(seed)
    inner = n - TERMINALS
    targets = rng.integers(0, inner, size=(inner, SUCCESSORS))
    weights = rng.gamma(1.0, size=(inner, SUCCESSORS))
    weights *= 0.998 / weights.sum(axis=1, keepdims=True)
    ends = np.arange(inner, n)
    rows = [np.repeat(np.arange(inner), SUCCESSORS), np.arange(inner), ends]
    columns = [targets.ravel(), inner + rng.integers(0, TERMINALS, size=inner), ends]
    data = [weights.ravel(), np.full(inner, 0.002), np.ones(TERMINALS)]
    matrix = sparse.csr_matrix(
        (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape=(n, n)
    )
    matrix.sum_duplicates()
    classes = rng.choice([0, 1, 2], size=n, p=[0.8, 0.1, 0.1]).astype(np.int64)
    classes[inner:] = ENDED
    return Problem(Chain.from_matrix(matrix, np.arange(n) >= inner), response(), classes)


def response() -> Automaton:
    """Return the automaton of the bounded response."""
    formula = parse_formula(f"always(a implies eventually[0:{BOUND}](b))")
    return compile_formula(formula, rate=1.0)


def learned(n: int, transitions: int, seed: int = 1) -> CountModel:
    """Return counts of a random chain of `n` states, with the default smoothing."""
    truth = problem(n, seed).chain.to_csr()
    rng = np.random.default_rng(seed)
    rows, columns, data = [], [], []
    for i in range(n - TERMINALS):
        part = slice(truth.indptr[i], truth.indptr[i + 1])
        shares = truth.data[part] / truth.data[part].sum()
        rows.append(np.full(shares.size, i))
        columns.append(truth.indices[part])
        data.append(rng.multinomial(transitions // n, shares))
    counts = sparse.csr_matrix(
        (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))),
        shape=(n, n),
        dtype=np.int64,
    )
    counts.eliminate_zeros()
    names = tuple(f"p{i}" for i in range(15))
    terminals = tuple(f"t{i}" for i in range(TERMINALS))
    states = (*range(n - TERMINALS), *(-1 - i for i in range(TERMINALS)))
    starts = np.zeros(n, dtype=np.int64)
    return CountModel(Vocabulary(names, terminals), 10.0, "", states, counts, starts, Smoothing())


def best(function: Callable[[], Any], turns: int) -> tuple[float, Any]:
    """Return the least time of some turns, and the last result."""
    times = []
    result = None
    for _ in range(turns):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def compare(n: int, horizon: int | None, target: float | None, turns: int = 5) -> Figure:
    """Time one table on both sides."""
    given = problem(n)
    ours, _ = best(lambda: risk_table(*given, horizon, precision=PRECISION), turns)
    name = f"{n} states, " + ("unbounded" if horizon is None else f"F<={horizon}")
    if importlib.util.find_spec("stormpy") is None:
        return Figure(f"{name} (no Storm here to compare with)", ours)
    reference = risk_table(*given, horizon).values.ravel()
    storm, engine = time_storm(given, horizon, reference)
    return Figure(name, ours, storm, engine, target)


def time_storm(
    given: Problem, horizon: int | None, reference: NDArray[np.float64]
) -> tuple[float, str]:
    """Return Storm's time for product, build and check by its fastest engine, and which it is."""
    from forewarn.checking.storm import staying
    from forewarn.checking.storm_api import Storm

    storm = Storm()

    def build() -> Any:
        graph, violated = product_graph(*given)
        return storm.dtmc(staying(graph), {"violated": violated})

    built, model = best(build, 2)
    if horizon is not None:
        query = f'P=? [F<={horizon} "violated"]'
        checked, _ = best(lambda: storm.check(model, query, PRECISION), 1)
        return built + checked, "sparse"
    found: list[tuple[float, str]] = []
    # On large models only what was the fastest sound engine on small ones.
    engines = ENGINES if reference.size < 1_000_000 else ENGINES[2:3]
    for solver, method in engines:
        settings = engine_settings(storm, solver, method)
        formula = storm.parse('P=? [F "violated"]')

        def check(settings: Any = settings, formula: Any = formula) -> Any:
            return storm.module.model_checking(model, formula, environment=settings)

        try:
            taken, result = best(check, 1)
        except RuntimeError:
            continue
        values = storm.values(result)[: reference.size]
        scale = np.maximum(reference, 1e-12)
        error = float((np.abs(values - reference) / scale).max())
        name = solver if solver != "native" else method.replace("_", " ")
        if error <= 1.01 * PRECISION:
            found.append((taken, name))
        else:
            print(f"    Storm {name}: {taken:.3f} s, relative error {error:.1e}: left out")
        if found and min(found)[0] < taken:
            break
    checked, name = min(found) if found else (float("nan"), "none")
    return built + checked, name


def engine_settings(storm: Any, solver: str, method: str) -> Any:
    """Return settings for one of Storm's linear equation solvers at our precision."""
    place = storm.module.environments if storm.modern else storm.module
    settings = place.Environment()
    parts = settings.solver() if storm.modern else settings.solver_environment
    native = parts.native() if storm.modern else parts.native_solver_environment
    upper = str.upper if storm.modern else str
    parts.set_linear_equation_solver_type(getattr(place.EquationSolverType, upper(solver)))
    native.method = getattr(place.NativeLinearEquationSolverMethod, upper(method))
    native.precision = storm.module.Rational(f"1/{round(1 / PRECISION)}")
    return settings


def _measure_memory(n: int, pipe: Any) -> None:
    given = problem(n)
    taken, _ = best(lambda: risk_table(*given, None, precision=PRECISION), 1)
    pipe.send((taken, peak_memory()))


def peak_memory() -> float:
    """Return the most memory that this process has had, in MB."""
    # Unlike ru_maxrss, this is not inherited from the process that started this one.
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else float("nan")


def memory(n: int) -> tuple[float, float]:
    """Return time in seconds, and peak memory in MB of a process that does nothing else."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_measure_memory, args=(n, sending))
    process.start()
    taken, peak = receiving.recv()
    process.join()
    return float(taken), float(peak)


def look_up() -> float:
    """Return the median time of one look-up in a table of 1,024 states, in seconds."""
    table = risk_table(*problem(1024), 50)
    columns = table.values.shape[1]
    view = memoryview(table.values.ravel())
    rng = np.random.default_rng(0)
    pairs = [(int(s), int(q)) for s, q in rng.integers(0, (1024, columns), size=(20_000, 2))]
    clock = time.perf_counter
    times = []
    for s, q in pairs:
        start = clock()
        view[s * columns + q]
        times.append(clock() - start)
    return float(np.median(times))


def small(turns: int) -> list[Figure]:
    """Time tables and posterior samples of a learned chain of 64 states."""
    model = learned(64, 100_000)
    chain = estimate_chain(model)
    _, automaton, classes = problem(64)
    figures = []
    for horizon in (50, 500, 5000, None):
        name = "unbounded" if horizon is None else f"F<={horizon}"
        taken, _ = best(lambda h=horizon: risk_table(chain, automaton, classes, h), 10 * turns)
        figures.append(Figure(f"64 states learned by default, {name}", taken, target=0.005))
    for horizon in (50, 500, None):
        name = "unbounded" if horizon is None else f"F<={horizon}"
        question = Question(automaton, classes, horizon)
        taken, _ = best(lambda q=question: credible_tables(model, [q]), turns)
        figures.append(Figure(f"64 states, 200 posterior samples, {name}", taken, target=0.5))
    return figures


def smoothed(turns: int) -> list[Figure]:
    """Time tables of a chain learned with the defaults: every row is full."""
    chain = estimate_chain(learned(1024, 200_000))
    _, automaton, classes = problem(1024)
    figures = []
    for horizon in (50, 500, None):
        name = "unbounded" if horizon is None else f"F<={horizon}"
        taken, _ = best(
            lambda h=horizon: risk_table(chain, automaton, classes, h, precision=PRECISION), turns
        )
        figures.append(Figure(f"1024 states learned by default, {name}", taken))
    return figures


def show(figure: Figure) -> None:
    """Print one line."""
    line = f"{figure.name:48s} {figure.ours * 1e3:10.4g} ms"
    if figure.storm is not None:
        line += f"   Storm ({figure.engine}) {figure.storm * 1e3:10.1f} ms   {figure.ratio:8.1f} x"
        if figure.target is not None:
            line += f"   (asked for: {figure.target:g} x)"
    elif figure.target is not None:
        line += f"   (asked for: {figure.target * 1e3:g} ms)"
    print(line, flush=True)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out 16,384 states with Storm")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    figures = small(options.turns)
    figures += smoothed(options.turns)
    targets: list[tuple[int | None, float]] = [(50, 50.0), (500, 20.0), (None, 5.0)]
    figures += [compare(1024, horizon, target, options.turns) for horizon, target in targets]
    taken, peak = memory(16384)
    if not options.quick:
        figures.append(compare(16384, None, 10.0, 2))
    figures.append(Figure("look-up, median", look_up(), target=1e-6))
    missed = [figure.name for figure in figures if figure.missed]
    if peak > MEMORY_LIMIT:
        missed.append("memory")
    if options.json:
        lines = [figure._asdict() | {"ratio": figure.ratio} for figure in figures]
        print(json.dumps({"figures": lines, "memory_mb": peak}, indent=1))
    else:
        for figure in figures:
            show(figure)
        print(
            f"16384 states, unbounded: {peak:.0f} MB in all, {taken * 1e3:.0f} ms "
            f"(at most {MEMORY_LIMIT} MB)"
        )
    if missed:
        print(f"below target: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
