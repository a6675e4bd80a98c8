"""The meaning of linear temporal logic on one trace, straight from its definition.

Nothing here is shared with the decision procedure but the classes of the syntax tree. A trace is a
sequence of sets of names; `loop` is the position that follows the last one, None where it ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

from hypothesis import strategies as st

from forewarn.logic import syntax
from forewarn.logic.syntax import Atom, Bound, Constant, Interval

Letters = tuple[frozenset[str], ...]


def holds(formula, letters: Letters, loop: int | None, at: int = 0) -> bool:
    """Tell whether a formula holds at a moment; moments go on round the loop without end."""
    return _Trace(letters, loop).holds(formula, at)


class _Trace:
    def __init__(self, letters: Letters, loop: int | None) -> None:
        self.letters, self.loop = letters, loop
        self.known: dict[tuple[int, int], bool] = {}

    def holds(self, formula, at: int) -> bool:
        key = id(formula), at
        if key not in self.known:
            self.known[key] = self._holds(formula, at)
        return self.known[key]

    def _letter(self, at: int) -> frozenset[str]:
        length = len(self.letters)
        if at < length:
            return self.letters[at]
        assert self.loop is not None
        return self.letters[self.loop + (at - self.loop) % (length - self.loop)]

    def _holds(self, formula, at: int) -> bool:
        if isinstance(formula, Constant):
            return formula.value
        if isinstance(formula, Atom):
            return formula.text in self._letter(at)
        if isinstance(formula, syntax.Not):
            return not self.holds(formula.operand, at)
        if isinstance(formula, (syntax.Next, syntax.StrongNext)):
            return self._exists(at + 1) and self.holds(formula.operand, at + 1)
        if isinstance(formula, syntax.Previous):
            return at == 0 or self.holds(formula.operand, at - 1)
        if isinstance(formula, syntax.StrongPrevious):
            return at > 0 and self.holds(formula.operand, at - 1)
        if isinstance(formula, syntax.Rise):
            before = at > 0 and self.holds(formula.operand, at - 1)
            return self.holds(formula.operand, at) and not before
        if isinstance(formula, syntax.Fall):
            before = at == 0 or self.holds(formula.operand, at - 1)
            return not self.holds(formula.operand, at) and before
        if isinstance(formula, syntax.Binary):
            x, y = self.holds(formula.left, at), self.holds(formula.right, at)
            return {
                "and": x and y, "or": x or y, "implies": not x or y, "iff": x == y, "xor": x != y,
            }[formula.word]  # fmt: skip
        return self._timed(formula, at)

    def _exists(self, at: int) -> bool:
        return self.loop is not None or at < len(self.letters)

    def _timed(self, formula, at: int) -> bool:
        lower, upper = 0, None
        if formula.interval is not None:
            lower = int(formula.interval.lower.value)
            upper = None if formula.interval.upper is None else int(formula.interval.upper.value)
        if isinstance(formula, (syntax.Historically, syntax.Once, syntax.Since)):
            last = 0 if upper is None else max(0, at - upper)
            window = list(range(at, last - 1, -1))
        else:
            if upper is None:
                # What looks back may take some rounds until it stays as it is in every round.
                rounds = 2 + _memory(formula)
                upper = lower + rounds * len(self.letters) + 1
            window = [i for i in range(at, at + upper + 1) if self._exists(i)]
        if isinstance(formula, (syntax.Always, syntax.Historically)):
            return all(self.holds(formula.operand, i) for i in window[lower:])
        if isinstance(formula, (syntax.Eventually, syntax.Once)):
            return any(self.holds(formula.operand, i) for i in window[lower:])
        left = [self.holds(formula.left, i) for i in window]
        right = [self.holds(formula.right, i) for i in window]
        until = any(right[k] and all(left[:k]) for k in range(lower, len(window)))
        return until or (isinstance(formula, syntax.Unless) and all(left))


def _memory(formula) -> int:
    """Return how many steps back the operators of a formula look, one for each without a bound."""
    total = 0
    for part in syntax.walk(formula):
        if isinstance(part, (syntax.Historically, syntax.Once, syntax.Since)):
            upper = part.interval and part.interval.upper
            total += int(upper.value) + 1 if upper else 1
        total += isinstance(
            part, (syntax.Previous, syntax.StrongPrevious, syntax.Rise, syntax.Fall)
        )
    return total


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


@cache
def formulas(atoms: tuple[str, ...] = ("a", "b"), leaves: int = 5, *, past: bool = False):
    """Return a strategy for formulas about now and later, with bounds and without; or about all."""
    leaf = st.sampled_from([Atom(name) for name in atoms]) | st.builds(Constant, st.booleans())
    ends = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted)
    window = ends.map(lambda pair: Interval(*(Bound(float(end), "steps") for end in pair)))
    bounds = st.none() | st.none() | window
    unary = [syntax.Not, syntax.Next]
    timed = [syntax.Always, syntax.Eventually]
    paired = [syntax.Until, syntax.Unless]
    if past:
        unary += [syntax.Previous, syntax.StrongPrevious, syntax.Rise, syntax.Fall]
        timed += [syntax.Historically, syntax.Once]
        paired += [syntax.Since, syntax.Since]
    binary = (syntax.And, syntax.Or, syntax.Implies, syntax.Iff, syntax.Xor)

    def extend(inner):
        return st.one_of(
            *(st.builds(kind, inner) for kind in unary),
            *(st.builds(kind, inner, bounds) for kind in timed),
            *(st.builds(kind, inner, inner) for kind in binary),
            *(st.builds(kind, inner, inner, bounds) for kind in paired),
        )

    return st.recursive(leaf, extend, max_leaves=leaves)
