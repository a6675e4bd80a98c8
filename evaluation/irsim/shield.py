"""A shield for the small robot: actions are tried, learned from, and recommended.

    python -m evaluation.irsim.shield --model MODEL --folder DIR --learned FILE --tries 3000:3130
    python -m evaluation.irsim.shield --model MODEL --folder DIR --learned FILE --seeds 4000:4100

The first command drives with actions at random moments and writes the model that learned on from
there; the second drives the same episodes by all arms. With `--write` results.json and RESULTS.md
have what it found.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.harness.advice import (
    Advised,
    Exploring,
    Log,
    held_process,
    learned_on,
    with_shield,
)
from evaluation.harness.command import Seeds, command
from evaluation.harness.control import Library, OnSignals
from evaluation.harness.episodes import Episodes, Pairs
from evaluation.harness.page import publish, resampled, table, told
from evaluation.irsim.closed_loop import (
    CREEP,
    HERE,
    JUDGED,
    NOBODY,
    acting,
    lost,
    out_of_time,
    run_episode,
    share_of,
)
from evaluation.irsim.governors import STOP, Governed, Steering, falling
from evaluation.irsim.robot import Simulator, drive, simulator
from evaluation.irsim.scenes import RATE, draw_scene
from forewarn.config import load_spec
from forewarn.config.sections import ShieldSpec
from forewarn.models import CountModel, load_model, save_model
from monitor_node.actuators.interface import Demand

MARK = "evaluation.irsim.shield"
LEVEL, RELEASE, MEET = 0.2, 0.18, 0.5
SHIELD = ShieldSpec(failure="contact", success="arrived", at_least=0.9, horizon=3.0)
LIMIT = Demand("LIMIT_SPEED", CREEP, id=1)
REPLAN = Demand("REPLAN", id=1)
ASKED = (REPLAN, LIMIT, STOP)
"""What may be asked of the robot, the mildest first."""

HELD = 5  # ticks for which a recommendation is done
Arms = dict[str, Governed | None]


def explore(model: CountModel, seeds: Seeds, learned: Path) -> None:
    """Drive with actions at random moments, and write the model with what followed them.

    The states and actions of each episode go into a file beside it.
    """
    compiled = acting(load_spec(HERE / "monitor.yaml"))
    trying = Exploring(compiled, model, ASKED)
    governed = Governed(trying, Steering())
    with simulator() as world:
        for seed in seeds:
            trying.seed = seed
            how = _try(world, seed, governed)
            print(seed, how, flush=True)
            log = {"seed": seed, "end": how, "log": trying.log}
            with learned.with_suffix(".jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(log) + "\n")
    save_model(learned_on(compiled, model, tried(learned)), learned)


def tried(learned: Path) -> list[Log]:
    """Return the logs beside a model that learned on from them."""
    lines = learned.with_suffix(".jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["log"] for line in lines]


def _try(world: Simulator, seed: int, governed: Governed) -> str:
    *_, (last, _) = drive(world, draw_scene(seed), governed)
    governed.govern(last, (0.0, 0.0))  # how it ended is to be learned, too
    return "contact" if last.collided else "arrived" if last.arrived else "late"


def arms(model: CountModel, learned: CountModel, logs: Sequence[Log]) -> Arms:
    """Return who intervenes in each arm; None: nobody."""
    spec = load_spec(HERE / "monitor.yaml")
    shielded = with_shield(spec, SHIELD, LEVEL, RELEASE, JUDGED)
    held = held_process(shielded, logs, HELD)

    def ruled(demand: Demand) -> Governed:
        rule = falling("time_to_meet", MEET, demand)
        return Governed(OnSignals(acting(spec), [rule]), Steering())

    def forewarn(known: CountModel) -> Governed:
        return Governed(Library(acting(spec, LEVEL, limit=CREEP), known), Steering())

    return {
        NOBODY: None,
        f"speed limit when time to meet < {MEET:g} s": ruled(LIMIT),
        f"another plan when time to meet < {MEET:g} s": ruled(REPLAN),
        f"Forewarn at {LEVEL:g}, speed limit": forewarn(model),
        f"Forewarn at {LEVEL:g}, speed limit, learned on": forewarn(learned),
        f"Forewarn at {LEVEL:g}, shield at each tick": Governed(
            Advised(shielded, learned, ASKED), Steering()
        ),
        f"Forewarn at {LEVEL:g}, shield each {HELD / RATE:g} s": Governed(
            Advised(shielded, learned, ASKED, held), Steering()
        ),
    }


def avoided(pairs: Pairs) -> float | None:
    """Return how many contacts fewer there are than nobody's, as a share of these."""
    before = sum(base["collided"] for _, base in pairs)
    return 1 - sum(one["collided"] for one, _ in pairs) / before if before else None


def arrived(pairs: Pairs) -> float:
    """Return the share of episodes that reach the goal."""
    return sum(one["arrived"] for one, _ in pairs) / len(pairs)


FIGURES = {"avoided": avoided, "arrived": arrived, "lost": lost}


def summary(pairs: Pairs) -> dict[str, Any]:
    """Return counts and figures of an arm, with intervals over whole episodes."""
    found: dict[str, Any] = {
        "episodes": len(pairs),
        "contacts": sum(one["collided"] for one, _ in pairs),
        "goals": sum(one["arrived"] for one, _ in pairs),
        "out_of_time": out_of_time(pairs),
        "share_acting": share_of(pairs, "acting"),
    }
    for name, figure in FIGURES.items():
        found |= resampled(name, figure, pairs, resamples=2000)
    return found


HEAD = (
    *("Who intervenes", "Episodes", "Contacts", "Fewer than nobody's", "Goals reached"),
    *("Out of time", "Time lost", "Intervening"),
)


def table_of(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures as Markdown."""
    lines = [
        [
            *(name, str(row["episodes"]), str(row["contacts"]), told(row, "avoided", "{:.0%}")),
            f"{row['goals']}: {told(row, 'arrived', '{:.0%}')}",
            *(str(row["out_of_time"]), f"{told(row, 'lost', '{:+.1f}')} s"),
            f"{row['share_acting']:.0%}",
        ]
        for name, row in rows.items()
    ]
    return table(HEAD, lines)


def main(
    model: Path,
    folder: Path,
    learned: Path,
    tries: Seeds = (),
    seeds: Seeds = (),
    only: Sequence[str] = ("",),
    write: bool = False,
) -> None:
    """Explore and learn on (`--tries`), drive what is missing of `--seeds`, and sum up."""
    base = load_model(model)
    if tries:
        explore(base, tries, learned)
    if not seeds:
        return
    known = load_model(learned)
    compared = arms(base, known, tried(learned))
    keys = dict.fromkeys(compared, f"{base.fingerprint} {known.fingerprint}")
    episodes = Episodes(folder, keys)
    with simulator() as world:
        for seed in seeds:
            episodes.drive(
                seed,
                episodes.chosen(only),
                lambda arm, seed=seed: run_episode(world, seed, compared[arm]),
            )
    pairs = episodes.by_arm(seeds)
    rows = {name: summary(mine) for name, mine in pairs.items()}
    driven = [episode["seed"] for episode, _ in pairs[NOBODY]]
    asked: Counter[str] = Counter()
    for step, count in known.steps:
        asked[step.action] += count if step.imposed else 0
    found = {"seeds": driven, "tried": dict(+asked), "arms": rows}
    publish(MARK, table_of(rows), found, HERE / "results.json", write=write, within="shield")


if __name__ == "__main__":
    command(main)
