"""Learn on from trips with the monitor in the loop, as the node does with `learning: online`.

    python -m evaluation.closed_loop.learn_on --folder /tmp/trips --seeds 801:821

The model was learned from an ego that nobody stops. Where interventions leave it, it has hardly
ever been: these trips add what happens there. Ticks under an intervention are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from evaluation.closed_loop.arms import Monitored, as_shipped
from evaluation.closed_loop.controllers import Library
from evaluation.closed_loop.demands import Demand
from evaluation.closed_loop.loading import CONFIG, open_watch
from evaluation.closed_loop.town import NoEgoError, town_scenario
from evaluation.closed_loop.trip import LIMIT, drive
from forewarn.models.file import save_model
from forewarn.monitoring.online_learning import OnlineLearner


def main() -> None:
    """Drive, count and write the model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, required=True, help="for scenarios and the model")
    parser.add_argument("--config", type=Path, default=CONFIG, help="monitor file")
    parser.add_argument("--seeds", default="801:821", help="first:end (default: 801:821)")
    arguments = parser.parse_args()
    import libsumo

    monitored = Monitored.load(arguments.config)
    watch = open_watch(*monitored)
    library = Library(watch, as_shipped(watch.spec))
    learner = OnlineLearner(*monitored)

    def count(tick: int, demand: Demand) -> None:
        if library.outcome is not None:
            observation = library.outcome.verdict.observation
            learner.observe(tick, observation, intervened=demand.moves)

    first, end = (int(part) for part in arguments.seeds.split(":"))
    for seed in range(first, end):
        scenario = town_scenario(seed, LIMIT, arguments.folder / "scenarios")
        library.begin()
        try:
            trip = drive(libsumo, scenario, seed, library, heard=count)
        except NoEgoError as error:
            print(error)
            continue
        print(f"seed {seed}: {trip.end}, {len(trip.red_lights)} red lights", flush=True)
    path = arguments.folder / "learned_on.model.json"
    print(f"{learner.pending} transitions")
    save_model(learner.model(), path)
    print(f"written to {path}")


if __name__ == "__main__":
    main()
