"""Files of plans: JSON with plans anywhere in it, plans in text, behaviour trees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from forewarn.errors import located
from forewarn.wings.plans import behaviour_trees
from forewarn.wings.plans.states import read_state
from forewarn.wings.plans.steps import parse_step, step_of
from forewarn.wings.plans.texts import json_lines, parsed, read_text
from forewarn.wings.plans.world import MOST_STEPS, Plan, PlanError, Scalar, Step

MOST_CHARACTERS = 512_000_000
DEEPEST = 12
#: Where a list of steps stands, the first that is there.
LISTS = (
    "plan",
    "program",
    "actions",
    "steps",
    "intermediate_steps",
    "traj",
    "low_actions",
    "high_pddl",
    "step",
)
#: Names under which an empty list is a plan without steps; other names may mean anything.
EMPTY = ("plan", "program", "intermediate_steps", "traj")
_OWN = {"objects", "facts", "initial", "goal", *LISTS}
ACCEPTED = (
    'JSON such as {"plan": ["open(fridge)", ...]}, lines of text such as (open fridge), '
    "or the XML of a behaviour tree"
)


def read_plans(path: Path) -> Iterator[Plan]:
    """Yield the plans of a file, or of the files in a folder, in order of their names.

    The contents tell the format: JSON or JSON lines in which plans are objects with a list of
    steps, wherever they stand; a behaviour tree in XML; or text with a step on each line, which is
    one plan. Raises PlanError with file and key path.
    """
    if path.is_dir():
        files = sorted(child for child in path.iterdir() if child.is_file())
        for child in files:
            for plan in read_plans(child):
                yield replace(plan, name=f"{child.name}: {plan.name}")
        return
    none = True
    with located(PlanError, file=path):
        for plan in _plans(read_text(path, MOST_CHARACTERS, ACCEPTED), path.name):
            none = False
            yield plan
        if none:
            raise PlanError("holds no plan", accepted=ACCEPTED)


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines, or of one JSON list; raises PlanError."""
    accepted = 'JSON lines such as {"id": "task_1", "task": "Warm the milk."}'
    text = read_text(path, MOST_CHARACTERS, accepted)
    if text.lstrip().startswith("["):
        with located(PlanError, file=path):
            records = parsed(text, accepted)
    else:
        records = [record for _, record in json_lines(text, path, accepted)]
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            raise PlanError(
                f"{record!r:.60} is no task", file=path, key=f"[{number}]", accepted=accepted
            )
        yield record
    if not records:
        raise PlanError("holds no task", file=path, accepted=accepted)


def plans_in(text: str, name: str) -> list[Plan]:
    """Return the plans in a text, as `read_plans` does for a file; raises PlanError."""
    found = list(_plans(text, name))
    if not found:
        raise PlanError("holds no plan", accepted=ACCEPTED)
    return found


def check_unambiguous(text: str) -> None:
    """Refuse a JSON text that another reader may understand as another plan; raises PlanError.

    A key stands twice in an object, or an object has two lists that may be its steps.
    """
    if text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
        return
    with suppress(ValueError, RecursionError):  # its reader reports what is no JSON
        json.loads(text, object_pairs_hook=_one_meaning)
        return
    for line in text.split("\n"):
        with suppress(ValueError, RecursionError):
            json.loads(line, object_pairs_hook=_one_meaning)


