"""Steps of a plan as people and tools write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from forewarn.wings.plans.world import PlanError, Step

LONGEST = 2_000
ACCEPTED = (
    "open(fridge), [OPEN] <fridge> (305), (open fridge), or open fridge; "
    'or {"action": "open", "args": ["fridge"]}'
)
# Possessive quantifiers are not in Python 3.10: each pattern is unambiguous by its brackets.
_VIRTUALHOME = re.compile(
    r"\s*(?:<char\d+>\s*)?\[\s*([\w ]+?)\s*\]((?:\s*<[^<>]*>\s*(?:\(\s*[\d.]+\s*\))?)*)\s*\Z"
)
_OBJECT = re.compile(r"<([^<>]*)>\s*(?:\(\s*([\d.]+)\s*\))?")
_CALL = re.compile(r"\s*([^\W\d][\w.\-]*)\s*\(([^()]*)\)\s*\Z")
_PDDL = re.compile(
    r"\s*(?:[\d.]+\s*:)?\s*\(\s*([^\s()]+)((?:\s+[^\s()]+)*)\s*\)\s*(?:\[\s*[\d.]+\s*\])?\s*\Z"
)
_WORDS = re.compile(r"\s*([^\W\d][\w\-]*)((?:\s+[\w.\-|+]+)*)\s*\Z")
_THE = re.compile(r"\Athe\s+", re.IGNORECASE)
_PAIRS = {
    "turn": ("on", "off"),
    "pick": ("up",),
    "put": ("in", "on", "down"),
    "switch": ("on", "off"),
    "go": ("to",),
    "walk": ("to",),
}


def parse_step(text: str) -> Step:
    """Return the step that a text says; raises PlanError."""
    if len(text) > LONGEST:
        raise PlanError(f"has {len(text)} characters", accepted=f"at most {LONGEST}")
    found = _VIRTUALHOME.match(text)
    if found is not None:
        return Step(
            found[1].strip().replace(" ", "_"), tuple(map(_named, _OBJECT.finditer(found[2])))
        )
    found = _CALL.match(text)
    if found is not None:
        return Step(found[1], tuple(_in_list(found[2])))
    found = _PDDL.match(text)
    if found is not None:
        return Step(found[1], tuple(found[2].split()))
    found = _WORDS.match(text)
    if found is None:
        raise PlanError(f"{text!r:.60} is no step", accepted=ACCEPTED)
    return of_words(found[1], found[2].split())


def of_words(word: str, rest: list[str]) -> Step:
    """Return a command in words as a step: ``turn on the DeskLamp`` is one of two words."""
    if rest and rest[0].casefold() in _PAIRS.get(word.casefold(), ()):
        word, rest = f"{word}_{rest[0]}", rest[1:]
    return Step(word, tuple(part for part in rest if part.casefold() != "the"))


def _named(found: re.Match[str]) -> str:
    name = found[1].strip().replace(" ", "_")
    return f"{name}_{found[2]}" if found[2] else name


def step_of(entry: Any) -> Step:
    """Return a step from a text or an object of JSON, without its state; raises PlanError."""
    if isinstance(entry, str):
        return parse_step(entry)
    if not isinstance(entry, Mapping):
        raise PlanError(f"{entry!r:.60} is no step", accepted=ACCEPTED)
    done = entry.get("api_action")
    if isinstance(done, Mapping) and isinstance(done.get("action"), str):  # ALFRED, what was done
        ids = (done.get(name) for name in ("objectId", "receptacleObjectId"))
        return Step(done["action"], tuple(one for one in ids if isinstance(one, str)))
    inner = entry.get("discrete_action", entry)  # ALFRED, what was planned
    action = inner.get("action") if isinstance(inner, Mapping) else None
    result = entry.get("observation")
    came = result if isinstance(result, Mapping) else entry
    failed = came.get("success") is False or bool(entry.get("error"))
    if isinstance(action, Mapping):  # LangChain
        tool, action, inner = action.get("tool"), action.get("input", action.get("tool")), {}
        if isinstance(tool, str) and tool.startswith("_"):  # what the model wrote is no action
            return Step(tool, failed=True)
    if not isinstance(action, str):
        raise PlanError(f"{entry!r:.60} names no action", accepted=ACCEPTED)
    given = inner.get("args", inner.get("arguments"))
    step = Step(action) if given else _logged(action)
    return step._replace(arguments=step.arguments or _arguments(given), failed=failed)


def _logged(text: str) -> Step:
    """Return what a log says was done, in whatever words an agent put it."""
    try:
        return parse_step(text)
    except PlanError:
        words = re.findall(r"[^\s,;()'\"]+", text[:LONGEST])
        return of_words(words[0], words[1:]) if words else Step("_unreadable")


def _arguments(given: Any) -> tuple[str, ...]:
    """Return the arguments of a step, those within lists and objects one by one."""
    if isinstance(given, str):
        return tuple(_in_list(given))
    return tuple(_named_in(given))


def _in_list(text: str) -> Iterator[str]:
    """Yield the names in a list with commas."""
    for part in text.split(","):
        name = _THE.sub("", part.strip().strip("'\""))
        if name:
            yield name


def _named_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _named_in(inner)
    elif isinstance(value, (str, int, float)):
        yield _THE.sub("", str(value))
