"""From futures to figures: how often a violation followed, and how unlike moments are."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scipy.stats import beta

from evaluation.branching.states import predictions_of
from evaluation.branching.tables import tables
from evaluation.harness.page import publish
from evaluation.harness.picture import Panel, drawing
from forewarn.models import CountModel
from forewarn.monitoring.step import Monitor

HERE = Path(__file__).resolve().parent
RESAMPLES = 2000
FEW = 10  # runs or recordings, too few for a bootstrap
FIELDS = ("red_light", "collision")  # of a future, in a run's file
TITLES = {"red_light": "red_light within 5 s", "collision": "collision within 2 s"}
COLOURS = {"red_light": "#b3261e", "collision": "#0b5cad"}


class Tally(NamedTuple):
    """Futures of one moment: of which run, how many, and how many with a violation."""

    run: int
    futures: int
    violations: int

    @property
    def frequency(self) -> float:
        """Share of the futures with a violation."""
        return self.violations / self.futures


class Spread(NamedTuple):
    """What the moments of one product state have in common."""

    moments: int
    runs: int
    futures: int
    mean: float  # frequency, with 95 % bounds over whole runs
    low: float
    high: float
    # Standard deviation of the moments' own probabilities: what is left of the deviation of their
    # frequencies when that of counting finitely many futures, `binomial`, is taken away.
    between: float
    binomial: float
    # Share of the outcome's variance that lies between moments: 0 if the state tells all there is
    # to know, 1 if a moment decides what its product state leaves open. NaN without variance.
    decided: float


def spread(tallies: Sequence[Tally], seed: int = 0) -> Spread:
    """Return mean and variance of the moments of one product state.

    The variance of frequencies is that between moments plus, on average, that of counting:
    `f (1 - f) / (n - 1)` estimates the second without bias.
    """
    frequencies = [tally.frequency for tally in tallies]
    mean = statistics.fmean(frequencies)
    counting = statistics.fmean(
        tally.frequency * (1 - tally.frequency) / (tally.futures - 1) for tally in tallies
    )
    total = statistics.variance(frequencies) if len(tallies) > 1 else 0.0
    between = max(total - counting, 0.0)
    low, high = bootstrap_mean(tallies, seed)
    size = statistics.fmean(tally.futures for tally in tallies)
    return Spread(
        moments=len(tallies),
        runs=len({tally.run for tally in tallies}),
        futures=sum(tally.futures for tally in tallies),
        mean=mean,
        low=low,
        high=high,
        between=math.sqrt(between),
        binomial=math.sqrt(mean * (1 - mean) / size),
        decided=min(between / (mean * (1 - mean)), 1.0) if 0 < mean < 1 else math.nan,
    )


def bootstrap_mean(tallies: Sequence[Tally], seed: int) -> tuple[float, float]:
    """Return 95 % bounds of the mean frequency; moments of one run stay together."""
    runs: dict[int, list[float]] = {}
    for tally in tallies:
        runs.setdefault(tally.run, []).append(tally.frequency)
    return bootstrap_share([(len(group), sum(group)) for group in runs.values()], seed)


def bootstrap_share(groups: Sequence[tuple[int, float]], seed: int) -> tuple[float, float]:
    """Return 95 % bounds of a share; whole groups of (size, successes) are resampled.

    A bootstrap of few groups is too sure, and one without any success, or failure, entirely so.
    There the bounds are widened to those of Clopper and Pearson, each group being one trial.
    """
    rng = random.Random(seed)

    def share(chosen: Sequence[tuple[int, float]]) -> float:
        return sum(successes for _, successes in chosen) / sum(size for size, _ in chosen)

    shares = sorted(share(rng.choices(groups, k=len(groups))) for _ in range(RESAMPLES))
    low, high = shares[round(0.025 * RESAMPLES)], shares[round(0.975 * RESAMPLES) - 1]
    whole, trials = share(groups), len(groups)
    if trials >= FEW and 0.0 < whole < 1.0:
        return low, high
    successes = whole * trials
    if successes < trials:
        high = max(high, float(beta.ppf(0.975, successes + 1, trials - successes)))
    if successes > 0:
        low = min(low, float(beta.ppf(0.025, successes, trials - successes + 1)))
    return low, high


def tallies_of(runs: Sequence[Mapping[str, Any]], state: str, field: int) -> list[Tally]:
    """Return the tallies of one state for one property; a violation has the tick it came at."""
    return [
        Tally(
            run["seed"],
            len(moment["futures"]),
            sum(future[field] is not None for future in moment["futures"]),
        )
        for run in runs
        for moment in run["moments"]
        if moment["state"] == state
    ]


class Followed(NamedTuple):
    """Visits of a state in recordings: ticks, recordings, share followed by a violation."""

    ticks: int
    recordings: int
    share: float
    low: float
    high: float


def followed(counts: Sequence[tuple[int, int]], seed: int = 0) -> Followed | None:
    """Return what followed the visits; each pair has ticks and violations of one recording.

    The share is of all ticks; recordings stay together.
    """
    counts = [pair for pair in counts if pair[0]]
    if not counts:
        return None
    ticks = sum(ticks for ticks, _ in counts)
    share = sum(violations for _, violations in counts) / ticks
    return Followed(ticks, len(counts), share, *bootstrap_share(counts, seed))


def write_results(
    runs: Sequence[Mapping[str, Any]],
    recordings: Sequence[Mapping[str, Any]],
    monitor: Monitor,
    model: CountModel,
    states: Mapping[int, tuple[str, ...]],
    *,
    write: bool,
) -> None:
    """Give figures, plot, and the table of the results' page; see `publish`.

    `recordings` are visits, from `visits.load_visits`; `states` are those that were looked at, and
    the properties they were chosen for.
    """
    rows = []
    for code, chosen_for in states.items():
        key = model.vocabulary.key(code)
        predicted = predictions_of(monitor, model.index[code])
        for field, name in enumerate(FIELDS):
            if name == "red_light" and name not in chosen_for:
                continue
            found = tallies_of(runs, key, field)
            visited = followed([tuple(r[name].get(key, (0, 0))) for r in recordings])
            if len(found) < 2:
                continue
            prediction = predicted[name]
            rows.append(
                {
                    "property": name,
                    "key": key,
                    "state": model.vocabulary.name(code),
                    "chosen": name in chosen_for,
                    "visits": int(model.counts[[model.index[code]], :].sum()),
                    **prediction._asdict(),
                    **spread(found)._asdict(),
                    "recorded": visited._asdict() if visited else None,
                    "frequencies": [round(item.frequency, 4) for item in found],
                    "futures_each": [item.futures for item in found],
                }
            )
    rows.sort(key=lambda row: (row["property"] != "red_light", row["risk"]))
    made = {
        "model": model.fingerprint,
        "runs": [run["seed"] for run in runs],
        "recordings": len(recordings),
        "moments": sum(len(run["moments"]) for run in runs),
        "futures": sum(len(m["futures"]) for run in runs for m in run["moments"]),
    }
    told = {name: overall([r for r in rows if r["property"] == name]) for name in FIELDS}
    report = {**made, "overall": told, "rows": rows}
    figures = HERE / "results.json"
    if rows:
        pictures = {"frequencies.svg": plot_frequencies(rows)}
        publish("branching", tables(report), report, figures, write=write, pictures=pictures)
    else:
        publish(None, "no moment has been branched", report, figures, write=write)


def plot_frequencies(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return measured frequency against predicted risk, one panel for each property.

    A dot is a moment, a cross a product state: it has the predicted bounds across, and those of the
    recorded share upright.
    """
    axes = "predicted risk", "share with a violation", (0.0, 1.0), (0.0, 1.0)

    def draw(panel: Panel) -> None:
        panel.frame((0, 0.25, 0.5, 0.75, 1), str)
        below = "dots: futures of single moments; crosses: product states as recorded, 95 %"
        panel.text(panel.left + panel.width / 2, 38, below, more=' fill="#7d899a"')
        panel.line([(0, 0), (1, 1)], "#bbb")
        for row in rows:
            if TITLES[row["property"]] != panel.title:
                continue
            colour, told = COLOURS[row["property"]], row["recorded"]
            for frequency in row["frequencies"]:
                panel.dot(row["risk"], frequency, colour, 'r="3.5" opacity="0.3"')
            if told is not None:
                bounds = [(row["risk"], told["low"]), (row["risk"], told["high"])]
                predicted = [(row["lower"], told["share"]), (row["upper"], told["share"])]
                panel.line(bounds, colour, 'stroke-width="2"')
                panel.line(predicted, colour, 'stroke-width="2"')

    return drawing([Panel(title, *axes, height=380) for title in TITLES.values()], draw)


