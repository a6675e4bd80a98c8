"""Formulas in steps and negation normal form, interned so that equal ones are one integer.

Every operator of the language becomes one of four, each with its dual, over propositional
leaves: ``until`` and ``release`` look ahead, ``since`` and ``trigger`` look back. ``next`` is
``true until[1:1]``, the strong ``prev`` is ``true since[1:1]``, the weak one its dual, and so on.
Only ``release`` may be without end: what remains is the safety fragment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forewarn.errors import FormulaError
from forewarn.logic.timing import Steps

if TYPE_CHECKING:
    from forewarn.logic.truth import Table

FALSE, TRUE = 0, 1
NOW = Steps(0, 0)
DUAL = {
    "until": "release", "release": "until", "since": "trigger", "trigger": "since",
    "and": "or", "or": "and",
}  # fmt: skip
FUTURE = frozenset({"until", "release"})
PAST = frozenset({"since", "trigger"})
_SPLITS = {"until": "or", "release": "and"}
_UNITS = {"and": (TRUE, FALSE), "or": (FALSE, TRUE)}
_NEUTRAL = {"until": TRUE, "since": TRUE, "release": FALSE, "trigger": FALSE}
_WORDS = {
    "until": "eventually", "release": "always", "since": "once", "trigger": "historically",
}  # fmt: skip


@dataclass(frozen=True)
class InternedFormula:
    """One interned formula; `args` are the numbers of its operands.

    `kind` is ``prop``, ``and``, ``or`` or one of the four temporal kinds, whose `args` are
    (left, right) as in ``left until right``. `table` indexes the truth tables (``prop``).
    """

    kind: str
    args: tuple[int, ...] = ()
    steps: Steps = NOW
    table: int = -1


class Arena:
    """Holds interned nodes; the only way to make one."""

    def __init__(self, n_letters: int) -> None:
        self.nodes: list[InternedFormula] = []
        self.tables: list[Table] = []
        self.texts: list[str] = []
        self.has_future: list[bool] = []
        #: The nodes with a past operator that the node contains, itself included.
        self.past_parts: list[frozenset[int]] = []
        self._numbers: dict[InternedFormula, int] = {}
        self._table_numbers: dict[bytes, int] = {}
        self._implied: dict[tuple[int, int], bool] = {}
        self.proposition(np.zeros(n_letters, dtype=np.bool_), "false")
        self.proposition(np.ones(n_letters, dtype=np.bool_), "true")

    def _intern(self, node: InternedFormula) -> int:
        number = self._numbers.get(node)
        if number is None:
            number = len(self.nodes)
            self._numbers[node] = number
            self.nodes.append(node)
            parts = frozenset().union(*(self.past_parts[arg] for arg in node.args))
            self.past_parts.append(parts | {number} if node.kind in PAST else parts)
            future = node.kind in FUTURE or any(self.has_future[arg] for arg in node.args)
            self.has_future.append(future)
        return number

    def proposition(self, table: Table, text: str) -> int:
        """Return the leaf that holds at the letters in `table`."""
        key = table.tobytes()
        index = self._table_numbers.setdefault(key, len(self.tables))
        if index == len(self.tables):
            self.tables.append(table)
            self.texts.append(text)
        return self._intern(InternedFormula("prop", table=index))

    def junction(self, kind: str, parts: Iterable[int]) -> int:
        """Return the conjunction (``and``) or the disjunction (``or``) of `parts`."""
        neutral, zero = _UNITS[kind]
        flat: set[int] = set()
        for part in parts:
            node = self.nodes[part]
            flat.update(node.args if node.kind == kind else (part,))
        props = [part for part in flat if self.nodes[part].kind == "prop"]
        if len(props) > 1:
            flat = flat.difference(props) | {self._merge(kind, sorted(props))}
        flat.discard(neutral)
        if zero in flat:
            return zero
        redundant = self._redundant(flat, stronger_stays=kind == "and")
        kept = sorted(flat - redundant)
        if len(kept) <= 1:
            return kept[0] if kept else neutral
        return self._intern(InternedFormula(kind, tuple(kept)))

    def _redundant(self, parts: set[int], *, stronger_stays: bool) -> set[int]:
        redundant: set[int] = set()
        for x in sorted(parts):
            for y in sorted(parts):
                if x == y or x in redundant or y in redundant or not self.implies(x, y):
                    continue
                redundant.add(y if stronger_stays else x)
        return redundant

    def _merge(self, kind: str, props: list[int]) -> int:
        tables = [self.tables[self.nodes[prop].table] for prop in props]
        combine: Callable[[list[Table]], Table] = (
            np.logical_and.reduce if kind == "and" else np.logical_or.reduce
        )
        texts = [self.texts[self.nodes[prop].table] for prop in props]
        return self.proposition(combine(tables), f" {kind} ".join(f"({text})" for text in texts))

    def temporal(self, kind: str, left: int, right: int, steps: Steps) -> int:
        """Return ``left kind[steps] right``, simplified.

        Raises
        ------
        FormulaError
            An `until` without end: no finite run can violate it.
        """
        if kind == "until" and steps.upper is None:
            raise FormulaError("until without an upper bound")
        weak = kind in ("release", "trigger")
        one, zero = (FALSE, TRUE) if weak else (TRUE, FALSE)
        if right == zero or (right == one and not steps.lower) or steps == NOW:
            return right
        if left == zero:  # the left side never bridges a tick
            return zero if steps.lower else right
        if kind in FUTURE and left == one:
            if right == one:
                return one
            simpler = self._distribute(kind, right, steps)
            if simpler is not None:
                return simpler
        return self._intern(InternedFormula(kind, (left, right), steps))

    def _distribute(self, kind: str, right: int, steps: Steps) -> int | None:
        """Push eventually into disjunctions and into itself; always likewise; next into both."""
        inner = self.nodes[right]
        delay = steps.lower == steps.upper
        if kind == "release" and delay:
            return self.temporal("until", TRUE, right, steps)
        if inner.kind in ("and", "or") and (delay or inner.kind == _SPLITS[kind]):
            left = FALSE if kind == "release" else TRUE
            parts = [self.temporal(kind, left, arg, steps) for arg in inner.args]
            return self.junction(inner.kind, parts)
        if inner.kind not in FUTURE or inner.args[0] != _NEUTRAL[inner.kind]:
            return None
        if inner.kind == kind or delay:
            lower, upper = inner.steps
            total = None if upper is None or steps.upper is None else upper + steps.upper
            both = Steps(steps.lower + lower, total)
            return self.temporal(inner.kind, inner.args[0], inner.args[1], both)
        return None

    def implies(self, x: int, y: int) -> bool:
        """Tell whether `x` is known to imply `y` (sound, not complete)."""
        if x == FALSE or y in (x, TRUE):
            return True
        if x == TRUE or y == FALSE:
            return False
        key = (x, y)
        found = self._implied.get(key)
        if found is None:
            found = self._implied[key] = self._implies(self.nodes[x], self.nodes[y], x, y)
        return found

    def _implies(self, first: InternedFormula, second: InternedFormula, x: int, y: int) -> bool:
        if first.kind == "prop" and second.kind == "prop":
            return not (self.tables[first.table] & ~self.tables[second.table]).any()
        if second.kind == "and":
            return all(self.implies(x, part) for part in second.args)
        if first.kind == "or":
            return all(self.implies(part, y) for part in first.args)
        if first.kind == "and" and any(self.implies(part, y) for part in first.args):
            return True
        if second.kind == "or" and any(self.implies(x, part) for part in second.args):
            return True
        if first.kind == second.kind and first.kind in DUAL and first.args[1:]:
            return self._same_kind_implies(first, second) or self._now_implies(first, second, x, y)
        return self._now_implies(first, second, x, y)

    def _same_kind_implies(self, first: InternedFormula, second: InternedFormula) -> bool:
        if first.kind not in FUTURE | PAST:
            return False
        wide, narrow = second.steps, first.steps
        if first.kind in ("release", "trigger"):
            wide, narrow = narrow, wide
        return _contains(wide, narrow) and all(
            self.implies(a, b) for a, b in zip(first.args, second.args, strict=True)
        )

    def _now_implies(self, first: InternedFormula, second: InternedFormula, x: int, y: int) -> bool:
        reached_now = second.kind in ("until", "since") and not second.steps.lower
        if reached_now and self.implies(x, second.args[1]):
            return True
        needed_now = first.kind in ("release", "trigger") and not first.steps.lower
        if needed_now and self.implies(first.args[1], y):
            return True
        if (first.kind, second.kind) != ("release", "until"):
            return False
        if first.args[0] != FALSE or second.args[0] != TRUE:
            return False
        meets = _meets(first.steps, second.steps)
        return meets and self.implies(first.args[1], second.args[1])

    def text(self, number: int) -> str:
        """Return readable text of a node, bounds in steps."""
        node = self.nodes[number]
        if node.kind == "prop":
            return self.texts[node.table]
        if node.kind in ("and", "or"):
            return "(" + f" {node.kind} ".join(self.text(arg) for arg in node.args) + ")"
        left, right = node.args
        upper = "inf" if node.steps.upper is None else f"{node.steps.upper} steps"
        bounds = "" if node.steps == Steps(0, None) else f"[{node.steps.lower}:{upper}]"
        if left == _NEUTRAL[node.kind]:
            return f"{_WORDS[node.kind]}{bounds}({self.text(right)})"
        return f"({self.text(left)} {node.kind}{bounds} {self.text(right)})"


def _contains(wide: Steps, narrow: Steps) -> bool:
    if wide.lower > narrow.lower:
        return False
    return wide.upper is None or (narrow.upper is not None and narrow.upper <= wide.upper)


def _meets(first: Steps, second: Steps) -> bool:
    lower = max(first.lower, second.lower)
    return all(steps.upper is None or lower <= steps.upper for steps in (first, second))
