"""A model for each group of recordings, and what differs between groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from forewarn.assessment.modelling import FALSE_DISCOVERY_RATE
from forewarn.errors import ModelError
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import with_estimates
from forewarn.wings.fleet.group_counts import GroupCounts
from forewarn.wings.fleet.group_differences import Differences, find_differences
from forewarn.wings.fleet.prior import Strength, borrowing, choose_strength


@dataclass(frozen=True)
class GroupedModels:
    """The models of groups.

    `models`: by name of the group, with what each borrows.
    `strength`: how much they borrow.
    `differences`: states in which groups do not go on alike.
    """

    models: Mapping[str, CountModel]
    strength: Strength
    differences: Differences

    def with_estimates(self, compiled: CompiledSpec) -> GroupedModels:
        """Return the same with what the risks of each group are made of."""
        models = {name: with_estimates(compiled, model) for name, model in self.models.items()}
        return replace(self, models=models)


def grouped_models(
    counted: GroupCounts, fleet: CountModel, level: float = FALSE_DISCOVERY_RATE
) -> GroupedModels:
    """Return the models of groups.

    `fleet`: the model of all recordings, and maybe of more.
    `level`: the false discovery rate of differences.

    Raises ModelError if all recordings are of one group.
    """
    if len(counted.groups) < 2:
        raise ModelError(
            f"all recordings are of one group, {counted.groups[0]}",
            key="--group-by",
            accepted="recordings of two groups or more",
        )
    table = counted.table(fleet.index)
    strength = choose_strength(table, fleet)
    models = {}
    for name in counted.groups:
        own = counted.model(name, fleet)
        models[name] = borrowing(name, own, fleet, strength.visits)
    return GroupedModels(models, strength, find_differences(table, fleet, level))
