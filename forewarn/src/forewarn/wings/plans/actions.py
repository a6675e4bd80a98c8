"""What actions do: which facts they add and remove, as in STRIPS, and those of households."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from forewarn.config.yaml_text import load_document
from forewarn.errors import located
from forewarn.wings.plans.world import Description, Descriptions, Effect, PlanError, folded

_CALL = re.compile(r"\s*([^\W\d][\w.-]*)\s*(?:\(([^()]*)\))?\s*\Z")


def load_actions(name: str) -> Descriptions:
    """Return what actions do: ``household``, or a YAML file with ``actions:``."""
    if name == "household":
        return household()
    path = Path(name)
    data = load_document(path).data
    if not isinstance(data, dict) or "actions" not in data:
        raise PlanError(
            "has no actions", file=path, accepted="actions: {open(x): {adds: [open(x)]}}"
        )
    return read_actions(data["actions"], path)


@cache
def household() -> Descriptions:
    """Return what actions of VirtualHome, AI2-THOR and SafeAgentBench do to the facts named."""
    return load_actions(str(Path(__file__).parent / "assets" / "household.yaml"))


def read_actions(data: Any, path: Path) -> Descriptions:
    """Return descriptions of actions, by name and by other names (`also`); raises PlanError."""
    if data == "household":
        return household()
    if not isinstance(data, dict):
        raise PlanError(
            f"{data!r:.60}", file=path, key="actions", accepted="household, or {open(x): {...}}"
        )
    found: dict[str, Description] = {}
    for head, entry in data.items():
        with located(file=path, key=f"actions.{head}"):
            names, description = describe(str(head), entry)
        for name in names:
            found[f"{name}/{len(description.parameters)}"] = description
            found.setdefault(name, description)
    return found


def describe(head: str, entry: Any) -> tuple[list[str], Description]:
    """Return the names of an action and what it does; raises PlanError."""
    name, parameters = parse_call(head)
    entry = {} if entry is None else entry
    accepted = "adds, removes, also, for_each"
    if not isinstance(entry, dict) or set(entry) - {"adds", "removes", "also", "for_each"}:
        raise PlanError(f"{entry!r:.80}", accepted=accepted)
    bind = {}
    for variable, text in (entry.get("for_each") or {}).items():
        relation, arguments = parse_call(text)
        if variable not in arguments:
            raise PlanError(
                f"for_each.{variable}: {text} does not name {variable}", accepted="it does"
            )
        bind[variable] = Effect(folded(relation), arguments)
    effects = []
    for part in ("adds", "removes"):
        texts = entry.get(part) or []
        if not isinstance(texts, list):
            raise PlanError(f"{part}: {texts!r:.60}", accepted="a list: [inside(x, y)]")
        effects.append(tuple(Effect(folded(n), a) for n, a in map(parse_call, texts)))
    also = entry.get("also") or []
    if not isinstance(also, list) or not all(isinstance(other, str) for other in also):
        raise PlanError(f"also: {also!r:.60}", accepted="a list of names")
    return [other.casefold() for other in (name, *also)], Description(
        parameters, effects[0], effects[1], bind
    )


def parse_call(text: Any) -> tuple[str, tuple[str, ...]]:
    """Return the name and the arguments of ``inside(x, y)``; raises PlanError."""
    found = _CALL.match(text) if isinstance(text, str) else None
    if found is None:
        raise PlanError(f"{text!r:.60} is not understood", accepted="inside(x, y)")
    arguments = [part.strip() for part in (found[2] or "").split(",")]
    return found[1], tuple(part for part in arguments if part)
