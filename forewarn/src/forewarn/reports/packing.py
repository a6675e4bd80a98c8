"""Columns of a long run as short texts that the page's script unpacks.

A column becomes float32, and its bits the differences to the value before; the four bytes of all
differences lie behind each other, which compresses far better than the values do.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forewarn.reports.thinning import extremes

ROUNDED_BITS = 7


class Column(NamedTuple):
    """One column over the ticks of a run.

    Attributes
    ----------
    values : ndarray of float64, shape (n,)
        One value a tick; NaN where there is none.
    exact : bool
        Keep every bit of a float32; else 16 bits of the mantissa, a relative error of 1e-5.
    whole : bool
        Never leave out a tick: positions in a table, which have no extremes.
    """

    values: NDArray[np.float64]
    exact: bool = False
    whole: bool = False


def pack(column: Column, limit: int | None = None) -> dict[str, Any]:
    """Return a column as plain values.

    Parameters
    ----------
    column : Column
        The column.
    limit : int, optional
        About how many values to keep; each of the others lies between two that are kept.

    Returns
    -------
    dict
        ``n``, the ticks; ``values``, packed; ``rows``, packed, where values are left out.
    """
    values = np.asarray(column.values, dtype=np.float64)
    found: dict[str, Any] = {"n": len(values)}
    if limit is not None and not column.whole and len(values) > limit:
        rows = extremes(values, limit)
        found["rows"] = _packed(rows.astype(np.uint32))
        values = values[rows]
    found["values"] = _packed(_bits(values, column.exact))
    return found


def unpack(packed: dict[str, Any]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return rows and values of a packed column."""
    values = _unpacked(packed["values"]).view(np.float32).astype(np.float64)
    if "rows" in packed:
        return _unpacked(packed["rows"]).astype(np.intp), values
    return np.arange(packed["n"], dtype=np.intp), values


def size(packed: dict[str, Any]) -> int:
    """Return the characters that a packed column takes, nearly."""
    return len(packed["values"]) + len(packed.get("rows", ""))


def _bits(values: ArrayLike, exact: bool) -> NDArray[np.uint32]:
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, dtype=np.float32)
    bits = single.view(np.uint32).copy()
    if not exact:
        # To the nearest; what is rounded up beyond the greatest number becomes infinite.
        numbers = np.isfinite(single)
        half = np.uint32(1 << (ROUNDED_BITS - 1))
        bits[numbers] = (bits[numbers] + half) >> ROUNDED_BITS << ROUNDED_BITS
    return bits


def _packed(words: NDArray[np.uint32]) -> str:
    differences = np.diff(words, prepend=np.uint32(0))
    planes = differences.astype("<u4").view(np.uint8).reshape(-1, 4).T
    return base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode("ascii")


def _unpacked(text: str) -> NDArray[np.uint32]:
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)
    differences = np.ascontiguousarray(planes.reshape(4, -1).T).view("<u4").ravel()
    return np.cumsum(differences, dtype=np.uint32)
