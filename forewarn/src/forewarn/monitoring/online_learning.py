"""Learning while watching: counts that grow tick by tick, and models made of them in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.models.counts import CountModel, Provenance, Smoothing
from forewarn.models.file import merge_models
from forewarn.monitoring.memory_bound import MOST_COUNTED
from forewarn.signals.clock_kinds import clock_of

if TYPE_CHECKING:
    from forewarn.logic.specification import CompiledSpec
    from forewarn.states.interface import Observed

ONLINE = "learned while watching"


class OnlineLearner:
    """Adds the transitions of a live session to the counts of a model.

    What counts is what `forewarn learn` would count: consecutive ticks whose states are fully
    known, active, free of interventions, and allowed by the constraints.
    """

    def __init__(self, compiled: CompiledSpec, model: CountModel) -> None:
        self._spec = compiled.spec
        self._digest = compiled.abstraction.digest
        self._base = model
        self._validity = compiled.abstraction.validity(compiled.spec)
        self._counter = TransitionCounter(
            compiled.abstraction.vocabulary, model.end, self._validity.allows
        )
        self._counted = self._taken = 0
        self._last: int | None = None

    @property
    def full(self) -> bool:
        """Tell whether so much was counted that nothing more is."""
        return self._counter.entries >= MOST_COUNTED

    @property
    def pending(self) -> int:
        """Transitions counted since `model` was asked last."""
        return self._counted - self._taken

    def observe(
        self, tick: int, observation: Observed, *, intervened: bool, action: str | None = None
    ) -> None:
        """Take in one tick.

        `tick`: number of the tick; if it does not follow the last one, a new run begins.
        `action`: what is done: that intervention, or what the monitor file names.
        """
        if self.full:
            return
        if self._last is not None and tick <= self._last:
            self._counter.end_recording()
        self._last = tick
        state = observation.state if observation.active is True else None
        if state is not None and not self._validity.admits(state):
            state = None
        foreign = observation.intervened is not False
        self._counted += self._counter.add(tick, state, intervened or foreign, action)

    def model(self) -> CountModel:
        """Return the model of all counts so far; see `later`."""
        return self.later()()

    def later(self) -> Callable[[], CountModel]:
        """Return what gives the model of all counts so far, those of the beginning included.

        It may be called in another thread, for a large model takes long to be put together.

        Maps that calibrate risks stay, and so does what risks are made of: what they mend comes
        from the abstraction, and a risk that jumps in mid-session would mislead more. What a group
        borrows stays, too, and matters the less the more is counted.
        """
        self._taken = self._counted
        counts = self._counter.result
        clock = clock_of(self._spec.rate)
        spent = clock.duration(counts.ticks)
        source = Provenance(ONLINE, "", spent, counts.ticks, self._counted)
        learned = build_model(
            self._counter,
            rate=clock.remembered,
            digest=self._digest,
            smoothing=Smoothing(self._base.smoothing.alpha, self._base.smoothing.candidates),
            forbid=self._validity.forbidden_matrix,
            provenance=(source,),
            state_source_recordings=self._base.state_source_recordings,
            sections=self._base.sections,
        )
        base = self._base
        return lambda: _joined(base, learned)


def _joined(base: CountModel, learned: CountModel) -> CountModel:
    """Return both models' counts with what `base` has beside its own."""
    found = merge_models([base, learned])
    index = found.index
    target = np.array([index[state] for state in base.states], dtype=np.int64)
    others = base.hierarchical_prior
    return replace(
        found,
        recalibration=base.recalibration,
        estimates=base.estimates,
        hierarchical_prior=None if others is None else others.moved(target, found.size),
    )
