"""The shield in the loop: somebody tries actions and learns on, and a planner is advised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evaluation.harness.control import Library, Policies, moving
from forewarn.learning.counting import TransitionCounter
from forewarn.learning.pipeline import assemble
from forewarn.learning.recording_report import RecordingReport
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import CountModel, Provenance
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.intervention import NOTHING, Intervention
from forewarn.states.interface import StateSpace, is_terminal
from forewarn.wings.decisions.process_query import state_mask
from forewarn.wings.decisions.shield import ShieldTable

DRIVE_ON = "drive on"
"""What is done while nothing is asked for."""

LENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds for which an action is tried, one as often as the other; drawn anew after the least."""

OFTEN, SELDOM, DANGER = 1.0, 0.05, 0.05
"""How often an action is tried, a second: from this risk on, and below it."""


class Advised(Library):
    """A planner that does what the shield recommends while the policy asks for anything.

    Parameters
    ----------
    compiled : CompiledSpec
        With a `shield` section, unless a process is `held`.
    model : CountModel
        The policy's risk, and the shield unless a process is `held`, of the counts of its actions.
    asked : sequence of Intervention
        What may be recommended.
    held : Process, optional
        What followed actions that were held for so many ticks: its shield is asked, and only when
        its last recommendation has been done for so long.
    visits : int
        How often an action of that process must have been seen in a state to be recommended there.
        What the policy demands stands where that itself was seen less often.
    policies : mapping, optional
        As `Library` has them. Whatever warns is advised.
    """

    def __init__(
        self,
        compiled: CompiledSpec,
        model: CountModel,
        asked: Sequence[Intervention],
        held: Process | None = None,
        visits: int = 0,
        policies: Policies | None = None,
    ) -> None:
        super().__init__(compiled, model, policies)
        self._visits = visits
        self._demands = {demand.action: demand for demand in asked} | {DRIVE_ON: NOTHING}
        self._ticks = held.ticks if held else 1
        self._slow = held.table if held else None
        self._clock = held.compiled.abstraction.clock if held else compiled.abstraction.clock

    def begin(self) -> None:
        """Forget the last episode."""
        super().begin()
        self._demand, self._left = NOTHING, 0

    def tick(self, number: int) -> Intervention:
        """Decide, or go on with what was decided."""
        result = self.watch.tick(number)
        self._left -= 1
        if self._left <= 0:
            self._demand = self._recommended(result)
            self._left = self._ticks if self._demand is not NOTHING else 0
        return self._demand

    def _recommended(self, result: TickResult) -> Intervention:
        request = result.request
        if request is None or not request.active:
            return NOTHING
        asked, chosen = moving(request), request.recommendation
        if self._slow is not None:
            state = result.verdict.observation.state
            found = self._slow.advise(state, "", self._clock).alternatives
            known = [one for one in found if one.visits >= self._visits]
            if asked.moves and asked.action not in (one.action for one in known):
                return asked
            known.sort(key=lambda one: not one.feasible)
            chosen = known[0].action if known else ""
        # Where nothing is recommended, what the policy asks for stands.
        return self._demands.get(chosen) or asked


class Process(NamedTuple):
    """A decision process whose actions are held for some ticks, and its shield."""

    compiled: CompiledSpec
    table: ShieldTable
    ticks: int


Log = Sequence[tuple[int | None, str]]
"""An episode: at each tick the state, None if it is not known, and what was done then."""


def held_process(compiled: CompiledSpec, logs: Sequence[Log], ticks: int) -> Process:
    """Return what followed actions that were held for so many ticks.

    The monitor file is that of the logs, with a `shield` section; its rate becomes slower. Every
    tick counts after which the same was done for so long, so that steps overlap. A failure, which
    may last for a tick, ends a step, and so does the end of an episode.
    """
    rate = float(compiled.spec.rate) / ticks
    slow = compile_spec(compiled.spec.model_copy(update={"rate": rate}))
    space, validity = slow.abstraction.vocabulary, slow.abstraction.validity(slow.spec)
    counter = TransitionCounter(space, "drop", validity.allows)
    assert slow.spec.shield is not None
    ends = _ends(slow.spec.shield.failure, space, logs)
    for log in logs:
        for tick, (state, action) in enumerate(log[:-1]):
            held = [done == action for _, done in log[tick : tick + ticks]]
            following = [after for after, _ in log[tick + 1 : tick + 1 + ticks]]
            end = next((k for k, after in enumerate(following) if after in ends), ticks - 1)
            if end < len(following) and all(held[: end + 1]):
                counter.add(0, state, action != DRIVE_ON, action)
                counter.add(1, following[end])
                counter.end_recording()
    counts = counter.result
    source = Provenance(
        "tried", "", sum(map(len, logs)) / compiled.spec.rate, counts.ticks, counts.ticks
    )
    report = RecordingReport(source, counts)
    model = assemble([report], slow.spec, slow.abstraction, validity).model
    table = build_monitor(slow, model).shield
    assert table is not None
    return Process(slow, table, ticks)


def _ends(failure: str, space: StateSpace, logs: Sequence[Log]) -> set[int]:
    """Return the states in which a step ends before its time."""
    states = tuple({state for log in logs for state, _ in log if state is not None})
    failing = state_mask(failure, space, states).tolist()
    return {s for s, fails in zip(states, failing, strict=True) if fails or is_terminal(s)}


class Exploring(Library):
    """Tries actions at random moments, more often in danger, and logs what follows them."""

    def __init__(
        self, compiled: CompiledSpec, model: CountModel, asked: Sequence[Intervention]
    ) -> None:
        super().__init__(compiled, model)
        self._asked = tuple(asked)
        self._rate = float(compiled.spec.rate)
        self.seed = 0

    def begin(self) -> None:
        """Forget the last episode; what is tried in the next one depends on `seed`."""
        super().begin()
        self._rng = np.random.default_rng([self.seed, 13])
        self._demand, self._left = NOTHING, 0
        self.log: list[tuple[int | None, str]] = []

    def tick(self, number: int) -> Intervention:
        """Try something, or go on with it."""
        result = self.watch.tick(number)
        if self._left == 0:
            self._draw(result)
        self._left -= 1
        done = DRIVE_ON if self._demand is NOTHING else self._demand.action
        self.log.append((result.verdict.observation.state, done))
        return self._demand

    def _draw(self, result: TickResult) -> None:
        risks = [row.probability for row in result.rows if not math.isnan(row.probability)]
        rate = OFTEN if max(risks, default=1.0) >= DANGER else SELDOM
        length = LENGTHS[0]
        self._demand = NOTHING
        if self._rng.random() < rate * length:
            self._demand = self._asked[int(self._rng.integers(len(self._asked)))]
            length = float(self._rng.choice(LENGTHS))
        self._left = round(length * self._rate)