def overall(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | int | None]:
    """Return how well the predictions of one property hold over its product states."""
    if not rows:
        return {"states": 0}

    def against(pairs: Sequence[tuple[Any, Any, str]], prefix: str) -> dict[str, Any]:
        errors = [row["risk"] - told[share] for row, told, share in pairs]
        meet = [
            told["low"] <= row["upper"] and row["lower"] <= told["high"] for row, told, _ in pairs
        ]
        known = bool(errors)
        return {
            f"{prefix}states": len(errors),
            f"{prefix}bias": round(statistics.fmean(errors), 4) if known else None,
            f"{prefix}mean_absolute_error": (
                round(statistics.fmean(map(abs, errors)), 4) if known else None
            ),
            f"{prefix}intervals_meet": sum(meet),
        }

    frequencies = [one for row in rows for one in row["frequencies"]]
    return {
        "moments": len(frequencies),
        "unanimous": sum(one in (0.0, 1.0) for one in frequencies),
        **against([(r, r["recorded"], "share") for r in rows if r["recorded"]], "recorded_"),
        **against([(row, row, "mean") for row in rows], ""),
        "mean_between": round(statistics.fmean(row["between"] for row in rows), 4),
        "mean_binomial": round(statistics.fmean(row["binomial"] for row in rows), 4),
    }
