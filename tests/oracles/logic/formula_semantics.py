"""The meaning of formulas, straight from its definition, on all traces of a length at once.

Nothing here is shared with the compiler but the classes of the syntax tree. Values are
three-valued: what lies behind the end of a trace is not known. Bounds are whole steps.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from forewarn.logic import syntax
from forewarn.logic.syntax import Atom, Bound, Constant, Interval

ATOMS = ("a", "b")


class Value(NamedTuple):
    """`must`: certainly true; `may`: possibly true; both of shape (traces, ticks)."""

    must: np.ndarray
    may: np.ndarray


def all_traces(length: int, n_atoms: int) -> np.ndarray:
    """Return all letter sequences of a length in lexicographic order, (traces, length)."""
    return np.array(list(itertools.product(range(1 << n_atoms), repeat=length)))


def evaluate(formula, letters: np.ndarray, atoms: tuple[str, ...] = ATOMS) -> Value:
    """Return the value of `formula` at every tick of every trace."""
    if isinstance(formula, Constant):
        value = np.full(letters.shape, formula.value)
        return Value(value, value)
    if isinstance(formula, Atom):
        value = (letters >> atoms.index(formula.text) & 1).astype(bool)
        return Value(value, value)
    values = [evaluate(part, letters, atoms) for part in syntax.operands(formula)]
    if isinstance(formula, syntax.Not):
        return Value(~values[0].may, ~values[0].must)
    if isinstance(formula, syntax.Binary):
        return _connective(formula, *values)
    ends = letters.shape[1]
    columns = [_at(formula, values, t, ends) for t in range(ends)]
    return Value(*(np.stack(part, axis=1) for part in zip(*columns, strict=True)))


def _connective(formula, x: Value, y: Value) -> Value:
    if isinstance(formula, syntax.And):
        return Value(x.must & y.must, x.may & y.may)
    if isinstance(formula, syntax.Or):
        return Value(x.must | y.must, x.may | y.may)
    if isinstance(formula, syntax.Implies):
        return Value(~x.may | y.must, ~x.must | y.may)
    same = Value((x.must & y.must) | (~x.may & ~y.may), (x.may & y.may) | (~x.must & ~y.must))
    return same if isinstance(formula, syntax.Iff) else Value(~same.may, ~same.must)


def _read(value: Value, t: int, before: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the value at tick t: unknown behind the end, `before` ahead of the start."""
    n, ends = value.must.shape
    if t >= ends:
        return np.zeros(n, bool), np.ones(n, bool)
    if t < 0:
        return np.full(n, before), np.full(n, before)
    return value.must[:, t], value.may[:, t]


def _every(pairs, n):
    pairs = list(pairs)
    return tuple(
        np.logical_and.reduce([p[i] for p in pairs]) if pairs else np.ones(n, bool) for i in (0, 1)
    )


def _some(pairs, n):
    pairs = list(pairs)
    return tuple(
        np.logical_or.reduce([p[i] for p in pairs]) if pairs else np.zeros(n, bool) for i in (0, 1)
    )


