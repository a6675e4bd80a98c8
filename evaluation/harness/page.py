"""Where figures go: rows of results.json, and the page that is made of them.

    python -m evaluation.harness.page

writes RESULTS.md anew from results.json. A study adds its rows by `publish`.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from forewarn.assessment.resampling import bootstrap

Run = TypeVar("Run")

HERE = Path(__file__).resolve().parents[1]
ROWS, PAGE = HERE / "results.json", HERE / "RESULTS.md"
OUT = Path("out")
"""Where studies keep all their figures."""

HEAD = ("Asked", "Found", "95 % interval", "Data")
INTRODUCTION = """# What the studies found

`python -m evaluation.harness.page` makes this page from `results.json`; a study adds its rows with
`--write`. Commands run at the commit beside them; removed studies are there.

- [Terms](../docs/howto/tuning.md#reading-the-table). *Area*: under precision and recall over ticks.
  *Lead*: from the start of the alert to the violation, 0 s for a missed one, at 40 false alarms/h.
- *s1, 25*: scenario s1, learned from 25 recordings. *19 in 60*: 19 violations in 60 recordings.
- In brackets: the chain alone; the rival with the greatest area; for Brier and lead the best of all
  others. *Ahead*: a rival's figure is better; *maybe chance* by Holm's correction.
- *First crossings*: leads as ProbGuard's equation 3 counts them, even if the alert was over again
  (its abstract: up to 38.66 s, arXiv 2508.00500v1).
- Closed loop: collisions and red lights (fewer a km), trips that arrive, time lost, time acting.
- Guard: shares of runs. *Seen*: by the rules' author.
- Households: unsafe, completed runs (published: *theirs*), exact on chains; *halves*: learned from
  half of the counts, judged by the others. *Right*: stops of unsafe runs.
  *Found*: unsafe runs stopped. *Price*: completed runs that an unsafe one costs.
- Translators: equivalent formulas (state invariants, ordering constraints, others).
- Intervals draw whole recordings, trips, cases or tasks again; *exact*: Clopper-Pearson.
"""


class Row(NamedTuple):
    """One question of a study and its answer, in words."""

    question: str
    answer: str
    interval: str = ""
    data: str = ""


class Made(NamedTuple):
    """What made the rows of a section: the study, its command, when, and by which commit."""

    study: str
    command: str
    date: str
    commit: str


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
) -> dict[str, Any]:
    """Return a figure over runs as `name`, its interval over whole runs as `{name}_interval`."""
    ends = bootstrap(runs, figure, resamples=resamples, seed=seed)
    return {name: rounded(figure(runs)), f"{name}_interval": list(map(rounded, ends))}


def between(ends: Sequence[float | None], pattern: str = "{:.3f}") -> str:
    """Return an interval in words; nothing where there is none."""
    known = [end for end in ends if end is not None and end == end]
    return " to ".join(map(pattern.format, known)) if len(known) == len(ends) else ""


def shown(value: float | None, pattern: str = "{:.3f}") -> str:
    """Return a figure in words; a dash where there is none."""
    return "-" if value is None or value != value else pattern.format(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    first, *others = (f"| {' | '.join(line)} |\n" for line in (head, *rows))
    return "".join([first, f"|{'---|' * len(head)}\n", *others])


def publish(
    study: str, command: str, rows: Sequence[Row], found: Any, folder: Path, *, write: bool
) -> None:
    """Print rows, and keep all figures in `folder`; with `write` put the rows into the page.

    Rows of the study that ask the same question are replaced.
    """
    path = folder / "figures.json"
    write_json(path, found)
    print(table(HEAD, rows), end="")
    if write:
        _keep(rows, Made(study, command, *_commit()))
    print(f"figures: {path}" + ("" if write else " (--write publishes the rows)"))


def _keep(rows: Sequence[Row], made: Made) -> None:
    asked = {row.question for row in rows}
    ours = [row | made._asdict() for row in (row._asdict() for row in rows)]
    kept, added = [], False
    for old in json.loads(ROWS.read_text(encoding="utf-8")):
        if old["study"] == made.study and not added:
            kept, added = [*kept, *ours], True
        if old["study"] != made.study or old["question"] not in asked:
            kept.append(old)
    write_json(ROWS, kept if added else [*kept, *ours])
    PAGE.write_text(page_of(json.loads(ROWS.read_text(encoding="utf-8"))), encoding="utf-8")


def _commit() -> tuple[str, str]:
    """Return date and name of the commit that is checked out."""
    asked = ["git", "-C", str(HERE), "log", "-1", "--format=%cs %h"]
    date, commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    return date, commit


def page_of(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the page: a section for each study, with its commands and a table."""
    parts = [INTRODUCTION]
    for study, some in groupby(rows, key=lambda row: row["study"]):
        parts.append(f"## {study}\n\n{_section(list(some))}")
    return "\n".join(parts)


def _section(rows: Sequence[Mapping[str, str]]) -> str:
    """Return commands and rows; where there are several commands, rows have their numbers."""
    made = [Made(*(row[key] for key in Made._fields)) for row in rows]
    numbers = {one: str(number) for number, one in enumerate(dict.fromkeys(made), 1)}
    cells = [[row[key] for key in Row._fields] for row in rows]
    said = [f"`{one.command}`, {one.date}, {one.commit}\n" for one in numbers]
    if len(numbers) == 1:
        return f"{said[0]}\n{table(HEAD, cells)}"
    cells = [[*row, numbers[one]] for row, one in zip(cells, made, strict=True)]
    said = [f"{number}. {text}" for number, text in zip(numbers.values(), said, strict=True)]
    return f"{''.join(said)}\n{table([*HEAD, 'By'], cells)}"


def write_json(path: Path, found: Any) -> None:
    """Write figures, NaN as null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_without_nan(found), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def main() -> None:
    """Write the page."""
    PAGE.write_text(page_of(json.loads(ROWS.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
