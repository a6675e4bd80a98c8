"""What the page says of learned scores: what they foresee, and which signals decide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forewarn.reports.page import escape, section, table

if TYPE_CHECKING:
    from forewarn.cli.readers import Readers
    from forewarn.logic.specification import CompiledSpec
    from forewarn.monitoring.step import Monitor
    from forewarn.reports.page import Part

COLUMNS = ("score", "foresees", "decided by", "cut at", ">trees", ">recordings")
LEAD = (
    "Learned signals: the probability that a violation follows within the horizon, by trees over "
    "other signals and their recent past. A share is how much a signal moves the log-odds, on "
    "average over the recordings that the score was fitted to."
)


def report_parts(
    monitor: Monitor, compiled: CompiledSpec, recordings: Sequence[Path], readers: Readers
) -> list[Part]:
    """Return the section about the learned scores of a model; none where nothing is fitted."""
    del monitor, recordings, readers
    rows = []
    for fit in compiled.abstraction.fitted:
        facts = fit.facts
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in facts["shares"].items())
        cuts = ", ".join(f"{cut:g}" for cut in fit.cuts)
        texts = (fit.name, fit.foresees, shares, cuts)
        rows.append([*map(escape, texts), str(facts["trees"]), str(len(fit.recordings))])
    body = table(COLUMNS, rows, long="decided by")
    part = section("learned_score", "Learned scores", escape(LEAD), body)
    return [("learned_score", "Learned scores", part)] if rows else []
