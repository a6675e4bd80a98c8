"""Where executions come from: recordings by a monitor file, or plans and logs about objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from forewarn.checking.ctl import Mask
from forewarn.cli.output import Output
from forewarn.errors import CheckingError, located
from forewarn.learning.observing import observe
from forewarn.logic.syntax import is_propositional
from forewarn.monitoring.loading import load_compiled
from forewarn.recordings.groups import on_one_line
from forewarn.recordings.registry import existing_recordings, open_recording
from forewarn.signals.clock import Clock
from forewarn.signals.clock_kinds import Steps as StepClock
from forewarn.states.interface import is_terminal
from forewarn.wings.plans.actions import load_actions
from forewarn.wings.plans.computation_tree import Indices
from forewarn.wings.plans.judge import facts_along
from forewarn.wings.plans.language import Rule, parse_rule
from forewarn.wings.plans.readers import read_plans
from forewarn.wings.plans.rules import Rules, load_rules
from forewarn.wings.plans.summary import Fields


class Execution(NamedTuple):
    """The states of one execution, moment by moment; after a `cut` more came that is not known."""

    name: str
    states: list[int]
    group: str = ""
    fields: Fields | None = None
    cut: bool = False


class RecordedRuns:
    """Recordings, through the states of a monitor file."""

    def __init__(self, config: Path) -> None:
        self.compiled = load_compiled(config)
        self.clock = self.compiled.abstraction.clock
        self.unit = "s" if self.clock.timed else "steps"
        self.vocabulary = self.compiled.abstraction.vocabulary

    def name_all(self, names: set[str]) -> None:
        """Check that the states know every name."""
        for name in names - set(self.vocabulary.atoms):
            raise CheckingError(
                f"{name!r} is not known to the states", accepted=", ".join(self.vocabulary.atoms)
            )

    def executions(self, paths: list[Path], output: Output) -> Iterator[Execution]:
        """Yield each stretch of a recording whose states are known, up to a terminal label."""
        cut = 0
        for path in existing_recordings(paths, self.compiled.spec):
            with open_recording(path) as recording:
                states: list[int] = []
                for tick in observe(recording, self.compiled.spec, self.compiled.abstraction):
                    observation = tick.seen.observation
                    state = observation.state if observation.active is True else None
                    over = bool(states) and is_terminal(states[-1])
                    if (state is None or (over and not is_terminal(state))) and states:
                        cut += not over
                        yield Execution(str(path), states)
                        states = []
                    if state is not None and not (over and is_terminal(state)):
                        states.append(state)
                if states:
                    yield Execution(str(path), states)
        if cut:
            output.warn(f"{cut} executions end where a state is not known, or monitoring stops")

    def holds(self, name: str, states: Indices) -> Mask:
        """Tell in which states a name holds."""
        kinds, places = np.unique(states, return_inverse=True)
        truth = [self.vocabulary.holds(name, int(state)) for state in kinds]
        return np.array(truth, dtype=bool)[places]

    def describe(self, state: int) -> str:
        """Return the name of a state."""
        return self.vocabulary.name(state)

    def time(self, position: int) -> str:
        """Return the time since an execution began."""
        return self.clock.say(self.clock.duration(position), ".2f")


class PlanRuns:
    """Plans and logs of agents, through statements about objects."""

    def __init__(self, rules: Path | None, actions: str | None, by: Sequence[str]) -> None:
        self.clock: Clock = StepClock()
        self.unit = "steps"
        self.by = by
        self.rules = Rules(()) if rules is None else load_rules(rules)
        if actions is not None:
            self.rules = replace(self.rules, actions=load_actions(actions))
        self.named = {rule.name: rule.rule for rule in self.rules.rules}
        self.statements: dict[str, Rule] = {}
        self._keys: dict[bytes, int] = {}
        self._values: list[Mask] = []

    def name_all(self, names: set[str]) -> None:
        """Read every name as a statement, or take the rule of that name."""
        for name in sorted(names):
            rule = self.named.get(name)
            if rule is None:
                with located(key=name):
                    rule = parse_rule(name)
            if not is_propositional(rule.formula):
                raise CheckingError(
                    f"{name!r} speaks of time", accepted="CTL around statements about one moment"
                )
            self.statements[name] = rule

    def executions(self, paths: list[Path], output: Output) -> Iterator[Execution]:
        """Yield each plan, up to where a statement is not known."""
        cut = empty = 0
        for path in paths:
            for plan in read_plans(path):
                known, values = facts_along(plan, self.rules, self.statements.values())
                states = [self._state(row) for row in values[: known if known else 0]]
                short = 0 < known < len(values)
                cut += short
                if not states:
                    empty += 1
                    continue
                found = (str(plan.fields.get(field, "-")) for field in self.by)
                group = ", ".join(map(on_one_line, found))
                yield Execution(f"{path.name}: {plan.name}", states, group, plan.fields, short)
        if cut:
            output.warn(f"{cut} executions end where the effect of an action is not declared")
        if empty:
            output.warn(f"{empty} executions are left out: no state of them is known")

    def _state(self, row: Mask) -> int:
        key = row.tobytes()
        number = self._keys.get(key)
        if number is None:
            number = self._keys[key] = len(self._values)
            self._values.append(row)
        return number

    def holds(self, name: str, states: Indices) -> Mask:
        """Tell in which states a statement holds."""
        at = list(self.statements).index(name)
        return np.array([row[at] for row in self._values], dtype=bool)[states]

    def describe(self, state: int) -> str:
        """Return the statements that hold."""
        row = self._values[state]
        return " & ".join(n for n, holds in zip(self.statements, row, strict=True) if holds) or "-"

    def time(self, position: int) -> str:
        """Return the number of steps since the beginning."""
        return str(position)


RunSource = RecordedRuns | PlanRuns
