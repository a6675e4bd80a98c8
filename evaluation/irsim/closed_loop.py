"""Do interventions help? The same episodes with and without, through the library.

    python -m evaluation.irsim.closed_loop --model MODEL --folder DIR --seeds 1000:1040

Every episode that is done lies in the folder and is not driven again. `--first-attempt` says for
how many seeds the first attempt is driven, too. With `--write` results.json has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.harness.command import Seeds, command
from evaluation.harness.control import Library, OnSignals
from evaluation.harness.episodes import Episodes, Pairs
from evaluation.harness.page import publish, rounded, table
from evaluation.irsim.governors import STOP, Gate, Governed, SpeedLimit, falling
from evaluation.irsim.robot import Simulator, drive, ending, simulator
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


def acting(
    spec: MonitorSpec, level: float | None = None, *, limit: float | None = None, late: bool = False
) -> CompiledSpec:
    """Return the monitor file as one that acts, at one threshold for contact and distance if given.

    With `limit` it asks for this speed instead of a stop. `late` is as it was first: stop for the
    distance as well, limit the speed for `slow_when_near`, and release at 0.4 of the threshold.
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


def arms(spec: MonitorSpec, model: CountModel) -> dict[str, Governed | None]:
    """Return who intervenes in each arm; None: nobody."""

    def ruled(signal: str, threshold: float, demand: Demand = STOP) -> OnSignals:
        return OnSignals(acting(spec), [falling(signal, threshold, demand)])

    def forewarn(level: float, **changes: Any) -> Library:
        return Library(acting(spec, level, **changes), model)

    limit = Demand("LIMIT_SPEED", CREEP, id=1)
    gated = {
        "reactive (acts once a rule is broken)": Library(acting(spec), None),
        f"stop for anything within {AHEAD:g} m ahead": ruled("clearance_ahead", AHEAD),
        f"stop when time to meet < {MEET:g} s": ruled("time_to_meet", MEET),
        **{f"Forewarn at {level:g}, gate": forewarn(level) for level in LEVELS},
    }
    slowed = forewarn(LEVELS[0], limit=CREEP)
    return {
        NOBODY: None,
        **{name: Governed(controller, Gate()) for name, controller in gated.items()},
        f"Forewarn at {LEVELS[0]:g}, speed_limit": Governed(slowed, SpeedLimit()),
        FIRST: Governed(forewarn(LEVELS[1], late=True), Gate()),
        f"speed_limit when time to meet < {MEET:g} s": Governed(
            ruled("time_to_meet", MEET, limit), SpeedLimit()
        ),
    }


def run_episode(world: Simulator, seed: int, governor: Governed | None) -> dict[str, Any]:
    """Drive an episode and return how it ended."""
    scene = draw_scene(seed)
    frames = [frame for frame, _ in drive(world, scene, governor)]
    found = asdict(ending(scene, frames))
    return found | {"acting": governor.ticks_acting / RATE if governor else 0.0}


def seconds_lost(pairs: Pairs) -> list[float]:
    """Return the seconds lost, over goals reached either way."""
    return [a["duration"] - b["duration"] for a, b in pairs if a["arrived"] and b["arrived"]]


def lost(pairs: Pairs) -> float | None:
    """Return their mean."""
    return mean(seconds_lost(pairs))


def out_of_time(pairs: Pairs) -> int:
    """Return how many episodes ended neither at the goal nor in a contact."""
    return sum(not one["arrived"] and not one["collided"] for one, _ in pairs)


def share_of(pairs: Pairs, what: str) -> float | None:
    """Return the share of the time in which something was so: `acting`, say."""
    return rounded(sum(one[what] for one, _ in pairs) / sum(one["duration"] for one, _ in pairs))


def summary(pairs: Pairs) -> dict[str, Any]:
    """Return the figures of one arm."""
    spent = seconds_lost(pairs)
    contacts = [e for e, _ in pairs if e["collided"]]
    before = [a for a, b in pairs if b["collided"]]
    left = sum(e["collided"] for e in before)
    return {
        "episodes": len(pairs),
        "with_contact_before": len(before),
        "contacts_left": left,
        "contacts_new": len(contacts) - left,
        "contacts_while_driving": sum(e["impact"] > 0.05 for e in contacts),
        "mean_impact": rounded(mean([e["impact"] for e in contacts])),
        "arrived": sum(e["arrived"] for e, _ in pairs),
        "out_of_time": out_of_time(pairs),
        "time_lost_mean": rounded(mean(spent)),
        "time_lost_median": rounded(float(np.median(spent))) if spent else None,
        "share_acting": share_of(pairs, "acting"),
    }


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None without any."""
    return float(np.mean(values)) if values else None


def shown(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures as Markdown."""
    head = (
        *("Who intervenes", "Contacts left", "new", "while driving", "Goals reached"),
        *("Out of time", "Time lost, mean (median)", "Intervening"),
    )
    rows = []
    for name, r in results.items():
        before, lost = r["with_contact_before"], r["time_lost_mean"]
        after = f"{r['contacts_new']} of {r['episodes'] - before}"
        counts = map(str, (r["contacts_while_driving"], r["arrived"], r["out_of_time"]))
        spent = "-" if lost is None else f"{lost:.1f} s ({r['time_lost_median']:.1f} s)"
        share = f"{100 * r['share_acting']:.0f} %"
        rows.append((name, f"{r['contacts_left']} of {before}", after, *counts, spent, share))
    return table(head, rows).rstrip()


def main(
    model: Path,
    folder: Path,
    seeds: Seeds = range(1000, 1080),
    first_attempt: int = 8,
    only_summary: bool = False,
    write: bool = False,
) -> None:
    """Drive what is missing, and sum up."""
    learned = load_model(model)
    compared = arms(load_spec(HERE / "monitor.yaml"), learned)
    episodes = Episodes(folder, dict.fromkeys(compared, learned.fingerprint))
    if not only_summary:
        with simulator() as world:
            for at, seed in enumerate(seeds):
                wanted = [name for name in compared if name != FIRST or at < first_attempt]
                episodes.drive(
                    seed, wanted, lambda arm, seed=seed: run_episode(world, seed, compared[arm])
                )
    found = episodes.by_arm(seeds)
    figures = {name: summary(pairs) for name, pairs in found.items()}
    told = {"seeds": [episode["seed"] for episode, _ in found[NOBODY]], "arms": figures}
    publish(None, shown(figures), told, HERE / "results.json", write=write, within="closed_loop")


if __name__ == "__main__":
    command(main)
