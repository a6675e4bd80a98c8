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

    `text` is the atom that stands for it. ``persisted`` and ``occurred`` look from `first` to
    `last` moments back. The operands may name functions that stand before this one.
    """

    text: str
    word: str
    first: int = 0
    last: int = 0
    operands: tuple[Formula, ...] = ()


@dataclass(frozen=True)
class FretRequirement:
    """A requirement, field by field.

    A `mode` says when the scope is. The condition is ``null``: what is required begins with the
    scope; ``regular`` (when, upon, if): each time the trigger becomes true in the scope; or
    ``holding`` (whenever): each moment at which it is true. `component` has no part in the meaning.
    Of `functions` the inner ones come first.
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
