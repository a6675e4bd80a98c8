"""Functions of numbers, arrays, texts and lists.

All follow IEEE 754: ``sqrt(-1)`` is NaN, ``log(0)`` is -inf, and nothing raises. NaN counts as
unknown and passes through; ``min`` and ``max`` over data that contain one are unknown as well,
for the smallest distance is not known while one of the distances is not. Only ``isnan`` and
``isfinite`` answer about it: ``min(r for r in ranges if isfinite(r))`` leaves it out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.operators import (
    elementwise,
    finish,
    number,
    numbers,
    plain_items,
    select,
    truth,
)
from forewarn.expressions.values import MAX_ELEMENTS, NAN, Notes, Vector, is_unknown, kind, vector


def _array(notes: Notes, name: str, items: Any) -> Vector | None:
    """Return `items` as a vector; None, with a note, for anything else."""
    if isinstance(items, (list, tuple)):
        items = vector(items)
    if isinstance(items, np.ndarray):
        return items
    if not is_unknown(items):
        notes.unknown(f"{name}() needs an array of numbers, not {kind(items)}")
    return None


def _extreme(name: str, reduce: Callable[[Vector], Any], pick: Callable[..., Any]) -> Any:
    def extreme(notes: Notes, *values: Any, default: Any = None) -> Any:
        if len(values) == 1:
            items = _array(notes, name, values[0])
            if items is None:
                return NAN
            if not len(items):
                if default is None:
                    return notes.unknown(f"{name}() of an empty array; give it a default=")
                return default
            return reduce(items).item()
        operands = numbers(notes, *values)
        if operands is None:
            return NAN
        result = operands[0]
        for operand in operands[1:]:
            result = pick(result, operand)
        return finish(result)

    return extreme


def _total(notes: Notes, items: Any) -> Any:
    array = _array(notes, "sum", items)
    return NAN if array is None else float(np.sum(array, dtype=np.float64))


def _mean(notes: Notes, items: Any) -> Any:
    array = _array(notes, "mean", items)
    if array is None:
        return NAN
    if not len(array):
        return notes.unknown("mean() of an empty array")
    return float(np.sum(array, dtype=np.float64) / len(array))


def _norm(notes: Notes, *values: Any) -> Any:
    if len(values) > 1:
        return _hypot(notes, *values)
    array = _array(notes, "norm", values[0])
    if array is None:
        return NAN
    operand = array.astype(np.float64)
    return float(np.sqrt(np.sum(operand * operand)))


def _dot(notes: Notes, a: Any, b: Any) -> Any:
    left, right = _array(notes, "dot", a), _array(notes, "dot", b)
    if left is None or right is None:
        return NAN
    operands = numbers(notes, left, right)
    return NAN if operands is None else float(np.sum(operands[0] * operands[1]))


def _any(notes: Notes, items: Any) -> Any:
    array = _array(notes, "any", items)
    if array is None:
        return NAN
    known = truth(notes, array)
    if known.dtype == np.bool_:
        return bool(known.any())
    return True if (known == 1).any() else NAN


def _all(notes: Notes, items: Any) -> Any:
    array = _array(notes, "all", items)
    if array is None:
        return NAN
    known = truth(notes, array)
    if known.dtype == np.bool_:
        return bool(known.all())
    return False if (known == 0).any() else NAN


SPELLED_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def _float(notes: Notes, value: Any) -> Any:
    """Return a value as a float; of a text, the number that it spells in plain digits."""
    if isinstance(value, str):
        text = value.strip()
        return (
            float(text)
            if SPELLED_NUMBER.fullmatch(text)
            else notes.unknown("a text that is no number")
        )
    if isinstance(value, (list, tuple)) and any(isinstance(each, str) for each in value):
        return vector([_float(notes, each) for each in value])
    return number(notes, value)


def _count(notes: Notes, items: Any) -> Any:
    array = _array(notes, "count", items)
    if array is None:
        return NAN
    known = truth(notes, array)
    return int(known.sum()) if known.dtype == np.bool_ else NAN


def _length(notes: Notes, items: Any) -> Any:
    if isinstance(items, (list, tuple, str, np.ndarray)):
        return len(items)
    return NAN if is_unknown(items) else notes.unknown(f"{kind(items)} has no length")


def _place(name: str, find: Callable[[Vector], Any]) -> Any:
    def place(notes: Notes, items: Any) -> Any:
        array = _array(notes, name, items)
        if array is None:
            return NAN
        if not len(array):
            return notes.unknown(f"{name}() of an empty array")
        if array.dtype.kind == "f" and np.isnan(array).any():
            return NAN
        return int(find(array))

    return place


def _hypot(notes: Notes, *values: Any) -> Any:
    operands = numbers(notes, *values)
    if operands is None:
        return NAN
    if len(operands) == 1:
        return finish(np.abs(operands[0]))
    result = operands[0]
    for operand in operands[1:]:
        result = np.hypot(result, operand)
    return finish(result)


def _absolute(notes: Notes, value: Any) -> Any:
    return abs(value) if type(value) is float else abs(number(notes, value))


def _square_root(notes: Notes, value: Any) -> Any:
    if type(value) is float and value >= 0.0:
        return math.sqrt(value)
    return finish(np.sqrt(number(notes, value)))


def _test(ufunc: Callable[..., Any]) -> Callable[..., Any]:
    def test(notes: Notes, value: Any) -> Any:
        if isinstance(value, (str, list)) and not isinstance(vector([value]), np.ndarray):
            value = number(notes, value)
        result = ufunc(number(notes, value))
        return result if isinstance(result, np.ndarray) else bool(result)

    return test


def _wrap(angle: Any) -> Any:
    return np.mod(np.add(angle, math.pi), 2 * math.pi) - math.pi


def _yaw(x: Any, y: Any, z: Any, w: Any) -> Any:
    """Heading of a quaternion that need not be of unit length (REP-103: about z)."""
    return np.arctan2(2.0 * (w * z + x * y), (w * w - z * z) + (x * x - y * y))


def _roll(x: Any, y: Any, z: Any, w: Any) -> Any:
    return np.arctan2(2.0 * (w * x + y * z), (w * w - x * x) + (z * z - y * y))


def _pitch(x: Any, y: Any, z: Any, w: Any) -> Any:
    sine = 2.0 * (w * y - z * x)
    across = np.hypot(2.0 * (w * z + x * y), (w * w - z * z) + (x * x - y * y))
    return np.arctan2(sine, across)


def _tilt(x: Any, y: Any, z: Any, w: Any) -> Any:
    """Angle between the z axis of what is turned, and that of the frame it is turned in."""
    across = np.hypot(2.0 * (x * z + w * y), 2.0 * (y * z - w * x))
    return np.arctan2(across, (w * w - x * x) + (z * z - y * y))


def _of_quaternion(compute: Callable[..., Any], text: str) -> Function:
    told = f"{text} of a quaternion: a message, or x, y, z, w"
    return Function(
        elementwise(compute), 4, 4, told, 1, fields=("x", "y", "z", "w"), by_platform=True
    )


def _clamp(value: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(value, low), high)


def _range(notes: Notes, *bounds: Any) -> Any:
    operands = [number(notes, bound) for bound in bounds]
    if any(isinstance(operand, np.ndarray) or operand != operand for operand in operands):
        return notes.unknown("range() needs whole numbers")
    if any(abs(operand) > 2**53 or operand != int(operand) for operand in operands):
        return notes.unknown(f"range() needs whole numbers, not {bounds}")
    whole = [int(operand) for operand in operands]
    if len(whole) == 3 and whole[2] == 0:
        return notes.unknown("range() with step 0")
    span = range(*whole)
    if len(span) > MAX_ELEMENTS:
        return notes.unknown(f"range() of {len(span)} elements; at most {MAX_ELEMENTS}")
    if not notes.afford(len(span), each=1):
        return NAN
    return np.arange(span.start, span.stop, span.step, dtype=np.int64)


def _has(notes: Notes, value: Any) -> Any:
    return notes.unknown("has() of something that is no field of a message")


def _sequences(notes: Notes, name: str, values: tuple[Any, ...]) -> list[list[Any]] | None:
    found = []
    for value in values:
        if not isinstance(value, (list, tuple, np.ndarray)):
            if not is_unknown(value):
                notes.unknown(f"{name}() needs lists, not {kind(value)}")
            return None
        found.append(plain_items(value))
    return found


def _zip(notes: Notes, *values: Any) -> Any:
    lists = _sequences(notes, "zip", values)
    return NAN if lists is None else list(zip(*lists, strict=False))


def _enumerate(notes: Notes, items: Any) -> Any:
    lists = _sequences(notes, "enumerate", (items,))
    return NAN if lists is None else list(enumerate(lists[0]))


def _integer(notes: Notes, value: Any) -> Any:
    whole = np.trunc(number(notes, value))
    return finish(whole)


register(
    {
        "abs": Function(_absolute, 1, 1, "absolute value", 1),
        "min": Function(
            _extreme("min", np.min, np.minimum),
            1,
            None,
            "smallest element of an array (default= if empty), or of several values",
            2,
            ("default",),
        ),
        "max": Function(
            _extreme("max", np.max, np.maximum),
            1,
            None,
            "largest element of an array (default= if empty), or of several values",
            2,
            ("default",),
        ),
        "sum": Function(_total, 1, 1, "sum of an array; 0 if empty"),
        "mean": Function(_mean, 1, 1, "mean of an array"),
        "any": Function(_any, 1, 1, "whether any element is true"),
        "all": Function(_all, 1, 1, "whether all elements are true"),
        "count": Function(_count, 1, 1, "how many elements are true"),
        "len": Function(_length, 1, 1, "number of elements or characters"),
        "argmin": Function(_place("argmin", np.argmin), 1, 1, "index of the smallest element"),
        "argmax": Function(_place("argmax", np.argmax), 1, 1, "index of the largest element"),
        "dot": Function(_dot, 2, 2, "scalar product of two arrays"),
        "norm": Function(
            _norm,
            1,
            None,
            "Euclidean length of an array, a vector message or values",
            2,
            fields=("x", "y", "z"),
            by_platform=True,
        ),
        "hypot": Function(
            _hypot, 1, None, "Euclidean length of the values given", 1, by_platform=True
        ),
        "sqrt": Function(_square_root, 1, 1, "square root", 1),
        "exp": Function(elementwise(np.exp), 1, 1, "exponential", 1, by_platform=True),
        "log": Function(elementwise(np.log), 1, 1, "natural logarithm", 1, by_platform=True),
        "sin": Function(elementwise(np.sin), 1, 1, "sine", 1, by_platform=True),
        "cos": Function(elementwise(np.cos), 1, 1, "cosine", 1, by_platform=True),
        "tan": Function(elementwise(np.tan), 1, 1, "tangent", 1, by_platform=True),
        "asin": Function(elementwise(np.arcsin), 1, 1, "arc sine", 1, by_platform=True),
        "acos": Function(elementwise(np.arccos), 1, 1, "arc cosine", 1, by_platform=True),
        "atan": Function(elementwise(np.arctan), 1, 1, "arc tangent", 1, by_platform=True),
        "atan2": Function(
            elementwise(np.arctan2), 2, 2, "angle of the point (second, first)", 1, by_platform=True
        ),
        "degrees": Function(elementwise(np.degrees), 1, 1, "radians to degrees", 1),
        "radians": Function(elementwise(np.radians), 1, 1, "degrees to radians", 1),
        "wrap_angle": Function(elementwise(_wrap), 1, 1, "angle in [-pi, pi)", 1),
        "yaw": _of_quaternion(_yaw, "heading"),
        "roll": _of_quaternion(_roll, "turn about the x axis"),
        "pitch": _of_quaternion(_pitch, "turn about the y axis"),
        "tilt": _of_quaternion(_tilt, "angle from upright"),
        "floor": Function(elementwise(np.floor), 1, 1, "next whole number below", 1),
        "ceil": Function(elementwise(np.ceil), 1, 1, "next whole number above", 1),
        "round": Function(elementwise(np.rint), 1, 1, "nearest whole number, ties to even", 1),
        "int": Function(_integer, 1, 1, "whole part", 1),
        "float": Function(
            _float, 1, 1, "the value, or the number that a text spells, as a float", 1
        ),
        "number": Function(_float, 1, 1, "the same as float", 1),
        "bool": Function(truth, 1, 1, "whether the value is not zero", 1),
        "sign": Function(elementwise(np.sign), 1, 1, "-1, 0 or 1", 1),
        "clamp": Function(elementwise(_clamp), 3, 3, "the value, kept within low and high", 1),
        "where": Function(select, 3, 3, "second where the first is true, else third", 1),
        "isnan": Function(_test(np.isnan), 1, 1, "whether the value is unknown", 1),
        "isinf": Function(_test(np.isinf), 1, 1, "whether the value is infinite", 1),
        "isfinite": Function(_test(np.isfinite), 1, 1, "whether the value is known and finite", 1),
        "has": Function(
            _has, 1, 1, "whether an optional field of a message is set", needs="fields"
        ),
        "range": Function(_range, 1, 3, "whole numbers, as in Python"),
        "zip": Function(
            _zip, 2, None, "elements of several lists in step (after 'in')", iterated=True
        ),
        "enumerate": Function(
            _enumerate, 1, 1, "pairs of index and element (after 'in')", iterated=True
        ),
    }
)
