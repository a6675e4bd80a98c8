"""Tables for the page of results, put between the marks of their section."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "RESULTS.md"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def put(name: str, text: str, page: Path = PAGE) -> None:
    """Replace what stands between `<!-- name -->` and `<!-- end of name -->`.

    Raises
    ------
    ValueError
        If the page has no such marks.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    old = page.read_text(encoding="utf-8")
    before, found, rest = old.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"{page} has no marks for {name}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
