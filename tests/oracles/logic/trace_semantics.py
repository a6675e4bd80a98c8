"""The meaning of linear temporal logic on one trace, straight from its definition.

Nothing here is shared with the decision procedure but the classes of the syntax tree. A trace is a
sequence of sets of names; `loop` is the position that follows the last one, None where it ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import strategies as st

from forewarn.logic import syntax
from forewarn.logic.syntax import Atom, Bound, Constant, Interval

Letters = tuple[frozenset[str], ...]


def holds(formula, letters: Letters, loop: int | None, at: int = 0) -> bool:
    """Tell whether a formula holds at a position."""

    def on(part, position: int) -> bool:
        return holds(part, letters, loop, position)

    if isinstance(formula, Constant):
        return formula.value
    if isinstance(formula, Atom):
        return formula.text in letters[at]
    if isinstance(formula, syntax.Not):
        return not on(formula.operand, at)
    if isinstance(formula, (syntax.Next, syntax.StrongNext)):
        later = list(itertools.islice(_positions(letters, loop, at), 1, 2))
        return bool(later) and on(formula.operand, later[0])
    if isinstance(formula, syntax.Binary):
        x, y = on(formula.left, at), on(formula.right, at)
        return {
            "and": x and y, "or": x or y, "implies": not x or y, "iff": x == y, "xor": x != y,
        }[formula.word]  # fmt: skip
    lower, upper = 0, None
    if formula.interval is not None:
        lower = int(formula.interval.lower.value)
        upper = None if formula.interval.upper is None else int(formula.interval.upper.value)
    # Twice round the loop shows all that will ever be.
    end = lower + 2 * len(letters) + 1 if upper is None else upper + 1
    window = list(itertools.islice(_positions(letters, loop, at), end))
    if isinstance(formula, syntax.Always):
        return all(on(formula.operand, i) for i in window[lower:])
    if isinstance(formula, syntax.Eventually):
        return any(on(formula.operand, i) for i in window[lower:])
    left = [on(formula.left, i) for i in window]
    right = [on(formula.right, i) for i in window]
    until = any(right[k] and all(left[:k]) for k in range(lower, len(window)))
    return until or (isinstance(formula, syntax.Unless) and all(left))


def _positions(letters: Letters, loop: int | None, at: int) -> Iterator[int]:
    while True:
        yield at
        if at + 1 < len(letters):
            at += 1
        elif loop is None:
            return
        else:
            at = loop


def traces(
    atoms: tuple[str, ...], length: int, *, finite: bool
) -> Iterator[tuple[Letters, int | None]]:
    """Yield all traces of a length: all finite ones, or all lassos."""
    subsets = [
        frozenset(chosen)
        for count in range(len(atoms) + 1)
        for chosen in itertools.combinations(atoms, count)
    ]
    for letters in itertools.product(subsets, repeat=length):
        for loop in [None] if finite else range(length):
            yield letters, loop


def formulas(atoms: tuple[str, ...] = ("a", "b"), leaves: int = 5):
    """Return a strategy for formulas about now and later, with bounds and without."""
    leaf = st.sampled_from([Atom(name) for name in atoms]) | st.builds(Constant, st.booleans())
    ends = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted)
    window = ends.map(lambda pair: Interval(*(Bound(float(end), "steps") for end in pair)))
    bounds = st.none() | st.none() | window
    binary = (syntax.And, syntax.Or, syntax.Implies, syntax.Iff, syntax.Xor)

    def extend(inner):
        return st.one_of(
            st.builds(syntax.Not, inner),
            st.builds(syntax.Next, inner),
            *(st.builds(kind, inner, bounds) for kind in (syntax.Always, syntax.Eventually)),
            *(st.builds(kind, inner, inner) for kind in binary),
            *(st.builds(kind, inner, inner, bounds) for kind in (syntax.Until, syntax.Unless)),
        )

    return st.recursive(leaf, extend, max_leaves=leaves)
