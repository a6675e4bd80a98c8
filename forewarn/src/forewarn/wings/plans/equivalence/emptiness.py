"""Whether some trace satisfies a formula, and one that does."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from forewarn.wings.plans.equivalence.memory import without_past
from forewarn.wings.plans.equivalence.nodes import AND, TRUE, LtlArena
from forewarn.wings.plans.equivalence.tableau import Edge, State, Tableau
from forewarn.wings.plans.equivalence.words import Trace

_Step = tuple[State, Edge]


def satisfying_trace(arena: LtlArena, root: int, effort: int) -> tuple[Trace | None, int]:
    """Return a trace that satisfies a formula, or None; and what effort is left, or raise TooLarge.

    A finite trace is a shortest one.
    """
    tableau = Tableau(arena, effort)
    root, demands = without_past(arena, root)
    node = arena.nodes[root]
    owed = node.args if node.kind == AND else () if root == TRUE else (root,)
    start = frozenset([*owed, *demands])
    search = _finite if arena.finite else _infinite
    return search(tableau, start), tableau.effort


def _finite(tableau: Tableau, start: State) -> Trace | None:
    came: dict[State, _Step | None] = {start: None}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        edges = tableau.edges(state)
        last = next((edge for edge in edges if edge.may_end), None)
        if last is not None:
            return _trace(tableau.arena, [*_way(came, state), last], None)
        for edge in edges:
            tableau.spend(1)
            if edge.owed not in came:
                came[edge.owed] = (state, edge)
                waiting.append(edge.owed)
    return None


def _infinite(tableau: Tableau, start: State) -> Trace | None:
    """Explore all states, then look for a component in which every until is met again and again."""
    came: dict[State, _Step | None] = {start: None}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        if not state:
            break
        for edge in tableau.edges(state):
            tableau.spend(1)
            if edge.owed not in came:
                came[edge.owed] = (state, edge)
                waiting.append(edge.owed)
    if frozenset() in came:
        rest = Edge(0, 0, frozenset(), frozenset(), True)
        stem = _way(came, frozenset())
        return _trace(tableau.arena, [*stem, rest], len(stem))
    for component in _components(came, tableau):
        inside = {
            state: [edge for edge in tableau.edges(state) if edge.owed in component]
            for state in component
        }
        edges = [edge for found in inside.values() for edge in found]
        untils = frozenset().union(*(edge.postponed for edge in edges))
        if edges and all(any(u not in edge.postponed for edge in edges) for u in untils):
            first = min(component, key=lambda state: len(_way(came, state)))
            stem = _way(came, first)
            return _trace(tableau.arena, [*stem, *_cycle(inside, first, untils)], len(stem))
    return None


def _cycle(inside: dict[State, list[Edge]], first: State, untils: State) -> list[Edge]:
    """Return edges from a state back to it, on which each until is not postponed once."""
    taken: list[Edge] = []
    state, open_untils = first, set(untils)
    while open_untils:
        wanted = min(open_untils)
        leg = _leg(inside, state, lambda _, edge: wanted not in edge.postponed)  # noqa: B023
        taken += leg
        state = leg[-1].owed
        open_untils -= {u for u in untils if any(u not in edge.postponed for edge in leg)}
    if state != first or not taken:
        taken += _leg(inside, state, lambda _, edge: edge.owed == first)
    return taken


def _leg(
    inside: dict[State, list[Edge]], start: State, wanted: Callable[[State, Edge], bool]
) -> list[Edge]:
    """Return the fewest edges from a state whose last one is as `wanted`."""
    came: dict[State, _Step | None] = {start: None}
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        for edge in inside[state]:
            if wanted(state, edge):
                return [*_way(came, state), edge]
            if edge.owed not in came:
                came[edge.owed] = (state, edge)
                waiting.append(edge.owed)
    raise AssertionError("a component is strongly connected")


def _way(came: dict[State, _Step | None], state: State) -> list[Edge]:
    edges = []
    step = came[state]
    while step is not None:
        edges.append(step[1])
        step = came[step[0]]
    return edges[::-1]


def _trace(arena: LtlArena, edges: list[Edge], loop: int | None) -> Trace:
    atoms = arena.atoms
    letters = tuple(
        frozenset(
            atom for i, atom in enumerate(atoms) if edge.true >> i & 1 and isinstance(atom, str)
        )
        for edge in edges
    )
    return Trace(letters, loop)


def _components(states: Iterable[State], tableau: Tableau) -> Iterable[set[State]]:
    """Return the strongly connected components."""
    numbers = {state: number for number, state in enumerate(states)}
    edges = [(numbers[s], numbers[edge.owed]) for s in numbers for edge in tableau.edges(s)]
    graph = sparse.coo_matrix(
        (np.ones(len(edges)), np.array(edges, dtype=np.int64).reshape(-1, 2).T),
        shape=(len(numbers), len(numbers)),
    )
    _, label = connected_components(graph, connection="strong")
    found: dict[int, set[State]] = {}
    for state, component in zip(numbers, label.tolist(), strict=True):
        found.setdefault(component, set()).add(state)
    return found.values()
