"""Comparing monitors, and asking models: the commands' own code, and what it gives as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from forewarn.interface.learned import Recordings, part_of, paths_of
from forewarn.interface.shown import frame_of, table_of
from forewarn.registry import command_module

FIGURES = ("pr_area", "lead", "violations", "detected", "false_alarms_per_hour", "states")


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What `compare` or `check` found.

    Attributes
    ----------
    document : dict
        All results as plain values, as ``--json`` prints them.
    remarks : tuple of str
        What the command remarks.
    rows : tuple of dict
        A row for each monitor file or rival of each property, or for each query.
    fine : bool
        False where the command would exit with 1: a formula does not hold, or a risk is too great.
    """

    document: dict[str, Any]
    remarks: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    fine: bool

    def __repr__(self) -> str:
        """Return the first figures of each row."""
        told = ", ".join(" ".join(map(_short, list(row.values())[:3])) for row in self.rows)
        return f"Answer({told})"

    def _repr_html_(self) -> str:
        """Return the rows as a table, for notebooks."""
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        return table_of(columns, [[_short(row.get(name)) for name in columns] for row in self.rows])

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Raises
        ------
        ForewarnError
            If pandas is not installed.
        """
        return frame_of(list(self.rows), "rows for plain values")


def compare(
    monitors: Path | str | Iterable[Path | str],
    recordings: Recordings,
    *,
    begin: str | float | None = None,
    end: str | float | None = None,
    **options: Any,
) -> Answer:
    """Judge monitor files and rivals on the same recordings, as ``forewarn compare`` does.

    Parameters
    ----------
    monitors : path or iterable of paths
        Monitor files. Differences are to the first one.
    recordings : path or iterable of paths
        Recordings, or folders of recordings.
    begin, end : float or str, optional
        Only what was recorded between these moments, as for `learn`.
    **options
        The command's options with underscores, such as ``folds=10``, ``resamples=1000``,
        ``rivals=["near=-gap"]``, ``properties=["stop"]`` or ``models=True``.

    Returns
    -------
    Answer
        A row for each contender and property: the area under its precision-recall curve, its mean
        lead in seconds or steps, and how many violations it found.

    Raises
    ------
    ForewarnError
        If a file cannot be read, or a recording and a monitor file do not fit.
    TypeError
        If there is no such option.
    """
    part = part_of(begin, end)
    given = {"begin": part.begin, "end": part.end, "rivals": [], "properties": []} | options
    files = [*paths_of(monitors), *paths_of(recordings)]
    document, remarks, fine = _asked("compare", given | {"files": files})
    rows = [
        {"property": name, "name": row["name"]} | {key: _value(row[key]) for key in FIGURES}
        for name, found in document["properties"].items()
        for row in found
    ]
    return Answer(document, remarks, tuple(rows), fine)


def check(model: Path | str, queries: str | Iterable[str], **options: Any) -> Answer:
    """Ask a model questions in PCTL or CTL, as ``forewarn check`` does.

    Parameters
    ----------
    model : path
        The model file.
    queries : str or iterable of str
        Formulas, or with ``config`` names of properties.
    **options
        The command's options with underscores, such as ``config="monitor.yaml"`` or
        ``unsmoothed=True``.

    Returns
    -------
    Answer
        A row for each query; `fine` tells whether the command would exit with 0.

    Raises
    ------
    ForewarnError
        If a query or the model cannot be read, or Storm is needed and not installed.
    TypeError
        If there is no such option.
    """
    asked = [queries] if isinstance(queries, str) else list(queries)
    paths = {name: Path(options[name]) for name in ("config", "report") if options.get(name)}
    given = options | paths | {"model": Path(model), "queries": asked}
    document, remarks, fine = _asked("check", given)
    rows = ({k: v for k, v in row.items() if _is_plain(v)} for row in document["queries"])
    return Answer(document, remarks, tuple(rows), fine)


def _asked(command: str, options: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...], bool]:
    """Return what a command emits, its remarks, and whether it would exit with 0."""
    module = command_module(command)
    output = import_module("forewarn.cli.output").Collected()  # the commands stand above
    code = module.run(module.Options(**options), output)
    return output.document, tuple(output.remarks), code == 0


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, bool, int, float))


def _value(figure: Any) -> Any:
    """Return the value of what may be an estimate with its interval."""
    return figure["value"] if isinstance(figure, dict) else figure


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)
