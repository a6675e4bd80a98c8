"""From trips to figures: violations avoided, and what that cost."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.harness.episodes import Pairs
from evaluation.harness.page import publish, table
from evaluation.harness.picture import Panel, drawing

HERE = Path(__file__).resolve().parent
RESAMPLES = 2000
LEAST = 3  # trips, for an arm to be shown
NEVER = -math.log(0.025)  # events that are expected at the most where none happened, at 95 %
FAMILIES = {"Forewarn": "#0b5cad", "physical": "#b3261e"}
Trip = Mapping[str, Any]
Trips = Sequence[Trip]
Rows = Mapping[str, Mapping[str, Any]]


def kilometres(trips: Trips) -> float:
    """Return how far all trips went."""
    return sum(trip["distance"] for trip in trips) / 1000.0


def per_km(trips: Trips, count: Callable[[Trip], float]) -> float:
    """Return the sum of something over all trips, for each kilometre driven."""
    return sum(map(count, trips)) / kilometres(trips)


def red_lights(trip: Trip) -> int:
    """Return how often the ego crossed a stop line at red."""
    return len(trip["red_lights"])


def collisions(trip: Trip) -> int:
    """Return 1 if the trip ended in a collision, whoever hit whom."""
    return int(trip["end"] == "collision")


def duration(trip: Trip) -> float:
    """Return its seconds."""
    return float(trip["seconds"])


FIGURES: Mapping[str, Callable[[Trips], float]] = {
    "red_lights_per_km": lambda trips: per_km(trips, red_lights),
    "collisions_per_km": lambda trips: per_km(trips, collisions),
    "seconds_per_km": lambda trips: per_km(trips, duration),
    "hard_brakings_per_km": lambda trips: per_km(trips, lambda trip: trip["hard_brakings"]),
    "interventions_per_hour": lambda trips: (
        3600.0 * sum(trip["interventions"] for trip in trips) / sum(map(duration, trips))
    ),
}
VIOLATIONS = ("red_lights_per_km", "collisions_per_km")


def bootstrap(
    trips: Trips, reference: Trips, figure: Callable[[Trips], float], seed: int = 0
) -> dict[str, float]:
    """Return a figure and its difference from a reference on the same seeds, with 95 % bounds.

    `trips` and `reference` are in the same order of seeds; whole trips are resampled, both of a
    seed together.
    """
    rng = random.Random(seed)
    indices = range(len(trips))
    values, differences = [], []
    for _ in range(RESAMPLES):
        chosen = rng.choices(indices, k=len(trips))
        value = figure([trips[i] for i in chosen])
        values.append(value)
        differences.append(value - figure([reference[i] for i in chosen]))
    values.sort()
    differences.sort()
    first, last = round(0.025 * RESAMPLES), round(0.975 * RESAMPLES) - 1
    whole = figure(trips)
    return {
        "value": whole,
        "low": values[first],
        "high": values[last],
        "difference": whole - figure(reference),
        "difference_low": differences[first],
        "difference_high": differences[last],
    }


def bounded_rate(trips: Trips, found: Mapping[str, float]) -> dict[str, float]:
    """Return a rate for each kilometre with bounds that are no surer than its trips allow.

    Resampling trips in which something never happened finds that it never happens; a Poisson
    process may have had no event where `NEVER` were to be expected.
    """
    if found["value"] > 0:
        return dict(found)
    return {**found, "high": NEVER / kilometres(trips)}


def counts(trips: Trips) -> dict[str, Any]:
    """Return what can be counted of an arm; lists are in the order of its trips."""
    ends = [trip["end"] for trip in trips]
    hits = [trip["collision"] for trip in trips if trip["collision"] is not None]
    return {
        "trips": len(trips),
        "arrived": ends.count("arrived"),
        "late": ends.count("late"),
        "collisions": len(hits),
        "hit": sum(hit["role"] == "hit" for hit in hits),
        "struck": sum(hit["role"] == "struck" for hit in hits),
        "with_pedestrians": sum(hit["other"] == "pedestrian" for hit in hits),
        "during_a_stop": sum(hit["demanded"] != "NONE" for hit in hits),
        "red_lights": sum(map(red_lights, trips)),
        "red_lights_each": list(map(red_lights, trips)),
        "collisions_each": list(map(collisions, trips)),
        "km": kilometres(trips),
        "hours": sum(map(duration, trips)) / 3600.0,
        "intervened_share": sum(trip["intervened"] for trip in trips) / sum(map(duration, trips)),
    }


def write_results(
    grouped: Mapping[str, Pairs], keys: Mapping[str, str], model: str, *, write: bool
) -> None:
    """Give figures, plot, and the table of the results' page; see `publish`.

    Grouped are the trips of each arm with those of nobody on the same seeds; `keys` are what the
    trips of each arm depend on, `model` is a fingerprint.
    """
    rows = {}
    for arm, pairs in grouped.items():
        members, reference = zip(*pairs, strict=True)
        figures = {name: bootstrap(members, reference, f) for name, f in FIGURES.items()}
        figures |= {name: bounded_rate(members, figures[name]) for name in VIOLATIONS}
        rows[arm] = {**counts(members), **figures}
    seeds = {arm: [trip["seed"] for trip, _ in pairs] for arm, pairs in grouped.items()}
    made = {"seeds": seeds, "model": model, "keys": dict(keys), "arms": rows}
    shown = {arm: row for arm, row in rows.items() if row["trips"] >= LEAST}
    pictures = {"tradeoff.svg": plot_trade_off(shown)} if shown else {}
    text = f"Model `{model[:8]}`.\n\n{_table(shown)}"
    mark, figures = "closed loop" if shown else None, HERE / "results.json"
    publish(mark, text, made, figures, write=write, pictures=pictures)


def _table(rows: Rows) -> str:
    def bounded(figure: Mapping[str, float]) -> str:
        return f"{figure['value']:.2f} [{figure['low']:.2f}, {figure['high']:.2f}]"

    def lost(figure: Mapping[str, float]) -> str:
        low, high = figure["difference_low"], figure["difference_high"]
        return f"{figure['difference']:+.0f} [{low:+.0f}, {high:+.0f}]"

    head = (
        *("Who may intervene", "trips", "arrived", "late", "collisions (struck)", "red lights"),
        *("red lights/km", "collisions/km", "time lost, s/km", "interventions/h"),
        *("time under them", "hard brakings/km"),
    )
    lines = [
        (
            *(arm, str(row["trips"]), str(row["arrived"]), str(row["late"])),
            *(f"{row['collisions']} ({row['struck']})", str(row["red_lights"])),
            *(bounded(row["red_lights_per_km"]), bounded(row["collisions_per_km"])),
            *(lost(row["seconds_per_km"]), f"{row['interventions_per_hour']['value']:.0f}"),
            *(f"{row['intervened_share']:.0%}", f"{row['hard_brakings_per_km']['value']:.0f}"),
        )
        for arm, row in rows.items()
    ]
    return table(head, lines)


def plot_trade_off(rows: Rows) -> str:
    """Return violations against time lost: thresholds of one family are joined by a line."""
    lost = {arm: row["seconds_per_km"]["difference"] for arm, row in rows.items()}
    xs = min([0.0, *lost.values()]), max(lost.values()) or 1.0
    figures = {"red lights run per km": VIOLATIONS[0], "collisions per km": VIOLATIONS[1]}
    panels = [
        Panel(title, "time lost against nobody, seconds per km", "", xs,
              (0.0, max(row[figure]["value"] for row in rows.values()) * 1.08 or 1.0))
        for title, figure in figures.items()
    ]  # fmt: skip

    def draw(panel: Panel) -> None:
        panel.frame((0, 0.5, 1), lambda value: f"{value:.3g}")
        at = {arm: (lost[arm], row[figures[panel.title]]["value"]) for arm, row in rows.items()}
        for family, colour in FAMILIES.items():
            mine = [arm for arm in at if arm.startswith(family) and "adapted" not in arm]
            line = [at[arm] for arm in mine if " at " in arm or family == "physical"]
            panel.line(sorted(line), colour, 'opacity="0.5"')
        for arm, (x, y) in at.items():
            colour = next((c for f, c in FAMILIES.items() if arm.startswith(f)), "#46566b")
            panel.dot(x, y, colour)
            late = panel.x(x) > panel.left + 0.6 * panel.width
            place = panel.x(x) + (-6 if late else 6), panel.y(y) - 5
            small = f' font-size="10" fill="{colour}"'
            panel.text(*place, arm, "end" if late else "start", small)

    return drawing(panels, draw)
