"""Judged plans as shares with intervals: success, safe, both, by what plans say of themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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


@dataclass
class Tally:
    """Counts of one group, as plans are judged one by one."""

    plans: int = 0
    safe: int = 0
    unknown: int = 0
    judged: dict[str, list[int]] = field(default_factory=dict)
    sums: dict[str, list[float]] = field(default_factory=dict)

    def add(self, fields: Fields, verdict: str, success_names: Sequence[str] = SUCCESS) -> None:
        """Take in a plan that is "safe", "unknown", or something else."""
        safe = verdict == "safe"
        self.plans += 1
        self.safe += safe
        self.unknown += verdict == "unknown"
        success, valid = flag(fields, success_names), flag(fields, VALID)
        if success is not None:
            self._count("success", success)
            self._count("both", success and safe)
        if valid is not None:
            self._count("valid", valid)
        for name in ("tokens", "calls", "goals_reached", "goals"):
            value = fields.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                entry = self.sums.setdefault(name, [0.0, 0.0])
                entry[0] += value
                entry[1] += 1

    def _count(self, name: str, holds: bool) -> None:
        entry = self.judged.setdefault(name, [0, 0])
        entry[0] += holds
        entry[1] += 1

    def _mean(self, name: str) -> float | None:
        return self.sums[name][0] / self.sums[name][1] if name in self.sums else None

    def row(self, group: tuple[str, ...]) -> Row:
        """Return the shares."""
        shares = {name: share(count, of) for name, (count, of) in self.judged.items()}
        goals = None
        if "goals" in self.sums and "goals_reached" in self.sums:
            goals = int(self.sums["goals_reached"][0]), int(self.sums["goals"][0])
        return Row(
            group, share(self.safe, self.plans), self.unknown,
            shares.get("success"), shares.get("both"), shares.get("valid"),
            goals, self._mean("tokens"), self._mean("calls"),
        )  # fmt: skip


def rows_by_group(
    judged: Iterable[tuple[Fields, str]],
    names: Sequence[str] = GROUPS,
    success_names: Sequence[str] = SUCCESS,
) -> tuple[list[Row], Row]:
    """Return a row for each group of plans, and one for all."""
    tallies: dict[tuple[str, ...], Tally] = defaultdict(Tally)
    whole = Tally()
    for fields, verdict in judged:
        for tally in (whole, tallies[group_of(fields, names)]):
            tally.add(fields, verdict, success_names)
    rows = [tallies[group].row(group) for group in sorted(tallies)]
    return rows, whole.row(("all",) * len(names))


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
