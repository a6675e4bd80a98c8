"""Storm's Python package, version 1: models of ours into it, answers out of it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forewarn.errors import CheckingError
from forewarn.files.interpreters import spawning
from forewarn.models.chain import ROW_TOLERANCE
from forewarn.models.process import DecisionProcess

Mask = NDArray[np.bool_]
Values = NDArray[np.float64] | NDArray[np.bool_]
Result = TypeVar("Result")
_DIVIDES = re.compile(r"[/%]|\bmod\b")
"""What may end the process: a division by zero, also that of ``1/(2-2)``."""


def in_subprocess(work: Callable[..., Result], *given: Any) -> Result:
    """Return what `work` returns in a process of its own; raises BrokenProcessPool if that ends."""
    with ProcessPoolExecutor(1, mp_context=spawning()) as pool:
        return pool.submit(work, *given).result()


def _ends_process(formula: str, decides: bool) -> bool:
    """Tell whether a formula's arithmetic ends the process that it is computed in."""
    try:
        in_subprocess(_try, formula, decides)
    except BrokenProcessPool:
        return True
    return False


def _try(formula: str, decides: bool) -> None:
    """Check a formula in a model of one state. Errors are ignored: the real check reports them."""
    storm, one = Storm(), sparse.csr_matrix([[1.0]])
    process = DecisionProcess(one, np.array([0, 1]))
    labels = {name: np.array([True]) for name in re.findall(r'"(\w+)"', formula)}
    model = storm.mdp(process, labels) if decides else storm.dtmc(one, labels)
    with suppress(CheckingError):
        storm.answer(model, formula, precision=1e-9)


