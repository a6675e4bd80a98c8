"""What a property means, in words and as a drawing of its automaton, long countdowns folded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, singledispatch
from typing import TYPE_CHECKING

import numpy as np

from forewarn.logic import syntax
from forewarn.logic.syntax import Bound, Formula, Interval, format_formula, is_propositional

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton
    from forewarn.logic.nodes import Table


@dataclass(frozen=True)
class Explanation:
    """A property explained.

    `dot`, `mermaid`: the automaton for Graphviz and Mermaid; inner states of long countdowns are
    one node.
    """

    formula: str  # the formula in normal form
    words: str  # what is monitored, and what the automaton tells when
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


_SHORTEST_FOLD = 4
_LARGEST_FOLDED = 20_000
_MAX_NODES = 60
_MAX_LABEL = 80
_MAX_GUARD_ATOMS = 12
_MORE = -2


@dataclass(frozen=True)
class Graph:
    """What is drawn: nodes by number, and labelled edges between them.

    `violated`, `satisfied`: the absorbing nodes.
    """

    labels: dict[int, str]
    edges: dict[tuple[int, int], str]  # the guard of each edge
    initial: int  # the node that is entered before the first tick
    violated: int | None
    satisfied: int | None


def graph_of(automaton: Automaton) -> Graph:
    """Return what to draw of `automaton`.

    The inner states of a chain in which each state differs from the next only by counting down
    become one node, so that a response bound of 100 ticks stays readable. Of what is still too
    large only the part near the initial state is drawn.
    """
    node = _folded(automaton)
    members: dict[int, list[int]] = {}
    for state, number in enumerate(node):
        members.setdefault(number, []).append(state)
    shown = _nearest(automaton, node)
    labels = {}
    for number in shown:
        states = members[number]
        name = automaton.names[states[0]]
        labels[number] = name if len(states) == 1 else f"{name} ... {automaton.names[states[-1]]}"
    labels = {number: labels[number] for number in sorted(labels)}
    if len(shown) < len(members):
        labels[_MORE] = f"... {len(members) - len(shown)} more"
    return Graph(
        labels,
        _edges(automaton, node, shown),
        node[automaton.initial],
        None if automaton.violated is None else node[automaton.violated],
        None if automaton.satisfied is None else node[automaton.satisfied],
    )


def _folded(automaton: Automaton) -> list[int]:
    """Return the node of each state: its own, or that of the chain it is inside of."""
    if automaton.n_states > _LARGEST_FOLDED:
        return list(range(automaton.n_states))
    links = ((state, _next_in_chain(automaton, state)) for state in range(automaton.n_states))
    after = {state: target for state, target in links if target is not None}
    entered = set(after.values())
    node = list(range(automaton.n_states))
    for first in after:
        if first in entered:
            continue
        chain = [first]
        while chain[-1] in after and after[chain[-1]] not in chain:
            chain.append(after[chain[-1]])
        inner = [q for q in chain[1:-1] if q != automaton.initial]
        if len(inner) >= _SHORTEST_FOLD:
            for state in inner:
                node[state] = inner[0]
    return node


def _next_in_chain(automaton: Automaton, state: int) -> int | None:
    """Return the successor that behaves as `state` does, one tick further."""
    row = automaton.transitions[state]
    absorbing = (automaton.violated, automaton.satisfied)
    for target in np.unique(row).tolist():
        if target == state or target in absorbing:
            continue
        other = automaton.transitions[target]
        counting = row == target
        if (row[~counting] == other[~counting]).all() and len(set(other[counting].tolist())) == 1:
            return int(target)
    return None


def _nearest(automaton: Automaton, node: list[int]) -> set[int]:
    """Return the first nodes in breadth-first order, and the absorbing ones."""
    ends = [end for end in (automaton.violated, automaton.satisfied) if end is not None]
    shown = {node[end] for end in ends}
    seen = {automaton.initial}
    queue = [automaton.initial]
    for state in queue:
        shown.add(node[state])
        if len(shown) >= _MAX_NODES:
            break
        for target in automaton.transitions[state].tolist():
            if target not in seen:
                seen.add(target)
                queue.append(target)
    return shown


def _edges(automaton: Automaton, node: list[int], shown: set[int]) -> dict[tuple[int, int], str]:
    classes: dict[tuple[int, int], set[int]] = {}
    for state, row in enumerate(automaton.transitions.tolist()):
        source = node[state]
        if source not in shown or automaton.violated == state or automaton.satisfied == state:
            continue
        for letter_class, target in enumerate(row):
            end = node[target] if node[target] in shown else _MORE
            classes.setdefault((source, end), set()).add(letter_class)
    texts: dict[frozenset[int], str] = {}
    edges = {}
    for edge, found in sorted(classes.items()):
        key = frozenset(found)
        if key not in texts:
            texts[key] = _guard(automaton, key)
        edges[edge] = texts[key]
    return edges


def _guard(automaton: Automaton, classes: frozenset[int]) -> str:
    if len(automaton.atoms) > _MAX_GUARD_ATOMS:
        return "letter class " + ", ".join(map(str, sorted(classes)))
    text = guard_text(np.isin(automaton.letter_class, list(classes)), automaton.atoms)
    return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 3] + "..."


def to_dot(graph: Graph) -> str:
    """Return the graph in Graphviz's language."""
    lines = [
        "digraph property {",
        "  rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
        '  edge [fontname="sans-serif"];',
        '  start [shape=point, label=""];',
    ]
    for number, label in graph.labels.items():
        colour = {graph.violated: "#c62828", graph.satisfied: "#2e7d32"}.get(number)
        extra = f', color="{colour}", penwidth=2' if colour else ""
        lines.append(f"  {_id(number)} [label={_quoted(label)}{extra}];")
    lines.append(f"  start -> {_id(graph.initial)};")
    for (source, target), guard in graph.edges.items():
        lines.append(f"  {_id(source)} -> {_id(target)} [label={_quoted(guard)}];")
    return "\n".join([*lines, "}", ""])


