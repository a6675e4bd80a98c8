"""Traces with their common beginnings kept once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator

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

    def first_runs(self) -> dict[int, int]:
        """Return for each endpoint the number of its first run, where runs that share are next.

        The runs through an endpoint have `runs` numbers in a row, and those of endpoints on
        different branches have none in common.
        """
        found, waiting = {ROOT: 0}, [ROOT]
        while waiting:
            endpoint = waiting.pop()
            number = found[endpoint]
            for there in self.following(endpoint):
                found[there] = number
                number += self.runs[there]
                waiting.append(there)
        return found

    def numbers(self, runs: Iterable[Iterable[tuple[str, Concrete]]]) -> list[int]:
        """Return the number of each run (`first_runs`): all that were entered, in any order."""
        first, taken = self.first_runs(), Counter[int]()
        found = []
        for run in runs:
            endpoint = ROOT
            for action, state in run:
                endpoint = self._children[endpoint, action, state]
            # Those that end at an endpoint come behind those that go on from it.
            number = first[endpoint] + self.runs[endpoint] if endpoint != ROOT else 0
            taken[endpoint] += 1
            found.append(number - taken[endpoint])
        return found

    def endpoints(self) -> Iterator[int]:
        """Yield all endpoints but the root."""
        return iter(self._children.values())
