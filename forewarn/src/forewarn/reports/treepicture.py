"""The tree of ways to a violation as SVG: each box says what changes."""

from __future__ import annotations

from typing import NamedTuple

from forewarn.models.counts import CountModel
from forewarn.monitoring.tables import CompiledProperty
from forewarn.reports.page import escape
from forewarn.reports.palette import risk_colour
from forewarn.reports.tree import Tree, violation_tree
from forewarn.signals.clock_kinds import clock_of
from forewarn.states.interface import StateSpace, is_terminal

BOX, COLUMN, GAP = 186, 206, 40
LINE, PAD = 15, 8
MAX_LINES, MAX_LETTERS = 7, 27
BAR = 48


MIDDLE = ' text-anchor="middle"'
SIGNS = {True: "+ ", False: "\u2212 "}


class Change(NamedTuple):
    """One line of a box: what begins or ends, or a plain remark."""

    text: str
    begins: bool
    plain: bool = False


def conditions(vocabulary: StateSpace, code: int) -> tuple[list[str], dict[str, float]]:
    """Return plain predicates, and the least threshold of each cut signal."""
    if is_terminal(code):
        return [vocabulary.name(code)], {}
    plain: list[str] = []
    cuts: dict[str, float] = {}
    for name in vocabulary.present:
        if not vocabulary.holds(name, code):
            continue
        cut = vocabulary.cut(name)
        if cut is None:
            plain.append(name)
        else:
            cuts[cut[0]] = min(cut[1], cuts.get(cut[0], float("inf")))
    return plain, cuts


def changes(vocabulary: StateSpace, before: int | None, after: int) -> list[Change]:
    """Return what is different in the second state; all that holds in it if there is no first."""
    plain, cuts = conditions(vocabulary, after)
    if before is None:
        held = [*plain, *(f"{name} < {value:g}" for name, value in cuts.items())]
        return [Change(text, True) for text in held] or [Change("none of the predicates", True)]
    old, old_cuts = conditions(vocabulary, before)
    found = [Change(name, True) for name in plain if name not in old]
    for name in dict.fromkeys((*cuts, *old_cuts)):
        new, past = cuts.get(name), old_cuts.get(name)
        if new is not None and (past is None or new < past):
            found.append(Change(f"{name} < {new:g}", True))
        elif past is not None and new != past:
            found.append(Change(f"{name} \u2265 {past:g}", True))
    return [*found, *(Change(name, False) for name in old if name not in plain)]


class _Box(NamedTuple):
    x: float
    y: float
    height: float


def tree_picture(compiled: CompiledProperty, model: CountModel) -> str | None:
    """Return how violations of a property come about, as SVG; None if counts lead to none."""
    tree = violation_tree(compiled, model)
    if tree is None:
        return None
    lines = _lines(tree, model, clock_of(model.rate).noun)
    boxes, columns, bottom = _places(tree, lines)
    width = max(len(columns) * COLUMN, BOX) + 24
    parts = [
        *_edges(tree, boxes),
        *_ends(tree, boxes, columns, bottom),
        *(_box(tree, model, i, boxes[i], lines[i]) for i in range(len(boxes))),
        _bar(tree, columns, bottom, compiled.name),
    ]
    height = bottom + BAR + 12
    return (
        f'<div class="tree" data-root="{boxes[0].x:.0f}"><svg role="img" '
        f'aria-label="How violations of {escape(compiled.name)} come about" '
        f'width="{width}" height="{height:.0f}" viewBox="0 0 {width} {height:.0f}">'
        f"{''.join(parts)}</svg></div>"
    )


def _lines(tree: Tree, model: CountModel, noun: str) -> list[list[Change]]:
    found = []
    for step in tree.steps:
        before = None if step.parent < 0 else model.states[tree.steps[step.parent].row]
        lines = changes(model.vocabulary, before, model.states[step.row])
        if step.parent >= 0 and not lines:
            lines = [Change("no change, still pending", False, True)]
        if step.ticks > 1:
            lines.append(Change(f"pending for {step.ticks} {noun}s", False, True))
        if len(lines) > MAX_LINES:
            rest = len(lines) - MAX_LINES + 1
            lines = [*lines[: MAX_LINES - 1], Change(f"and {rest} more", False, True)]
        found.append(lines)
    return found


