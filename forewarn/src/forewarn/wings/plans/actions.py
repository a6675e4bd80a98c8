"""What actions do: which facts they add and remove, as in STRIPS, and those of households."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from forewarn.config.yaml_text import load_document
from forewarn.errors import located
from forewarn.wings.plans.world import Description, Descriptions, Effect, PlanError, folded

_CALL = re.compile(r"\s*([^\W\d][\w.-]*)\s*(?:\(([^()]*)\))?\s*\Z")


def load_actions(name: str) -> Descriptions:
    """Return what actions do: ``household``, or a YAML file with ``actions:``."""
    if name == "household":
        return HOUSEHOLD
    path = Path(name)
    data = load_document(path).data
    if not isinstance(data, dict) or "actions" not in data:
        raise PlanError(
            "has no actions", file=path, accepted="actions: {open(x): {adds: [open(x)]}}"
        )
    return read_actions(data["actions"], path)


def read_actions(data: Any, path: Path) -> Descriptions:
    """Return descriptions of actions, by name and by other names (`also`); raises PlanError."""
    if data == "household":
        return HOUSEHOLD
    if not isinstance(data, dict):
        raise PlanError(
            f"{data!r:.60}", file=path, key="actions", accepted="household, or {open(x): {...}}"
        )
    found: dict[str, Description] = {}
    for head, entry in data.items():
        key = f"actions.{head}"
        with located(file=path, key=key):
            names, description = describe(str(head), entry)
        for name in names:
            found[f"{name}/{len(description.parameters)}"] = description
            found.setdefault(name, description)
    return found


def describe(head: str, entry: Any) -> tuple[list[str], Description]:
    """Return the names of an action and what it does; raises PlanError."""
    name, parameters = _call(head)
    entry = {} if entry is None else entry
    accepted = "adds, removes, also, for_each"
    if not isinstance(entry, dict) or set(entry) - {"adds", "removes", "also", "for_each"}:
        raise PlanError(f"{entry!r:.80}", accepted=accepted)
    bind = {}
    for variable, text in (entry.get("for_each") or {}).items():
        relation, arguments = _call(text)
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
        effects.append(tuple(Effect(folded(n), a) for n, a in map(_call, texts)))
    also = entry.get("also") or []
    if not isinstance(also, list) or not all(isinstance(other, str) for other in also):
        raise PlanError(f"also: {also!r:.60}", accepted="a list of names")
    return [other.casefold() for other in (name, *also)], Description(
        parameters, effects[0], effects[1], bind
    )


def _call(text: Any) -> tuple[str, tuple[str, ...]]:
    found = _CALL.match(text) if isinstance(text, str) else None
    if found is None:
        raise PlanError(f"{text!r:.60} is not understood", accepted="inside(x, y)")
    arguments = [part.strip() for part in (found[2] or "").split(",")]
    return found[1], tuple(part for part in arguments if part)


_NEAR = {"adds": ["near(agent, x)"], "removes": ["near(agent, *)"]}
_LETS_GO = {"removes": ["holding(agent, x)", "held(x)"]}
_ALL = {"for_each": {"x": "holding(agent, x)"}}

HOUSEHOLD: Descriptions = read_actions(
    {
        "walk(x)": {
            **_NEAR,
            "also": [
                "walktowards",
                "walk_to",
                "go",
                "goto",
                "go_to",
                "gotolocation",
                "find",
                "run",
                "navigate",
            ],
        },
        "open(x)": {"adds": ["open(x)"], "also": ["openobject"]},
        "close(x)": {"removes": ["open(x)"], "also": ["closeobject"]},
        "switchon(x)": {
            "adds": ["on(x)"],
            "also": ["switch_on", "turn_on", "turnon", "plugin", "toggleobjecton", "start"],
        },
        "switchoff(x)": {
            "removes": ["on(x)"],
            "also": ["switch_off", "turn_off", "turnoff", "plugout", "toggleobjectoff", "stop"],
        },
        "grab(x)": {
            "adds": ["holding(agent, x)", "held(x)"],
            "removes": ["inside(x, *)", "on(x, *)"],
            "also": ["pick", "pickup", "pick_up", "pickupobject", "take"],
        },
        "putin(x, y)": {
            "adds": ["inside(x, y)"],
            "also": ["put", "put_in", "putobject", "place"],
            **_LETS_GO,
        },
        "put(x)": {
            "adds": ["inside(y, x)"],
            "removes": ["holding(agent, y)", "held(y)"],
            "for_each": {"y": "holding(agent, y)"},
        },
        "putback(x, y)": {
            "adds": ["on(x, y)"],
            "also": ["puton", "put_on", "putobjback"],
            **_LETS_GO,
        },
        "drop(x)": {**_LETS_GO, "also": ["throw", "dropobject", "throwobject", "release"]},
        "drop()": {**_LETS_GO, **_ALL, "also": ["throw", "dropobject", "throwobject", "release"]},
        "break(x)": {"adds": ["broken(x)"], "also": ["breakobject"]},
        "slice(x)": {"adds": ["sliced(x)"], "also": ["cut", "sliceobject"]},
        "dirty(x)": {"adds": ["dirty(x)"], "also": ["dirtyobject"]},
        "clean(x)": {
            "removes": ["dirty(x)"],
            "also": ["wash", "rinse", "scrub", "wipe", "cleanobject"],
        },
        "cook(x)": {"adds": ["cooked(x)", "hot(x)"], "also": ["heat", "heatobject", "cookobject"]},
        "cool(x)": {"removes": ["hot(x)"], "also": ["coolobject"]},
        "fillliquid(x, y)": {"adds": ["filled(x)"], "also": ["fill", "fillobjectwithliquid"]},
        "fillliquid(x)": {"adds": ["filled(x)"], "also": ["fill"]},
        "emptyliquid(x)": {"removes": ["filled(x)"], "also": ["empty", "emptyliquidfromobject"]},
        "pour()": {
            "for_each": {"x": "holding(agent, x)", "y": "near(agent, y)"},
            "adds": ["wet(y)"],
            "removes": ["filled(x)"],
            "also": ["pour_out"],
        },
        "pour(y)": {
            "for_each": {"x": "holding(agent, x)"},
            "adds": ["wet(y)"],
            "removes": ["filled(x)"],
        },
        "look()": {
            "also": [
                "lookat",
                "lookat_short",
                "lookat_medium",
                "lookat_long",
                "watch",
                "turnto",
                "pointat",
                "touch",
                "sit",
                "lie",
                "standup",
                "sleep",
                "wakeup",
                "type",
                "read",
                "talk",
                "drink",
                "eat",
                "greet",
                "push",
                "pull",
                "move",
                "squeeze",
                "wait",
                "noop",
                "end",
                "crouch",
                "stand",
                "lookup",
                "lookdown",
                "moveahead",
                "moveback",
                "moveleft",
                "moveright",
                "rotateleft",
                "rotateright",
                "done",
                "finish",
            ]
        },
    },
    Path("household"),
)
"""Actions of VirtualHome, AI2-THOR and SafeAgentBench, as far as the facts named here go."""