def _one_meaning(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise PlanError(f"has the key {twice!r} twice", accepted="each key once")
    lists = [name for name in LISTS if isinstance(found.get(name), list) and found[name]]
    if len(lists) > 1:
        raise PlanError(f"has the lists {' and '.join(lists)}", accepted="one list of steps")
    return found


def _plans(text: str, name: str) -> Iterator[Plan]:
    text = text.lstrip("\ufeff \t\r\n")
    first = text.partition("\n")[0]
    if text[:1] in ("{", "["):
        if text[0] == "[" and not _is_json(first) and _is_step(first):
            yield _text_plan(name, text)
        elif _is_json(first) and text[len(first) :].strip():
            lines = (line for line in StringIO(text) if line.strip())
            for number, line in enumerate(lines):
                yield from _found(parsed(line, ACCEPTED), f"[{number}]")
        else:
            yield from _found(parsed(text, ACCEPTED), "")
    elif text.startswith("<") and not _is_step(first):
        yield from behaviour_trees.read(text, name)
    elif text:
        yield _text_plan(name, text)


def _is_json(line: str) -> bool:
    with suppress(PlanError):
        parsed(line, ACCEPTED)
        return True
    return False


def _is_step(line: str) -> bool:
    try:
        parse_step(line.strip())
    except PlanError:
        return False
    return True


def _found(
    document: Any, key: str, inherited: Mapping[str, Scalar] | None = None, deep: int = 0
) -> Iterator[Plan]:
    """Yield the plans in a document; fields of what they stand in are theirs, too."""
    if deep > DEEPEST:
        return
    if isinstance(document, list):
        for at, entry in enumerate(document):
            yield from _found(entry, f"{key}[{at}]", inherited, deep + 1)
    if not isinstance(document, dict):
        return
    fields = {**(inherited or {}), **_scalars(document)}
    listed = next((name for name in LISTS if _is_plan(name, document.get(name))), None)
    if listed is not None:
        yield _plan(document, listed, key, fields)
        return
    for name, entry in document.items():
        inner = {
            **fields,
            **(_scalars(document["input"]) if isinstance(document.get("input"), dict) else {}),
        }
        yield from _found(entry, f"{key}.{name}" if key else name, inner, deep + 1)


def _is_plan(name: str, value: Any) -> bool:
    """Tell whether a list holds steps: the first one decides, or the name if there is none."""
    if not isinstance(value, list):
        return False
    if not value:
        return name in EMPTY
    if isinstance(value[0], str):
        return _is_step(value[0])
    return isinstance(value[0], dict) and ("action" in value[0] or "discrete_action" in value[0])


def _scalars(record: Mapping[str, Any]) -> dict[str, Scalar]:
    return {
        name: value
        for name, value in record.items()
        if isinstance(value, (bool, int, float, str)) and name not in _OWN
    }


def _plan(record: Mapping[str, Any], listed: str, key: str, fields: dict[str, Scalar]) -> Plan:
    if isinstance(record.get("input"), dict):  # runs of agents keep their task there
        fields = {**_scalars(record["input"]), **fields}
    name = str(record.get("id", record.get("name", key or "plan")))
    entries = record[listed]
    if len(entries) > MOST_STEPS:
        raise PlanError(
            f"has {len(entries)} steps", key=f"{key}.{listed}", accepted=f"at most {MOST_STEPS}"
        )
    before = record.get("initial")
    inner = before if isinstance(before, dict) else {"facts": before}
    objects = inner.get("objects", record.get("objects"))
    if isinstance(objects, list) and all(isinstance(one, str) for one in objects):
        objects = None if listed != "plan" else objects  # tasks list types, not what there is
    with located(PlanError, key=key):
        initial, types = read_state(objects, inner.get("facts", record.get("facts")))
    steps: list[Step] = []
    for at, entry in enumerate(entries):
        try:
            step = step_of(entry)
            if isinstance(entry, dict) and ("objects" in entry or "facts" in entry):
                state, more = read_state(entry.get("objects"), entry.get("facts"))
                step, types = step._replace(state=state), {**more, **types}
        except PlanError as error:
            where = f"{key}.{listed}[{at}]".lstrip(".")
            raise PlanError(error.problem, accepted=error.accepted, key=where) from None
        steps.append(step)
    return Plan(name, tuple(steps), initial, types, fields)


def _text_plan(name: str, text: str) -> Plan:
    """Read a plan in text: PDDL, as PlanSys2 and planners print it, or one step on each line."""
    steps: list[Step] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition(";")[0].strip()
        if not line or line.startswith("#"):
            continue
        if len(steps) >= MOST_STEPS:
            raise PlanError("has too many steps", accepted=f"at most {MOST_STEPS}")
        try:
            steps.append(parse_step(line))
        except PlanError as error:
            raise PlanError(error.problem, key=f"line {number}", accepted=error.accepted) from None
    return Plan(name, tuple(steps))
