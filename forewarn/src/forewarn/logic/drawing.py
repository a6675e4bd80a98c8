"""Automata drawn for Graphviz and Mermaid, long countdowns folded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forewarn.logic.guards import guard_text

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton

_SHORTEST_FOLD = 4
_LARGEST_FOLDED = 20_000
_MAX_NODES = 60
_MAX_LABEL = 80
_MAX_GUARD_ATOMS = 12
_MORE = -2


@dataclass(frozen=True)
class Graph:
    """What is drawn: nodes by number, and labelled edges between them.

    Attributes
    ----------
    edges : dict of (int, int) to str
        The guard of each edge.
    initial : int
        The node that is entered before the first tick.
    violated, satisfied : int or None
        The absorbing nodes.
    """

    labels: dict[int, str]
    edges: dict[tuple[int, int], str]
    initial: int
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
