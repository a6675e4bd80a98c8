"""Drive the same trips with and without interventions.

    python -m evaluation.closed_loop.study --folder /tmp/trips --seeds 701:721

Each trip that is done lies in the folder and is not driven again; the results are made from what
is there (`--only-summary`).
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

from evaluation.closed_loop.arms import FOREWARN, Monitored, arms
from evaluation.closed_loop.controllers import Library, OnSignals
from evaluation.closed_loop.loading import CONFIG
from evaluation.closed_loop.summary import write_results
from evaluation.closed_loop.town import NoEgoError, town_scenario
from evaluation.closed_loop.trip import LIMIT, drive


def trip_path(folder: Path, seed: int, arm: str) -> Path:
    """Return where a trip's record lies."""
    return folder / f"{seed:04d}_{re.sub('[^a-z0-9.]+', '-', arm.lower()).strip('-')}.json"


def load_trips(folder: Path, model: str) -> list[dict[str, Any]]:
    """Return the trips that were driven with a model, or with a rule that needs none."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*_*.json"))]
    return [each for each in found if each["model"] in ("", model)]


def main() -> None:
    """Drive what is missing, seed by seed, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True, help="where trips are kept")
    parser.add_argument("--config", type=Path, default=CONFIG, help="monitor file")
    parser.add_argument("--seeds", default="701:721", help="first:end (default: 701:721)")
    parser.add_argument("--only-summary", action="store_true", help="drive nothing")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    monitored = Monitored.load(arguments.config)
    compared = arms(monitored)
    if not arguments.only_summary:
        first, end = (int(part) for part in arguments.seeds.split(":"))
        _drive_all(compared, range(first, end), arguments.folder, monitored.model.fingerprint)
    write_results(load_trips(arguments.folder, monitored.model.fingerprint), list(compared))


def _drive_all(
    compared: dict[str, Library | OnSignals | None], seeds: range, folder: Path, model: str
) -> None:
    import libsumo

    for seed in seeds:
        missing = [name for name in compared if not trip_path(folder, seed, name).exists()]
        if not missing:
            continue
        scenario = town_scenario(seed, LIMIT, folder / "scenarios")
        for name in missing:
            begun = time.process_time()
            controller = compared[name]
            if controller is not None:
                controller.begin()
            record: dict[str, Any] = {
                "seed": seed,
                "arm": name,
                "model": model if name.startswith(FOREWARN) else "",
            }
            try:
                record |= drive(libsumo, scenario, seed, controller).as_json()
            except NoEgoError as error:
                record["failed"] = str(error)
            record["cpu"] = round(time.process_time() - begun, 1)
            trip_path(folder, seed, name).write_text(json.dumps(record), encoding="utf-8")
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
