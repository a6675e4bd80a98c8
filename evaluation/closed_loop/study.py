"""Drive the same trips with and without interventions.

    python -m evaluation.closed_loop.study --folder /tmp/trips --seeds 701:721

Each trip that is done lies in the folder and is not driven again; the results are made from what
is there (`--only-summary`). `--only` drives those arms alone whose names begin so. With `--write`
results.json, the plot and RESULTS.md have them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from evaluation.closed_loop.arms import CONFIG, arms, key_of, load_acting
from evaluation.closed_loop.summary import write_results
from evaluation.closed_loop.town import town_scenario
from evaluation.closed_loop.trip import LIMIT, drive
from evaluation.harness.command import Seeds, command
from evaluation.harness.control import Library
from evaluation.harness.episodes import Episodes
from evaluation.sumo.network import Scenario
from evaluation.sumo.simulation import NoEgoError


def drive_once(
    scenario: Scenario, seed: int, controller: Library | None, beyond: int = 0
) -> dict[str, Any]:
    """Drive a trip, and return what became of it; see `drive`."""
    import libsumo

    begun = time.process_time()
    if controller is not None:
        controller.begin()
    try:
        found = drive(libsumo, scenario, seed, controller, beyond=beyond).as_json()
    except NoEgoError as error:
        found = {"failed": str(error)}
    return found | {"cpu": round(time.process_time() - begun, 1)}


def main(
    folder: Path,
    config: Path = CONFIG,
    seeds: Seeds = range(701, 721),
    only: Sequence[str] = ("",),
    only_summary: bool = False,
    write: bool = False,
) -> None:
    """Drive what is missing, seed by seed, and sum up."""
    compiled, model = load_acting(config)
    compared = arms(compiled, model)
    trips = Episodes(folder, {name: key_of(arm, compiled, model) for name, arm in compared.items()})

    @cache
    def scenario(seed: int) -> Scenario:
        return town_scenario(seed, LIMIT, folder / "scenarios")

    def trip(seed: int, arm: str) -> dict[str, Any]:
        return drive_once(scenario(seed), seed, compared[arm])

    for seed in () if only_summary else seeds:
        trips.drive(seed, trips.chosen(only), lambda arm, seed=seed: trip(seed, arm))
    write_results(trips.by_arm(seeds), trips.keys, model.fingerprint, write=write)


if __name__ == "__main__":
    command(main)
