"""Operators of expressions on numbers, vectors and text, under IEEE 754 and Kleene logic.

Every function takes the :class:`~forewarn.expressions.values.Notes` of the evaluation first.
Arithmetic is done in float64, whatever the operands are, so that nothing overflows and a vector
gives the same bits as its elements would. None of these functions raises for any value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from forewarn.expressions.comparisons import COMPARATORS
from forewarn.expressions.members import Members, members_of
from forewarn.expressions.values import (
    NAN,
    NUMBERS,
    Notes,
    Record,
    Vector,
    is_unknown,
    kind,
    vector,
)

Operator: TypeAlias = Callable[[Notes, Any, Any], Any]

_PLAIN = frozenset({float, int, bool})


def number(notes: Notes, value: Any) -> Any:
    """Return `value` as a float, or as a vector of float64; NaN if it is not made of numbers."""
    if type(value) is float:
        return value
    if isinstance(value, np.ndarray):
        return value if value.dtype == np.float64 else value.astype(np.float64)
    if isinstance(value, NUMBERS):
        return float(value)
    if isinstance(value, (list, tuple)):
        items = vector(value)
        if isinstance(items, np.ndarray):
            return number(notes, items)
    return notes.unknown(f"{kind(value)} where a number is needed")


def numbers(notes: Notes, *values: Any) -> list[Any] | None:
    """Return all `values` as float64 scalars or vectors of one length, or None with a note."""
    operands = [number(notes, value) for value in values]
    lengths = {len(operand) for operand in operands if isinstance(operand, np.ndarray)}
    if len(lengths) > 1:
        notes.unknown(f"arrays of different lengths: {sorted(lengths)}")
        return None
    return operands


def finish(value: Any) -> Any:
    """Turn the result of a numpy function into a Python float or a vector."""
    return value if isinstance(value, np.ndarray) else float(value)


def elementwise(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    """Make a numpy function one of ours, for numbers and for vectors of one length."""

    def apply(notes: Notes, *values: Any) -> Any:
        operands = numbers(notes, *values)
        return NAN if operands is None else finish(ufunc(*operands))

    return apply


def _arithmetic(scalar: Callable[[float, float], float], ufunc: Callable[..., Any]) -> Operator:
    def apply(notes: Notes, a: Any, b: Any) -> Any:
        if type(a) is float and type(b) is float:
            return scalar(a, b)
        operands = numbers(notes, a, b)
        if operands is None:
            return NAN
        if type(operands[0]) is float and type(operands[1]) is float:
            return scalar(operands[0], operands[1])
        return ufunc(*operands)

    return apply


def _divide(a: float, b: float) -> float:
    return a / b if b else float(np.divide(a, b))


def power(a: Any, b: Any) -> Any:
    """Return ``a ** b`` under IEEE 754; squares are exact products, also among other powers."""
    if isinstance(b, float):
        return np.multiply(a, a) if b == 2.0 else np.power(a, b)
    return np.where(b == 2.0, np.multiply(a, a), np.power(a, b))


add = _arithmetic(operator.add, np.add)
subtract = _arithmetic(operator.sub, np.subtract)
multiply = _arithmetic(operator.mul, np.multiply)
divide = _arithmetic(_divide, np.divide)
floor_divide = elementwise(np.floor_divide)
modulo = elementwise(np.mod)
raise_to = elementwise(power)


def negative(notes: Notes, a: Any) -> Any:
    """Return ``-a``."""
    return -number(notes, a)


def positive(notes: Notes, a: Any) -> Any:
    """Return ``+a``."""
    return number(notes, a)


def _comparison(scalar: Callable[[Any, Any], bool]) -> Operator:
    def compare(notes: Notes, a: Any, b: Any) -> Any:
        if type(a) in _PLAIN and type(b) in _PLAIN:
            return scalar(a, b) if a == a and b == b else NAN
        if type(a) is str and type(b) is str:
            return scalar(a, b)
        if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
            return _compare_lists(scalar, compare, notes, a, b)
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return _compare_vectors(scalar, notes, a, b)
        if is_unknown(a) or is_unknown(b):
            return NAN
        if isinstance(a, NUMBERS) and isinstance(b, NUMBERS):
            return (
                compare(notes, a + 0, b + 0)
                if type(a) in _PLAIN
                else compare(notes, float(a), float(b))
            )
        return notes.unknown(f"{kind(a)} compared with {kind(b)}")

    return compare


def _all_text(items: Any) -> bool:
    return isinstance(items, list) and set(map(type, items)) == {str}


def _compare_lists(
    scalar: Callable[[Any, Any], bool], compare: Operator, notes: Notes, a: Any, b: Any
) -> Any:
    """Compare lists of text element by element."""
    if type(b) is str and _all_text(a):
        return np.array([scalar(element, b) for element in a])
    if not isinstance(a, (list, tuple, np.ndarray)):
        return vector([compare(notes, a, element) for element in b])
    if not isinstance(b, (list, tuple, np.ndarray)):
        return vector([compare(notes, element, b) for element in a])
    if len(a) != len(b):
        return notes.unknown(f"lists of different lengths: {len(a)} and {len(b)}")
    return vector([compare(notes, x, y) for x, y in zip(a, b, strict=True)])


def _compare_vectors(scalar: Callable[[Any, Any], Any], notes: Notes, a: Any, b: Any) -> Any:
    for value in (a, b):
        if not isinstance(value, (np.ndarray, *NUMBERS)):
            return notes.unknown(f"an array of numbers compared with {kind(value)}")
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and len(a) != len(b):
        return notes.unknown(f"arrays of different lengths: {len(a)} and {len(b)}")
    result = scalar(a, b)
    for value in (a, b):
        if np.asarray(value).dtype.kind == "f":
            unknown = np.isnan(value)
            if unknown.any():
                result = np.where(unknown, NAN, result)
    return result


COMPARISONS = {entry.name: _comparison(entry.holds) for entry in COMPARATORS}
equal = COMPARISONS["equal"]


def chain(notes: Notes, compare: tuple[Operator, ...], *values: Any) -> Any:
    """Evaluate ``a < b <= c``: all of the comparisons hold."""
    parts = [operation(notes, values[i], values[i + 1]) for i, operation in enumerate(compare)]
    return both(notes, *parts)


def contained(notes: Notes, item: Any, items: Any) -> Any:
    """Evaluate ``item in items`` for lists and vectors, and for text within text.

    A vector on the left gives one truth value for each of its elements.
    """
    if is_unknown(items):
        return NAN
    if type(item) is str and type(items) is list and {*map(type, items)} == {str}:
        return item in items  # a hundred times as fast as what follows, with the same result
    if isinstance(items, str):
        if isinstance(item, str):
            return item in items
        return item if is_unknown(item) else notes.unknown(f"{kind(item)} looked for in text")
    if not isinstance(items, (list, tuple, np.ndarray)):
        return notes.unknown(f"'in' needs a list, not {kind(items)}")
    if isinstance(item, np.ndarray):
        return either(
            notes, False, *(equal(notes, item, plain_item) for plain_item in plain_items(items))
        )
    if isinstance(item, list):
        if _all_text(item) and _all_text(items):
            texts = frozenset(items)
            return np.array([element in texts for element in item])
        return vector([contained(notes, element, items) for element in item])
    answer: Any = False
    for plain_item in plain_items(items):
        if plain_item is None:  # a text that was cut, or left out
            answer = either(notes, answer, notes.unknown("an element of the list is unknown"))
        elif (
            kind(plain_item) == kind(item)
            or is_unknown(plain_item)
            or is_unknown(item)
            or _numeric(plain_item, item)
        ):
            answer = either(notes, answer, equal(notes, item, plain_item))
    return answer


def _numeric(a: Any, b: Any) -> bool:
    return isinstance(a, NUMBERS) and isinstance(b, NUMBERS)


def not_contained(notes: Notes, item: Any, items: Any) -> Any:
    """Evaluate ``item not in items``."""
    return negate(notes, contained(notes, item, items))


def plain_items(items: Any) -> list[Any]:
    """Return the elements as Python values."""
    return items.tolist() if isinstance(items, np.ndarray) else list(items)


def truth(notes: Notes, value: Any) -> Any:
    """Return True, False or NaN; for a vector bool elements, or 0.0, 1.0 and NaN."""
    if type(value) is bool:
        return value
    if isinstance(value, np.ndarray):
        if value.dtype == np.bool_:
            return value
        holds = value != 0
        if value.dtype.kind == "f":
            unknown = np.isnan(value)
            if unknown.any():
                return np.where(unknown, NAN, holds)
        return holds
    if isinstance(value, NUMBERS):
        return NAN if value != value else bool(value)
    if isinstance(value, (list, tuple)):
        items = vector(value)
        if isinstance(items, np.ndarray):
            return truth(notes, items)
    return notes.unknown(f"{kind(value)} is neither true nor false")


def _pair(a: Any, b: Any, dominant: float) -> Any:
    """Combine two truth values; `dominant` (0 for and, 1 for or) decides alone."""
    if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
        if a == dominant or b == dominant:
            return bool(dominant)
        return NAN if a != a or b != b else not dominant
    decided = np.equal(a, dominant) | np.equal(b, dominant)
    result = decided if dominant else ~decided
    unknown = ~decided & (np.isnan(a) | np.isnan(b))
    return np.where(unknown, NAN, result) if unknown.any() else result


def _fold(notes: Notes, values: tuple[Any, ...], dominant: float) -> Any:
    if {*map(type, values)} == {bool}:
        return any(values) if dominant else all(values)
    result = truth(notes, values[0])
    for value in values[1:]:
        other = truth(notes, value)
        lengths = {len(operand) for operand in (result, other) if isinstance(operand, np.ndarray)}
        if len(lengths) > 1:
            return notes.unknown(f"arrays of different lengths: {sorted(lengths)}")
        result = _pair(result, other, dominant)
    return result


def both(notes: Notes, *values: Any) -> Any:
    """Evaluate ``a and b and ...``, element by element for vectors."""
    return _fold(notes, values, 0.0)


def either(notes: Notes, *values: Any) -> Any:
    """Evaluate ``a or b or ...``, element by element for vectors."""
    return _fold(notes, values, 1.0)


def negate(notes: Notes, value: Any) -> Any:
    """Evaluate ``not a``, element by element for vectors."""
    known = truth(notes, value)
    if isinstance(known, np.ndarray):
        return ~known if known.dtype == np.bool_ else 1.0 - known
    return NAN if known != known else not known


def select(notes: Notes, condition: Any, then: Any, otherwise: Any) -> Any:
    """Evaluate ``then if condition else otherwise``, element by element for vectors.

    Where the condition is unknown, so is the result.
    """
    known = truth(notes, condition)
    if not isinstance(known, np.ndarray):
        return NAN if known != known else (then if known else otherwise)
    if _is_text(then) or _is_text(otherwise):
        return _select_text(notes, known, then, otherwise)
    operands = numbers(notes, then, otherwise)
    if operands is None or any(
        isinstance(operand, np.ndarray) and len(operand) != len(known) for operand in operands
    ):
        return notes.unknown("arrays of different lengths in a choice")
    chosen = np.where(known == 1, *operands)
    if known.dtype == np.bool_:
        return chosen
    return np.where(np.isnan(known), NAN, chosen)


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, list)) and not isinstance(vector([value]), np.ndarray)


def _select_text(notes: Notes, known: Vector, then: Any, otherwise: Any) -> Any:
    columns = []
    for branch in (then, otherwise):
        column = branch if isinstance(branch, (list, np.ndarray)) else [branch] * len(known)
        if len(column) != len(known):
            return notes.unknown("lists of different lengths in a choice")
        columns.append(column)
    choice = zip(known.tolist(), *columns, strict=True)
    return vector([NAN if c != c else (a if c else b) for c, a, b in choice])


def _whole(place: Any) -> int | None:
    """Return an index as an int, or None if it is not a whole number."""
    if isinstance(place, NUMBERS) and -(2**62) < float(place) < 2**62 and place == int(place):
        return int(place)
    return None


def index(notes: Notes, items: Any, place: Any) -> Any:
    """Evaluate ``items[place]``; unknown if there is no such element."""
    if is_unknown(items) or is_unknown(place):
        return NAN
    if isinstance(place, str):
        return attribute(notes, items, place)
    if not isinstance(items, (list, tuple, str, np.ndarray)):
        return notes.unknown(f"{kind(items)} cannot be indexed")
    at = _whole(place)
    if at is None:
        return notes.unknown(f"an index must be a whole number, not {place!r}")
    if not -len(items) <= at < len(items):
        return notes.unknown(f"index {at} is out of range: there are {len(items)} elements")
    value = items[at]
    return value.item() if isinstance(value, np.generic) else value


def cut(notes: Notes, items: Any, *bounds: Any) -> Any:
    """Evaluate ``items[start:stop:step]``."""
    if is_unknown(items) or any(is_unknown(bound) for bound in bounds):
        return NAN
    if not isinstance(items, (list, tuple, str, np.ndarray)):
        return notes.unknown(f"{kind(items)} cannot be sliced")
    whole = [None if bound is None else _whole(bound) for bound in bounds]
    # An array among the bounds compares element by element, so `bounds.count(None)` would not do.
    strange = any(w is None and b is not None for w, b in zip(whole, bounds, strict=True))
    if whole[2] == 0 or strange:
        return notes.unknown(f"the bounds of a slice must be whole numbers, not {bounds}")
    part = items[slice(*whole)]
    return np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part


def attribute(notes: Notes, message: Any, name: str) -> Any:
    """Evaluate ``message.name``; a text that is a JSON object has its members."""
    if isinstance(message, str):
        members = members_of(message)
        return (
            notes.unknown("a text has no members") if members is None else members.get(notes, name)
        )
    if isinstance(message, Members):
        return message.get(notes, name)
    if isinstance(message, Record):
        return message.field(name)
    if is_unknown(message):
        return NAN
    return notes.unknown(f"{kind(message)} has no field {name!r}")
