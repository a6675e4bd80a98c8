"""Pages about learned abstractions: what `learn-states` and `refine` found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from forewarn.cli.editing import shortened
from forewarn.models.counts import CountModel
from forewarn.models.process import Flow
from forewarn.reports.page import Part, absent, assembled, escape, part, plot, table
from forewarn.reports.palette import COLOURS, axis, base_layout
from forewarn.reports.process import NOTHING, PROCESS, ProcessView, process_body
from forewarn.reports.ways import ways_body
from forewarn.states.interface import is_terminal
from forewarn.wings.trees.growth import Grown, Size
from forewarn.wings.trees.predicate_tree import LeafNote, tree_list
from forewarn.wings.trees.refined import BEFORE, ENDINGS, GOAL, Refined
from forewarn.wings.trees.refinement_file import Refinement
from forewarn.wings.trees.refinement_report import rounds_body, shown_way
from forewarn.wings.trees.space import TreeSpace

TREE = (
    "Each line asks one question; its answer leads on to the next, and a leaf is a state. Bars are "
    "shares of the moments that ended there. Click on a question to fold what lies below it."
)
LOSSES = (
    "How well trees of so many leaves predict recordings that they were not learned from; less is "
    "better. The smallest tree within one standard error of the best is chosen."
)
ROUNDS = (
    "The policy that breaks the bound is played in the recorded runs. What the process promises "
    "and the runs do not show is lost at some leaf. That leaf is split by what best predicts its "
    "next moments, if the split predicts held-out runs better. The bounds are not sound: the runs "
    "that are counted also made the tree."
)
WAYS = (
    "The most probable ways to the goal. States with a dashed border were reached by no run that "
    "went this way: what leads there is promised only because the states before are merged."
)


def tree_page(grown: Grown, sizes: Sequence[Size], kind: str, subtitle: str) -> str:
    """Return the page about a tree that was learned; its classes are those of `kind`."""
    notes = {
        leaf: LeafNote(sum(kinds.values()), tuple((str(k), n) for k, n in kinds.items()))
        for leaf, kinds in grown.counts.items()
    }
    lead = f"{TREE} The classes are those of {kind}."
    body = tree_list(grown.tree, notes)
    if grown.undecided:
        body += absent(
            f"{grown.undecided:,} moments reach no leaf, because a condition is unknown there."
        )
    parts = [
        part("tree", "Tree", "The tree", lead, body),
        part("splits", "Splits", "Splits", "", _splits(grown)),
    ]
    if sizes:
        picture = plot("sizes-plot", _losses(sizes, len(grown.counts)))
        parts.append(part("sizes", "Size", "How many leaves", LOSSES, picture))
    return assembled("Forewarn: a learned tree", subtitle, parts)


def _splits(grown: Grown) -> str:
    if not grown.splits:
        return absent("No condition separates the classes.")
    rows = [
        [
            str(number),
            f"<code>{escape(shortened(one.condition))}</code>",
            escape(one.variable),
            f"{one.gain:.3f}",
        ]
        for number, one in enumerate(grown.splits, 1)
    ]
    return table((">order", "condition", "variable", ">gain (bits)"), rows, long="condition")


def _losses(sizes: Sequence[Size], chosen: int) -> dict[str, Any]:
    layout = base_layout(300, 16, 48)
    layout["xaxis"] = axis(title={"text": "leaves"})
    layout["yaxis"] = axis(title={"text": "held-out loss (bits)"})
    data: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines+markers", "name": "loss",
            "x": [one.leaves for one in sizes], "y": [round(one.loss, 6) for one in sizes],
            "error_y": {"type": "data", "array": [round(one.error, 6) for one in sizes],
                        "thickness": 1, "width": 2},
            "line": {"color": COLOURS["risk"], "width": 1.5}, "marker": {"size": 5},
            "hovertemplate": "%{x} leaves: %{y:.4f} bits<extra></extra>",
        },
        {
            "type": "scatter", "mode": "markers", "name": "chosen", "x": [chosen],
            "y": [round(sizes[chosen - 1].loss, 6)],
            "marker": {"size": 13, "symbol": "diamond-open", "color": COLOURS["act"],
                       "line": {"width": 2.5}},
            "hovertemplate": "chosen: %{x} leaves<extra></extra>",
        },
    ]  # fmt: skip
    return {"data": data, "layout": layout}


def refinement_page(found: Refinement) -> str:
    """Return the page about a refinement."""
    refined = found.refined
    process = process_body(_view(refined), "refined-map")
    tree = tree_list(refined.tree, _notes(refined))
    parts = [
        *refinement_parts(found),
        part("tree", "Tree", "The tree", TREE, tree),
        part("process", "Process", "The process", PROCESS, process),
    ]
    return assembled("Forewarn: a refined tree", _subtitle(found), parts)


def states_part(model: CountModel) -> Part:
    """Return the section about the states of a model, which are leaves of a tree."""
    space = model.vocabulary
    assert isinstance(space, TreeSpace)
    return part("tree", "Tree", "The states", TREE, tree_list(space.tree, _visited(model, space)))


def _visited(model: CountModel, space: TreeSpace) -> dict[str, LeafNote]:
    """Return what was done in each leaf; where nothing is known of that, how often it was left."""
    done: dict[str, Counter[str]] = {name: Counter() for name in space.leaves}
    for step, count in model.steps:
        done[space.leaves[space.parts(step.state)[0]]][step.action] += count
    visits: Counter[str] = Counter()
    for state, left in zip(model.states, model.visits.tolist(), strict=True):
        if not is_terminal(state):
            visits[space.leaves[space.parts(state)[0]]] += int(left)
    return {
        name: LeafNote(visits[name], tuple(actions.most_common())) for name, actions in done.items()
    }


def _subtitle(found: Refinement) -> str:
    refined = found.refined
    text = f"{found.query}: {ENDINGS[refined.ending]}"
    if refined.ending != "holds":
        text += f"; {refined.among_runs}"
    return text


def refinement_parts(found: Refinement) -> list[Part]:
    """Return the sections about a refinement: rounds and counterexamples."""
    refined = found.refined
    rounds = rounds_body(found.query, refined)
    lead = f"{_subtitle(found)}. {ROUNDS}"
    ways = ways_body([*map(shown_way, refined.paths)], refined.critical)
    return [
        part("rounds", "Rounds", "What was split, and why", lead, rounds),
        part("ways", "Counterexamples", "Counterexamples", WAYS, ways),
    ]


def _view(refined: Refined) -> ProcessView:
    critical = () if refined.critical is None else refined.critical.states
    on_ways = [name for way in refined.paths for name in way.path[::2]]
    return ProcessView(
        refined.flows,
        {name: one.value for name, one in refined.leaves.items()},
        {name: one.action for name, one in refined.leaves.items()},
        {name: one.starts for name, one in refined.leaves.items() if one.starts},
        [GOAL, *on_ways, *critical],
    )


def _notes(refined: Refined) -> dict[str, LeafNote]:
    done: dict[str, Counter[str]] = {
        name: Counter() for name in refined.leaves if name not in BEFORE
    }
    for flow in refined.flows:
        done[flow.state][_action(flow)] += flow.times
    return {
        name: LeafNote(
            sum(actions.values()),
            tuple(actions.most_common()),
            f"probability of the goal {refined.leaves[name].value:.3g}",
        )
        for name, actions in done.items()
    }


def _action(flow: Flow) -> str:
    return flow.action or NOTHING
