"""Short runs: weights in place of the outcomes that their ends hide.

Where most runs are hardly longer than the horizon, few ticks are followed for the whole of it, and
those that end with a violation are none of them. Inverse probability of censoring weighting (Graf
et al., 1999) also uses ticks whose violation was seen before the observation ended: every outcome
that is known counts for those like it that were lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.history import Track
from forewarn.assessment.reliability import Predictions, predicted, predictions, waits

Floats = NDArray[np.float64]
Ticks = NDArray[np.int64]


def judge(tracks: Sequence[Track], *, weigh: bool) -> list[Predictions]:
    """Return the predictions of each run, with weights or without those that are censored."""
    return weighted(tracks) if weigh else [predictions(track) for track in tracks]


def weighted(tracks: Sequence[Track]) -> list[Predictions]:
    """Pair risks with what followed, as `predictions` does, weighted for what was lost.

    A violation counts from when it was seen, whatever comes after it. The weight of a tick is one
    over the probability that a tick is still observed so long after it, by the Kaplan-Meier
    estimate over all ticks of all runs. It takes for granted that the end of an observation does
    not depend on the danger at that time: a run that a driver ends because it becomes dangerous
    is lost, and no weight brings it back.

    Returns
    -------
    list of Predictions
        One for each run. If no tick was observed for the whole horizon, all are censored: what
        happens in its last part cannot be told.
    """
    rows = [_rows(track) for track in tracks]
    if not rows:
        return []
    times, kept = observed_for(
        np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])
    )
    horizon = max((t.horizon for t in tracks if t.horizon is not None), default=None)
    told = horizon is None or bool(kept[np.searchsorted(times, horizon, side="right")] > 0)
    found = []
    for track, (time, known, followed) in zip(tracks, rows, strict=True):
        chosen = known & told
        share = kept[np.searchsorted(times, time[chosen], side="right")]
        risk = track.probability[predicted(track)]
        censored = int((~chosen).sum())
        found.append(Predictions(risk[chosen], followed[chosen], censored, 1 / share))
    return found


def _rows(track: Track) -> tuple[Ticks, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the wait for outcome or loss, if the outcome is known, and if it is a violation."""
    found = waits(track)
    # What is certain of a tick counts, be it that the automaton is in doubt from that tick on.
    followed = (found.violated <= found.over) & (found.violated <= found.lost)
    known = followed | (found.over < found.lost)
    until = np.where(followed, found.violated, np.minimum(found.over, found.lost))
    here = predicted(track)
    return (until - track.ticks)[here], known[here], followed[here]


def observed_for(wait: Ticks, resolved: NDArray[np.bool_]) -> tuple[Ticks, Floats]:
    """Return the share of ticks that are still observed after each wait (Kaplan and Meier, 1958).

    Parameters
    ----------
    wait : ndarray of int64, shape (n,)
        Ticks until the outcome was known, or until the first one that is lost.
    resolved : ndarray of bool, shape (n,)
        Whether the outcome was known.

    Returns
    -------
    times : ndarray of int64, shape (m,)
        Waits at which something was lost, rising.
    share : ndarray of float64, shape (m + 1,)
        Share before the first of them, and from each of them on.
    """
    times, lost = np.unique(wait[~resolved], return_counts=True)
    at_risk = len(wait) - np.searchsorted(np.sort(wait), times)
    return times, np.concatenate(([1.0], np.cumprod(1 - lost / np.maximum(at_risk, 1))))
