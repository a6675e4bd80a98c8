"""What the ends of runs hide: it is known if violations end them, and weighed where runs are short.

A violation that ends its recording counts as the end of an episode (`forewarn.models.run_ends`).

Where most runs are hardly longer than the horizon, few ticks are followed for the whole of it, and
those that end with a violation are none of them. Inverse probability of censoring weighting (Graf
et al., 1999) also uses ticks whose violation was seen before the observation ended: every outcome
that is known counts for those like it that were lost.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.episodes import ScoredRun
from forewarn.assessment.history import Track
from forewarn.assessment.reliability import Predictions, predicted, predictions, waits
from forewarn.config.file import MonitorSpec
from forewarn.logic.automaton import Automaton
from forewarn.models.run_ends import RunEnd, RunEnds, ends_in_words, judge_ends
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.signals.clock import Clock

Floats = NDArray[np.float64]
Ticks = NDArray[np.int64]
AnyRun = TypeVar("AnyRun", Track, ScoredRun)


def ends_of(runs: Sequence[AnyRun]) -> RunEnds:
    """Tell how the runs of a property end."""
    horizon = next((run.horizon for run in runs), None)
    return judge_ends([end for run in runs for end in run_ends(run)], horizon)


def settled(runs: Sequence[AnyRun]) -> list[AnyRun]:
    """Return the runs of a property; violations that end them are ends of episodes."""
    if not ends_of(runs).concluded:
        return list(runs)
    return [concluded(run) for run in runs]


def ends_remark(
    spec: MonitorSpec, clock: Clock, name: str, automaton: Automaton, ends: RunEnds
) -> list[str]:
    """Say what share of a property's violations lies at the end, and what the file can say."""
    if any(atom in spec.terminal for atom in automaton.atoms):
        return []  # the file says already which violations end a run
    within = clock.say(spec.properties[name].horizon, "g")
    return [*filter(None, [ends_in_words(name, ends, within, _label(spec, automaton))])]


def _label(spec: MonitorSpec, automaton: Automaton) -> str:
    """Return the terminal label that says of a violation that it ends the run."""
    atoms = [atom for atom in automaton.atoms if atom in spec.predicates]
    if len(atoms) != 1:
        return "a label under `terminal:` that holds at such a violation"
    (atom,) = atoms
    return f"`terminal: {{{atom}: {spec.predicates[atom]}}}` in place of the predicate"


def run_ends(run: Track | ScoredRun) -> tuple[RunEnd, ...]:
    """Return the stretches during which the property was monitored, and how each ends."""
    starts, stops = _stretches(run)
    begins = run.violation & ~np.append(False, run.violation[:-1])
    return tuple(
        RunEnd(stop - start, tuple(np.flatnonzero(begins[start:stop]).tolist()))
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
    )


def concluded(run: AnyRun) -> AnyRun:
    """Return a run in which a violation within the last horizon of a stretch ends an episode."""
    if run.horizon is None or not run.violation.any():
        return run
    starts, stops = _stretches(run)
    last = np.zeros(len(run.ticks), dtype=bool)
    for start, stop in zip(starts, stops, strict=True):
        last[max(start, stop - run.horizon + 1) : stop] = True
    marked = run.violation & last
    terminal = marked if run.terminal is None else run.terminal | marked
    if isinstance(run, Track):
        return dataclasses.replace(run, terminal=terminal)
    return run._replace(terminal=terminal)


def _stretches(run: Track | ScoredRun) -> tuple[Ticks, Ticks]:
    """Return the first row, and the one after the last, of consecutive ticks with monitoring."""
    active = run.status != PropertyStatus.INACTIVE
    joined = active[1:] & active[:-1] & (np.diff(run.ticks) == 1)
    starts = np.flatnonzero(active & ~np.append(False, joined)[: len(active)])
    stops = np.flatnonzero(active & ~np.append(joined, False)[: len(active)]) + 1
    return starts, stops


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

    Returns one for each run. If no tick was observed for the whole horizon, all are censored: what
    happens in its last part is unknown.
    """
    rows = [_rows(track) for track in tracks]
    if not rows:
        return []
    times, kept = observed_for(
        np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])
    )
    horizon = max((t.horizon for t in tracks if t.horizon is not None), default=None)
    observed = horizon is None or bool(kept[np.searchsorted(times, horizon, side="right")] > 0)
    found = []
    for track, (time, known, followed) in zip(tracks, rows, strict=True):
        chosen = known & observed
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

    `wait` (shape (n,)): ticks until the outcome was known, or until the first one that is lost.
    `resolved` (shape (n,)): whether the outcome was known.

    `times`: waits at which something was lost, rising (shape (m,)).
    `share`: share before the first of them, and from each of them on (shape (m + 1,)).
    """
    times, lost = np.unique(wait[~resolved], return_counts=True)
    at_risk = len(wait) - np.searchsorted(np.sort(wait), times)
    return times, np.concatenate(([1.0], np.cumprod(1 - lost / np.maximum(at_risk, 1))))
