"""What a property means, in words and as a drawing of its automaton."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, singledispatch

from forewarn.logic import syntax
from forewarn.logic.automaton import Automaton
from forewarn.logic.drawing import graph_of, to_dot, to_mermaid
from forewarn.logic.printing import format_formula
from forewarn.logic.syntax import Bound, Formula, Interval, is_propositional


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


def explain(formula: Formula, automaton: Automaton) -> Explanation:
    """Explain a property and the automaton that `compile_formula` made of it."""
    graph = graph_of(automaton)
    return Explanation(
        format_formula(formula),
        f"{_sentence(formula)}\n{_facts(automaton)}",
        to_dot(graph),
        to_mermaid(graph),
    )


def _sentence(formula: Formula) -> str:
    if isinstance(formula, syntax.And) and not is_propositional(formula):
        return f"{_sentence(formula.left)}\n{_sentence(formula.right)}"
    if isinstance(formula, syntax.Always) and formula.interval is None:
        return f"At every tick: {words(formula.operand)}."
    return f"From the first tick of an episode: {words(formula)}."


def _facts(automaton: Automaton) -> str:
    lines = [
        f"The automaton has {automaton.n_states} states and tells {automaton.n_classes} classes "
        f"of letters apart, over {_listed(automaton.atoms)}."
    ]
    if automaton.countdown:
        lines.append(
            "While an obligation is pending it counts down the ticks that may still pass, from "
            f"{automaton.countdown}; the earliest pending obligation decides."
        )
    if automaton.violated is None:
        lines.append("It can never be violated: there is nothing to monitor.")
    else:
        lines.append(
            "It is violated at the first tick after which no continuation can save it; the "
            "monitor then starts again from that tick's label."
        )
    if automaton.violated is not None and automaton.satisfied is not None:
        lines.append("It can be settled for good within an episode.")
    return "\n".join(lines)


def _listed(names: tuple[str, ...]) -> str:
    quoted = [f"'{name}'" for name in names]
    return ", ".join(quoted) or "no predicate"


@singledispatch
def words(formula: Formula) -> str:
    """Return English for a formula."""
    return f"'{format_formula(formula)}' holds"


@words.register
def _(formula: syntax.Binary) -> str:
    if is_propositional(formula):
        if isinstance(formula, syntax.Implies):
            return f"if {words(formula.left)}, then {words(formula.right)}"
        return f"'{format_formula(formula)}' holds"
    left, right = words(formula.left), words(formula.right)
    if isinstance(formula, syntax.Implies):
        return f"if {left}, then {right}"
    if isinstance(formula, syntax.And):
        return f"both ({left}) and ({right})"
    if isinstance(formula, syntax.Or):
        return f"({left}) or ({right})"
    relation = "exactly when" if isinstance(formula, syntax.Iff) else "or else, and not both,"
    return f"({left}) {relation} ({right})"


@words.register
def _(formula: syntax.Unary) -> str:
    if isinstance(formula, syntax.Not):
        if is_propositional(formula):
            return f"'{format_formula(formula.operand)}' does not hold"
        return f"it is not so that ({words(formula.operand)})"
    text = _what(formula.operand)
    return {
        "rise": f"{text} begins to hold",
        "fall": f"{text} ceases to hold",
        "next": f"one tick later, {words(formula.operand)}",
        "s_next": f"one tick later, {words(formula.operand)}",
        "prev": f"one tick before, if there was one, {words(formula.operand)}",
        "s_prev": f"there was a tick before, and at it {words(formula.operand)}",
    }[formula.word]


@words.register
def _(formula: syntax.TimedUnary) -> str:
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
def _(formula: syntax.TimedBinary) -> str:
    left, right = _what(formula.left), _what(formula.right)
    interval = formula.interval
    if formula.word == "since":
        when = _point(interval, "at some time before", "within the last", "ago")
        return f"{right} has held {when}, and {left} at every tick after that"
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
