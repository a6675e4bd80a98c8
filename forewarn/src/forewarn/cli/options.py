"""Options of commands, each declared once: as a field of the frozen dataclass that a command takes.

::

    @dataclass(frozen=True, kw_only=True)
    class Options:
        model: Path = argument("the model file", "MODEL")
        top: int = option("how many states to list", "N", "-n", of=whole_number, default=10)
        force: bool = option("overwrite the file if it exists")

The type of a field says what is read: a bool is a flag, a Literal lists the choices, a list may be
repeated (behind a flag) or takes one and more (as an argument). Help shows the options of a class
before those of its bases, each with its default. Of a class, all types are there at run time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, field, fields
from inspect import get_annotations
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

_KEY = "forewarn"


class Declared(NamedTuple):
    """What a field says of its option beside type and default."""

    help: str
    metavar: str | tuple[str, ...] | None
    flags: tuple[str, ...] | None
    of: Callable[[str], Any] | None
    nargs: str | int | None
    choices: Sequence[str]
    required: bool
    either: str


def option(
    text: str,
    metavar: str | tuple[str, ...] | None = None,
    *flags: str,
    of: Callable[[str], Any] | None = None,
    default: Any = None,
    nargs: str | int | None = None,
    choices: Sequence[str] = (),
    required: bool = False,
    either: str = "",
) -> Any:
    """Declare an option.

    Parameters
    ----------
    text : str
        Help; the default is added to it.
    metavar : str, optional
        What stands for its value.
    *flags : str
        Beside ``--name-of-the-field``, or in its place if one of them is long.
    of : callable, optional
        What makes a value of a text; needed for numbers.
    default : optional
        Where it is not given; False for a flag, an empty list for a list.
    nargs : optional
        How many values follow one flag, as argparse has it.
    choices : sequence of str, optional
        What may be given, if the type does not say.
    required : bool
        Whether it has to be given; with `either`, one of these.
    either : str
        Options with the same word here exclude one another.
    """
    how = Declared(text, metavar, flags, of, nargs, choices, required, either)
    return field(default=default, metadata={_KEY: how})


def argument(
    text: str,
    metavar: str | None = None,
    *,
    of: Callable[[str], Any] | None = None,
    choices: Sequence[str] = (),
) -> Any:
    """Declare a positional argument, which may be left out if its type has None."""
    how = Declared(text, metavar, None, of, None, choices, False, "")
    return field(default=None, metadata={_KEY: how})


def add_options(parser: argparse.ArgumentParser, options: type[Any]) -> None:
    """Add all that the fields of `options` declare."""
    groups: dict[str, Any] = {}
    for one, hint in _declared(options):
        how: Declared = one.metadata[_KEY]
        target: Any = parser
        if how.either:
            if how.either not in groups:
                groups[how.either] = parser.add_mutually_exclusive_group(required=how.required)
            target = groups[how.either]
        flags = (one.name,) if how.flags is None else _flags(one.name, how.flags)
        target.add_argument(*flags, **_settings(one.name, one.default, hint, how))


def _declared(options: type[Any]) -> Iterator[tuple[Field[Any], Any]]:
    """Yield fields and their types: those of a class before those of its bases."""
    known, hints = {one.name: one for one in fields(options)}, get_type_hints(options)
    for owner in options.__mro__:
        for name in get_annotations(owner):
            one = known.pop(name, None)
            if one is not None and _KEY in one.metadata:
                yield one, hints[name]


class Kind(NamedTuple):
    """What the type of a field says: what one value is, which it may be, and how many there are."""

    base: Any
    choices: tuple[str, ...]
    several: bool
    optional: bool


def _kind(hint: Any) -> Kind:
    optional = NoneType in get_args(hint)
    if optional:
        hint = next(part for part in get_args(hint) if part is not NoneType)
    several = get_origin(hint) is list
    base = get_args(hint)[0] if several else hint
    choices = get_args(base) if get_origin(base) is Literal else ()
    return Kind(base, choices, several, optional)


def _settings(name: str, default: Any, hint: Any, how: Declared) -> dict[str, Any]:
    """Return what argparse wants to know of a field."""
    kind = _kind(hint)
    shown = "" if default in (None, False, "", ()) else f" (default: {_shown(default)})"
    found: dict[str, Any] = {"help": f"{how.help}{shown}"}
    if kind.base is bool:
        return {**found, "dest": name, "action": "store_true"}
    found |= {"type": how.of or (Path if kind.base is Path else None), "metavar": how.metavar}
    if choices := how.choices or kind.choices:
        found["choices"] = choices
    if how.flags is None:
        number = "+" if kind.several else "?" if kind.optional else None
        return found | ({"nargs": number} if number else {})
    found |= {"dest": name, "required": how.required and not how.either, "nargs": how.nargs}
    found["default"] = [] if kind.several and not kind.optional else default
    return found | ({"action": "append"} if kind.several and how.nargs is None else {})


def _shown(default: Any) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)


def _flags(name: str, flags: tuple[str, ...]) -> tuple[str, ...]:
    long = any(flag.startswith("--") for flag in flags)
    return flags if long else (*flags, f"--{name.replace('_', '-')}")
