"""The answer to a query about a model: for the console and for the page."""

from __future__ import annotations

from typing import NamedTuple

from forewarn.wings.decisions.evidence import Evidence
from forewarn.wings.decisions.process_query import ProcessQueryResult


class QueryText(NamedTuple):
    """A question, and the answer for people; columns that begin with > are aligned right."""

    query: str
    summary: tuple[str, ...]
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Checked(NamedTuple):
    """An answer; of a decision process with its values, and why they are what they are."""

    text: QueryText
    answer: ProcessQueryResult | None = None
    evidence: Evidence | None = None
