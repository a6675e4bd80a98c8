"""What the page says of learned scores: what they foresee, and which signals decide."""

from __future__ import annotations

from forewarn.models.counts import CountModel
from forewarn.reports.page import escape, section, table

COLUMNS = ("score", "foresees", "decided by", "cut at", ">trees", ">recordings")
LEAD = (
    "Learned signals: the probability that a violation follows within the horizon, by trees over "
    "other signals and their recent past. A share is how much a signal moves the log-odds, on "
    "average over the recordings that the score was fitted to."
)


def danger_part(model: CountModel) -> str:
    """Return the section about the learned scores of a model."""
    rows = []
    for fit in model.learned_score:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in fit.shares.items())
        cuts = ", ".join(f"{cut:g}" for cut in fit.cuts)
        texts = (fit.name, fit.foresees, shares, cuts)
        numbers = (str(len(fit.ensemble.roots)), str(len(fit.recordings)))
        rows.append([*map(escape, texts), *numbers])
    return section(
        "learned_score", "Learned scores", escape(LEAD), table(COLUMNS, rows, long="decided by")
    )
