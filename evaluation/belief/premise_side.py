"""premise's own monitor, in an environment of its own: a run for each seed that is asked for.

    python premise_side.py PREMISE JOB.json

`study.py` calls it. PREMISE is a checkout of monitoring-MDPs/premise, which stays as it is; what
has changed in stormpy since 2021 is put right around it: steps of the simulator return the labels,
too, and signal handlers want a number. Each run gets a tracker of its own, because one that begins
a run anew still holds what it believed at the end of the run before. Its clock is the processor's,
since other work on the machine lengthens the one on the wall. Where the job says `uniform`, each
choice of the model is drawn evenly, so that the model is a chain.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import stormpy
import stormpy.pomdp
import stormpy.simulator

NEXT = "@next"
"""What is printed when a run is done and another seed is wanted; an empty line says that is all."""


class _Simulator:
    """Steps as premise knows them: observation and reward."""

    def __init__(self, given: Any) -> None:
        self.set_seed = given.set_seed
        self.restart = lambda: given.restart()[:2]
        self.random_step = lambda: given.random_step()[:2]


class _Tracker:
    """A tracker that has forgotten the run before when it begins anew."""

    def __init__(self, make: Any) -> None:
        self._make, self._risk, self._now = make, None, None

    def set_risk(self, risk: Any) -> None:
        self._risk = risk

    def reset(self, observation: int) -> Any:
        self._now = self._make()
        self._now.set_risk(self._risk)
        return self._now.reset(observation)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now, name)


def adapted(premise: Path, uniform: bool, models: list[Any]) -> Any:
    """Return premise's module `monitoring`, fit for today's stormpy; models are kept as built."""
    sys.path.insert(0, str(premise / "premise"))
    monitoring = import_module("monitoring")
    simulator = stormpy.simulator.create_simulator
    tracker = stormpy.pomdp.create_nondeterminstic_belief_tracker
    build = monitoring.build_model

    def build_model(*given: Any, **named: Any) -> Any:
        model = build(*given, **named)
        models.append(as_chain(model) if uniform else model)
        return models[-1]

    stormpy.simulator.create_simulator = lambda *given: _Simulator(simulator(*given))
    stormpy.pomdp.create_nondeterminstic_belief_tracker = lambda *given: _Tracker(
        lambda: tracker(*given)
    )
    stormpy.install_signal_handlers = lambda: None
    monitoring.build_model = build_model
    monitoring.time = SimpleNamespace(monotonic=time.process_time)
    return monitoring


def as_chain(model: Any) -> Any:
    """Return the model as a chain: in each state all of its choices are equally probable."""
    exact = isinstance(model, stormpy.SparseExactPomdp)
    names = ("ExactSparseMatrixBuilder", "SparseExactModelComponents", "SparseExactPomdp")
    plain = ("SparseMatrixBuilder", "SparseModelComponents", "SparsePomdp")
    matrix_of, components_of, model_of = (getattr(stormpy, n) for n in (names if exact else plain))
    number = stormpy.Rational if exact else float
    matrix, size = model.transition_matrix, model.nr_states
    builder = matrix_of(size, size, 0, False, True, size)
    for state in range(size):
        builder.new_row_group(state)
        choices = range(matrix.get_row_group_start(state), matrix.get_row_group_end(state))
        found: dict[int, Any] = {}
        for choice in choices:
            for entry in matrix.get_row(choice):
                share = entry.value() / number(len(choices))
                found[entry.column] = found.get(entry.column, number(0)) + share
        for column, value in sorted(found.items()):
            builder.add_next_value(state, column, value)
    parts = components_of(builder.build(), model.labeling)
    parts.observability_classes = [model.get_observation(state) for state in range(size)]
    parts.state_valuations = model.state_valuations
    known = {
        "has_observation_valuations": lambda _: True,
        "observation_valuations": model.observation_valuations,
    }
    return type("Chain", (model_of,), known)(parts)


def told(model: Any, bad: str) -> dict[str, Any]:
    """Return the chain, what is observed in its states, and which of them are bad."""
    states, bad_ones = range(model.nr_states), set(model.labeling.get_states(bad))
    matrix, valuations = model.transition_matrix, model.state_valuations  # each is a copy
    return {
        "entries": [
            [state, entry.column, float(entry.value())]
            for state in states
            for entry in matrix.get_row(state)
        ],
        "observations": [model.get_observation(state) for state in states],
        "valuations": [valuations.get_string(state) for state in states],
        "initial": model.initial_states[0],
        "bad": sorted(bad_ones),
    }


def seeds() -> Iterator[int]:
    """Yield the seeds that standard input has, each when the run before is done."""
    while True:
        print(NEXT, flush=True)
        line = sys.stdin.readline().strip()
        if not line:
            return
        yield int(line)


def main() -> None:
    """Let premise monitor the runs of one model, by one of its methods."""
    premise, file = Path(sys.argv[1]), Path(sys.argv[2])
    job = json.loads(file.read_text(encoding="utf-8"))
    models: list[Any] = []
    monitoring = adapted(premise, job["uniform"], models)
    filters, unfolds = monitoring.ForwardFilteringOptions, monitoring.UnfoldingOptions
    kind, exact = job["kind"], job["exact"]
    options = unfolds(exact) if kind == "unfolding" else filters(kind == "reducing", exact)
    stormpy.set_settings(["--signal-timeout", "100000"])
    os.chdir(file.parent)
    if "model" in job:
        monitoring.analyse_model = _telling(monitoring.analyse_model, models, job)
    monitoring.monitor(
        job["file"], job["risk"], job["constants"], job["steps"], options,
        simulator_seed=seeds(), promptness_deadline=job["deadline"], model_id=job["name"],
    )  # fmt: skip


def _telling(analyse: Any, models: list[Any], job: dict[str, Any]) -> Any:
    def analyse_model(*given: Any) -> Any:
        text = json.dumps(told(models[-1], job["bad"]))
        Path(job["model"]).write_text(text, encoding="utf-8")
        return analyse(*given)

    return analyse_model


if __name__ == "__main__":
    main()
