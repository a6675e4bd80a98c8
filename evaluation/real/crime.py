"""Published measures of criticality over the recorded cars, by CommonRoad-CriMe.

    python -m evaluation.real.crime --data DATA --folder FOLDER

writes for each car of the CommonRoad scenes in DATA one JSON-lines file, a line a step: the most
critical value over all other cars, with the library's own parameters. It runs in an environment
with `requirements.txt` of this folder (tried with Python 3.10; no forewarn is needed).

Only measures of the present moment are taken. Those that read where the others will be (`TTCE`,
`DCE`, `PET`, `THW` and others) would know what is to be foreseen. For the same reason accelerations
are backward differences here: the library's own are central ones, and look a step ahead. The path
of a car follows the lane that it is in; the library's own ends where that of its first step ends.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.harness.command import command

MEASURES = {
    "HW": -1.0, "TTC": -1.0, "WTTC": -1.0, "ALongReq": -1.0,
    "ALatReq": 1.0, "DST": 1.0, "DeltaV": 1.0, "PF": 1.0,
}  # fmt: skip
"""Names in the library, and -1 where a small value is the critical one.

`BTN` and `STN` rank as `ALongReq` and `ALatReq` do, and `MSD` as the speed."""

OF_ALL = ("PF",)
"""Measures that take all other cars together."""


def backward(states: Sequence[Any], dt: float) -> None:
    """Give states the change of speed since the one before, and what else measures ask for."""
    from commonroad_crime.utility import general

    speeds = np.array([state.velocity for state in states])
    slopes = np.diff(speeds, prepend=speeds[:1]) / dt
    jerks = np.diff(slopes, prepend=slopes[:1]) / dt
    for state, slope, jerk in zip(states, slopes, jerks, strict=True):
        state.acceleration, state.jerk = slope, jerk
        general.check_elements_state(state, dt=dt)


def lines(scenario: Any, car: Any) -> Iterator[dict[str, float | None]]:
    """Yield the values of every step of a car's record; what has none at a step is None."""
    from commonroad_clcs.pycrccosy import CurvilinearCoordinateSystem
    from commonroad_crime import measure
    from commonroad_crime.data_structure.configuration import CriMeConfiguration
    from commonroad_crime.utility import general

    configuration = CriMeConfiguration()
    configuration.update(ego_id=car.obstacle_id, sce=scenario)
    asked = {name: getattr(measure, name)(configuration) for name in MEASURES}
    lanes, on = car.prediction.center_lanelet_assignment, None
    for step in range(car.initial_state.time_step, car.prediction.final_time_step + 1):
        if lanes.get(step) and on not in lanes[step]:
            on = min(lanes[step])
            path = general.generate_reference_path(on, scenario.lanelet_network)
            configuration.update(CLCS=CurvilinearCoordinateSystem(path))
        others = [
            other.obstacle_id
            for other in scenario.dynamic_obstacles
            if other.obstacle_id != car.obstacle_id and other.state_at_time(step) is not None
        ]
        yield {
            name: _value(one, step, [None] if name in OF_ALL else others)
            for name, one in asked.items()
        }


def _value(one: Any, step: int, others: Sequence[int | None]) -> float | None:
    """Return the most critical value; a car outside the lanes that the library follows has none."""
    worst = max if MEASURES[type(one).__name__] > 0 else min
    values = []
    for other in others:
        with contextlib.suppress(Exception):  # each raises its own; `main` counts
            value = one.compute_criticality(step, other, verbose=False)
            if value is not None and not math.isnan(value):
                values.append(float(value))
    return worst(values, default=None)


def main(data: Path, folder: Path) -> None:
    """Write the measures of all cars that are not there yet."""
    from commonroad.common.file_reader import CommonRoadFileReader
    from commonroad_crime.data_structure.base import CriMeBase
    from commonroad_crime.utility import general

    logging.disable(logging.CRITICAL)
    general.check_elements_state_list = backward
    CriMeBase.set_other_vehicles = lambda one, number: setattr(one, "other_vehicle", cars[number])
    folder.mkdir(parents=True, exist_ok=True)
    scenes = sorted(data.glob("*.xml"))
    if not scenes:
        raise FileNotFoundError(f"{data} holds no CommonRoad scene (*.xml)")
    for path in scenes:
        scenario, _ = CommonRoadFileReader(str(path)).open(lanelet_assignment=True)
        cars = {car.obstacle_id: deepcopy(car) for car in scenario.dynamic_obstacles}
        for car in cars.values():
            backward([car.initial_state, *car.prediction.trajectory.state_list], scenario.dt)
        for car in scenario.dynamic_obstacles:
            output = folder / f"{path.stem}_{car.obstacle_id}.jsonl"
            if not output.exists():
                rows = list(lines(scenario, car))
                output.write_text("".join(json.dumps(row) + "\n" for row in rows))
                known = {name: sum(row[name] is not None for row in rows) for name in MEASURES}
                print(output.name, len(rows), known, flush=True)


if __name__ == "__main__":
    command(main)
