"""Options of commands that group recordings."""

from __future__ import annotations

from typing import Any

from forewarn.cli.options import option
from forewarn.errors import InputError
from forewarn.recordings.groups import PERIODS, Grouping, grouping

GROUPS_HELP = (
    "where the values of --group-by are: a table in CSV with a column `recording` (a name, a path, "
    "or a pattern of paths), or a pattern of paths such as 'bags/{robot}/{software}/*'; without "
    "it, the metadata of recordings"
)


def group_by_option(text: str, *, required: bool = False) -> Any:
    """Declare ``--group-by``."""
    periods = ", ".join(f"`{name}`" for name in PERIODS)
    text = f"{text}, by these values, such as robot,software; {periods}: when they began (UTC)"
    return option(text, "KEYS", required=required)


def group_source_option() -> Any:
    """Declare ``--group-source``."""
    return option(GROUPS_HELP, "FROM")


def grouping_of(keys: str | None, source: str | None) -> Grouping | None:
    """Return how recordings are grouped, if they are; raises InputError."""
    if keys is not None:
        return grouping(keys, source)
    if source is not None:
        raise InputError(
            "has no effect without --group-by", key="--group-source", accepted="--group-by as well"
        )
    return None
