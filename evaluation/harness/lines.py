"""Lines of others' files: as text, and as JSON objects with the keys that a study needs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forewarn.errors import InputError
from forewarn.recordings.traces import open_text


def text_lines(path: Path) -> list[str]:
    """Return the lines of a file, unpacked; a sentence may hold any other line break."""
    try:
        with open_text(path) as file:
            return file.read().removeprefix("\ufeff").split("\n")
    except (EOFError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({error})", accepted="text", file=path) from error


def json_lines(path: Path, *needed: str, accepted: str = "") -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines."""
    accepted = accepted or f"an object with {', '.join(needed)}"
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"is no JSON ({error})", accepted=accepted, file=path, key=f"line {number}"
            ) from error
        problem = "is no object" if not isinstance(row, dict) else ""
        if lacking := [key for key in needed if problem or key not in row]:
            problem = f"lacks {', '.join(lacking)}"
        if problem:
            raise InputError(problem, accepted=accepted, file=path, key=f"line {number}")
        yield row
