"""Do interventions help? The same episodes with and without, through the library.

    python -m evaluation.irsim.closed_loop --model MODEL --folder DIR --clearance 0.3 --meet 0.6

Every episode that is done lies in the folder and is not driven again. `--clearance` and `--meet`
are the thresholds that the study chose for the rules. Adds to results.json and prints the table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.comparison import rounded
from evaluation.irsim.governors import Gate, Monitored, Rule, Ruled, SpeedLimit
from evaluation.irsim.robot import Governor, Simulator, drive, ending, simulator
from evaluation.irsim.scenes import RATE, draw_scene
from forewarn.config import MonitorSpec, load_spec
from forewarn.models import CountModel, load_model
from forewarn.properties.specification import CompiledSpec, compile_spec

HERE = Path(__file__).resolve().parent
NOBODY = "nobody"
LEVELS = (0.1, 0.2, 0.4)
CREEP = 0.1
"""m/s: what `speed_limit` is set to, since 0 would mean no limit to Nav2."""

Arms = dict[str, Callable[[], Governor] | None]


def acting(spec: MonitorSpec, level: float | None = None, limit: float | None = None) -> Any:
    """Return the monitor file as one that acts.

    Parameters
    ----------
    spec
        The monitor file.
    level
        One threshold for contact and distance; the file's if left out.
    limit
        Ask for this speed instead of a stop.
    """
    properties = {}
    for name, section in spec.properties.items():
        changes: dict[str, Any] = {}
        if limit is not None:
            changes |= {"intervention": "LIMIT_SPEED", "speed_limit": limit}
        if level is not None and section.intervention != "LIMIT_SPEED":
            levels = {"warn": level, "act": level, "release": 0.4 * level}
            changes["thresholds"] = section.thresholds.model_copy(update=levels)
        properties[name] = section.model_copy(update=changes)
    return compile_spec(spec.model_copy(update={"mode": "act", "properties": properties}))


def arms(spec: MonitorSpec, model: CountModel, clearance: float, meet: float) -> Arms:
    """Return who intervenes in each arm, made when its turn comes; None: nobody."""
    plain: CompiledSpec = acting(spec)

    def ruled(signal: str, threshold: float) -> Callable[[], Governor]:
        return lambda: Ruled(plain, Rule(signal, -1.0, -threshold), Gate())

    found: Arms = {
        NOBODY: None,
        "reactive (acts once a rule is broken)": lambda: Monitored(plain, None, Gate()),
        "stop for anything within 0.8 m ahead": ruled("clearance_ahead", 0.8),
        f"stop when clearance < {clearance:g} m": ruled("clearance", clearance),
        f"stop when time to meet < {meet:g} s": ruled("time_to_meet", meet),
    }
    for level in LEVELS:
        compiled = acting(spec, level)
        found[f"Forewarn at {level:g}, gate"] = lambda c=compiled: Monitored(c, model, Gate())
    slowing = acting(spec, LEVELS[1], CREEP)
    found[f"Forewarn at {LEVELS[1]:g}, speed_limit"] = lambda: Monitored(
        slowing, model, SpeedLimit()
    )
    return found


def run_episode(world: Simulator, seed: int, governor: Governor | None) -> dict[str, Any]:
    """Drive an episode and return how it ended."""
    scene = draw_scene(seed)
    frames = [frame for frame, _ in drive(world, scene, governor)]
    found = asdict(ending(scene, frames))
    near = [f for f in frames if f.speed > 0.05 and f.ranges.min() < 0.22 + 0.08]
    return found | {"near": len(near) / RATE, "acting": getattr(governor, "ticks_acting", 0) / RATE}


def summary(found: Sequence[dict[str, Any]], base: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of one arm; time lost is that of goals that were reached either way."""
    both = [e for e in found if e["arrived"] and base[e["seed"]]["arrived"]]
    lost = [e["duration"] - base[e["seed"]]["duration"] for e in both]
    contacts = [e for e in found if e["collided"]]
    return {
        "episodes": len(found),
        "contacts": len(contacts),
        "contacts_while_driving": sum(e["impact"] > 0.05 for e in contacts),
        "mean_impact": rounded(float(np.mean([e["impact"] for e in contacts])))
        if contacts
        else None,
        "arrived": sum(e["arrived"] for e in found),
        "out_of_time": sum(not e["arrived"] and not e["collided"] for e in found),
        "time_lost_mean": rounded(float(np.mean(lost))) if lost else None,
        "time_lost_median": rounded(float(np.median(lost))) if lost else None,
        "share_acting": rounded(
            sum(e["acting"] for e in found) / sum(e["duration"] for e in found)
        ),
    }


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return the figures as Markdown."""
    lines = [
        "| Who intervenes | Contacts | while driving | Goals reached | Out of time "
        "| Time lost, mean (median) | Intervening |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, r in results.items():
        n, lost = r["episodes"], r["time_lost_mean"]
        spent = "-" if lost is None else f"{lost:.1f} s ({r['time_lost_median']:.1f} s)"
        lines.append(
            f"| {name} | {r['contacts']} of {n} | {r['contacts_while_driving']} | {r['arrived']} "
            f"| {r['out_of_time']} | {spent} | {100 * r['share_acting']:.0f} % |"
        )
    return "\n".join(lines)


def main() -> None:
    """Drive what is missing, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--seeds", default="1000:1060", help="first:end")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--clearance", type=float, required=True)
    parser.add_argument("--meet", type=float, required=True)
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    spec, model = load_spec(HERE / "monitor.yaml"), load_model(arguments.model)
    compared = arms(spec, model, arguments.clearance, arguments.meet)
    first, end = (int(part) for part in arguments.seeds.split(":"))
    found: dict[str, list[dict[str, Any]]] = {}
    with simulator() as world:
        for place, (name, make) in enumerate(compared.items()):
            governor = None if make is None else make()
            for seed in range(first, end):
                note = arguments.folder / f"arm{place}_{seed}.json"
                if not note.exists():
                    episode = {"arm": name} | run_episode(world, seed, governor)
                    note.write_text(json.dumps(episode), encoding="utf-8")
                found.setdefault(name, []).append(json.loads(note.read_text(encoding="utf-8")))
            print(name, sum(e["collided"] for e in found[name]), flush=True)
    base = {episode["seed"]: episode for episode in found[NOBODY]}
    figures = {name: summary(each, base) for name, each in found.items()}
    results = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    results["closed_loop"] = {"seeds": arguments.seeds, "arms": figures}
    arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(table(figures))


if __name__ == "__main__":
    main()
