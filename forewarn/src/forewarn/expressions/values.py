"""What an expression can yield, and the truth values of three-valued (Kleene) logic.

A NaN stands for *unknown* everywhere: a reading that is not there, an index past the end, an
undefined operation. It passes through arithmetic and comparisons; ``and``, ``or``, ``any`` and
``all`` give an answer where the known operands decide it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = "float | int | bool | str | Vector | list[Any]"

NAN = float("nan")
NUMBERS = (float, int, np.number, np.bool_)


class Unknown(NamedTuple):
    """The result of an evaluation that has no value, with the reason."""

    reason: str


#: Elements that the loops of one evaluation may go through, one by one.
MAX_ELEMENTS = 1_000_000
#: How many computed at once by numpy cost as much as one alone.
AT_ONCE = 16


class Notes(list[str]):
    """Why parts of one evaluation have no value, in the order met; and what its loops cost."""

    cost = 0

    def afford(self, elements: int, each: int = AT_ONCE) -> bool:
        """Add a loop to what this evaluation costs; false if that is more than a tick can bear.

        Loops inside each other multiply: a limit for each alone would bound nothing.
        """
        self.cost += elements * each
        if self.cost <= MAX_ELEMENTS * (AT_ONCE + 1):  # range() itself is made at once
            return True
        self.unknown(f"the loops of the expression run over more than {MAX_ELEMENTS} elements")
        return False

    def unknown(self, reason: str) -> float:
        """Remember the reason and return NaN."""
        if len(self) < 8:
            self.append(reason)
        return NAN


class Record:
    """A message inside an evaluation: fields are read by name, and it equals nothing.

    Decoders derive their own record types from this one.
    """

    __slots__ = ()

    def field(self, name: str) -> Any:
        """Return the value of the field `name`."""
        raise NotImplementedError


def is_unknown(value: object) -> bool:
    """Tell whether `value` is the scalar NaN that stands for unknown."""
    return isinstance(value, float) and value != value


def kind(value: object) -> str:
    """Name the kind of a value for messages."""
    if isinstance(value, (bool, np.bool_)):
        return "a truth value"
    if isinstance(value, NUMBERS):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, np.ndarray):
        return "an array"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "a message"


def vector(items: Sequence[Any]) -> Vector | list[Any]:
    """Turn a sequence of results into a vector if all are numbers, else into a list.

    Returns shape (n,): bool, int64 or float64; a list if any item is text, an array, a list or a
    message.
    """
    kinds = {type(element) for element in items}
    if kinds == {bool} or kinds == {np.bool_}:
        return np.array(items, dtype=np.bool_)
    if kinds == {int}:
        try:
            return np.array(items, dtype=np.int64)
        except OverflowError:
            return np.array([float(element) for element in items])
    if all(issubclass(kind, NUMBERS) for kind in kinds):
        return np.array([float(element) for element in items], dtype=np.float64)
    return list(items)


def canonical(array: Vector) -> Vector:
    """Return `array` contiguous, in native byte order, as bool, int64, uint64 or float64.

    Vector instructions may round differently on strided memory; a single layout keeps results
    equal to the last bit whatever way an array came here.
    """
    code = array.dtype.kind
    if code == "b":
        return np.ascontiguousarray(array)
    if code == "f":
        return np.ascontiguousarray(array, dtype=np.float64)
    if code == "u" and array.dtype.itemsize == 8:
        return np.ascontiguousarray(array, dtype=np.uint64)
    if code in "iu":
        return np.ascontiguousarray(array, dtype=np.int64)
    raise TypeError(f"an array of {array.dtype} is not made of numbers")


def to_value(value: Any) -> Any:
    """Turn numpy scalars into Python's and arrays into canonical vectors."""
    if isinstance(value, np.ndarray):
        return canonical(value) if value.ndim == 1 else [to_value(row) for row in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return vector(value)
    return value
