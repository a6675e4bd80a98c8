"""Formulas compiled to deterministic automata; a bounded response has its own.

That is ``always(trigger implies eventually[0:K](response))``. ProbGuard (arXiv 2508.00500),
Definition 5.2, counts one step more than STL does: a bound of K + 1 steps reproduces it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.config.fields import Rate, is_rate
from forewarn.errors import FormulaError
from forewarn.logic.automaton import MAX_ATOMS, Automaton, Machine, explore, minimise, product
from forewarn.logic.nodes import lower_formula, truth_table
from forewarn.logic.progression import NO, YES, Progression, State
from forewarn.logic.syntax import (
    FOREVER,
    Always,
    And,
    Constant,
    Eventually,
    Formula,
    Implies,
    Not,
    Or,
    atoms_of,
    in_steps,
    is_propositional,
)
from forewarn.signals.clock_kinds import clock_of

if TYPE_CHECKING:
    from forewarn.logic.nodes import Arena
    from forewarn.signals.clock import Clock

MAX_STATES = 200_000
_MAX_NAME = 60


def compile_formula(formula: Formula, rate: Rate, *, max_states: int = MAX_STATES) -> Automaton:
    """Return the smallest deterministic automaton that detects every violation at once.

    `formula`: a property of the safety fragment. A formula that is not an `always` is meant at the
    first tick of an episode.
    `rate`: ticks per second, > 0: bounds in seconds become steps. Or the clock is steps, and bounds
    are as well.
    `max_states`: refuse a larger automaton, also as an intermediate result.
    A bounded response has its layered numbering; all others are numbered breadth first,
    `satisfied` and `violated` last.
    Raises FormulaError if no finite run can violate some part of the formula (a bound is missing),
    no run satisfies it, or it has too many atoms or its automaton too many states.
    """
    if not is_rate(rate):
        raise FormulaError(f"a rate of {rate} Hz", accepted="a number greater than 0, or steps")
    clock = clock_of(rate)
    atoms = atoms_of(formula)
    if len(atoms) > MAX_ATOMS:
        raise FormulaError(
            f"the formula has {len(atoms)} predicates",
            accepted=f"at most {MAX_ATOMS}; name a combination as one predicate",
        )
    response = as_bounded_response(formula, clock)
    if response is not None:
        layered = response_automaton(response, atoms)
        if layered is not None:
            return layered
    return _compile(formula, atoms, clock, max_states)


def _compile(formula: Formula, atoms: tuple[str, ...], clock: Clock, limit: int) -> Automaton:
    arena, root = lower_formula(formula, atoms, clock)
    node = arena.nodes[root]
    parts = node.args if node.kind == "and" else (root,)
    machine = _part_machine(arena, parts[0], limit)
    for part in parts[1:]:
        machine = minimise(product(machine, _part_machine(arena, part, limit), limit))
    if machine.bad[0]:
        raise FormulaError("no run satisfies the formula", accepted="a formula that can hold")
    return _as_automaton(machine, atoms)


def _part_machine(arena: Arena, root: int, limit: int) -> Machine:
    classes, letters = letter_classes(arena, root)
    progression = Progression(arena, letters)
    states, successor = explore(progression.start(root), progression.step, len(letters), limit)
    bad = np.array([state.owed == NO for state in states])
    names = _names(arena, states)
    return minimise(Machine(classes, successor, bad, names))


def letter_classes(arena: Arena, root: int) -> tuple[NDArray[np.int64], list[int]]:
    """Return the class of each letter, and one letter of each class.

    Letters that agree on all propositional leaves under `root` share a class.
    """
    pending, seen = [root], {root}
    classes: NDArray[np.int64] = np.zeros(len(arena.tables[0]), dtype=np.int64)
    while pending:
        node = arena.nodes[pending.pop()]
        pending += [arg for arg in node.args if arg not in seen]
        seen.update(node.args)
        if node.kind == "prop":
            codes = classes * 2 + arena.tables[node.table]
            classes = np.unique(codes, return_inverse=True)[1].reshape(-1)
    return classes, np.unique(classes, return_index=True)[1].tolist()


def _names(arena: Arena, states: list[State]) -> tuple[str, ...]:
    common = frozenset.intersection(*states[0].owed) if states[0].owed else frozenset()
    texts: dict[int, str] = {}

    def text(node: int) -> str:
        if node not in texts:
            texts[node] = arena.text(node)
        return texts[node]

    names = []
    for state in states:
        if state.owed in (YES, NO):
            names.append("satisfied" if state.owed == YES else "violated")
            continue
        clauses = [" and ".join(text(node) for node in sorted(clause - common))
                   for clause in sorted(state.owed, key=sorted)]  # fmt: skip
        owed = " or ".join(clause for clause in clauses if clause)
        names.append(f"owes {owed}" if owed and all(clauses) else "idle")
    return tuple(names)


def _as_automaton(machine: Machine, atoms: tuple[str, ...]) -> Automaton:
    successor, bad = machine.successor, machine.bad
    absorbing = (successor == np.arange(len(bad))[:, None]).all(axis=1)
    last = np.where(bad, 2, np.where(absorbing, 1, 0))
    order = np.argsort(last, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    names = ["violated" if bad[i] else "satisfied" if absorbing[i] else machine.names[i]
             for i in order]  # fmt: skip
    violated = int(place[bad.argmax()]) if bad.any() else None
    safe = absorbing & ~bad
    return Automaton(
        atoms=atoms,
        letter_class=machine.classes.astype(np.int32),
        transitions=place[successor[order]].astype(np.int32),
        initial=int(place[0]),
        violated=violated,
        satisfied=int(place[safe.argmax()]) if safe.any() else None,
        names=_distinct(names),
    )


def _distinct(names: list[str]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    result = []
    for name in names:
        short = name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 3] + "..."
        counts[short] = counts.get(short, 0) + 1
        result.append(short if counts[short] == 1 else f"{short} ({counts[short]})")
    return tuple(result)


class BoundedResponse(NamedTuple):
    """Whenever `trigger` holds, `response` must hold within `bound` steps; both propositional."""

    trigger: Formula
    response: Formula
    bound: int


def as_bounded_response(formula: Formula, clock: Clock) -> BoundedResponse | None:
    """Return the parts of a bounded response in any of its spellings, or None.

    ``always(a implies eventually[0:K](b))``, ``always(not a or eventually[0:K](b))`` and
    ``always(eventually[0:K](b))`` are bounded responses.
    """
    if not isinstance(formula, Always) or in_steps(formula.interval, clock) != FOREVER:
        return None
    timed: list[Eventually] = []
    guards: list[Formula] = []
    for part in _disjuncts(formula.operand):
        if isinstance(part, Eventually) and is_propositional(part.operand):
            timed.append(part)
        elif is_propositional(part):
            guards.append(part)
        else:
            return None
    if len(timed) != 1:
        return None
    steps = in_steps(timed[0].interval, clock)
    if steps.lower or steps.upper is None:
        return None
    trigger: Formula = Constant(True)
    for i, guard in enumerate(guards):
        absent = guard.operand if isinstance(guard, Not) else Not(guard)
        trigger = And(trigger, absent) if i else absent
    return BoundedResponse(trigger, timed[0].operand, steps.upper)


def _disjuncts(formula: Formula) -> list[Formula]:
    if isinstance(formula, Or):
        return _disjuncts(formula.left) + _disjuncts(formula.right)
    if isinstance(formula, Implies):
        return [Not(formula.left), *_disjuncts(formula.right)]
    return [formula]


def response_automaton(parts: BoundedResponse, atoms: tuple[str, ...]) -> Automaton | None:
    """Return the automaton in the layered numbering, with K + 2 states.

    The earliest pending obligation decides, so one countdown is enough. None if one of the
    three classes is empty (the response always holds, or a trigger cannot be answered): the
    property is then no response, and its exact automaton has another shape.
    """
    response = truth_table(parts.response, atoms)
    trigger = truth_table(parts.trigger, atoms) & ~response
    if not response.any() or not trigger.any():
        return None
    waiting = parts.bound
    violated = waiting + 1
    transitions = np.empty((waiting + 2, 3), dtype=np.int32)
    transitions[0] = 0, waiting or violated, 0
    left = np.arange(1, waiting + 1)
    transitions[1 : waiting + 1, :2] = np.where(left == 1, violated, left - 1)[:, None]
    transitions[1 : waiting + 1, 2] = 0
    transitions[violated] = violated
    return Automaton(
        atoms=atoms,
        letter_class=np.where(response, 2, np.where(trigger, 1, 0)).astype(np.int32),
        transitions=transitions,
        initial=0,
        violated=violated,
        satisfied=None,
        names=("idle", *(f"waiting {r}" for r in range(1, waiting + 1)), "violated"),
        countdown=waiting,
    )
