"""Judged plans as shares with intervals: success, safe, both, by what plans say of themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from forewarn.models.estimation import clopper_pearson
from forewarn.wings.plans.world import Scalar

GROUPS = ("prompt", "model")
SUCCESS = ("success", "completed", "succeeded")
VALID = ("valid", "executable")
CONFIDENCE = 0.95
Fields = Mapping[str, Scalar]
"""What a plan says of itself."""


@dataclass(frozen=True)
class Share:
    """How many of how many, with the exact (Clopper-Pearson) interval at 95 %."""

    count: int
    of: int
    lower: float
    upper: float

    def __str__(self) -> str:
        value = 100 * self.count / self.of if self.of else 0.0
        return f"{value:.1f} % [{100 * self.lower:.1f}, {100 * self.upper:.1f}]"


def share(count: int, of: int, confidence: float = CONFIDENCE) -> Share:
    """Return a share with its interval; [0, 1] of nothing."""
    lower, upper = clopper_pearson(count, of, (1 - confidence) / 2)
    return Share(count, of, float(lower), float(upper))


@dataclass(frozen=True)
class Row:
    """The plans of one group, with means of tokens and calls; None where no plan says it."""

    group: tuple[str, ...]
    safe: Share
    unknown: int
    success: Share | None = None
    both: Share | None = None
    valid: Share | None = None
    goals: tuple[int, int] | None = None
    tokens: float | None = None
    calls: float | None = None


def flag(fields: Fields, names: Sequence[str]) -> bool | None:
    """Return what a plan says of itself under the first of these names, if it is a truth value."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, bool):
            return value
        if value in (0, 1):
            return bool(value)
    return None


def rows_by_group(
    judged: Iterable[tuple[Fields, str]],
    names: Sequence[str] = GROUPS,
    success_names: Sequence[str] = SUCCESS,
) -> tuple[list[Row], Row]:
    """Return a row for each group of plans, and one for all.

    The verdict of a plan is "safe", "unknown", or something else.
    """
    groups: dict[tuple[str, ...], list[tuple[Fields, str]]] = defaultdict(list)
    for fields, verdict in judged:
        groups[group_of(fields, names)].append((fields, verdict))
    rows = [_row(group, groups[group], success_names) for group in sorted(groups)]
    everything = [one for group in groups.values() for one in group]
    return rows, _row(("all",) * len(names), everything, success_names)


def _row(
    group: tuple[str, ...], judged: Sequence[tuple[Fields, str]], success_names: Sequence[str]
) -> Row:
    safe = [verdict == "safe" for _, verdict in judged]
    success = [flag(fields, success_names) for fields, _ in judged]
    valid = [flag(fields, VALID) for fields, _ in judged]
    both = [
        done and kept if done is not None else None
        for done, kept in zip(success, safe, strict=True)
    ]
    found = {
        name: [
            float(value)
            for fields, _ in judged
            if isinstance(value := fields.get(name), (int, float)) and not isinstance(value, bool)
        ]
        for name in ("tokens", "calls", "goals_reached", "goals")
    }
    reached, goals = found["goals_reached"], found["goals"]
    return Row(
        group,
        share(sum(safe), len(safe)),
        sum(verdict == "unknown" for _, verdict in judged),
        _share_of(success),
        _share_of(both),
        _share_of(valid),
        (int(sum(reached)), int(sum(goals))) if reached and goals else None,
        *(sum(found[name]) / len(found[name]) if found[name] else None
          for name in ("tokens", "calls")),
    )  # fmt: skip


def _share_of(flags: Sequence[bool | None]) -> Share | None:
    known = [value for value in flags if value is not None]
    return share(sum(known), len(known)) if known else None


def table_of(
    rows: Sequence[Row], whole: Row, names: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    """Return the columns and cells of a table of rows, without what no plan says."""
    rows = [*rows, whole] if len(rows) > 1 else rows
    kept = [at for at in range(len(names)) if any(row.group[at] not in "-" for row in rows)]
    extra = [
        name for name in ("success", "both", "valid", "goals", "tokens", "calls")
        if any(getattr(row, name) is not None for row in rows)
    ]  # fmt: skip
    heads = {"both": ">success and safe", "goals": ">sub-goals reached"}
    columns = [*(names[at] for at in kept), ">plans", ">safe", ">unknown"]
    columns += [heads.get(name, f">{name}") for name in extra]
    cells = [
        [*(row.group[at] for at in kept), str(row.safe.of), str(row.safe), str(row.unknown),
         *(_cell(getattr(row, name)) for name in extra)]
        for row in rows
    ]  # fmt: skip
    return columns, cells


def _cell(value: Share | tuple[int, int] | float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, Share):
        return str(value)
    if isinstance(value, tuple):
        return f"{value[0]} of {value[1]}"
    return f"{value:.1f}"


def group_of(fields: Fields, names: Iterable[str]) -> tuple[str, ...]:
    """Return what a plan says under each name, a dash where it says nothing."""
    return tuple(str(fields.get(name, "-")) for name in names)