def _places(tree: Tree, lines: list[list[Change]]) -> tuple[list[_Box], dict[int, float], float]:
    """Return boxes, the x of every ending by its step, and the y of the bar."""
    children: dict[int, list[int]] = {}
    for i, step in enumerate(tree.steps):
        children.setdefault(step.parent, []).append(i)
    depth = [0] * len(tree.steps)
    for i, step in enumerate(tree.steps):
        depth[i] = 0 if step.parent < 0 else depth[step.parent] + 1
    height = [PAD * 2 + LINE * (len(line) + 1) for line in lines]
    levels = [
        max(height[i] for i in range(len(height)) if depth[i] == d) for d in range(max(depth) + 1)
    ]
    top = [12 + sum(levels[:d]) + GAP * d for d in range(len(levels))]
    ends = {ending.step for ending in tree.endings}
    columns: dict[int, float] = {}
    x: dict[int, float] = {}

    def place(i: int) -> float:
        centres = []
        if i in ends:
            columns[i] = 12 + COLUMN * (len(columns) + 0.5)
            centres.append(columns[i])
        centres += [place(child) for child in children.get(i, [])]
        x[i] = (centres[0] + centres[-1]) / 2
        return x[i]

    place(0)
    boxes = [_Box(x[i], top[depth[i]], height[i]) for i in range(len(tree.steps))]
    return boxes, columns, top[-1] + levels[-1] + GAP + 12


def _edges(tree: Tree, boxes: list[_Box]) -> list[str]:
    found = []
    for step, box in zip(tree.steps, boxes, strict=True):
        if step.parent >= 0:
            above = boxes[step.parent]
            found.append(_edge(above.x, above.y + above.height, box.x, box.y, step.probability))
    return found


def _ends(tree: Tree, boxes: list[_Box], columns: dict[int, float], bottom: float) -> list[str]:
    found = []
    for ending in tree.endings:
        box, x = boxes[ending.step], columns[ending.step]
        start = box.y + box.height
        found.append(_edge(box.x, start, x, bottom, ending.probability))
    return found


def _edge(x1: float, y1: float, x2: float, y2: float, probability: float) -> str:
    bend = min(y1 + GAP * 0.75, y2)
    path = (
        f"M{x1:.1f},{y1:.1f} C{x1:.1f},{bend:.1f} {x2:.1f},{y1:.1f} {x2:.1f},{bend:.1f} V{y2:.1f}"
    )
    width = 1 + 3 * probability
    left = x2 < x1 - 1
    label = _text(
        x2 - 6 if left else x2 + 6,
        bend + (10 if y2 > bend + 12 else -2),
        _percent(probability),
        "soft halo",
        ' text-anchor="end"' if left else "",
    )
    return f'<path class="edge" d="{path}" stroke-width="{width:.1f}"/>{label}'


def _percent(probability: float) -> str:
    return f"{100 * probability:.0f} %" if probability >= 0.1 else f"{100 * probability:.2g} %"


def _text(x: float, y: float, text: str, kind: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'


def _box(tree: Tree, model: CountModel, i: int, box: _Box, lines: list[Change]) -> str:
    step = tree.steps[i]
    left, visits = box.x - BOX / 2, int(model.visits[step.row])
    colour = risk_colour(step.risk)
    texts = [
        _text(
            left + 12,
            box.y + PAD + LINE * (n + 0.8),
            _short(("" if step.parent < 0 or change.plain else SIGNS[change.begins]) + change.text),
            "strong" if change.begins else "soft",
        )
        for n, change in enumerate(lines)
    ]
    risk = "" if step.risk != step.risk else f"risk {step.risk:.2g}, "
    note = f"{risk}{visits:,} visits"
    texts.append(_text(left + 12, box.y + PAD + LINE * (len(lines) + 0.8), note, "soft"))
    return (
        f"<g><title>{escape(model.name(step.row))}: {escape(note)}</title>"
        f'<rect class="box" x="{left:.1f}" y="{box.y:.1f}" width="{BOX}" height="{box.height:.1f}" '
        f'rx="5"/><rect x="{left:.1f}" y="{box.y:.1f}" width="6" height="{box.height:.1f}" rx="3" '
        f'fill="{colour}"/>{"".join(texts)}</g>'
    )


def _short(text: str) -> str:
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 1]}\u2026"


def _bar(tree: Tree, columns: dict[int, float], bottom: float, name: str) -> str:
    first, last = min(columns.values()) - BOX / 2, max(columns.values()) + BOX / 2
    shown = sum(ending.number for ending in tree.endings)
    text = f"violation of {_short(name)}"
    if tree.exact:
        text += f": {shown:,} of the {tree.total:,} that were counted came from these states"
    shares = [
        _text(
            columns[ending.step],
            bottom + 18,
            f"{ending.number / tree.total:.0%} of all",
            "soft",
            MIDDLE,
        )
        for ending in tree.endings
        if tree.exact
    ]
    return (
        f'<rect class="end" x="{first:.1f}" y="{bottom:.1f}" width="{last - first:.1f}" '
        f'height="{BAR}" rx="5"/>'
        + _text((first + last) / 2, bottom + 38, text, "strong", MIDDLE)
        + "".join(shares)
    )
