"""Files of text with objects of JSON in them: requirements, answers, rules, tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forewarn.recordings.traces import open_text
from forewarn.wings.plans.world import PlanError


def read_text(path: Path, most: int, accepted: str) -> str:
    """Return the text of a file, unpacked by its ending; raises PlanError."""
    try:
        with open_text(path) as file:
            text = file.read(most + 1)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise PlanError(f"cannot be read ({error})", file=path, accepted=accepted) from None
    if len(text) > most:
        raise PlanError("is too large", file=path, accepted=f"up to {most} characters")
    return text


def parsed(text: str, accepted: str) -> Any:
    """Return the value of a JSON text; raises PlanError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"is no JSON ({error})", accepted=accepted) from None


def json_lines(text: str, path: Path, accepted: str) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each line that is not empty; raises PlanError."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"line {number}"
            try:
                yield place, parsed(line, accepted)
            except PlanError as error:
                raise error.located(file=path, key=place) from None
