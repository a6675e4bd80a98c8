"""Which recordings are left out together where something is fitted without those that it judges."""

from __future__ import annotations

import hashlib

from forewarn.states.abstraction import Abstraction


def fold_of(digest: str, folds: int) -> int:
    """Return the fold of a recording, from 0 to `folds` - 1.

    It depends on nothing but the digest of the recording, so that it stays where others come.
    """
    return int(hashlib.sha256(digest.encode()).hexdigest(), 16) % folds


def unseeing(abstraction: Abstraction, digest: str) -> Abstraction:
    """Return the abstraction for a recording that is learned from.

    Its danger scores were fitted without the recording, where they have just been fitted.
    """
    folds = abstraction.folds
    return abstraction.without(fold_of(digest, folds)) if folds else abstraction
