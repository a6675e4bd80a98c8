"""Do interventions help? The same episodes with and without, through the library.

    python -m evaluation.irsim.closed_loop --model MODEL --folder DIR --seeds 1000:1040

Every episode that is done lies in the folder and is not driven again; seeds that all arms have
behind them count. Adds to results.json and prints the table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.comparison import rounded
from evaluation.irsim.governors import Gate, Monitored, Rule, Ruled, SpeedLimit
from evaluation.irsim.robot import Governor, Simulator, drive, ending, simulator
from evaluation.irsim.scenes import RATE, draw_scene
from forewarn.config import MonitorSpec, load_spec
from forewarn.config.sections import BoundsSpec
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models import CountModel, load_model
from monitor_node.actuators.interface import Demand

HERE = Path(__file__).resolve().parent
NOBODY = "nobody"
FIRST = "first attempt: Forewarn at 0.4, gate, all three rules"
SLOW = {"speed_limit": 0.2}
JUDGED = ("no_contact", "keep_distance")
LEVELS = (0.2, 0.4)
CREEP = 0.1
"""m/s: what `speed_limit` is set to, since 0 would mean no limit to Nav2."""

MEET, AHEAD = 0.5, 0.8
"""Thresholds of the rules, in s and m."""

Arms = dict[str, Governor | None]


def acting(
    spec: MonitorSpec, level: float | None = None, *, limit: float | None = None, late: bool = False
) -> CompiledSpec:
    """Return the monitor file as one that acts.

    Parameters
    ----------
    spec
        The monitor file.
    level
        One threshold for contact and distance; the file's if left out.
    limit
        Ask for this speed instead of a stop.
    late
        As it was first: stop for the distance as well, limit the speed for `slow_when_near`, and
        release at 0.4 of the threshold.
    """
    properties = {}
    for name, section in spec.properties.items():
        changes: dict[str, Any] = {}
        if limit is not None and section.intervention == "EMERGENCY_STOP":
            changes |= {"intervention": "LIMIT_SPEED", "speed_limit": limit}
        if name in JUDGED and level is not None:
            release = (0.4 if late else 0.9) * level
            levels = {"warn": level, "act": level, "release": release}
            changes["thresholds"] = section.thresholds.model_copy(update=levels)
        if late:
            stops = {"intervention": "EMERGENCY_STOP", "speed_limit": None}
            changes |= stops if name in JUDGED else {"intervention": "LIMIT_SPEED", **SLOW}
        properties[name] = section.model_copy(update=changes)
    # What acts is the estimate: its bounds, which take a while to solve, are left out.
    update = {"mode": "act", "properties": properties, "bounds": BoundsSpec(kind="none")}
    return compile_spec(spec.model_copy(update=update))


def arms(spec: MonitorSpec, model: CountModel) -> Arms:
    """Return who intervenes in each arm; None: nobody."""
    plain = acting(spec)

    def ruled(signal: str, threshold: float) -> Governor:
        return Ruled(plain, Rule(signal, -1.0, -threshold), Gate())

    slowing = acting(spec, LEVELS[0], limit=CREEP)
    return {
        NOBODY: None,
        "reactive (acts once a rule is broken)": Monitored(plain, None, Gate()),
        f"stop for anything within {AHEAD:g} m ahead": ruled("clearance_ahead", AHEAD),
        f"stop when time to meet < {MEET:g} s": ruled("time_to_meet", MEET),
        **{
            f"Forewarn at {level:g}, gate": Monitored(acting(spec, level), model, Gate())
            for level in LEVELS
        },
        f"Forewarn at {LEVELS[0]:g}, speed_limit": Monitored(slowing, model, SpeedLimit()),
        FIRST: Monitored(acting(spec, LEVELS[1], late=True), model, Gate()),
        f"speed_limit when time to meet < {MEET:g} s": Ruled(
            plain,
            Rule("time_to_meet", -1.0, -MEET),
            SpeedLimit(),
            Demand("LIMIT_SPEED", CREEP, id=1),
        ),
    }


def run_episode(world: Simulator, seed: int, governor: Governor | None) -> dict[str, Any]:
    """Drive an episode and return how it ended."""
    scene = draw_scene(seed)
    frames = [frame for frame, _ in drive(world, scene, governor)]
    found = asdict(ending(scene, frames))
    return found | {"acting": getattr(governor, "ticks_acting", 0) / RATE}


def summary(found: Sequence[dict[str, Any]], base: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of one arm; time lost is that of goals that were reached either way."""
    both = [e for e in found if e["arrived"] and base[e["seed"]]["arrived"]]
    lost = [e["duration"] - base[e["seed"]]["duration"] for e in both]
    contacts = [e for e in found if e["collided"]]
    before = [e for e in found if base[e["seed"]]["collided"]]
    return {
        "episodes": len(found),
        "with_contact_before": len(before),
        "contacts_left": sum(e["collided"] for e in before),
        "contacts_new": len(contacts) - sum(e["collided"] for e in before),
        "contacts_while_driving": sum(e["impact"] > 0.05 for e in contacts),
        "mean_impact": rounded(mean([e["impact"] for e in contacts])),
        "arrived": sum(e["arrived"] for e in found),
        "out_of_time": sum(not e["arrived"] and not e["collided"] for e in found),
        "time_lost_mean": rounded(mean(lost)),
        "time_lost_median": rounded(float(np.median(lost))) if lost else None,
        "share_acting": rounded(
            sum(e["acting"] for e in found) / sum(e["duration"] for e in found)
        ),
    }


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None without any."""
    return float(np.mean(values)) if values else None


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return the figures as Markdown."""
    lines = [
        "| Who intervenes | Contacts left | new | while driving | Goals reached | Out of time "
        "| Time lost, mean (median) | Intervening |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, r in results.items():
        before, lost = r["with_contact_before"], r["time_lost_mean"]
        after = r["episodes"] - before
        spent = "-" if lost is None else f"{lost:.1f} s ({r['time_lost_median']:.1f} s)"
        lines.append(
            f"| {name} | {r['contacts_left']} of {before} | {r['contacts_new']} of {after} "
            f"| {r['contacts_while_driving']} | {r['arrived']} | {r['out_of_time']} | {spent} "
            f"| {100 * r['share_acting']:.0f} % |"
        )
    return "\n".join(lines)


def seeds_of(text: str) -> Sequence[int]:
    """Return the seeds that ``first:end`` or ``one,two,three`` stand for."""
    if ":" in text:
        first, end = (int(part) for part in text.split(":"))
        return range(first, end)
    return [int(part) for part in text.split(",")]


def note_of(folder: Path, place: int, seed: int) -> Path:
    """Return where the episode of an arm and a seed lies."""
    return folder / f"arm{place}_{seed}.json"


def drive_all(world: Simulator, seed: int, compared: Arms, folder: Path, *, first: bool) -> None:
    """Drive the episodes of a seed that are missing; those of the first attempt if asked to."""
    for place, (name, governor) in enumerate(compared.items()):
        note = note_of(folder, place, seed)
        if not note.exists() and (first or name != FIRST):
            episode = {"arm": name} | run_episode(world, seed, governor)
            note.write_text(json.dumps(episode), encoding="utf-8")
            print(json.dumps(episode), flush=True)


def load_all(folder: Path, compared: Arms, seeds: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    """Return the episodes of every arm, of seeds that no arm lacks but the first attempt."""
    places = {name: place for place, name in enumerate(compared)}

    def done(name: str, seed: int) -> bool:
        return note_of(folder, places[name], seed).exists()

    whole = [s for s in seeds if all(done(name, s) for name in compared if name != FIRST)]
    return {
        name: [
            json.loads(note_of(folder, place, seed).read_text(encoding="utf-8"))
            for seed in whole
            if done(name, seed)
        ]
        for name, place in places.items()
    }


def main() -> None:
    """Drive what is missing, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--seeds", default="1000:1080", help="first:end, or one by one with commas")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument(
        "--first-attempt", type=int, default=8, help="seeds for the first attempt, too (8)"
    )
    parser.add_argument("--only-summary", action="store_true", help="drive nothing")
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    spec, model = load_spec(HERE / "monitor.yaml"), load_model(arguments.model)
    compared = arms(spec, model)
    seeds = seeds_of(arguments.seeds)
    if not arguments.only_summary:
        with simulator() as world:
            for at, seed in enumerate(seeds):
                first = at < arguments.first_attempt
                drive_all(world, seed, compared, arguments.folder, first=first)
    found = load_all(arguments.folder, compared, seeds)
    base = {episode["seed"]: episode for episode in found[NOBODY]}
    figures = {name: summary(item, base) for name, item in found.items()}
    results = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    results["closed_loop"] = {"seeds": sorted(base), "arms": figures}
    arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(figures))


if __name__ == "__main__":
    main()
