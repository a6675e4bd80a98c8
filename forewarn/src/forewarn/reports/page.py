"""The HTML around the pictures: style, script, tables. Nothing is fetched from anywhere."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

STYLE = """
:root{--ink:#1f2733;--soft:#5b6675;--line:#e3e7ed;--accent:#0b5cad;--act:#b3261e;--good:#0f8a6d}
*{box-sizing:border-box}
body{margin:0;background:#f5f7fa;color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',
Roboto,'Helvetica Neue',Arial,sans-serif}
header{background:#14233a;color:#fff;padding:28px 0}
header h1{margin:0 0 4px;font-size:26px;font-weight:650}
header p{margin:0;color:#b9c6d8}
.wrap{max-width:1180px;margin:0 auto;padding:0 24px}
nav{display:flex;flex-wrap:wrap;gap:18px;padding:12px 0;font-size:14px}
nav a{color:var(--accent);text-decoration:none}
section{background:#fff;border:1px solid var(--line);border-radius:10px;padding:20px 24px;
margin:0 0 20px}
h2{margin:0 0 6px;font-size:19px}h3{margin:22px 0 6px;font-size:15px}
.lead{color:var(--soft);margin:0 0 14px;font-size:14px;max-width:80ch}
.lead.wide{max-width:none;margin-top:10px}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:14px}
.card{border:1px solid var(--line);border-radius:8px;padding:14px 16px}
.card h3{margin:0 0 8px}
.figures{display:grid;grid-template-columns:repeat(3,1fr);gap:10px}
.figures b{display:block;font-size:21px;font-weight:650;font-variant-numeric:tabular-nums}
.figures span{font-size:12px;color:var(--soft)}
.formula{font:12px/1.45 ui-monospace,Menlo,Consolas,monospace;color:var(--soft);
overflow-wrap:anywhere;margin:0 0 10px}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th{text-align:left;color:var(--soft);font-weight:600;border-bottom:2px solid var(--line);
padding:6px 10px 6px 0;white-space:nowrap}
td{border-bottom:1px solid var(--line);padding:5px 10px 5px 0;vertical-align:top}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.scroll{max-height:420px;overflow:auto}
.tag{border-radius:4px;padding:1px 7px;font-size:12px;white-space:nowrap;background:#eef1f5}
.tag.bad{background:#fbe4e2;color:var(--act)}.tag.good{background:#dff3ec;color:#0a6b54}
.key{display:flex;flex-wrap:wrap;gap:6px 18px;font-size:12.5px;color:var(--soft);margin:0 0 6px}
.key i{display:inline-block;width:14px;height:10px;border-radius:2px;margin-right:5px}
ul,ol{margin:6px 0;padding-left:24px;font-size:13.5px}
s{color:var(--soft)}li{margin:2px 0;overflow-wrap:anywhere}
details>summary{cursor:pointer;font-size:17px;font-weight:650;padding:2px 0}
footer{color:var(--soft);font-size:13px;padding:4px 0 32px}
"""

SCRIPT = """
const problems=[];
window.addEventListener('error',e=>{problems.push(String(e.message));mark();});
let waiting=0;
function mark(){document.body.dataset.problems=problems.join(' | ');
document.body.dataset.drawn=waiting===0?'yes':'no';}
function draw(holder){
  if(holder.dataset.done)return;holder.dataset.done='1';waiting++;
  const figure=JSON.parse(document.getElementById(holder.dataset.figure).textContent);
  Plotly.newPlot(holder,figure.data,figure.layout,
    {responsive:true,displaylogo:false,modeBarButtonsToRemove:['select2d','lasso2d']})
  .then(()=>{waiting--;mark();},e=>{waiting--;problems.push(String(e));mark();});
}
function shown(holder){const d=holder.closest('details');return !d||d.open;}
document.querySelectorAll('details').forEach(d=>d.addEventListener('toggle',()=>{
  if(d.open)d.querySelectorAll('.plot').forEach(draw);}));
document.querySelectorAll('.plot').forEach(h=>{if(shown(h))draw(h);});
mark();
"""


def escape(text: object) -> str:
    """Return text that HTML shows as it is."""
    return html.escape(str(text), quote=True)


def data_script(identifier: str, value: Any) -> str:
    """Return a script element that holds JSON; no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{escape(identifier)}">{text}</script>'


def plot(identifier: str, figure: dict[str, Any]) -> str:
    """Return a place that the page's script draws a figure in, and the figure."""
    height = int(figure["layout"]["height"])
    name = escape(identifier)
    return (
        f'<div class="plot" id="{name}" data-figure="{name}-data" style="height:{height}px"></div>'
        + data_script(f"{identifier}-data", figure)
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, scroll: bool = False) -> str:
    """Return a table; columns that begin with > are aligned right, cells are HTML."""
    right = [name.startswith(">") for name in columns]
    head = "".join(
        f"<th{' class=n' if r else ''}>{escape(name.lstrip('>'))}</th>"
        for name, r in zip(columns, right, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{' class=n' if r else ''}>{cell}</td>" for cell, r in zip(row, right, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    text = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{text}</div>' if scroll else text


def section(identifier: str, title: str, lead: str, body: str) -> str:
    """Return one section of the page; `lead` and `body` are HTML."""
    return (
        f'<section id="{escape(identifier)}"><h2>{escape(title)}</h2>'
        + (f'<p class="lead">{lead}</p>' if lead else "")
        + f"{body}</section>"
    )


def page(
    title: str, subtitle: str, links: Sequence[tuple[str, str]], body: str, script: str
) -> str:
    """Return the whole page.

    Parameters
    ----------
    title, subtitle : str
        Plain text.
    links : sequence of (identifier, text)
        The sections.
    body : str
        HTML.
    script : str
        The source of plotly.
    """
    navigation = "".join(f'<a href="#{escape(i)}">{escape(t)}</a>' for i, t in links)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title>"
        '<link rel="icon" href="data:,">'
        f"<style>{STYLE}</style><script>{script}</script></head>"
        f'<body><header><div class="wrap"><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></div>'
        f'</header><div class="wrap"><nav>{navigation}</nav>{body}'
        "<footer>Made by Forewarn. This page needs no network.</footer></div>"
        f"<script>{SCRIPT}</script></body></html>\n"
    )
