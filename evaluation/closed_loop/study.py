"""Drive the same trips with and without interventions.

    python -m evaluation.closed_loop.study --folder /tmp/trips --seeds 701:721

Each trip that is done lies in the folder and is not driven again; the results are made from what
is there (`--only-summary`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.closed_loop.arms import REACTIVE, Controls, Monitored, arms
from evaluation.closed_loop.controllers import Library
from evaluation.closed_loop.loading import CONFIG
from evaluation.closed_loop.summary import write_results
from evaluation.closed_loop.town import NoEgoError, town_scenario
from evaluation.closed_loop.trip import LIMIT, drive


def trip_path(folder: Path, seed: int, arm: str) -> Path:
    """Return where a trip's record lies."""
    return folder / f"{seed:04d}_{re.sub('[^a-z0-9.]+', '-', arm.lower()).strip('-')}.json"


def keys_of(monitored: Monitored, compared: Mapping[str, Controls | None]) -> dict[str, str]:
    """Return for each arm what its trips depend on: model and policies, or the signals alone."""
    keys = {}
    for name, controller in compared.items():
        if controller is None:
            keys[name] = ""
        elif isinstance(controller, Library) and name != REACTIVE:
            policies = json.dumps(controller.policies, sort_keys=True)
            keys[name] = hashlib.sha256(
                f"{monitored.model.fingerprint} {policies}".encode()
            ).hexdigest()
        else:
            keys[name] = monitored.compiled.abstraction.digest
    return keys


def load_trip(path: Path, key: str) -> dict[str, Any] | None:
    """Return a trip that has been driven with what `key` stands for."""
    if not path.exists():
        return None
    trip: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return trip if trip["key"] == key else None


def main() -> None:
    """Drive what is missing, seed by seed, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True, help="where trips are kept")
    parser.add_argument("--config", type=Path, default=CONFIG, help="monitor file")
    parser.add_argument("--seeds", default="701:721", help="first:end (default: 701:721)")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="drive only arms whose names begin so"
    )
    parser.add_argument("--only-summary", action="store_true", help="drive nothing")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    monitored = Monitored.load(arguments.config)
    compared = arms(monitored)
    keys = keys_of(monitored, compared)
    first, end = (int(part) for part in arguments.seeds.split(":"))
    if not arguments.only_summary:
        wanted = {n: c for n, c in compared.items() if n.startswith(tuple(arguments.only))}
        for seed in range(first, end):
            _drive(seed, wanted, keys, arguments.folder)
    trips = [
        load_trip(trip_path(arguments.folder, seed, name), key)
        for seed in range(first, end)
        for name, key in keys.items()
    ]
    write_results([trip for trip in trips if trip], keys, monitored.model.fingerprint)


def _drive(
    seed: int, compared: Mapping[str, Controls | None], keys: Mapping[str, str], folder: Path
) -> None:
    import libsumo

    missing = [n for n in compared if load_trip(trip_path(folder, seed, n), keys[n]) is None]
    if not missing:
        return
    scenario = town_scenario(seed, LIMIT, folder / "scenarios")
    for name in missing:
        begun = time.process_time()
        controller = compared[name]
        if controller is not None:
            controller.begin()
        record: dict[str, Any] = {"seed": seed, "arm": name, "key": keys[name]}
        try:
            record |= drive(libsumo, scenario, seed, controller).as_json()
        except NoEgoError as error:
            record["failed"] = str(error)
        record["cpu"] = round(time.process_time() - begun, 1)
        trip_path(folder, seed, name).write_text(json.dumps(record), encoding="utf-8")
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
