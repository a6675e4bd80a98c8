"""What the decision process of a model says, before the first tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from forewarn.checking.interface import ProcessRisk, RiskOfActions
from forewarn.errors import CheckingError, located
from forewarn.monitoring.advice import ProcessRisks
from forewarn.wings.decisions import shielding
from forewarn.wings.decisions.action_risk import least_risk, risk_of_actions
from forewarn.wings.decisions.model_process import process_of_model

if TYPE_CHECKING:
    from forewarn.checking.credible import RiskQuery
    from forewarn.logic.automaton import Automaton
    from forewarn.logic.specification import CompiledSpec
    from forewarn.models.counts import CountModel
    from forewarn.wings.decisions.process_bounds import CountedProcess

Solved = TypeVar("Solved", ProcessRisk, RiskOfActions)


def process_risks(
    compiled: CompiledSpec, model: CountModel | None, questions: Sequence[RiskQuery]
) -> ProcessRisks:
    """Return what the process says of properties, and the shield; raises CheckingError."""
    process = cache(lambda: _process(compiled, model))
    least = _of_process(compiled, questions, model, process, "risk_measure", "min_risk", least_risk)
    done = _of_process(compiled, questions, model, process, "risk_of", "action", risk_of_actions)
    shield = shielding.build_shield(compiled, model, process)
    return ProcessRisks(least, done, shield, shielding.notes(compiled, model, shield))


def _process(compiled: CompiledSpec, model: CountModel | None) -> CountedProcess:
    assert model is not None
    return process_of_model(model, confidence=compiled.spec.bounds.confidence)


def _of_process(
    compiled: CompiledSpec,
    questions: Sequence[RiskQuery],
    model: CountModel | None,
    process: Callable[[], CountedProcess],
    key: str,
    value: str,
    solve: Callable[[CountModel, CountedProcess, Automaton, int | None], Solved],
) -> dict[str, Solved]:
    """Return what the process says of each property that asks for it; raises CheckingError."""
    spec = compiled.spec
    found: dict[str, Solved] = {}
    for (name, section), question in zip(spec.properties.items(), questions, strict=True):
        if getattr(section, key) == value and model is not None:
            with located(CheckingError, file=spec.file, key=f"properties.{name}.{key}"):
                found[name] = solve(model, process(), question.automaton, question.horizon)
    return found
