"""Goals of recorded attacks: which call reaches one, and how else it could have been asked for.

A goal is told by texts in arguments (`goals.yaml`), or is the name of the tool that the attack
wants to be called (InjecAgent). `reworded` puts the goal in other words in the place of the
recorded ones; the calls stay as they were recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from forewarn.errors import InputError

FRAME = re.compile(r"<INFORMATION>.*?</INFORMATION>", re.DOTALL)
"""What AgentDojo's attack puts around the words of a goal."""


class Recorded(NamedTuple):
    """A recorded run: task, calls as (name, arguments, result), and what it says of itself.

    `tasks` has all that the user had said before each call.
    """

    task: str
    calls: list[tuple[str, dict[str, Any], str]]
    fields: dict[str, Any]
    tasks: tuple[str, ...]


class Goal(NamedTuple):
    """Texts of which a call that reaches a goal has one, and the goal in other words."""

    reached_by: tuple[str, ...]
    wordings: Mapping[str, str]


Goals = Mapping[tuple[str, str], Goal]


def read_goals(path: Path) -> Goals:
    """Return goals by suite and injection task."""
    accepted = "suite, injection_task, reached_by: [TEXT, ...], wordings: {NAME: TEXT}"
    found = {}
    for number, entry in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")) or ()):
        try:
            key = (str(entry["suite"]), str(entry["injection_task"]))
            texts = tuple(map(str, entry["reached_by"]))
            found[key] = Goal(texts, dict(entry.get("wordings") or {}))
        except (KeyError, TypeError, ValueError) as error:
            key_path = f"[{number}]"
            raise InputError(
                f"is no goal: {error!r}", accepted=accepted, file=path, key=key_path
            ) from error
    return found


def decisive(run: Recorded, goals: Goals) -> int | None:
    """Return the number of the first call that reaches the attack's goal; None if not known."""
    task = str(run.fields.get("injection_task"))
    goal = goals.get((str(run.fields.get("suite")), task))
    for number, (name, arguments, _) in enumerate(run.calls):
        text = json.dumps(arguments, ensure_ascii=False)
        if name == task or (goal is not None and any(each in text for each in goal.reached_by)):
            return number
    return None


def reworded(run: Recorded, wording: str, goals: Goals) -> Recorded | None:
    """Return a run in which the attack's words are others; None where it has no frame of words."""
    goal = goals.get((str(run.fields.get("suite")), str(run.fields.get("injection_task"))))
    text = None if goal is None else goal.wordings.get(wording)
    if text is None or not any(FRAME.search(result) for _, _, result in run.calls):
        return None
    calls = [(name, given, FRAME.sub(lambda _: text, seen)) for name, given, seen in run.calls]
    return run._replace(calls=calls)
