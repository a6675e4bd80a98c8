"""What is wrong with a monitor file: where, which value, and what would be accepted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from forewarn.config.fields import Section, WingSection
from forewarn.config.yaml_text import Document
from forewarn.errors import ConfigError, suggestion

KeyPath = tuple[object, ...]


def config_error(
    problem: str, document: Document | None, path: KeyPath, accepted: str = ""
) -> ConfigError:
    """Return an error about the value at a key path: of the file or fragment that has it."""
    origin = document.origin(path) if document else None
    line = origin.locate(path) if origin else ""
    file = origin.file if origin else None
    return ConfigError(problem, file=file, key=line + key_path(path), accepted=accepted)


def validation_problems(
    error: ValidationError,
    section: type[Section],
    document: Document | None = None,
    prefix: KeyPath = (),
    accepted_keys: str = "",
) -> Iterator[ConfigError]:
    """Yield each finding of pydantic once, as an error of the monitor file.

    Parameters
    ----------
    error : ValidationError
        What pydantic found.
    section : type of Section
        What was validated.
    document : Document, optional
        The file, which knows lines.
    prefix : tuple
        Key path of the section in the file.
    accepted_keys : str
        What to say of an unknown key; where not given, the keys of its section.
    """
    seen: set[str] = set()
    for detail in error.errors():
        value, kind = detail["input"], detail["type"]
        # pydantic appends the tried branch of a union to the path; keys of the file only, of which
        # an unknown one may be called `float`.
        own = len(detail["loc"]) - 1 if kind == "extra_forbidden" else -1
        known = tuple(p for i, p in enumerate(detail["loc"]) if i == own or not _is_branch(p))
        if kind == "missing":
            problem, accepted = "is missing", ""
        elif kind == "extra_forbidden":
            accepted = accepted_keys or _keys_at(section, known[:-1])
            problem = f"unknown key{suggestion(str(known[-1]), accepted.split(', '))}"
        else:
            text, accepted = detail["msg"].partition(", unable to parse")[0], ""
            problem = f"{text[0].lower()}{text[1:]}"
            if kind == "value_error":  # it is our own, and may begin with a name
                problem = text.removeprefix("Value error, ")
            if not (kind == "value_error" and isinstance(value, dict)):  # it names its own values
                problem = f"{_shown(value)}: {problem}"
        if (problem_text := f"{key_path(known)}{problem}") not in seen:
            seen.add(problem_text)
            yield config_error(problem, document, prefix + known, accepted)


def key_path(parts: KeyPath) -> str:
    """Return ``properties.stop.thresholds[0]`` for the parts of a path."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _shown(value: object) -> str:
    """Return a value as YAML users know it, the beginning of a long one."""
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _is_branch(part: object) -> bool:
    return isinstance(part, str) and bool(
        re.match(
            r"(literal|constrained-\w+|function-\w+|tuple|nullable)\[|(float|str|bool|int)\Z", part
        )
    )


def _keys_at(section: type[Section], path: KeyPath) -> str:
    """Return the keys of the section to which a key path leads."""
    fields = (_section_at(section, path) or section).model_fields
    names = [field.alias or name for name, field in fields.items()]
    return ", ".join(name for name in names if name != "file")


def _section_at(kind: Any, path: Sequence[object]) -> type[Section] | None:
    """Return the section to which a path leads from a section, a container, or a union of them."""
    if isinstance(kind, type) and issubclass(kind, Section):
        if not path:
            return kind
        fields = {field.alias or name: field for name, field in kind.model_fields.items()}
        return _section_of(fields[path[0]], path[1:]) if path[0] in fields else None
    # A name leads from a mapping, and a number from a list, to what it holds.
    rest = path[1:] if get_origin(kind) in (dict, tuple) else path
    own = _of_wing(getattr(kind, "__metadata__", ()))
    found = (_section_at(part, rest) for part in ((own,) if own else get_args(kind)))
    return next((one for one in found if one is not None), None)


def _section_of(field: FieldInfo, path: Sequence[object]) -> type[Section] | None:
    return _section_at(_of_wing(field.metadata) or field.annotation, path)


def _of_wing(checks: Iterable[Any]) -> type[Section] | None:
    """Return the section of a wing that is read by one of some checks."""
    found = (getattr(one, "func", None) for one in checks)
    return next((one.section for one in found if isinstance(one, WingSection)), None)
