"""The errors that Forewarn raises: one small tree, each message complete in itself.

A message names the file, the key path within it, the value found there and what would be
accepted, so that a user can mend the input without reading the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path


class ForewarnError(Exception):
    """Base class of every error that a wrong input can cause."""


class InputError(ForewarnError):
    """Something in an input file is wrong.

    Parameters
    ----------
    problem : str
        What is wrong, including the offending value.
    accepted : str, optional
        What would be accepted instead.
    file : Path or str, optional
        The file the input came from.
    key : str, optional
        The key path within the file (``properties[2].within``) or another position.
    """

    def __init__(
        self,
        problem: str,
        *,
        accepted: str = "",
        file: Path | str | None = None,
        key: str = "",
    ) -> None:
        self.problem = problem
        self.accepted = accepted
        self.file = None if file is None else str(file)
        self.key = key
        super().__init__(self._text())

    def _text(self) -> str:
        where = ": ".join(part for part in (self.file, self.key) if part)
        text = f"{where}: {self.problem}" if where else self.problem
        return f"{text} (accepted: {self.accepted})" if self.accepted else text

    def located(self, *, file: Path | str | None = None, key: str = "") -> InputError:
        """Return the same error with file and key path filled in where they were unknown."""
        return type(self)(
            self.problem,
            accepted=self.accepted,
            file=self.file if self.file is not None else file,
            key=self.key or key,
        )


@contextmanager
def located(
    kind: type[InputError] = InputError, *, file: Path | str | None = None, key: str = ""
) -> Iterator[None]:
    """Fill in file and key path where errors of a kind, raised in a block, do not know them."""
    try:
        yield
    except kind as error:
        raise error.located(file=file, key=key) from error


class ConfigError(InputError):
    """A monitor file is wrong."""


class ConfigErrors(ConfigError):
    """Several things in one monitor file are wrong; all are listed."""

    def __init__(self, errors: list[InputError]) -> None:
        self.errors = errors
        ForewarnError.__init__(self, "\n".join(str(error) for error in errors))
        self.file = errors[0].file
        self.key = errors[0].key
        self.problem = str(self)
        self.accepted = ""


class ExpressionError(InputError):
    """An expression cannot be parsed or uses something outside the language."""


class FieldError(InputError):
    """An expression reads a field that the message type does not have."""


class FormulaError(InputError):
    """A temporal formula cannot be parsed, or cannot be monitored."""


class DecodeError(InputError):
    """A serialized message does not have the layout of its type."""


class RecordingError(InputError):
    """A recording cannot be read."""


class ModelError(InputError):
    """A model file is damaged, or does not belong to the monitor file."""


class CheckingError(InputError):
    """A chain or a query cannot be checked."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` if something known is spelt much alike."""
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Return ``1 message`` or ``2 messages``; `nouns` where an s does not make the plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {nouns or noun + 's'}"


class MissingWingError(InputError):
    """What is asked for belongs to a wing that is not installed (`forewarn.registry`)."""


class NotBuiltError(ForewarnError, ImportError):
    """A compiled part is not there, or was built from other sources than these.

    Parameters
    ----------
    what : str
        The part.
    problem : str
        What is wrong with it.
    """

    def __init__(self, what: str, problem: str = "is not built") -> None:
        super().__init__(
            f"forewarn's {what} {problem}: install forewarn again (`make setup`, pip or colcon) "
            "where there are a C compiler and the headers of Python"
        )