class Storm:
    """Storm, imported when the object is made; raises CheckingError if stormpy is not installed."""

    def __init__(self) -> None:
        try:
            self.module: Any = importlib.import_module("stormpy")
        except ImportError as error:
            raise CheckingError(
                f"Storm is not available: {error}",
                accepted="pip install 'stormpy<2', or the checker 'numeric'",
            ) from error
        version = str(self.module.__version__)
        if not version.startswith("1."):
            raise CheckingError(f"stormpy {version}", accepted="pip install 'stormpy<2'")

    def dtmc(
        self,
        matrix: sparse.csr_matrix,
        labels: Mapping[str, Mask],
        initial: Mask | int = 0,
        exact: bool = False,
    ) -> Any:
        """Return Storm's chain of a stochastic matrix, shape (n, n); labels are identifiers.

        Storm takes rows that do not sum to 1, and even NaN, in silence: they are refused here.
        `exact` makes rational numbers of the floating-point ones, each row divided by its exact
        sum.
        """
        n = matrix.shape[0]
        _check_rows(matrix)
        coo = matrix.tocoo()
        order = np.lexsort((coo.col, coo.row))
        entries = coo.data[order].tolist()
        builder = self._builder((n, n), exact)
        if exact:
            entries = self._rational(coo.row[order], entries)
        builder.add_next_values(coo.row[order].tolist(), coo.col[order].tolist(), entries)
        labeling = self._labeling(n, {"init": _as_mask(initial, n), **labels})
        return self._model(builder.build(), labeling, exact, "Dtmc")

    def mdp(
        self,
        process: DecisionProcess,
        labels: Mapping[str, Mask],
        initial: Mask | int = 0,
        exact: bool = False,
    ) -> Any:
        """Return Storm's model of a decision process; the parameters are those of `dtmc`."""
        coo = process.matrix.tocoo()
        order = np.lexsort((coo.col, coo.row))
        rows, columns = coo.row[order], coo.col[order]
        entries = coo.data[order].tolist()
        if exact:
            entries = self._rational(rows, entries)
        shape = process.matrix.shape
        builder = self._builder(shape, exact, groups=process.size)
        starts = np.searchsorted(rows, process.groups)
        for s in range(process.size):
            builder.new_row_group(int(process.groups[s]))
            part = slice(starts[s], starts[s + 1])
            builder.add_next_values(rows[part].tolist(), columns[part].tolist(), entries[part])
        labeling = self._labeling(process.size, {"init": _as_mask(initial, process.size), **labels})
        return self._model(builder.build(), labeling, exact, "Mdp")

    def _builder(self, shape: tuple[int, int], exact: bool, groups: int = 0) -> Any:
        name = f"{'Exact' if exact else ''}SparseMatrixBuilder"
        return getattr(self.module, name)(*shape, 0, True, groups > 0, groups)

    def _rational(self, rows: NDArray[np.int64], entries: list[float]) -> list[Any]:
        total = [Fraction(0)] * (int(rows.max(initial=-1)) + 1)
        shares = [Fraction(entry) for entry in entries]
        for row, share in zip(rows.tolist(), shares, strict=True):
            total[row] += share
        return [
            self.module.Rational(share / total[row])
            for row, share in zip(rows.tolist(), shares, strict=True)
        ]

    def _labeling(self, n: int, labels: Mapping[str, Mask]) -> Any:
        labeling = self.module.StateLabeling(n)
        for name, mask in labels.items():
            labeling.add_label(name)
            labeling.set_states(name, self.module.BitVector(n, np.flatnonzero(mask).tolist()))
        return labeling

    def _model(self, matrix: Any, labeling: Any, exact: bool, name: str) -> Any:
        family = "SparseExact" if exact else "Sparse"
        parts = getattr(self.module, f"{family}ModelComponents")(
            transition_matrix=matrix, state_labeling=labeling
        )
        return getattr(self.module, f"{family}{name}")(parts)

    def parse(self, formula: str) -> Any:
        """Return Storm's property; raises CheckingError with Storm's own words."""
        try:
            found = self.module.parse_properties(formula)
        except RuntimeError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise CheckingError(
                f"Storm does not take {formula!r}: {lines[0] if lines else error}",
                accepted='PCTL, with names in double quotes: F<=50 "near"; Storm has no G<=k, W '
                "and R: write !(F<=k ...) instead",
            ) from error
        if len(found) != 1:
            raise CheckingError(f"{formula!r} is {len(found)} queries", accepted="one at a time")
        return found[0]

    def check(self, model: Any, formula: str, precision: float = 1e-9) -> Values:
        """Return the value, or the truth, of a PCTL formula or query in every state.

        `precision` is relative, of unbounded probabilities; a model of rational numbers is exact.
        Raises CheckingError if Storm does not take the formula, or would crash on it.
        """
        if _DIVIDES.search(formula) and _ends_process(formula, _decides(model)):
            raise CheckingError(
                f"Storm crashes on {formula!r}: it divides by zero",
                accepted="numbers that Storm can compute",
            )
        return self.answer(model, formula, precision)

    def answer(self, model: Any, formula: str, precision: float) -> Values:
        """Do what `check` does, but let a division by zero end the process."""
        parsed = self.parse(formula)
        settings = self.environment(precision, exact=bool(model.is_exact))
        try:
            result = self.module.model_checking(model, parsed, environment=settings)
        except RuntimeError as error:
            raise CheckingError(f"Storm cannot check {formula!r}: {error}") from error
        n = int(model.nr_states)
        if hasattr(result, "get_truth_values"):
            return np.array([bool(result.at(i)) for i in range(n)], dtype=bool)
        return self.values(result)

    def environment(self, precision: float, exact: bool = False) -> Any:
        """Return solver settings: methods that bound their error, or exact state elimination."""
        result = self.module.Environment()
        solver = result.solver_environment
        native = solver.native_solver_environment
        (solver.set_force_exact if exact else solver.set_force_sound)()
        kinds = self.module.EquationSolverType
        solver.set_linear_equation_solver_type(kinds.elimination if exact else kinds.native)
        if not exact:
            native.method = self.module.NativeLinearEquationSolverMethod.sound_value_iteration
            native.precision = self.module.Rational(Fraction(precision).limit_denominator(10**15))
            solver.minmax_solver_environment.precision = native.precision
        return result

    def values(self, result: Any) -> NDArray[np.float64]:
        """Return the numbers of a quantitative result of ``model_checking``, shape (n,)."""
        return np.array([float(value) for value in result.get_values()])


def _decides(model: Any) -> bool:
    return "MDP" in str(model.model_type).upper()


def _as_mask(initial: Mask | int, n: int) -> Mask:
    if isinstance(initial, np.ndarray):
        return initial
    mask = np.zeros(n, dtype=bool)
    mask[initial] = True
    return mask


def _check_rows(matrix: sparse.csr_matrix) -> None:
    if not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
        raise CheckingError("a transition probability is negative or not finite")
    total = np.asarray(matrix.sum(axis=1)).ravel()
    wrong = np.flatnonzero(np.abs(total - 1.0) > ROW_TOLERANCE)
    if wrong.size:
        raise CheckingError(
            f"row {wrong[0]} of the transition matrix sums to {total[wrong[0]]:.12g}",
            accepted="rows that sum to 1",
        )
