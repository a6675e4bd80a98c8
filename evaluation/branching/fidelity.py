"""Compare what follows a saved state of SUMO with the run that it was saved in.

    python -m evaluation.branching.fidelity --folder /tmp/branches --seeds 601:607

Each run saves states, random numbers included, and goes on. From each of them SUMO is started
again with the seed of the run, which has to follow the run, and with another one, which must not.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.closed_loop.town import WARM_UP, town_scenario
from evaluation.sumo.network import EGO, Scenario
from evaluation.sumo.simulation import STEP, sumo_command

HERE = Path(__file__).resolve().parent
EVERY = 10.0  # s between two states
AHEAD = 5.0  # s
WITH_RANDOM_NUMBERS = (
    *("--save-state.transportables", "--save-state.precision", "6"),
    "--save-state.rng",
)
Positions = dict[str, tuple[float, float]]


class Apart(NamedTuple):
    """How far from where they were in the run everybody is after `AHEAD` seconds, in metres."""

    ego: float
    vehicles: float  # the farthest
    people: float


def positions(sumo: Any) -> Positions:
    """Return where everybody is."""
    found: Positions = {}
    for domain in (sumo.vehicle, sumo.person):
        for name in domain.getIDList():
            x, y = domain.getPosition(name)[:2]
            found[name] = x, y
    return found


def distance(ours: Positions, theirs: Positions, people: set[str]) -> Apart:
    """Return how far two futures are apart; who left one of them is left out."""
    gaps = {name: math.dist(ours[name], theirs[name]) for name in ours.keys() & theirs.keys()}
    return Apart(
        gaps.get(EGO, math.nan),
        max((gap for name, gap in gaps.items() if name not in people), default=0.0),
        max((gap for name, gap in gaps.items() if name in people), default=0.0),
    )


def follow(sumo: Any, scenario: Scenario, seed: int, state: Path) -> Positions:
    """Return where everybody is `AHEAD` seconds after a saved state."""
    sumo.start([*sumo_command(scenario, seed), *WITH_RANDOM_NUMBERS, "--load-state", str(state)])
    try:
        for _ in range(round(AHEAD / STEP)):
            sumo.simulationStep()
        return positions(sumo)
    finally:
        sumo.close()


def check(sumo: Any, seed: int, duration: float, folder: Path) -> Iterator[tuple[Apart, Apart]]:
    """Yield for each saved state how far the same seed and another one led from the run."""
    scenario = town_scenario(seed, duration, folder)
    saved: dict[int, Path] = {}
    truth: dict[int, Positions] = {}
    people: set[str] = set()
    sumo.start([*sumo_command(scenario, seed), *WITH_RANDOM_NUMBERS])
    try:
        every, ahead = round(EVERY / STEP), round(AHEAD / STEP)
        for step in range(round((WARM_UP + duration) / STEP)):
            sumo.simulationStep()
            since = step - round(WARM_UP / STEP)
            if since < 0:
                continue
            if since % every == 0 and since + ahead < duration / STEP:
                saved[since] = folder / f"{seed:04d}" / f"fidelity_{since}.xml"
                sumo.simulation.saveState(str(saved[since]))
            if since - ahead in saved:
                truth[since - ahead] = positions(sumo)
                people |= set(sumo.person.getIDList())
    finally:
        sumo.close()
    for since, state in saved.items():
        yield (
            distance(truth[since], follow(sumo, scenario, seed, state), people),
            distance(truth[since], follow(sumo, scenario, seed + 10_000, state), people),
        )


def main() -> None:
    """Check and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seeds", default="601:607")
    parser.add_argument("--duration", type=float, default=100.0, help="seconds a run")
    arguments = parser.parse_args()
    import libsumo

    first, end = (int(part) for part in arguments.seeds.split(":"))
    pairs = [
        pair
        for seed in range(first, end)
        for pair in check(libsumo, seed, arguments.duration, arguments.folder / "scenarios")
    ]
    report: dict[str, Any] = {"states": len(pairs), "seconds": AHEAD}
    for name, chosen in (("same_seed", 0), ("other_seed", 1)):
        for field in Apart._fields:
            gaps = [getattr(pair[chosen], field) for pair in pairs]
            known = sorted(gap for gap in gaps if not math.isnan(gap))
            report[f"{name}_{field}_median"] = statistics.median(known)
            report[f"{name}_{field}_most"] = known[-1]
            report[f"{name}_{field}_beyond_1cm"] = sum(gap > 0.01 for gap in known)
    (HERE / "fidelity.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
