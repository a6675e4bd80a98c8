"""What an estimate of the risk says in runs that it has not seen, judged by what followed.

Used by `braking.py`, for rules which say that something never happens: whether one is broken can be
told from the states of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.sumo.ablation import Run, truth_of
from forewarn.assessment.reliability import Predictions, calibrate, outcomes, pool
from forewarn.assessment.tradeoff import AlertRule, Trace, precision_recall, trade_off
from forewarn.config.sections import PropertySpec
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.verdict import Status

RESAMPLES = 1000
REMEMBERED = 30  # ticks


def judge_ticks(trace: Trace) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return at which ticks a violation followed, and which ticks count."""
    followed, known = outcomes(trace)
    return followed, known & (trace.status == Status.SATISFIED_SO_FAR)


class Told(NamedTuple):
    """What one way to a risk says of one rule in the unseen runs."""

    truth: Sequence[Trace]
    values: Sequence[NDArray[np.float64]]  # lower bound, risk and upper bound, a row for each tick

    def predictions(self) -> list[Predictions]:
        """Return risk and outcome of the ticks that count, run by run."""
        found = []
        for trace, values in zip(self.truth, self.values, strict=True):
            followed, known = judge_ticks(trace)
            kept = known & ~np.isnan(values[:, 1])
            found.append(Predictions(values[kept, 1], followed[kept], int((known & ~kept).sum())))
        return found

    def figures(self, section: PropertySpec) -> dict[str, Any]:
        """Return how good it is, with the alerts that the monitor file asks for."""
        parts = self.predictions()
        # A state that was never seen asks for a warning only; its risk does not count.
        traces = [
            trace._replace(
                score=np.where(trace.status == Status.UNKNOWN, np.nan, np.nan_to_num(values[:, 1]))
            )
            for trace, values in zip(self.truth, self.values, strict=True)
        ]
        calibration = calibrate(pool(parts))
        assert calibration is not None
        (point,) = trade_off(traces, [section.thresholds.act], rule=AlertRule.of(section))
        before = np.concatenate(
            [
                values[np.logical_and(*judge_ticks(trace))]
                for trace, values in zip(self.truth, self.values, strict=True)
            ]
        )
        widths = (before[:, 2] - before[:, 0])[~np.isnan(before[:, 2])]
        return {
            "brier": round(calibration.brier, 6),
            "skill": round(calibration.skill or 0.0, 4),
            "expected_error": round(calibration.expected_error, 5),
            "average_precision": round(precision_recall(traces).area, 4),
            "violations": point.violations,
            "foreseen": point.detected,
            "median_lead": None if point.lead is None else round(point.lead.median, 2),
            "false_alarms_per_hour": round(point.false_alarms_per_hour or 0.0, 2),
            "width_before_violations": round(float(np.median(widths)), 4) if len(widths) else None,
            "unknown_ticks": sum(part.censored for part in parts),
            "reliability": [
                [one_bin.ticks, round(one_bin.predicted, 4), round(one_bin.observed, 4)]
                for one_bin in calibration.bins
            ],
        }


def brier_difference(ours: Told, theirs: Told, seed: int = 1) -> list[float]:
    """Return ours - theirs with a 95 % interval: whole runs are drawn anew, for both alike."""
    sums = np.array(
        [
            [((part.risk - part.followed) ** 2).sum() for part in told.predictions()]
            + [len(part.risk) for part in told.predictions()]
            for told in (ours, theirs)
        ]
    ).reshape(2, 2, -1)
    drawn = np.random.default_rng(seed).integers(0, sums.shape[2], (RESAMPLES, sums.shape[2]))
    error, ticks = sums[:, 0][:, drawn].sum(axis=2), sums[:, 1][:, drawn].sum(axis=2)
    mine, other = sums[:, 0].sum(axis=1) / sums[:, 1].sum(axis=1)
    low, high = np.quantile(np.subtract(*(error / ticks)), [0.025, 0.975])
    return [round(float(item), 6) for item in (mine - other, low, high)]


def by_past(runs: Sequence[Run], compiled: CompiledSpec) -> list[dict[str, Any]]:
    """Return what followed where red asks for firm braking, for cars of different pasts.

    A car of which firm braking was asked at yellow, up to `REMEMBERED` ticks ago, and one that came
    upon the red light slowly are in the same product state.
    """
    words = compiled.abstraction.vocabulary.predicates

    def holds(states: NDArray[np.int64], names: Sequence[str]) -> NDArray[np.bool_]:
        wanted = sum(1 << words.index(name) for name in names)
        return (states >= 0) & (states & wanted == wanted)

    tally: dict[tuple[bool, bool], list[int]] = {}
    for run in runs:
        ticks = np.arange(len(run.states))
        asked = holds(run.states, ("yellow", "must_brake_firmly"))
        last = np.maximum.accumulate(np.where(asked, ticks, -REMEMBERED - 1))
        here = holds(run.states, ("red", "must_brake_firmly", "time_to_line<2", "red_for<8"))
        here &= ~holds(run.states, ("must_brake_hard",)) & ~holds(run.states, ("time_to_line<1",))
        slows = holds(run.states, ("braking",))
        followed, known = judge_ticks(truth_of(run, "red_light", compiled))
        for past in (True, False):
            for braking in (True, False):
                chosen = here & known & ((ticks - last <= REMEMBERED) == past) & (slows == braking)
                row = tally.setdefault((past, braking), [0, 0])
                row[0] += int(chosen.sum())
                row[1] += int((chosen & followed).sum())
    return [
        {"firmly_at_yellow": past, "braking": braking, "ticks": ticks, "followed": followed}
        for (past, braking), (ticks, followed) in tally.items()
    ]
