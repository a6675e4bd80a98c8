"""The HTML around the pictures: style, script, tables. Nothing is fetched from anywhere."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from forewarn.reports.palette import style, theme

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
)
"""Even text that got past every escape could fetch nothing from anywhere."""


SCRIPTS = ("page.js", "timeline.js", "cursor.js")

Part = tuple[str, str, str]
"""Identifier and title of a section, and its HTML."""


def asset(name: str) -> str:
    """Return the text of a file that ships with the reports."""
    return files("forewarn.reports").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def escape(text: object) -> str:
    """Return text that HTML shows as it is."""
    return html.escape(str(text), quote=True)


def label(text: object) -> str:
    """Return text that plotly shows as it is: it takes tags for formatting, $ for formulas."""
    return html.escape(str(text), quote=False).replace("$", "&#36;")


def data_script(identifier: str, value: Any) -> str:
    """Return a script element that holds JSON; no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{escape(identifier)}">{text}</script>\n'


def plot(identifier: str, figure: dict[str, Any]) -> str:
    """Return a place that the page's script draws a figure in, and the figure."""
    height = int(figure["layout"]["height"])
    name = escape(identifier)
    return (
        f'<div class="plot" id="{name}" data-figure="{name}-data" style="height:{height}px"></div>'
        + data_script(f"{identifier}-data", figure)
    )


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    long: str = "",
    cards: bool = False,
) -> str:
    """Return a table that scrolls where it is too large.

    Parameters
    ----------
    columns : sequence of str
        Plain text; columns that begin with > are aligned right.
    rows : sequence of sequence of str
        Cells, as HTML.
    long : str
        The column that needs room for long text.
    cards : bool
        On a narrow screen each row is a card, so that none of its cells is out of view.
    """
    right = [name.startswith(">") for name in columns]
    kinds = [
        " class=n" if r else " class=long" if name == long else ""
        for name, r in zip(columns, right, strict=True)
    ]
    head = "".join(
        f"<th{' class=n' if r else ''}>{escape(name.lstrip('>'))}</th>"
        for name, r in zip(columns, right, strict=True)
    )
    if cards:
        labels = [escape(name.lstrip(">")) for name in columns]
        kinds = [f'{kind} data-label="{label}"' for kind, label in zip(kinds, labels, strict=True)]
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=True))
        + "</tr>\n"
        for row in rows
    )
    opened = "<table class=cards>" if cards else "<table>"
    return (
        f'<div class="scroll">{opened}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def absent(reason: str) -> str:
    """Return a remark in the place of what is missing; `reason` is plain text."""
    return f'<p class="none">{escape(reason)}</p>'


def section(identifier: str, title: str, lead: str, body: str) -> str:
    """Return one section of the page; `lead` and `body` are HTML."""
    return (
        f'<section id="{escape(identifier)}"><h2>{escape(title)}</h2>'
        + (f'<p class="lead">{lead}</p>' if lead else "")
        + f"{body}</section>"
    )


def part(identifier: str, name: str, title: str, lead: str, body: str) -> Part:
    """Return a section with the name that leads to it; `lead` is plain text, `body` is HTML."""
    return identifier, name, section(identifier, title, escape(lead), body)


def assembled(title: str, subtitle: str, parts: Sequence[Part]) -> str:
    """Return the page of these sections."""
    links = [(identifier, name) for identifier, name, _ in parts]
    return page(title, subtitle, links, "".join(body for _, _, body in parts))


def page(title: str, subtitle: str, links: Sequence[tuple[str, str]], body: str) -> str:
    """Return the whole page.

    Parameters
    ----------
    links : sequence of (identifier, text)
        The sections.
    """
    from plotly.offline import get_plotlyjs  # commands that write no page need none of it

    navigation = "".join(f'<a href="#{escape(i)}">{escape(t)}</a>' for i, t in links)
    script = get_plotlyjs()
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title>"
        '<link rel="icon" href="data:,">'
        f"<style>{style()}{asset('page.css')}</style><script>{script}</script></head>"
        f'<body><header><div class="wrap"><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></div>'
        f'</header><div class="wrap"><nav>{navigation}</nav>{body}'
        "<footer>Made by Forewarn. This page needs no network.</footer></div>"
        f"{data_script('theme', theme())}"
        f"<script>{''.join(map(asset, SCRIPTS))}</script></body></html>\n"
    )
