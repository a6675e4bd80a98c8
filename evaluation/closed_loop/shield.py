"""The town's ego with and without interventions, and a shield that recommends actions.

    python -m evaluation.closed_loop.shield --folder DIR --tries 3001:3031
    python -m evaluation.closed_loop.shield --folder DIR --seeds 4301:4401 --write

The first command drives trips with actions at random moments, and adds what happened to `--tried`;
the second drives the same trips by all arms. A trip that is in the folder is not driven again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from evaluation.closed_loop.arms import (
    ADAPTED,
    DEMO,
    HOLD,
    MOST,
    NOBODY,
    SOFT_STOP,
    STOP,
    Arms,
    as_shipped,
    key_of,
    load_acting,
    physical,
)
from evaluation.closed_loop.town import RATE, town_scenario
from evaluation.closed_loop.trip import LIMIT, drive
from evaluation.harness.advice import Advised, Exploring, Log, held_process
from evaluation.harness.command import Seeds, command
from evaluation.harness.control import Library, Policies
from evaluation.harness.episodes import Episodes, Pairs, read_lines, write_lines
from evaluation.harness.page import Row, between, publish, resampled, rounded, shown
from evaluation.sumo.network import EGO_TYPE, Scenario
from evaluation.sumo.simulation import NoEgoError
from forewarn.config.file import MonitorSpec
from forewarn.config.sections import BoundsSpec
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import compile_for
from forewarn.monitoring.intervention import Intervention
from forewarn.wings.decisions.section import ShieldSpec

HERE = Path(__file__).resolve().parent
TITLE = "Closed loop in SUMO's town"
COMMAND = "python -m evaluation.closed_loop.shield --folder DIR --seeds 4301:4401 --write"
LEVELS = {"red_light": 0.4, "brake_for_red": 0.4, "collision": 0.25}
"""The risk from which each rule demands something; it is let go below half of it."""
ON_THE_WAY = "moving & !red & !yellow & !junction & !conflict_car<1.8 & !conflict_walker<1.8"
"""Success: it drives, with no light against it and nobody in its way."""

SHIELD = ShieldSpec(failure="collision | ran_red", success=ON_THE_WAY, at_least=0.9, horizon=5.0)
ASKED = (Intervention("LIMIT_SPEED", 4.0, id=1), SOFT_STOP, STOP)
"""What may be asked of the ego, the mildest first."""

BEYOND = 3  # ticks: a collision is published a tick after it happened


LAWFUL = "nobody; a driver who heeds lights"
HEEDS_LIGHTS = {k: v for k, v in EGO_TYPE.items() if k != "jmDriveAfterRedTime"}
"""The same ego, careless about others alone: what it costs not to run red lights."""

TICKS = 5  # for which a recommendation is done
VISITS = 10  # ticks: two tries of half a second


def states_alone(spec: MonitorSpec) -> CompiledSpec:
    """Return a monitor file of the same states, with the chain alone.

    What was tried is logged as states, so that the shield's process, and rules without a model,
    have no use for learned scores.
    """
    chain = {
        name: section.model_copy(update={"estimator": "chain"})
        for name, section in spec.properties.items()
    }
    update = {"learned_score": {}, "properties": chain, "bounds": BoundsSpec(kind="none")}
    return compile_spec(spec.model_copy(update={**update, "shield": SHIELD}))


def at_levels(spec: MonitorSpec) -> Policies:
    """Return the policies of the monitor file with `LEVELS`; whatever warns demands, too."""

    def changed(name: str) -> dict[str, float]:
        level = LEVELS[name]
        return {"warn": level, "act": level, "release": level / 2}

    return {name: {**policy, **changed(name)} for name, policy in as_shipped(spec).items()}


def compared_arms(compiled: CompiledSpec, model: CountModel, logs: Sequence[Log]) -> Arms:
    """Return who may intervene in each arm; None: nobody."""
    policies, plain = at_levels(compiled.spec), states_alone(compiled.spec)
    held = held_process(plain, logs, TICKS)
    return {
        NOBODY: None,
        LAWFUL: None,
        f"physical 5 m/s², 1 s{ADAPTED}": physical(plain, 5.0, 1.0, HOLD, MOST),
        "Forewarn": Library(compiled, model, policies),
        f"Forewarn, shield each {TICKS / RATE:g} s": Advised(
            compiled, model, ASKED, held, VISITS, policies
        ),
    }


def keys_of(
    compared: Arms, compiled: CompiledSpec, model: CountModel, logs: Sequence[Log]
) -> dict[str, str]:
    """Return what the trips of each arm depend on; those with a shield, on what was tried."""
    told = f"{json.dumps(logs)} {SHIELD!r} {ASKED!r} {TICKS} {VISITS}"
    tried = hashlib.sha256(told.encode()).hexdigest()
    return {
        name: key_of(arm, compiled, model) + (tried if isinstance(arm, Advised) else "")
        for name, arm in compared.items()
    }


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


Trip = Mapping[str, Any]


def per_km(trips: Sequence[Trip], count: Callable[[Trip], float]) -> float:
    """Return the sum of something over all trips, for each kilometre driven."""
    return 1000 * sum(map(count, trips)) / sum(trip["distance"] for trip in trips)


def red_lights(trip: Trip) -> int:
    """Return how often the ego crossed a stop line at red."""
    return len(trip["red_lights"])


def collisions(trip: Trip) -> int:
    """Return 1 if the trip ended in a collision, whoever hit whom."""
    return int(trip["end"] == "collision")


def duration(trip: Trip) -> float:
    """Return its seconds."""
    return float(trip["seconds"])


def fewer(count: Callable[[Trip], int]) -> Callable[[Pairs], float | None]:
    """Return the share by which something is rarer, for each kilometre, than with nobody."""

    def figure(pairs: Pairs) -> float | None:
        ours, theirs = zip(*pairs, strict=True)
        before = per_km(theirs, count)
        return 1 - per_km(ours, count) / before if before else None

    return figure


def lost(pairs: Pairs) -> float:
    """Return the seconds more for each kilometre than with nobody."""
    ours, theirs = zip(*pairs, strict=True)
    return per_km(ours, duration) - per_km(theirs, duration)


def arrived(pairs: Pairs) -> float:
    """Return the share of trips that arrive."""
    return sum(one["end"] == "arrived" for one, _ in pairs) / len(pairs)


FIGURES: Mapping[str, Callable[[Pairs], float | None]] = {
    "fewer_collisions": fewer(collisions),
    "fewer_red_lights": fewer(red_lights),
    "arrived": arrived,
    "lost_per_km": lost,
}


def summary(pairs: Pairs) -> dict[str, Any]:
    """Return counts and figures of an arm, with intervals over whole trips."""
    trips = [one for one, _ in pairs]
    found: dict[str, Any] = {
        "trips": len(trips),
        "collisions": sum(map(collisions, trips)),
        "red_lights": sum(map(red_lights, trips)),
        "late": sum(trip["end"] == "late" for trip in trips),
        "intervened_share": rounded(
            sum(trip["intervened"] for trip in trips) / sum(map(duration, trips))
        ),
    }
    for name, figure in FIGURES.items():
        found |= resampled(name, figure, pairs, resamples=2000)
    return found


def row_of(name: str, found: Mapping[str, Any], seeds: str) -> Row:
    """Return what became of an arm, in words."""
    forms = {
        "fewer_collisions": "{:.0%}",
        "fewer_red_lights": "{:.0%}",
        "arrived": "{:.0%}",
        "lost_per_km": "{:+.0f}",
    }
    fewer, lawful, arrived, lost = (shown(found[key], form) for key, form in forms.items())
    ends = [between(found[f"{key}_interval"], form) for key, form in forms.items()]
    return Row(
        name,
        f"collisions {found['collisions']} (-{fewer}), red lights {found['red_lights']} "
        f"(-{lawful}), late {found['late']}, arrive {arrived}, lost {lost} s/km, "
        f"acting {found['intervened_share']:.0%}",
        "; ".join(filter(None, ends)),
        f"seeds {seeds}",
    )


def tried_in(lines: Sequence[Any]) -> list[Log]:
    """Return the logs of a file of tries, in which runs of equal ticks are one entry each."""
    return [[(s, done) for s, done, ticks in line["log"] for _ in range(ticks)] for line in lines]


def packed(log: Log) -> list[tuple[int | None, str, int]]:
    """Return a log as `tried_in` reads it."""
    return [(*tick, len(list(same))) for tick, same in groupby(log)]


def main(
    folder: Path,
    tries: Seeds = (),
    seeds: Seeds = (),
    only: Sequence[str] = ("",),
    tried: Path = HERE / "tries.jsonl.gz",
    config: Path = DEMO,
    write: bool = False,
) -> None:
    """Try actions (`--tries`); drive what is missing of `--seeds`, and sum up."""
    acting, model = load_acting(config)
    # What acts is the estimate: its bounds, which take a while to solve, are left out.
    plain = acting.spec.model_copy(update={"bounds": BoundsSpec(kind="none")})
    compiled = compile_for(plain, model)

    @cache
    def scenario(seed: int, lawful: bool = False) -> Scenario:
        where, ego = ("lawful", HEEDS_LIGHTS) if lawful else ("scenarios", EGO_TYPE)
        return town_scenario(seed, LIMIT, folder / where, ego)

    trying = Exploring(compiled, model, ASKED) if tries else None
    for seed in tries if trying else ():
        trying.seed = seed
        found = drive_once(scenario(seed), seed, trying, BEYOND)
        print(seed, found.get("end", found), found["cpu"], flush=True)
        log = {"seed": seed, "end": found.get("end"), "log": packed(trying.log)}
        write_lines(tried, [*read_lines(tried), log])
    if not seeds:
        return
    logs = tried_in(read_lines(tried))
    compared = compared_arms(compiled, model, logs)
    trips = Episodes(folder, keys_of(compared, compiled, model, logs))
    for seed in seeds:
        trips.drive(
            seed,
            trips.chosen(only),
            lambda arm, seed=seed: drive_once(scenario(seed, arm == LAWFUL), seed, compared[arm]),
        )
    pairs = trips.by_arm(seeds)
    found = {name: summary(pair) for name, pair in pairs.items()}
    driven = [one["seed"] for one, _ in pairs[NOBODY]]
    span = f"{driven[0]} to {driven[-1]}"
    rows = [row_of(name, one, span) for name, one in found.items()]
    publish(TITLE, COMMAND, rows, found, folder / "shield", write=write)


if __name__ == "__main__":
    command(main)
