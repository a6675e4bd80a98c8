"""The fields of a requirement in FRET's structured English."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forewarn.logic.syntax import Bound, Formula

#: Where a requirement applies; names are those of FRET's templates.
SCOPES = ("null", "in", "notin", "before", "after", "onlyIn", "onlyBefore", "onlyAfter")
CONDITIONS = ("null", "regular", "holding")
TIMINGS = (
    "immediately", "next", "always", "never", "eventually", "finally", "for", "within", "after",
    "until", "before",
)  # fmt: skip


@dataclass(frozen=True)
class FretFunction:
    """A use of one of FRET's functions of several moments.

    Attributes
    ----------
    text : str
        As written, without spaces that have no meaning; the atom that stands for it.
    word : str
        ``preBool``, ``persisted``, ``occurred``, ``prevOcc`` or ``FTP``.
    first, last : int
        Moments back from which, and up to which, ``persisted`` and ``occurred`` look.
    operands : tuple of Formula
        Its conditions; they may name functions that stand before this one.
    """

    text: str
    word: str
    first: int = 0
    last: int = 0
    operands: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class FretRequirement:
    """A requirement, field by field.

    Attributes
    ----------
    scope : str
        One of `SCOPES`; ``null`` is the whole run.
    mode : Formula or None
        What says when the scope is; None for ``null``.
    condition : str
        ``null``: what is required begins with the scope; ``regular`` (when, upon, if): each time
        the trigger becomes true in the scope; ``holding`` (whenever): each moment at which it is.
    trigger : Formula or None
        The condition's formula.
    component : str
        Who is to do it; it has no part in the meaning.
    timing : str
        One of `TIMINGS`.
    duration : Bound or None
        Of ``for``, ``within`` and ``after``.
    stop : Formula or None
        Of ``until`` and ``before``.
    response : Formula
        What has to hold.
    functions : tuple of FretFunction
        Functions of several moments that the formulas name, inner ones first.
    """

    scope: str
    mode: Formula | None
    condition: str
    trigger: Formula | None
    component: str
    timing: str
    duration: Bound | None
    stop: Formula | None
    response: Formula
    functions: tuple[FretFunction, ...] = ()
