"""Judge a plan by rules before anything moves: what breaks, at which step, by which objects."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.logic.syntax import Atom, in_steps
from forewarn.signals.clock_kinds import Steps as StepClock
from forewarn.wings.plans.decide import Decision, both, decide, either, never, of_constant, of_truth
from forewarn.wings.plans.language import (
    Comparison,
    Name,
    Property,
    Quantified,
    Relation,
    Rule,
    names_of,
)
from forewarn.wings.plans.rules import NamedRule, Rules
from forewarn.wings.plans.world import History, Plan, PlanError, Timeline, is_variable

MOST_WORK = 100_000_000
#: Positions of decisions that are kept for another use: 256 MB.
MOST_KEPT = 16_000_000
COST_OF_AN_ATOM = 500
COST_OF_A_LINK = 30
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
BUILT_IN = frozenset({"type", "id", "does"})
_IN_STEPS = partial(in_steps, clock=StepClock())


@dataclass(frozen=True)
class Finding:
    """What a rule says of a plan.

    The outcome is ``satisfied``; ``violated`` at `step`, from 1 (0 is the state before the first);
    ``pending``: what it asks for has not come when the plan is over, a violation; or ``unknown``,
    and `reason` says what is not known. `objects` break it, for variables of `forall` at the front.
    """

    rule: str
    outcome: str
    step: int | None = None
    action: str = ""
    objects: tuple[tuple[str, str], ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Judgement:
    """What all rules say of a plan."""

    plan: Plan
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """``violated`` if a rule is broken or pending, ``unknown`` if one is, or ``safe``."""
        outcomes = {finding.outcome for finding in self.findings}
        if outcomes & {"violated", "pending"}:
            return "violated"
        return "unknown" if "unknown" in outcomes else "safe"

    @property
    def first(self) -> Finding | None:
        """The finding that comes first in the plan: a broken rule before a pending one."""
        broken = [f for f in self.findings if f.outcome in ("violated", "pending")]
        broken.sort(key=lambda f: len(self.plan.steps) + 1 if f.step is None else f.step)
        if broken:
            return broken[0]
        return next((f for f in self.findings if f.outcome == "unknown"), None)


def judge(plan: Plan, rules: Rules) -> Judgement:
    """Judge a plan by all rules; raises PlanError if both together are too large."""
    history = History(plan, rules.actions, rules.facts)
    return Judgement(plan, tuple(_finding(history, rule, rules) for rule in rules.rules))


def _finding(history: History, named: NamedRule, rules: Rules) -> Finding:
    decided, objects = _Judging(history, rules, named.name).first(named.rule, {})
    n = history.length
    if decided.false < n:
        step = history.plan.steps[decided.false - 1] if decided.false else None
        action = str(step) if step else "before the first step"
        return Finding(named.name, "violated", decided.false, action, objects)
    if decided.false == n:
        return Finding(named.name, "pending", None, "when the plan is over", objects)
    # Where nothing says what a step does, its objects may be others than those that are named.
    nameless = not history.types and history.unsure.any() and _is_quantified(named.rule)
    if decided.true <= n and not nameless:
        return Finding(named.name, "satisfied")
    names = names_of(named.rule)
    missing = [text for name, text in names.items() if name not in history.known | BUILT_IN]
    reason = f"nothing says when {', '.join(sorted(missing)[:5])} holds"
    if not missing and history.strange:
        reason = f"nothing says what {', '.join(history.strange[:5])} does"
    elif not missing:
        reason = f"not all objects say {', '.join(sorted(names.values())[:5])}"
    return Finding(named.name, "unknown", None, "", objects, reason)


def _is_quantified(rule: Rule) -> bool:
    return any(isinstance(atom, Quantified) for atom in rule.atoms.values())


def facts_along(
    plan: Plan, rules: Rules, statements: Iterable[Rule]
) -> tuple[int, NDArray[np.bool_]]:
    """Return up to which position statements without time are known, and whether they hold.

    The values have shape (positions, statements).
    """
    history = History(plan, rules.actions, rules.facts)
    n = history.length
    here = np.arange(n)
    values, known = [], n
    for statement in statements:
        decision = _Judging(history, rules, statement.text)._decide(statement, {})
        true, false = (np.broadcast_to(part, (n,)) <= here for part in decision)
        values.append(true)
        undecided = np.flatnonzero(~(true | false))
        known = min(known, int(undecided[0]) if len(undecided) else n)
    return known, np.column_stack(values) if values else np.zeros((n, 0), dtype=bool)


Bound = Mapping[str, str]


class Decided(NamedTuple):
    """Where a rule is decided true, and where false, at the first position."""

    true: int
    false: int


class _Judging:
    """Judges one rule."""

    def __init__(self, history: History, rules: Rules, name: str) -> None:
        self.history, self.rules, self.name = history, rules, name
        self.n = history.length
        self.work = 0
        self._seen: dict[object, Decision] = {}
        self._leading: dict[object, list[tuple[int, int, set[str]]]] = {}

    def first(self, rule: Rule, bound: Bound) -> tuple[Decided, tuple[tuple[str, str], ...]]:
        """Return where a rule is decided at the start, and for which objects it is so."""
        alone = rule.atoms.get(rule.formula.text) if isinstance(rule.formula, Atom) else None
        if not (isinstance(alone, Quantified) and alone.every):
            decision = self._decide(rule, bound)
            return Decided(int(decision.true[0]), int(decision.false[0])), tuple(bound.items())
        false, true = never(self.n), 0
        broken: tuple[tuple[str, str], ...] = ()
        for one in self.history.types:
            found, objects = self.first(alone.body, {**bound, alone.variable: one})
            if found.false < false or (found.true > self.n and not broken):
                broken = objects
            false, true = min(false, found.false), max(true, found.true)
        return Decided(true, false), broken

    def _decide(self, rule: Rule, bound: Bound) -> Decision:
        return decide(rule.formula, self.n, lambda atom: self._atom(rule, atom, bound), _IN_STEPS)

    def _atom(self, rule: Rule, atom: Atom, bound: Bound) -> Decision:
        self._spend(self.n + COST_OF_AN_ATOM)
        meaning = rule.atoms[atom.text]
        if isinstance(meaning, Quantified):
            return self._quantified(meaning, bound)
        if isinstance(meaning, Comparison):
            return self._comparison(meaning, bound)
        key = meaning, tuple(bound.get(name.text) for name in meaning.arguments)
        found = self._seen.get(key)
        if found is None:
            found = self._relation(meaning, bound)
            if len(self._seen) * self.n < MOST_KEPT:
                self._seen[key] = found
        return found

    def _spend(self, work: int) -> None:
        self.work += work
        if self.work > MOST_WORK:
            raise PlanError(
                f"is too much for the {len(self.history.types)} objects and {self.n - 1} steps of "
                f"the plan {self.history.plan.name}",
                key=self.name,
                accepted="fewer quantifiers within each other, objects or steps",
            )

    def _quantified(self, part: Quantified, bound: Bound) -> Decision:
        whole = of_constant(part.every, self.n)
        for one in self.history.types:
            found = self._decide(part.body, {**bound, part.variable: one})
            whole = both(whole, found) if part.every else either(whole, found)
        return whole

    def _objects(self, name: Name, bound: Bound) -> Sequence[str]:
        one = bound.get(name.text)
        return (one,) if one is not None else self.history.objects(name.text)

    def _relation(self, relation: Relation, bound: Bound) -> Decision:
        if relation.name == "does":
            return self._does(relation, bound)
        if relation.name not in self.history.known:
            return self._unknown()
        choices = [frozenset(self._objects(name, bound)) for name in relation.arguments]
        if len(choices) == 2 and relation.name in self.rules.transitive:
            return self._seen_as(self._reaches(relation.name, *choices))
        found = self._timelines(relation.name, choices)
        if len(choices) == 2 and relation.name in self.rules.symmetric:
            found += self._timelines(relation.name, choices[::-1])
        if len(choices) == 1:
            values = self.history.values
            found += [values[key] for one in choices[0] if (key := (relation.name, one)) in values]
        return self._seen_as(self.history.truth(found))

    def _unknown(self) -> Decision:
        no = np.full(1, never(self.n), dtype=np.int64)
        return Decision(no, no)

    def _seen_as(
        self, truth: NDArray[np.bool_], unsaid: NDArray[np.bool_] | None = None
    ) -> Decision:
        """Return the decision of what holds; nothing is decided where it is not known."""
        found = of_truth(truth, self.n)
        unsure = self.history.unsure if unsaid is None else self.history.unsure | unsaid
        if not unsure.any():
            return found
        return Decision(*(np.where(unsure, never(self.n), part) for part in found))

    def _timelines(self, name: str, choices: Sequence[frozenset[str]]) -> list[Timeline]:
        timelines = self.history.facts.get(name, {})
        self._spend(len(timelines))
        if all(len(choice) == 1 for choice in choices):
            key = tuple(next(iter(choice)) for choice in choices)
            return [timelines[key]] if key in timelines else []
        return [
            timeline
            for arguments, timeline in timelines.items()
            if len(arguments) == len(choices)
            and all(one in choice for one, choice in zip(arguments, choices, strict=True))
        ]

    def _reaches(
        self, name: str, sources: frozenset[str], targets: frozenset[str]
    ) -> NDArray[np.bool_]:
        """Return where a chain of facts leads from a source to a target; circles are no matter."""
        truth = np.zeros(self.n, dtype=bool)
        if not sources or not targets:
            return truth
        found = self._leading.get((name, targets))
        if found is None:
            found = self._leading[name, targets] = list(self._who_reaches(name, targets))
        for begin, end, reaching in found:
            truth[begin:end] = not reaching.isdisjoint(sources)
        return truth

    def _who_reaches(
        self, name: str, targets: frozenset[str]
    ) -> Iterator[tuple[int, int, set[str]]]:
        """Yield from where to where which objects lead to a target."""
        changes = sorted(
            (position, arguments, value is True)
            for arguments, timeline in self.history.facts.get(name, {}).items()
            if len(arguments) == 2
            for position, value in zip(timeline.positions, timeline.values, strict=True)
        )
        self._spend(len(changes))
        before: dict[str, set[str]] = {}
        symmetric = name in self.rules.symmetric
        since, reaching = 0, self._backward(before, targets)
        for position, moment in groupby(changes, key=itemgetter(0)):
            yield since, position, reaching
            for _, (left, right), holds in moment:
                for begin, end in ((left, right), (right, left))[: 1 + symmetric]:
                    ways = before.setdefault(end, set())
                    (ways.add if holds else ways.discard)(begin)
            since, reaching = position, self._backward(before, targets)
        yield since, self.n, reaching

    def _backward(self, before: Mapping[str, set[str]], targets: frozenset[str]) -> set[str]:
        seen: set[str] = set()
        open_ones = list(targets)
        while open_ones:
            ways = before.get(open_ones.pop(), set())
            self._spend(COST_OF_A_LINK * (len(ways) + 1))
            fresh = ways - seen
            seen |= fresh
            open_ones += fresh
        return seen

    def _does(self, relation: Relation, bound: Bound) -> Decision:
        """Return where the step that led to a position is such an action."""
        action, *arguments = relation.arguments
        wanted = [
            None if name.text == "_" else frozenset(self._objects(name, bound))
            for name in arguments
        ]
        truth, unsaid = np.zeros(self.n, dtype=bool), np.zeros(self.n, dtype=bool)
        word = action.text.casefold()
        for position, step in enumerate(self.history.plan.steps, 1):
            if step.action.casefold() == word:
                fits = _fits(wanted, step.arguments)
                truth[position], unsaid[position] = fits is True, fits is None
        found = of_truth(truth, self.n)
        return Decision(*(np.where(unsaid, never(self.n), part) for part in found))

    def _comparison(self, part: Comparison, bound: Bound) -> Decision:
        for side in (part.left, part.right):
            if isinstance(side, Property) and side.key not in self.history.known | BUILT_IN:
                return self._unknown()
        left, right = self._operand(part.left, bound), self._operand(part.right, bound)
        compare = _OPERATORS[part.operator]
        sides = [side for side in (left, right) if isinstance(side, Timeline)]
        if not sides:
            answer = _holds(compare, left, right)
            return self._unknown() if answer is None else of_constant(answer, self.n)
        positions = sorted({0, *(p for side in sides for p in side.positions)})
        truth, unsaid = np.zeros(self.n, dtype=bool), np.zeros(self.n, dtype=bool)
        for begin, end in zip(positions, [*positions[1:], self.n], strict=True):
            values = [s.at(begin) if isinstance(s, Timeline) else s for s in (left, right)]
            answer = _holds(compare, *values)
            truth[begin:end], unsaid[begin:end] = answer is True, answer is None
        return self._seen_as(truth, unsaid)

    def _operand(self, operand: Any, bound: Bound) -> Any:
        if isinstance(operand, Name):
            return bound.get(operand.text, operand.text)
        if not isinstance(operand, Property):
            return operand
        owners = self._objects(operand.owner, bound)
        if operand.key in ("type", "id"):
            if not owners:
                return None
            return self.history.types[owners[0]] if operand.key == "type" else owners[0]
        if len(owners) != 1:
            raise PlanError(
                f"{operand.owner.text}.{operand.key}: {operand.owner.text} stands for "
                f"{len(owners)} objects of the plan {self.history.plan.name}",
                key=self.name,
                accepted="a variable, as in forall x in objects: ...",
            )
        value = self.history.values.get((operand.key, owners[0]))
        fact = self.history.facts.get(operand.key, {}).get((owners[0],))
        return value or fact


def _fits(wanted: Sequence[frozenset[str] | None], given: Sequence[str]) -> bool | None:
    """Tell whether arguments are among those wanted; None if one is missing, or a variable."""
    unsaid = False
    for at, choice in enumerate(wanted):
        if at >= len(given) and choice is None:
            return False
        if at >= len(given) or (choice is not None and is_variable(given[at])):
            unsaid = True
        elif choice is not None and given[at] not in choice:
            return False
    return None if unsaid else True


def _holds(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool | None:
    """Compare values; None if one is not known and the comparison asks which is larger."""
    if isinstance(left, str) and isinstance(right, str):
        left, right = left.casefold(), right.casefold()
    ordered = compare not in (operator.eq, operator.ne)
    if ordered and (left is None or right is None):
        return None
    if isinstance(right, bool) and left is None:
        left = False  # what is not declared does not hold
    try:
        return bool(compare(left, right))
    except TypeError:
        return None
