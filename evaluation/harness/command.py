"""Commands of the studies: the parameters of a function are its options."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

EXPECTED: tuple[type[Exception], ...] = (OSError,)
with contextlib.suppress(ModuleNotFoundError):  # a simulator's environment has no forewarn
    from forewarn.errors import ForewarnError

    EXPECTED += (ForewarnError,)

KINDS: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str, "Path": Path}


def command(function: Callable[..., Any], arguments: Sequence[str] | None = None) -> Any:
    """Call a function with the options of the command line; return what it returns.

    A parameter without a default is required; a truth is a flag; annotations say the type, and
    ``Seeds`` takes ``first:end`` or ``one,two,three``. The help is the module's docstring. Data
    that are missing or cannot be read end it with one line.
    """
    parser = argparse.ArgumentParser(
        description=sys.modules[function.__module__].__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, parameter in inspect.signature(function).parameters.items():
        flag, required = f"--{name.replace('_', '-')}", parameter.default is parameter.empty
        default = None if required else parameter.default
        kind = str(parameter.annotation).partition(" |")[0]
        if kind == "bool":
            parser.add_argument(flag, action="store_true")
            continue
        many = kind.startswith("Sequence[")
        parser.add_argument(
            flag,
            type=seeds_of if kind == "Seeds" else KINDS[kind.removeprefix("Sequence[").rstrip("]")],
            nargs="+" if many else None,
            default=default,
            required=required,
            help=None if required else f"(default: {default})",
        )
    options = vars(parser.parse_args(arguments))
    try:
        return function(**options)
    except EXPECTED as error:
        sys.exit(f"{parser.prog}: error: {error}")


Seeds = Sequence[int]


def seeds_of(text: str) -> Seeds:
    """Return the seeds that ``first:end`` or ``one,two,three`` stand for."""
    if ":" in text:
        first, end = (int(part) for part in text.split(":"))
        return range(first, end)
    return [int(part) for part in text.split(",")]