def to_mermaid(graph: Graph) -> str:
    """Return the graph as a Mermaid flowchart."""
    lines = ["flowchart LR", "  start(( ))"]
    lines += [f'  {_id(number)}["{_entities(text)}"]' for number, text in graph.labels.items()]
    lines.append(f"  start --> {_id(graph.initial)}")
    for (source, target), guard in graph.edges.items():
        lines.append(f'  {_id(source)} -->|"{_entities(guard)}"| {_id(target)}')
    if graph.violated is not None:
        lines.append(f"  style {_id(graph.violated)} stroke:#c62828,stroke-width:3px")
    if graph.satisfied is not None:
        lines.append(f"  style {_id(graph.satisfied)} stroke:#2e7d32,stroke-width:3px")
    return "\n".join([*lines, ""])


def _id(number: int) -> str:
    return "more" if number == _MORE else f"q{number}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _entities(text: str) -> str:
    for character, entity in (("&", "amp"), ('"', "quot"), ("<", "lt"), (">", "gt")):
        text = text.replace(character, f"&{entity};")
    return text


#: A product term: each atom's bit, and whether it must hold.
Term = tuple[tuple[int, bool], ...]


def guard_text(letters: Table, atoms: tuple[str, ...]) -> str:
    """Return text that is true exactly at the given letters.

    `letters`, shape (2 ** len(atoms),): the set.
    `atoms`: bit i of a letter is ``atoms[i]``.
    Returns an irredundant disjunction of products, of the set or of its complement, whichever is
    shorter; ``true`` or ``false`` for the trivial ones.
    """
    direct = _text(_irredundant(letters, letters)[0], atoms)
    inverse = f"not ({_text(_irredundant(~letters, ~letters)[0], atoms)})"
    return direct if len(direct) <= len(inverse) else inverse


def _text(terms: list[Term], atoms: tuple[str, ...]) -> str:
    texts = []
    for term in terms:
        literals = []
        for bit, holds in sorted(term):
            name = atoms[bit]
            negated = f"not {name}" if name.isidentifier() else f"not ({name})"
            literals.append(name if holds else negated)
        texts.append(" and ".join(literals) or "true")
    return " or ".join(texts) or "false"


def _irredundant(lower: Table, upper: Table) -> tuple[list[Term], Table]:
    """Return terms that cover `lower` within `upper`, and what they cover.

    Minato, "Fast generation of irredundant sum-of-products forms from binary decision diagrams",
    SASIMI 1992, on truth tables.
    """
    if not lower.any():
        return [], np.zeros_like(lower)
    if upper.all():
        return [()], np.ones_like(lower)
    half = len(lower) // 2
    bit = half.bit_length() - 1
    low_0, low_1, up_0, up_1 = lower[:half], lower[half:], upper[:half], upper[half:]
    terms_0, covered_0 = _irredundant(low_0 & ~up_1, up_0)
    terms_1, covered_1 = _irredundant(low_1 & ~up_0, up_1)
    rest = (low_0 & ~covered_0) | (low_1 & ~covered_1)
    terms, covered = _irredundant(rest, up_0 & up_1)
    terms += [(*term, (bit, False)) for term in terms_0]
    terms += [(*term, (bit, True)) for term in terms_1]
    return terms, np.concatenate([covered_0 | covered, covered_1 | covered])
