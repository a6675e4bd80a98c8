"""Where figures go: results.json of a study, and the tables of the page of results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from forewarn.assessment.resampling import bootstrap

Run = TypeVar("Run")

PAGE = Path(__file__).resolve().parents[1] / "RESULTS.md"


def rounded(value: float | None, digits: int = 4) -> float | None:
    """Return a figure without endless digits; None for what is no number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def resampled(
    name: str,
    figure: Callable[[Sequence[Run]], float | None],
    runs: Sequence[Run],
    *,
    resamples: int,
    seed: int = 1,
    ends: str | None = None,
) -> dict[str, Any]:
    """Return a figure over runs as `name`, its interval over whole runs as `{name}_interval`.

    `ends` is another name for the interval.
    """
    interval = bootstrap(runs, figure, resamples=resamples, seed=seed)
    return {
        name: rounded(figure(runs)),
        ends or f"{name}_interval": list(map(rounded, interval)),
    }


def told(row: Mapping[str, Any], name: str, pattern: str, ends: str | None = None) -> str:
    """Return a figure of a row with its interval in brackets; a dash where there is none."""
    if row[name] is None:
        return "-"
    text, interval = pattern.format(row[name]), row[ends or f"{name}_interval"]
    if None in interval:
        return text
    return f"{text} [{', '.join(pattern.format(end) for end in interval)}]"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    first, *others = (f"| {' | '.join(line)} |\n" for line in (head, *rows))
    return "".join([first, f"|{'---|' * len(head)}\n", *others])


def put(name: str, text: str, page: Path = PAGE) -> None:
    """Replace what stands between `<!-- name -->` and `<!-- end of name -->`; see `replaced`."""
    page.write_text(replaced(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


def replaced(page: str, name: str, text: str) -> str:
    """Return a page with a text between the marks of its section.

    Raises
    ------
    ValueError
        If the page has no such marks.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"the page has no marks for {name}")
    return f"{before}{begin}\n{text.strip()}\n\n{end}{after}"


OUT = Path("out")
"""Where studies keep figures that are not published."""

NO_PICTURES: Mapping[str, str] = {}


def publish(
    mark: str | None, text: str, found: Any, published: Path, folder: Path | None = None, *,
    write: bool, within: str | None = None, pictures: Mapping[str, str] = NO_PICTURES,
) -> None:  # fmt: skip
    """Print what a study found and keep its figures, without `write` where nothing is published.

    Parameters
    ----------
    mark : str or None
        The section of the page that the text is for; None if the caller puts it there, or nobody.
    published : Path
        The figures that the page shows; they and the page are written with `write` alone.
    folder : Path, optional
        Where a file of that name is written otherwise; a folder of the study's in `out` by default.
    within : str, optional
        The part of the file that the figures are.
    pictures : mapping of str to str
        Pictures that go beside the figures, as SVG by the names of their files.
    """
    place = published.parent if write else folder or OUT / published.parent.name
    path = place / published.name
    place.mkdir(parents=True, exist_ok=True)
    write_json(path, found, within=within)
    for name, picture in pictures.items():
        (place / name).write_text(picture, encoding="utf-8")
    print(text)
    if write and mark is not None:
        put(mark, text)
    print(f"figures: {path}" + ("" if write else " (--write publishes figures and tables)"))


def write_json(path: Path, found: Any, *, within: str | None = None) -> None:
    """Write figures, NaN as null; `within` names the part of the file that they are, if any."""
    if within is not None:
        old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        found = old | {within: found}
    path.write_text(json.dumps(_without_nan(found), indent=1) + "\n", encoding="utf-8")


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