def _at(formula, values, t, ends):
    n = values[0].must.shape[0]
    x = values[0]
    if isinstance(formula, (syntax.Next, syntax.StrongNext)):
        return _read(x, t + 1)
    if isinstance(formula, syntax.Previous):
        return _read(x, t - 1, before=True)
    if isinstance(formula, syntax.StrongPrevious):
        return _read(x, t - 1, before=False)
    if isinstance(formula, syntax.Rise):
        now, before = _read(x, t), _read(x, t - 1, before=False)
        return now[0] & ~before[1], now[1] & ~before[0]
    if isinstance(formula, syntax.Fall):
        now, before = _read(x, t), _read(x, t - 1, before=True)
        return ~now[1] & before[0], ~now[0] & before[1]
    lower, upper = _steps(formula.interval)
    if isinstance(formula, syntax.Always):
        # One tick behind the end stands for all of them: its value is not known.
        last = ends if upper is None else t + upper
        return (
            _every((_read(x, s) for s in range(t + lower, last + 1)), n)
            if (last >= t + lower)
            else (np.zeros(n, bool), np.ones(n, bool))
        )
    if isinstance(formula, syntax.Eventually):
        return _some((_read(x, s) for s in range(t + lower, t + upper + 1)), n)
    past_end = -1 if upper is None else t - upper
    if isinstance(formula, syntax.Historically):
        return _every((_read(x, s, True) for s in range(past_end, t - lower + 1)), n)
    if isinstance(formula, syntax.Once):
        return _some((_read(x, s, False) for s in range(past_end, t - lower + 1)), n)
    y = values[1]
    if isinstance(formula, syntax.Since):
        return _some(
            (
                _every([_read(y, s, False), *(_read(x, r) for r in range(s + 1, t + 1))], n)
                for s in range(max(past_end, 0), t - lower + 1)
            ),
            n,
        )
    last = max(ends, t + lower) if upper is None else t + upper
    until = _some(
        (
            _every([_read(y, s), *(_read(x, r) for r in range(t, s))], n)
            for s in range(t + lower, last + 1)
        ),
        n,
    )
    if isinstance(formula, syntax.Until):
        return until
    always = _every((_read(x, s) for s in range(t, last + 1)), n)
    return _some([always, until], n)


def _steps(interval):
    if interval is None:
        return 0, None
    upper = interval.upper
    return int(interval.lower.value), None if upper is None else int(upper.value)


def intervals(longest: int = 3):
    """Return a strategy for bounded intervals in steps."""
    pairs = st.tuples(st.integers(0, longest), st.integers(0, longest)).map(sorted)
    return pairs.map(lambda ends: Interval(*(Bound(float(end), "steps") for end in ends)))


def past_intervals(longest: int = 3):
    """Return a strategy for intervals of past operators, which may be without end."""
    endless = st.integers(0, longest).map(lambda n: Interval(Bound(float(n), "steps"), None))
    return st.none() | endless | intervals(longest)


def bounded_formulas(leaves: int = 5, longest: int = 3, atoms: tuple[str, ...] = ATOMS):
    """Return a strategy for formulas of bounded future and any past."""
    leaf = st.sampled_from([Atom(name) for name in atoms]) | st.builds(Constant, st.booleans())
    unary = (syntax.Not, syntax.Rise, syntax.Fall, syntax.Next, syntax.Previous,
             syntax.StrongNext, syntax.StrongPrevious)  # fmt: skip
    binary = (syntax.And, syntax.Or, syntax.Implies, syntax.Iff, syntax.Xor)
    window, past = intervals(longest), past_intervals(longest)

    def extend(inner):
        return st.one_of(
            *(st.builds(kind, inner) for kind in unary),
            *(st.builds(kind, inner, inner) for kind in binary),
            *(st.builds(kind, inner, window) for kind in (syntax.Always, syntax.Eventually)),
            *(st.builds(kind, inner, past) for kind in (syntax.Historically, syntax.Once)),
            *(st.builds(kind, inner, inner, window) for kind in (syntax.Until, syntax.Unless)),
            st.builds(syntax.Since, inner, inner, past),
        )

    return st.recursive(leaf, extend, max_leaves=leaves)


def safety_formulas(leaves: int = 4, longest: int = 3, atoms: tuple[str, ...] = ATOMS):
    """Return a strategy for formulas of the safety fragment, `always` without end included."""
    bounded = bounded_formulas(leaves, longest, atoms)
    endless = st.none() | st.just(Interval(Bound(1.0, "steps"), None))

    def extend(inner):
        return st.one_of(
            st.builds(syntax.Always, inner, endless),
            st.builds(syntax.And, inner, inner),
            st.builds(syntax.Or, inner, bounded),
            st.builds(syntax.Implies, bounded, inner),
            st.builds(syntax.Unless, inner, bounded, endless),
            st.builds(syntax.Next, inner),
        )

    return st.builds(syntax.Always, bounded) | st.recursive(bounded, extend, max_leaves=3)
