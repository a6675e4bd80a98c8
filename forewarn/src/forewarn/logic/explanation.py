"""What a property means, in words and as a drawing of its automaton."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, singledispatch
from typing import TYPE_CHECKING

from forewarn.logic import syntax
from forewarn.logic.drawing import graph_of, to_dot, to_mermaid
from forewarn.logic.printing import format_formula
from forewarn.logic.syntax import Bound, Formula, Interval, is_propositional

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton


@dataclass(frozen=True)
class Explanation:
    """A property explained.

    Attributes
    ----------
    formula : str
        The formula in normal form.
    words : str
        What is monitored, and what the automaton tells when.
    dot, mermaid : str
        The automaton for Graphviz and Mermaid; inner states of long countdowns are one node.
    """

    formula: str
    words: str
    dot: str
    mermaid: str


def explain(formula: Formula, automaton: Automaton, noun: str = "tick") -> Explanation:
    """Explain a property and the automaton that `compile_formula` made of it.

    `noun` is what the clock counts: ``tick`` or ``step``.
    """
    graph = graph_of(automaton)
    return Explanation(
        format_formula(formula),
        f"{_sentence(formula, noun)}\n{_facts(automaton, noun)}",
        to_dot(graph),
        to_mermaid(graph),
    )


def _sentence(formula: Formula, noun: str) -> str:
    if isinstance(formula, syntax.And) and not is_propositional(formula):
        return f"{_sentence(formula.left, noun)}\n{_sentence(formula.right, noun)}"
    if isinstance(formula, syntax.Always) and formula.interval is None:
        return f"At every {noun}: {words(formula.operand, noun)}."
    return f"From the first {noun} of an episode: {words(formula, noun)}."


def _facts(automaton: Automaton, noun: str) -> str:
    lines = [
        f"The automaton has {automaton.n_states} states. It distinguishes {automaton.n_classes} "
        f"cases of {_listed(automaton.atoms)}."
    ]
    if automaton.countdown:
        lines.append(
            f"While an obligation is pending it counts down the {noun}s that may still pass, from "
            f"{automaton.countdown}; the earliest pending obligation decides."
        )
    if automaton.violated is None:
        lines.append("It can never be violated: there is nothing to monitor.")
    else:
        lines.append(
            "It counts as violated as soon as it can no longer be kept. The monitor then starts "
            f"again from that {noun}."
        )
    if automaton.violated is not None and automaton.satisfied is not None:
        lines.append("It can also be satisfied for the rest of an episode.")
    return "\n".join(lines)


def _listed(names: tuple[str, ...]) -> str:
    quoted = [f"'{name}'" for name in names]
    return ", ".join(quoted) or "no predicate"


@singledispatch
def words(formula: Formula, noun: str) -> str:
    """Return English for a formula."""
    return f"'{format_formula(formula)}' holds"


@words.register
def _(formula: syntax.Binary, noun: str) -> str:
    if is_propositional(formula):
        if isinstance(formula, syntax.Implies):
            return f"if {words(formula.left, noun)}, then {words(formula.right, noun)}"
        return f"'{format_formula(formula)}' holds"
    left, right = words(formula.left, noun), words(formula.right, noun)
    if isinstance(formula, syntax.Implies):
        return f"if {left}, then {right}"
    if isinstance(formula, syntax.And):
        return f"both ({left}) and ({right})"
    if isinstance(formula, syntax.Or):
        return f"({left}) or ({right})"
    relation = "exactly when" if isinstance(formula, syntax.Iff) else "or else, and not both,"
    return f"({left}) {relation} ({right})"


@words.register
def _(formula: syntax.Unary, noun: str) -> str:
    if isinstance(formula, syntax.Not):
        if is_propositional(formula):
            return f"'{format_formula(formula.operand)}' does not hold"
        return f"it is not so that ({words(formula.operand, noun)})"
    text = _what(formula.operand)
    return {
        "rise": f"{text} begins to hold",
        "fall": f"{text} ceases to hold",
        "next": f"one {noun} later, {words(formula.operand, noun)}",
        "s_next": f"one {noun} later, {words(formula.operand, noun)}",
        "prev": f"one {noun} before, if there was one, {words(formula.operand, noun)}",
        "s_prev": f"there was a {noun} before, and at it {words(formula.operand, noun)}",
    }[formula.word]


@words.register
def _(formula: syntax.TimedUnary, noun: str) -> str:
    text = _what(formula.operand)
    interval = formula.interval
    if formula.word == "always":
        return f"{text} holds {_span(interval, 'from then on', 'for the next', 'from then')}"
    if formula.word == "eventually":
        return f"{text} holds {_point(interval, 'at some time', 'within', 'later')}"
    if formula.word == "historically":
        return f"{text} has held {_span(interval, 'ever since the start', 'for the last', 'ago')}"
    return f"{text} has held {_point(interval, 'at some time before', 'within the last', 'ago')}"


@words.register
def _(formula: syntax.TimedBinary, noun: str) -> str:
    left, right = _what(formula.left), _what(formula.right)
    interval = formula.interval
    if formula.word == "since":
        when = _point(interval, "at some time before", "within the last", "ago")
        return f"{right} has held {when}, and {left} at every {noun} after that"
    if formula.word == "until":
        when = _point(interval, "at some time", "within", "later")
        return f"{right} holds {when}, and {left} holds until then"
    if interval is None or interval.upper is None:
        return f"{left} holds for as long as {right} does not"
    span = f"for {_length(interval.upper)}"
    return f"{left} holds {span}, unless {right} releases it before"


def _what(formula: Formula) -> str:
    return f"'{format_formula(formula)}'"


def _length(bound: Bound) -> str:
    value = f"{bound.value:g}"
    return f"{value} {'step' if bound.unit == 'steps' and value == '1' else bound.unit}"


def _span(interval: Interval | None, endless: str, within: str, offset: str, some: str = "") -> str:
    """Return how long something holds; with `some`, that it holds at one time of these."""
    if interval is None:
        return endless
    if interval.upper is None:
        return f"{some}beyond {_length(interval.lower)} {offset}"
    if not interval.lower.value:
        return f"{within} {_length(interval.upper)}"
    lower, upper = _length(interval.lower), _length(interval.upper)
    return f"{some or 'from '}{lower} to {upper} {offset}"


_point = partial(_span, some="at some time ")
