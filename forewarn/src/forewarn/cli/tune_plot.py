"""The trade-off as a picture: one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence

from forewarn.assessment.tuning import Candidate, Tuning

# As in a report: nothing that selects what means nothing, and nothing that sends data away.
CONFIG = {
    "displaylogo": False,
    "plotlyServerURL": "",
    "modeBarButtonsToRemove": [
        *("select2d", "lasso2d", "autoScale2d"),
        *("sendChartToCloud", "sendDataToCloud"),
    ],
}


def render(tunings: Sequence[Tuning]) -> str:
    """Return a page with lead time and misses against false alarms of each property."""
    # plotly takes half a second to import: only who wants a picture waits for it.
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(
        rows=len(tunings),
        cols=2,
        subplot_titles=[
            f"{tuning.name}: {what}"
            for tuning in tunings
            for what in ("median lead time, misses as 0", "violations missed")
        ],
    )
    for row, tuning in enumerate(tunings, 1):
        limit = tuning.goal.alert_share
        for column in (1, 2):
            for enter in sorted({candidate.enter for candidate in tuning.candidates}):
                found = [candidate for candidate in tuning.candidates if candidate.enter == enter]
                within = [
                    candidate
                    for candidate in found
                    if (candidate.point.alert_share or 0.0) <= limit
                ]
                beyond = [candidate for candidate in found if candidate not in within]
                dots = _line(go, beyond, column, f"enter {enter}, too long in alert", faint=True)
                figure.add_trace(dots, row, column)
                figure.add_trace(_line(go, within, column, f"enter {enter}"), row, column)
            figure.add_trace(_mark(go, tuning.present, column, "in the file"), row, column)
            if tuning.chosen is not None:
                figure.add_trace(_mark(go, tuning.chosen, column, "chosen"), row, column)
            figure.add_vline(
                tuning.goal.false_alarms_per_hour,
                row=row,
                col=column,
                line={"color": "#2a6fb0", "width": 1, "dash": "dot"},
            )
            figure.update_xaxes(
                title_text=f"false alarms {tuning.goal.clock.hour}", row=row, col=column
            )
        figure.update_yaxes(title_text=tuning.goal.clock.unit, row=row, col=1)
        figure.update_yaxes(title_text="share", tickformat=".0%", row=row, col=2)
    figure.update_layout(
        showlegend=False,
        height=380 * len(tunings) + 60,
        margin_t=150,
        title={"text": "<br>".join(_explained(tunings)), "y": 1, "yref": "container",
               "yanchor": "top", "pad": {"t": 20}, "font_size": 14},
    )  # fmt: skip
    return str(figure.to_html(include_plotlyjs=True, config=CONFIG))


def _explained(tunings: Sequence[Tuning]) -> list[str]:
    """Return the title, and what dots and lines mean, in lines that a narrow page has room for."""
    goal = tunings[0].goal
    return [
        "<b>What each threshold would give</b> (point at a dot)",
        f"dotted: the budget of {goal.false_alarms_per_hour:g} {goal.clock.hour}",
        f"grey dots: in alert for more than {100 * goal.alert_share:g} % of the time",
    ]


def _place(candidate: Candidate, column: int) -> tuple[float | None, float | None]:
    point = candidate.point
    lost = point.missed / point.violations if point.violations else None
    return point.false_alarms_per_hour, candidate.lead if column == 1 else lost


def _line(  # type: ignore[no-untyped-def]
    go, candidates: Sequence[Candidate], column: int, name: str, *, faint: bool = False
):
    places = [_place(candidate, column) for candidate in candidates]
    return go.Scatter(
        x=[x for x, _ in places],
        y=[y for _, y in places],
        mode="markers" if faint else "lines+markers",
        name=name,
        text=[f"act {candidate.thresholds.act:g}, {name}" for candidate in candidates],
        marker={"size": 5, "color": "#b6c2cf" if faint else "#2a6fb0"},
        line={"color": "#2a6fb0", "width": 1},
    )


def _mark(go, candidate: Candidate, column: int, name: str):  # type: ignore[no-untyped-def]
    x, y = _place(candidate, column)
    return go.Scatter(
        x=[x],
        y=[y],
        mode="markers+text",
        name=name,
        text=[name],
        textposition="top right" if name == "chosen" else "bottom right",
        cliponaxis=False,
        marker={"size": 11, "color": "#c2410c" if name == "chosen" else "#6b7280"},
    )
