"""The section of RESULTS.md about translators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluation.harness.page import table
from forewarn.logic.equivalence import RequirementKind

#: SENTINEL's table (arXiv 2510.12985), in %: theirs, other sentences.
SENTINEL = (
    ("GPT-5", 99.1, 0.0, 51.4, 36.7, 99.3),
    ("Claude Sonnet 4", 99.7, 0.1, 82.1, 74.4, 96.8),
    ("Gemini 2.5 Flash", 99.7, 2.0, 66.0, 50.2, 95.9),
    ("DeepSeek V3.1", 93.3, 0.0, 84.5, 78.9, 94.9),
    ("Qwen3 14B", 95.9, 1.6, 29.1, 18.7, 74.8),
    ("Llama 3.1 8B", 67.1, 17.3, 1.2, 0.1, 8.2),
)
_INVARIANT, _ORDERING, _OTHER = (kind.value for kind in RequirementKind)


def section(results: Mapping[str, Any]) -> str:
    """Return the tables of what has been judged: pairs, answers, or both."""
    if "answers" not in results:
        return _spot(results)
    parts = (_rows(results["answers"]), _theirs(), _spot(results), _remarks(results["answers"]))
    return "\n".join(parts)


def _rows(answers: Mapping[str, Any]) -> str:
    head = ("translator", "answers", "generated", "syntax errors", "equivalent", "invariants",
            "orderings", "others", "differ")  # fmt: skip
    lines = []
    for row in answers["rows"]:
        kinds = row["equivalent_by_kind"]
        lines.append(
            [
                f"`{row['model']}`",
                str(row["answers"]),
                *(_share(row[key]) for key in ("generated", "syntax_errors", "equivalent")),
                *(_share(kinds[kind]) for kind in (_INVARIANT, _ORDERING, _OTHER)),
                str(row["differing"]),
            ]
        )
    return table(head, lines)


def _theirs() -> str:
    head = ("SENTINEL's, theirs", "generated", "syntax errors", "equivalent", "invariants",
            "orderings")  # fmt: skip
    return table(head, [[name, *map(str, figures)] for name, *figures in SENTINEL])


def _spot(results: Mapping[str, Any]) -> str:
    head = ("compared with Spot", "formulas", "comparisons", "equivalent", "undecided",
            "disagreements")  # fmt: skip
    lines = []
    for name, found in results.get("pairs", {}).items():
        formulas = f"{found['formulas']} of {found['pairs']} pairs"
        lines.append([name, formulas, *_counts(found)])
    if "answers" in results:
        answers = results["answers"]
        lines.append(["answers", str(sum(row["answers"] for row in answers["rows"])),
                      *_counts(answers["spot"])])  # fmt: skip
    return table(head, lines)


def _remarks(answers: Mapping[str, Any]) -> str:
    """Return what reading cost, and how it compares with Spot's."""
    spent, reading = answers["milliseconds"], answers["reading"]
    other = reading["disagreements"]
    texts = other + reading["read alike"] + reading["refused by both"]
    return (
        f"Reading an answer and comparing it on both kinds of traces took {spent['median']} ms at "
        f"the median, {spent['p99']} ms at the 99th percentile, {spent['greatest']:g} ms at most.\n"
        f"Of {texts} different texts, {reading['read alike']} are read as Spot reads them when "
        f"their words are replaced by its own, {reading['refused by both']} are refused by both,\n"
        f"and {other} are read by one alone or otherwise.\n"
    )


def _counts(found: Mapping[str, Any]) -> tuple[str, ...]:
    equal, undecided = found.get("equivalent", 0), found.get("undecided", 0)
    total = equal + undecided + found.get("not equivalent", 0)
    return str(total), str(equal), str(undecided), str(found["disagreements"])


def _share(share: Mapping[str, float] | None) -> str:
    if share is None:
        return "-"
    low, high = 100 * share["lower"], 100 * share["upper"]
    return f"{100 * share['value']:.1f} ({low:.1f}..{high:.1f})"
