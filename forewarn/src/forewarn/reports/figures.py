"""Numbers as people write them: without exponents where they are not needed."""

from __future__ import annotations


def rounded(value: float, digits: int = 3) -> str:
    """Return a number with so many digits, and whole where it has more: ``1000``, not ``1e+03``."""
    return f"{value:.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def percent(share: float, digits: int = 2) -> str:
    """Return a share of 0 to 1; what is not all and not nothing never reads as if it were."""
    if 0 < share < 1e-4:
        return "less than 0.01 %"
    if 0.995 <= share < 1:
        return "more than 99 %"
    return f"{rounded(100 * share, digits)} %"
