"""Sets of letters as short Boolean text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from forewarn.logic.truth import Table

#: A product term: each atom's bit, and whether it must hold.
Term = tuple[tuple[int, bool], ...]


def guard_text(letters: Table, atoms: tuple[str, ...]) -> str:
    """Return text that is true exactly at the given letters.

    Parameters
    ----------
    letters : ndarray of bool, shape (2 ** len(atoms),)
        The set.
    atoms : tuple of str
        Bit i of a letter is ``atoms[i]``.

    Returns
    -------
    str
        An irredundant disjunction of products, of the set or of its complement, whichever is
        shorter; ``true`` or ``false`` for the trivial ones.
    """
    direct = _text(_irredundant(letters, letters)[0], atoms)
    inverse = f"not ({_text(_irredundant(~letters, ~letters)[0], atoms)})"
    return direct if len(direct) <= len(inverse) else inverse


def _text(terms: list[Term], atoms: tuple[str, ...]) -> str:
    texts = []
    for term in terms:
        literals = []
        for bit, holds in sorted(term):
            name = atoms[bit]
            negated = f"not {name}" if name.isidentifier() else f"not ({name})"
            literals.append(name if holds else negated)
        texts.append(" and ".join(literals) or "true")
    return " or ".join(texts) or "false"


def _irredundant(lower: Table, upper: Table) -> tuple[list[Term], Table]:
    """Return terms that cover `lower` within `upper`, and what they cover.

    Minato, "Fast generation of irredundant sum-of-products forms from binary decision diagrams",
    SASIMI 1992, on truth tables.
    """
    if not lower.any():
        return [], np.zeros_like(lower)
    if upper.all():
        return [()], np.ones_like(lower)
    half = len(lower) // 2
    bit = half.bit_length() - 1
    low_0, low_1, up_0, up_1 = lower[:half], lower[half:], upper[:half], upper[half:]
    terms_0, covered_0 = _irredundant(low_0 & ~up_1, up_0)
    terms_1, covered_1 = _irredundant(low_1 & ~up_0, up_1)
    rest = (low_0 & ~covered_0) | (low_1 & ~covered_1)
    terms, covered = _irredundant(rest, up_0 & up_1)
    terms += [(*term, (bit, False)) for term in terms_0]
    terms += [(*term, (bit, True)) for term in terms_1]
    return terms, np.concatenate([covered_0 | covered, covered_1 | covered])
