"""How fast risk tables are solved, beside Storm's product, build and check in the same run.

Chains of random states with eight successors, a countdown of K = 100 steps, four terminal states.
Both sides work to a relative precision of 1e-6; Storm's engines that do not reach it on this
model are named and left out of the comparison. With 16,384 states Storm takes minutes and
gigabytes: ``--large 0`` leaves that out.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks._harness import LEAST, Cell, Table, Target, run, take_turns
from forewarn.checking.credible import RiskQuery, credible_tables
from forewarn.checking.interface import ENDED
from forewarn.checking.numeric import product_graph, risk_table
from forewarn.logic.automaton import Automaton
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary

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
    chain = Chain.of_rows(matrix, np.arange(n) >= inner, np.zeros(n, dtype=bool))
    return Problem(chain, response(), classes)


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


def span(horizon: int | None) -> str:
    """Return how a horizon is written."""
    return "unbounded" if horizon is None else f"F<={horizon}"


def compare(n: int, horizon: int | None, floor: float, turns: int) -> tuple[Cell, ...]:
    """Time one table on both sides."""
    given = problem(n)
    name = f"{n:,} states, {span(horizon)}"

    def solve() -> Any:
        return risk_table(*given, horizon, precision=PRECISION)

    if importlib.util.find_spec("stormpy") is None:
        (ours,) = take_turns(solve, turns=turns)
        return name, ours.seconds * 1e3, None, "not installed", None, None
    engine, build_and_check = storm_way(given, horizon, risk_table(*given, horizon).values.ravel())
    ours, storm = take_turns(solve, build_and_check, turns=turns)
    ratio = storm.seconds / ours.seconds
    aim = Target(floor, at_least=True)
    return name, ours.seconds * 1e3, storm.seconds * 1e3, engine, ratio, aim


def storm_way(
    given: Problem, horizon: int | None, reference: NDArray[np.float64]
) -> tuple[str, Callable[[], Any]]:
    """Return Storm's fastest engine that is precise, and product, build and check with it."""
    from forewarn.wings.decisions.storm import staying
    from forewarn.wings.decisions.storm_api import Storm

    storm = Storm()

    def build() -> Any:
        graph, violated = product_graph(*given)
        return storm.dtmc(staying(graph), {"violated": violated})

    if horizon is not None:
        query = f'P=? [F<={horizon} "violated"]'
        return "sparse", lambda: storm.check(build(), query, PRECISION)
    # On large models only what was the fastest sound engine on small ones.
    engines = ENGINES if reference.size < 1_000_000 else ENGINES[2:3]
    formula = storm.parse('P=? [F "violated"]')

    def check(model: Any, engine: tuple[str, str]) -> Any:
        settings = engine_settings(storm, *engine)
        return storm.module.model_checking(model, formula, environment=settings)

    found: list[tuple[float, tuple[str, str]]] = []
    if len(engines) == 1:
        found.append((0.0, engines[0]))
    else:
        model = build()
        for engine in engines:
            try:
                (timed,) = take_turns(lambda e=engine: check(model, e), turns=1)
            except RuntimeError:
                continue
            values = storm.values(timed.result)[: reference.size]
            error = float((np.abs(values - reference) / np.maximum(reference, 1e-12)).max())
            if error <= 1.01 * PRECISION:
                found.append((timed.seconds, engine))
            else:
                print(f"Storm {engine}: relative error {error:.1e}, left out", file=sys.stderr)
            if found and min(found)[0] < timed.seconds:
                break
    if not found:
        raise SystemExit("no engine of Storm reaches the precision")
    fastest = min(found)[1]
    return " ".join(fastest).replace("_", " "), lambda: check(build(), fastest)


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
    (timed,) = take_turns(lambda: risk_table(*given, None, precision=PRECISION), turns=1)
    pipe.send((timed.seconds, peak_memory()))


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


def look_up(turns: int) -> float:
    """Return the mean time of one look-up in a table of 1,024 states, in seconds."""
    table = risk_table(*problem(1024), 50)
    columns = table.values.shape[1]
    view = memoryview(table.values.ravel())
    rng = np.random.default_rng(0)
    pairs = [(int(s), int(q)) for s, q in rng.integers(0, (1024, columns), size=(20_000, 2))]

    def read() -> None:
        for s, q in pairs:
            view[s * columns + q]

    (timed,) = take_turns(read, turns=turns)
    return timed.seconds / len(pairs)


def alone(turns: int) -> list[tuple[Cell, ...]]:
    """Time what has no rival: tables and posterior samples of learned chains, whose rows are full.

    Those of 64 states have targets.
    """
    rows: list[tuple[Cell, ...]] = []
    for n, transitions in ((64, 100_000), (1024, 200_000)):
        model = learned(n, transitions)
        chain = estimate_chain(model)
        _, automaton, classes = problem(n)
        for horizon in (50, 500, 5000, None):
            (timed,) = take_turns(
                lambda c=chain, a=automaton, k=classes, h=horizon: risk_table(c, a, k, h),
                turns=turns,
                least=LEAST,
            )
            name = f"{n:,} states learned with the defaults, {span(horizon)}"
            rows.append((name, timed.seconds * 1e3, Target(5.0) if n == 64 else None))
            if n == 64 and horizon != 5000:
                question = RiskQuery(automaton, classes, horizon)
                (timed,) = take_turns(
                    lambda m=model, q=question: credible_tables(m, [q]), turns=turns
                )
                name = f"200 posterior samples of it, {span(horizon)}"
                rows.append((name, timed.seconds * 1e3, Target(500.0)))
    rows.append(("look-up", look_up(turns) * 1e3, Target(1e-3)))
    return rows


def measure(turns: int = 5, states: int = 1024, large: int = 16384) -> list[Table]:
    """Measure chains of so many states against Storm, and a large one once."""
    targets: list[tuple[int | None, float]] = [(50, 50.0), (500, 20.0), (None, 5.0)]
    rows = [compare(states, horizon, floor, turns) for horizon, floor in targets]
    single = alone(turns)
    if large:
        taken, peak = memory(large)
        name = f"{large:,} states, unbounded, in a process of its own"
        single += [(f"{name}: ms", taken * 1e3, None), (f"{name}: MB", peak, Target(MEMORY_LIMIT))]
        rows.append(compare(large, None, 10.0, 1))
    columns = ("What", "Forewarn, ms", "Storm, ms", "its engine", "Ratio", "Target")
    return [Table(columns, rows), Table(("What", "ms", "Target"), single)]


if __name__ == "__main__":
    sys.exit(run(measure))
