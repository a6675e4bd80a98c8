"""Formulas in steps and negation normal form, interned so that equal ones are one integer.

What has no temporal operator is a truth table over all letters. Every operator of the language
becomes one of four, each with its dual, over such leaves: ``until`` and ``release`` look ahead,
``since`` and ``trigger`` look back. ``next`` is ``true until[1:1]``, the strong ``prev`` is
``true since[1:1]``, the weak one its dual, and so on. Only ``release`` may be without end: what
remains is the safety fragment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import FormulaError
from forewarn.logic import syntax
from forewarn.logic.syntax import (
    FOREVER,
    And,
    Atom,
    Binary,
    Constant,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Steps,
    format_formula,
    in_steps,
    is_propositional,
)

if TYPE_CHECKING:
    from forewarn.signals.clock import Clock

Table = NDArray[np.bool_]


def truth_table(formula: Formula, atoms: tuple[str, ...]) -> Table:
    """Return the value of a propositional formula at each letter, shape (2 ** len(atoms),)."""
    if isinstance(formula, Constant):
        return np.full(1 << len(atoms), formula.value)
    if isinstance(formula, Atom):
        letters = np.arange(1 << len(atoms))
        return (letters >> atoms.index(formula.text) & 1).astype(np.bool_)
    if isinstance(formula, Not):
        return ~truth_table(formula.operand, atoms)
    if not isinstance(formula, Binary):
        raise TypeError(f"{formula.word} has no truth table")
    left, right = truth_table(formula.left, atoms), truth_table(formula.right, atoms)
    if isinstance(formula, And):
        return left & right
    if isinstance(formula, Or):
        return left | right
    if isinstance(formula, Implies):
        return ~left | right
    different: Table = left ^ right
    return ~different if isinstance(formula, Iff) else different


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

        Raises FormulaError for an `until` without end: no finite run can violate it.
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


_ONE = Steps(1, 1)
_OPERATOR: dict[type[Formula], str] = {
    syntax.Always: "release", syntax.Eventually: "until",
    syntax.Historically: "trigger", syntax.Once: "since",
    syntax.Until: "until", syntax.Since: "since",
}  # fmt: skip
_BOUNDED = "a bound, as in eventually[0:5](...)"


def lower_formula(formula: Formula, atoms: tuple[str, ...], clock: Clock) -> tuple[Arena, int]:
    """Return an arena and the number of the node that means `formula`.

    Raises FormulaError if the formula has a part that no finite run can violate (`eventually` or
    `until` without an upper bound, or `always` without one under a negation).
    """
    lowering = _Lowering(atoms, clock)
    return lowering.arena, lowering.lower(formula, True)


class _Lowering:
    def __init__(self, atoms: tuple[str, ...], clock: Clock) -> None:
        self.atoms = atoms
        self.clock = clock
        self.arena = Arena(1 << len(atoms))

    def lower(self, formula: Formula, positive: bool) -> int:
        """Return the node of `formula`, or of its negation."""
        if is_propositional(formula):
            table = truth_table(formula, self.atoms)
            text = format_formula(formula)
            if not positive:
                table, text = np.logical_not(table), f"not({text})"
            return self.arena.proposition(table, text)
        if isinstance(formula, syntax.Unary):
            return self._unary(formula, positive)
        if isinstance(formula, syntax.Binary):
            return self._binary(formula, positive)
        if isinstance(formula, syntax.TimedUnary):
            kind = _OPERATOR[type(formula)]
            weak = kind in ("release", "trigger")
            alone, operand = TRUE if weak != positive else FALSE, formula.operand
            return self._timed(formula, kind, alone, self.lower(operand, positive), positive)
        assert isinstance(formula, syntax.TimedBinary)
        left, right = self.lower(formula.left, positive), self.lower(formula.right, positive)
        if isinstance(formula, syntax.Unless):
            return self._unless(formula, left, right, positive)
        return self._timed(formula, _OPERATOR[type(formula)], left, right, positive)

    def _unary(self, formula: syntax.Unary, positive: bool) -> int:
        operand = formula.operand
        if isinstance(formula, syntax.Not):
            return self.lower(operand, not positive)
        if isinstance(formula, (syntax.Next, syntax.StrongNext)):
            return self.arena.temporal("until", TRUE, self.lower(operand, positive), _ONE)
        if isinstance(formula, (syntax.Previous, syntax.StrongPrevious)):
            # The negation of the weak operator is the strong one of the negated operand.
            weak = isinstance(formula, syntax.Previous) == positive
            return self._previous(operand, positive, weak=weak)
        # rise(a) is a and not s_prev(a); fall(a) is not a and prev(a), as RTAMT has it.
        now_positive = isinstance(formula, syntax.Rise) == positive
        now = self.lower(operand, now_positive)
        before = self._previous(operand, not now_positive, weak=positive)
        return self.arena.junction("and" if positive else "or", [now, before])

    def _previous(self, operand: Formula, positive: bool, *, weak: bool) -> int:
        """Return prev (weak) or s_prev of the operand or of its negation."""
        node = self.lower(operand, positive)
        if weak:
            return self.arena.temporal("trigger", FALSE, node, _ONE)
        return self.arena.temporal("since", TRUE, node, _ONE)

    def _binary(self, formula: syntax.Binary, positive: bool) -> int:
        left, right = formula.left, formula.right
        if isinstance(formula, (syntax.And, syntax.Or, syntax.Implies)):
            kind = "and" if isinstance(formula, syntax.And) else "or"
            first = self.lower(left, positive != isinstance(formula, syntax.Implies))
            parts = [first, self.lower(right, positive)]
            return self.arena.junction(kind if positive else DUAL[kind], parts)
        same = isinstance(formula, syntax.Iff) == positive
        return self.arena.junction(
            "and",
            [
                self.arena.junction("or", [self.lower(left, False), self.lower(right, same)]),
                self.arena.junction("or", [self.lower(left, True), self.lower(right, not same)]),
            ],
        )

    def _timed(
        self,
        formula: syntax.TimedUnary | syntax.TimedBinary,
        kind: str,
        left: int,
        right: int,
        positive: bool,
    ) -> int:
        steps = in_steps(formula.interval, self.clock)
        kind = kind if positive else DUAL[kind]
        if kind == "until" and steps.upper is None:
            raise _liveness(formula, positive)
        return self.arena.temporal(kind, left, right, steps)

    def _unless(self, formula: syntax.Unless, left: int, right: int, positive: bool) -> int:
        """Lower ``a unless[l:u] b``: always[0:u](a) or a until[l:u] b, as RTAMT has it."""
        steps = in_steps(formula.interval, self.clock)
        if steps.upper is None:
            if not positive:
                raise _liveness(formula, positive)
            # Without end it is the release of `b` by ...: b may come from tick `lower` on.
            both = self.arena.junction("or", [left, right])
            waiting = self.arena.temporal("release", right, both, FOREVER)
            if not steps.lower:
                return waiting
            first = self.arena.temporal("release", FALSE, left, Steps(0, steps.lower - 1))
            later = self.arena.temporal("until", TRUE, waiting, Steps(steps.lower, steps.lower))
            return self.arena.junction("and", [first, later])
        held, until, join = ("release", "until", "or") if positive else ("until", "release", "and")
        left_alone = FALSE if positive else TRUE
        always = self.arena.temporal(held, left_alone, left, Steps(0, steps.upper))
        return self.arena.junction(join, [always, self.arena.temporal(until, left, right, steps)])


def _liveness(formula: syntax.TimedUnary | syntax.TimedBinary, positive: bool) -> FormulaError:
    text = format_formula(formula)
    text = text if len(text) <= 60 else text[:57] + "..."
    if positive:
        problem = f"{text} has no upper bound: no finite run can violate it"
        unless = "; or unless, if the right side need never come"
        return FormulaError(problem, accepted=_BOUNDED + unless * (formula.word == "until"))
    problem = f"{text} has no upper bound under a negation: no finite run can violate it"
    return FormulaError(problem, accepted=f"a bound, as in {formula.word}[0:5](...)")
