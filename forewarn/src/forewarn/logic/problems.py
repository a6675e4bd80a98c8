"""All problems of a monitor file in one pass, although some can only be seen once others are gone.

A file is checked in stages: its keys and values, then its names and expressions, then its formulas.
So whatever is wrong is taken out and the rest is checked again, until nothing more is found. What
then speaks of a part that was taken out is no finding.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from forewarn.config.file import parse_spec
from forewarn.config.includes import with_fragments
from forewarn.config.yaml_text import Document, load_document
from forewarn.errors import ConfigError, ConfigErrors, InputError
from forewarn.logic.specification import CompiledSpec, compile_spec

Path_ = tuple[object, ...]
Check = Callable[[CompiledSpec], object]

MOST_ROUNDS = 100
#: The parts of which a file has several by name.
NAMED = frozenset(
    {"signals", "shapes", "predicates", "bins", "learned_score", "terminal", "properties", "guards"}
)


@contextmanager
def all_problems(path: Path | str, *checks: Check) -> Iterator[None]:
    """Turn the first ConfigError that is raised within into one that has all problems of a file.

    Parameters
    ----------
    path : Path or str
        The monitor file that is read within.
    checks : callable
        Called with what was compiled, to raise ConfigError for what else may be wrong.

    Raises
    ------
    ConfigError
        With everything that is wrong.
    """
    try:
        yield
    except ConfigError as error:
        try:
            document = with_fragments(load_document(Path(path)))
        except ConfigError:
            raise error from None
        raise ConfigErrors(list(_all_problems(document, error, checks))) from error


def _all_problems(
    document: Document, error: ConfigError, checks: Sequence[Check]
) -> Iterator[InputError]:
    removed: set[Path_] = set()
    for _ in range(MOST_ROUNDS):
        found = error.errors if isinstance(error, ConfigErrors) else [error]
        paths = [_path(problem.key) for problem in found]
        for problem, path in zip(found, paths, strict=True):
            if not _follows(problem, path, removed):
                yield problem
        before = len(removed)
        for path in paths:
            document = _without(document, path, removed)
        if len(removed) == before:
            return
        try:
            compiled = compile_spec(parse_spec(document))
            for check in checks:
                check(compiled)
        except ConfigError as next_error:
            error = next_error
        else:
            return


def _path(key: str) -> Path_:
    """Return the parts of a key path as errors tell it: ``line 7: properties.stop.bounds[0]``."""
    text = re.sub(r"\Aline \d+: ", "", key).partition(":")[0]
    parts: list[object] = []
    for part in text.split("."):
        name, *indices = part.split("[")
        parts += [name, *(int(index.rstrip("]")) for index in indices if index[:-1].isdigit())]
    return tuple(parts)


def _follows(problem: InputError, path: Path_, removed: set[Path_]) -> bool:
    """Tell whether a problem is there only because something was taken out."""
    if any(path[: len(gone)] == gone[: len(path)] for gone in removed):
        return True
    lost = {str(gone[1]) for gone in removed if len(gone) == 2}
    return bool(lost & set(re.findall(r"\w+", problem.problem)))


def _without(document: Document, path: Path_, removed: set[Path_]) -> Document:
    """Take out as little as may be: a key of a named part, then the part, then the section."""
    for length in (3, 2, 1):
        gone = path[:length]
        if len(gone) < length or (length == 2 and path[0] not in NAMED) or gone in removed:
            continue
        data = copy.deepcopy(document.data)
        holder: Any = data
        for part in gone[:-1]:
            holder = holder.get(part) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and gone[-1] in holder:
            del holder[gone[-1]]
            removed.add(gone)
            return replace(document, data=data)
    return document
