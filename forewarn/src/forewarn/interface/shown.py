"""How values of the public interface look in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from forewarn.assessment.replay import RecordedRun
from forewarn.errors import InputError
from forewarn.monitoring.step import Monitor

HEIGHT = 130
"""Pixels of a row."""


def table_of(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in HTML."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def frame_of(rows: Any, otherwise: str) -> Any:
    """Return a pandas DataFrame; raises InputError without pandas, and says what else there is."""
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise InputError(
            "pandas is not installed",
            key="to_frame",
            accepted=f"pip install pandas, or {otherwise}",
        ) from error
    return pandas.DataFrame(rows)


def figure_of(monitor: Monitor, run: RecordedRun) -> Any:
    """Return a Plotly figure of a run: the risk of each property, then each signal."""
    # plotly takes half a second to import: only who wants a picture waits for it.
    from plotly.graph_objects import Scattergl
    from plotly.subplots import make_subplots

    clock = monitor.clock
    time = np.arange(len(run.history)) / clock.rate
    series = [each for each in run.signals if each.kind in ("number", "truth")]
    titles = [*(track.name for track in run.tracks), *(each.name for each in series)]
    figure = make_subplots(rows=len(titles), shared_xaxes=True, subplot_titles=titles)
    for row, track in enumerate(run.tracks, 1):
        risk = Scattergl(x=time, y=track.probability, name=f"risk of {track.name}", mode="lines")
        figure.add_trace(risk, row=row, col=1)
        levels = monitor.spec.properties[track.name].thresholds
        figure.add_hline(levels.act, row=row, col=1, line_dash="dot")
        happened = np.flatnonzero(track.counted)
        crosses = Scattergl(
            x=time[happened], y=np.ones(len(happened)), name=f"violation of {track.name}",
            mode="markers", marker={"symbol": "x", "size": 10},
        )  # fmt: skip
        figure.add_trace(crosses, row=row, col=1)
        figure.update_yaxes(range=[0, 1.05], row=row, col=1)
    for row, each in enumerate(series, len(run.tracks) + 1):
        line = Scattergl(x=time, y=each.values, name=each.name, mode="lines")
        figure.add_trace(line, row=row, col=1)
    figure.update_layout(
        title=run.name, height=HEIGHT * len(titles) + 100, showlegend=False,
    )  # fmt: skip
    figure.update_xaxes(title_text=clock.unit, row=len(titles), col=1)
    return figure
