"""Traces with their common beginnings kept once."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator

Concrete = tuple[Hashable, ...]
"""Values of the variables of a tree, in their order; None where unknown."""

ROOT = 0
NOWHERE = -1


class Trie:
    """Prefix tree over words of actions and concrete states, with the number of runs of each.

    Every endpoint has one concrete state. Runs that did and saw the same share their endpoints,
    so memory grows with what is different.
    """

    def __init__(self) -> None:
        self.parent: list[int] = [NOWHERE]
        self.action: list[str] = [""]
        self.state: list[Concrete] = [()]
        self.runs: list[int] = [0]
        self._children: dict[tuple[int, str, Concrete], int] = {}
        self._following: dict[int, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._children)

    def following(self, endpoint: int) -> Collection[int]:
        """Return the endpoints one step on, in the order in which they came."""
        return self._following.get(endpoint, ())

    def enter(self, endpoint: int, action: str, state: Concrete) -> tuple[int, bool]:
        """Count a step; return where it leads, and whether that is new."""
        key = (endpoint, action, state)
        there = self._children.get(key)
        if there is not None:
            self.runs[there] += 1
            return there, False
        there = len(self.parent)
        self.parent.append(endpoint)
        self.action.append(action)
        self.state.append(state)
        self.runs.append(1)
        self._children[key] = there
        self._following.setdefault(endpoint, {})[there] = None
        return there, True

    def endpoints(self) -> Iterator[int]:
        """Yield all endpoints but the root."""
        return iter(self._children.values())
