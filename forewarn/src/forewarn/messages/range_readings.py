"""What a message of a range sensor means to an expression that chooses among its readings.

REP-117: -inf is nearer than the sensor measures, NaN no reading, +inf nothing in range. An
expression that filters readings, or takes the least of them, would make nothing in range of the
first two. For such an expression -inf counts as `range_min`, and a message without a valid reading
has no value.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.expressions.ragged import segment_sums
from forewarn.expressions.syntax import called, shown
from forewarn.expressions.values import Unknown, Value, Vector
from forewarn.messages.definitions import MessageType
from forewarn.messages.inference import ROOT, Typed
from forewarn.messages.plan import ALL, Path


class RangeReadings(NamedTuple):
    """The fields of a type: its readings, and the least that the sensor measures."""

    beams: str
    low: str

    @property
    def places(self) -> tuple[Path, Path]:
        """Return where in a message the readings are, and their least."""
        return (self.beams, ALL), (self.low,)

    def note(self, typed: Typed) -> str:
        """Say what the expression is taken to mean; empty if it leaves nothing out."""
        if not _leaves_out(typed.tree):
            return ""
        return (
            f"{shown(typed.expression.source)} leaves readings out: -inf counts as {self.low} "
            "(REP-117: nearer than the sensor measures), and a message without a valid reading is "
            f"unknown; write nearest_beam({self.beams}, {self.low}, range_max), also of a part of "
            "the scan"
        )


TYPES: Mapping[str, RangeReadings] = {
    "sensor_msgs/msg/LaserScan": RangeReadings("ranges", "range_min")
}
ELSEWHERE: Mapping[str, str] = {
    "echoes": "nearest_beam([e for beam in ranges for e in beam.echoes], range_min, range_max)",
    "ranges": "nearest_beam(ranges, 0, inf)",
}
"""What to write for the readings of types that are not in `TYPES`, by the name of their field."""
_TESTS = frozenset({"isnan", "isinf", "isfinite"})
_CHOICES = frozenset({"min", "max", "where"})


def readings_of(mtype: MessageType, typed: Typed) -> RangeReadings | None:
    """Return the readings that an expression chooses among, of a message of a range sensor.

    None for an expression that reads single ones, that uses ``nearest_beam``, or that only
    counts or tests them: ``count(isnan(ranges))``.
    """
    readings = TYPES.get(mtype.name)
    if readings is None or not _reads_all(typed.tree, readings.beams):
        return None
    calls = _calls(typed.tree)
    chooses = bool(calls & _CHOICES) or any(
        isinstance(node, ast.IfExp) or (isinstance(node, ast.comprehension) and node.ifs)
        for node in ast.walk(typed.tree)
    )
    if "nearest_beam" in calls or (calls & _TESTS and not chooses):
        return None
    return readings


def note_elsewhere(typed: Typed) -> str:
    """Name an expression that leaves out readings of a type which this module does not know.

    What it says of them stays as it is: the meaning of their numbers is unknown.
    """
    read = {node.attr for node in ast.walk(typed.tree) if isinstance(node, ast.Attribute)}
    better = next((ELSEWHERE[field] for field in ELSEWHERE if field in read), "")
    if not better or not _leaves_out(typed.tree):
        return ""
    return (
        f"{shown(typed.expression.source)} leaves readings out: if they are those of a range "
        "sensor, one that is blind, or too near (-inf), counts as nothing in range; write "
        f"{better}, also of a part of the scan"
    )


def _leaves_out(tree: ast.expr) -> bool:
    """Tell whether an expression over readings makes something else of those it cannot use."""
    calls, defaults = _calls(tree), set(_defaults(tree))
    if calls & {"beam_ranges", "nearest_beam"}:
        return False
    return bool(calls & {"isfinite", "where"} or defaults - {"nan"})


def _calls(tree: ast.expr) -> frozenset[str]:
    return frozenset(called(node) for node in ast.walk(tree) if isinstance(node, ast.Call))


def _defaults(tree: ast.expr) -> list[str]:
    return [ast.unparse(node.value) for node in ast.walk(tree) if isinstance(node, ast.keyword)]


def _reads_all(tree: ast.AST, field: str) -> bool:
    """Tell whether readings are read that are neither counted nor one by its number."""
    if isinstance(tree, ast.Attribute) and isinstance(tree.value, ast.Name):
        return tree.value.id == ROOT and tree.attr == field
    children = list(ast.iter_child_nodes(tree))
    single = isinstance(tree, ast.Subscript) and not isinstance(tree.slice, ast.Slice)
    if single or (isinstance(tree, ast.Call) and called(tree) == "len"):
        children = [one for one in children if not isinstance(one, ast.Attribute)]
    return any(_reads_all(child, field) for child in children)


def judged(
    beams: Vector, low: float, evaluate: Callable[[Vector], Value | Unknown]
) -> Value | Unknown:
    """Return what an expression says of readings, with -inf as the least that is measured.

    Unknown if no reading is valid, and where it says inf though none does.
    """
    nearer = np.isneginf(beams)
    near = bool(nearer.any())
    if not near and not valid(beams, low).any():
        return Unknown("no reading of the message is valid")
    found = evaluate(np.where(nearer, low, beams) if near else beams)
    if type(found) is float and found == np.inf and (near or not np.isposinf(beams).any()):
        return Unknown("all readings that say where something is were left out")
    return found


def valid(beams: Vector, low: Vector | float) -> NDArray[np.bool_]:
    """Tell which readings, except -inf, are in what the sensor measures, or beyond it."""
    found: NDArray[np.bool_] = (beams >= low) | (np.isnan(low) & ~np.isnan(beams))
    return found


def plain(
    beams: Vector, counts: NDArray[np.int64], low: Vector
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which messages have valid readings and none of -inf, and which have one of inf."""
    found = segment_sums(valid(beams, np.repeat(low, counts)), counts) > 0
    found &= segment_sums(np.isneginf(beams), counts) == 0
    return found, segment_sums(np.isposinf(beams), counts) > 0
