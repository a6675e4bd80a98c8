"""Precision and recall of contenders as a picture: one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forewarn.assessment.comparison import Contender
from forewarn.assessment.ranking import precision_recall
from forewarn.cli.tune_plot import CONFIG


def render(curves: Mapping[str, Sequence[Contender]]) -> str:
    """Return a page with the curves of each property."""
    # plotly takes half a second to import: only who wants a picture waits for it.
    import plotly.colors
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    colours = plotly.colors.qualitative.Safe
    figure = make_subplots(rows=len(curves), cols=1, subplot_titles=list(curves))
    for row, contenders in enumerate(curves.values(), 1):
        for place, contender in enumerate(contenders):
            found = precision_recall(contender.runs, contender.rule.unseen)
            figure.add_trace(
                go.Scatter(
                    x=found.recall,
                    y=found.precision,
                    name=contender.name,
                    legendgroup=contender.name,
                    showlegend=row == 1,
                    line={"shape": "hv", "color": colours[place % len(colours)]},
                    hovertemplate="recall %{x:.0%}, precision %{y:.0%}",
                ),
                row,
                1,
            )
        figure.update_xaxes(title_text="recall", range=[0, 1], tickformat=".0%", row=row, col=1)
        figure.update_yaxes(title_text="precision", range=[0, 1], tickformat=".0%", row=row, col=1)
    figure.update_layout(
        height=420 * len(curves) + 80,
        title={"text": "<b>Moments before a violation: how many are told, and how many of those "
               "told are right</b>", "font_size": 14},
    )  # fmt: skip
    return str(figure.to_html(include_plotlyjs=True, config=CONFIG))
