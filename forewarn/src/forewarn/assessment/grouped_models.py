"""A model for each group of recordings, and what differs between groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from forewarn.assessment.group_differences import LEVEL, Differences, find_differences
from forewarn.errors import ModelError, plural
from forewarn.learning.group_counts import GroupCounts
from forewarn.learning.hierarchical_prior import Strength, borrowing, choose_strength
from forewarn.logic.specification import CompiledSpec
from forewarn.models.counts import CountModel
from forewarn.monitoring.build import with_estimates
from forewarn.signals.clock_kinds import clock_of


@dataclass(frozen=True)
class GroupedModels:
    """The models of groups.

    Attributes
    ----------
    models : mapping of str to CountModel
        By name of the group, with what each borrows.
    strength : Strength
        How much they borrow.
    differences : Differences
        States in which groups do not go on alike.
    """

    models: Mapping[str, CountModel]
    strength: Strength
    differences: Differences

    def with_estimates(self, compiled: CompiledSpec) -> GroupedModels:
        """Return the same with what the risks of each group are made of."""
        models = {name: with_estimates(compiled, model) for name, model in self.models.items()}
        return replace(self, models=models)


def grouped_models(counted: GroupCounts, fleet: CountModel, level: float = LEVEL) -> GroupedModels:
    """Return the models of groups.

    Parameters
    ----------
    fleet : CountModel
        The model of all recordings, and maybe of more.
    level : float
        The false discovery rate of differences.

    Raises
    ------
    ModelError
        If all recordings are of one group.
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


def prior_in_words(model: CountModel) -> str:
    """Say what a model borrows; empty if it borrows nothing."""
    others = model.hierarchical_prior
    if others is None:
        return ""
    return (
        f"model of {others.group}: {100 * others.share(model.visits):.1f} % of what its states "
        f"rest on is borrowed from {plural(others.recordings, 'recording')} of other groups "
        f"({clock_of(model.rate).span(others.duration)}), {others.strength:g} visits a row at most"
    )
