"""What a plan says of objects itself, as JSON: before it begins, and after its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forewarn.errors import located
from forewarn.wings.plans.actions import parse_call
from forewarn.wings.plans.world import MOST_OBJECTS, Fact, PlanError, Scalar, State, folded

ACCEPTED = '[{"id": "fork_1", "type": "Fork", "inside": ["bowl_1"], "isDirty": false}, ...]'
FACTS_ACCEPTED = '["inside(fork_1, bowl_1)", ...] or [["inside", "fork_1", "bowl_1"], ...]'
_NAMES = ("id", "objectId", "name", "object_id")
_TYPES = ("type", "objectType", "class_name", "category")


def read_state(objects: Any, facts: Any) -> tuple[State, dict[str, str]]:
    """Return a state and the types of its objects; raises PlanError."""
    held: set[Fact] = set()
    values: dict[tuple[str, str], Scalar] = {}
    known: set[str] = set()
    types: dict[str, str] = {}
    if objects is not None:
        for at, entry in enumerate(_listed(objects)):
            with located(PlanError, key=f"objects[{at}]"):
                _object(entry, held, values, known, types)
    if facts is not None:
        if not isinstance(facts, list):
            raise PlanError(f"{facts!r:.60}", key="facts", accepted=FACTS_ACCEPTED)
        held.update(map(_fact, facts))
    return State(frozenset(held), values, frozenset(known | {fact[0] for fact in held})), types


def _listed(objects: Any) -> list[Any]:
    if isinstance(objects, Mapping):
        objects = [
            {"id": name, **(entry if isinstance(entry, Mapping) else {"type": entry})}
            for name, entry in objects.items()
        ]
    if not isinstance(objects, list):
        raise PlanError(f"{objects!r:.60} are no objects", key="objects", accepted=ACCEPTED)
    if len(objects) > MOST_OBJECTS:
        raise PlanError(f"{len(objects)} objects", key="objects", accepted=f"up to {MOST_OBJECTS}")
    return objects


def _object(
    entry: Any, held: set[Fact], values: dict[tuple[str, str], Scalar], known: set[str],
    types: dict[str, str],
) -> None:  # fmt: skip
    if isinstance(entry, str):
        entry = {"id": entry}
    if not isinstance(entry, Mapping):
        raise PlanError(f"{entry!r:.60} is no object", accepted=ACCEPTED)
    kind = next((entry[key] for key in _TYPES if isinstance(entry.get(key), str)), "")
    name = next((entry[key] for key in _NAMES if isinstance(entry.get(key), (str, int))), kind)
    if not name:
        raise PlanError(f"{entry!r:.60} has no name", accepted=ACCEPTED)
    name = str(name)
    if kind:
        types[name] = kind
    for key, value in entry.items():
        relation = folded(key)
        if key in _NAMES or key in _TYPES:
            continue
        if isinstance(value, bool):
            known.add(relation)
            held.update({(relation, name)} if value else ())
        elif isinstance(value, (int, float, str)):
            values[relation, name] = value
        elif isinstance(value, list):
            _list(relation, name, value, held, known)


def _list(relation: str, name: str, value: list[Any], held: set[Fact], known: set[str]) -> None:
    """Read what an object is related to, or its ``states`` and ``properties``."""
    texts = [str(one) for one in value if isinstance(one, (str, int))]
    if relation in ("states", "properties"):
        held.update((folded(text), name) for text in texts)
        known.update(map(folded, texts))
        return
    known.add(relation)
    held.update((relation, name, text) for text in texts)


def _fact(entry: Any) -> Fact:
    if isinstance(entry, list) and entry and all(isinstance(part, str) for part in entry):
        return folded(entry[0]), *entry[1:]
    with located(PlanError, key="facts"):
        relation, arguments = parse_call(entry)
    return folded(relation), *arguments
