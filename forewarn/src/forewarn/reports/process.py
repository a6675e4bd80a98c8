"""A decision process: where actions lead from its main states, and every choice in a table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forewarn.models.counts import CountModel
from forewarn.models.process import Flow, Steps
from forewarn.reports.figures import percent
from forewarn.reports.graph import MOST_DRAWN, Arrow, Node, drawing
from forewarn.reports.page import Part, absent, escape, label, part, plot, table
from forewarn.reports.palette import COLOURS, axis, base_layout
from forewarn.states.interface import StateSpace

MOST_ROWS = 400
MOST_FOLLOWING = 4
MOST_ARROWS = 3
COUNTED = (
    "What was done and what followed, as the model counts it. Read from the left, where runs "
    "begin. A number on an arrow is its share of what leaves the state; point at an arrow for the "
    "actions."
)
PROCESS = (
    "Read from the left, where runs begin. A number on an arrow is its share of what leaves the "
    "state; point at an arrow for the actions. Coloured arrows are those of the policy. The edge "
    "of a box has the colour of its probability to reach the goal."
)
NOTHING = "(nothing known)"


@dataclass(frozen=True)
class ProcessView:
    """A process and what was found out about its states, which go by their names.

    Attributes
    ----------
    flows : sequence of Flow
        The counts.
    values : mapping of str to float
        Probability of what was asked, from each state; empty if nothing was.
    policy : mapping of str to str
        What is done in a state to attain it.
    starts : mapping of str to int
        Episodes that began there.
    first : collection of str
        States to draw before others: those of counterexamples.
    """

    flows: Sequence[Flow]
    values: Mapping[str, float]
    policy: Mapping[str, str]
    starts: Mapping[str, int]
    first: Sequence[str] = ()

    @property
    def visits(self) -> Counter[str]:
        """How often something was done in each state."""
        found: Counter[str] = Counter()
        for flow in self.flows:
            found[flow.state] += flow.times
        return found


def flows_of(steps: Steps, space: StateSpace) -> list[Flow]:
    """Return the counts of a model by the names of its states."""
    return [
        Flow(space.name(step.state), step.action, space.name(step.following), count)
        for step, count in steps
    ]


def process_body(view: ProcessView, identifier: str) -> str:
    """Return the picture of the main states, that of all states by value, and all choices."""
    if not view.flows:
        return absent("No step was counted.")
    visits = view.visits
    names = _ranked(view, visits)
    body = ""
    if len(names) > MOST_DRAWN:
        body += absent(
            f"Drawn are {MOST_DRAWN} of {len(names):,} states: those of counterexamples, and those "
            f"in which most was done; of each the {MOST_ARROWS} likeliest arrows that are of the "
            f"policy, and {MOST_ARROWS} others, of 2 % or more. The table has the rest."
        )
    body += _picture(view, names[:MOST_DRAWN], visits)
    if view.values and len(names) > MOST_DRAWN:
        body += (
            "<details><summary><small>All states by value and visits</small></summary>"
            f"{plot(identifier, _map(view, names, visits))}</details>"
        )
    return body + _choices(view, names, visits)


def _ranked(view: ProcessView, visits: Counter[str]) -> list[str]:
    """Return the names of all states, those to draw before others first."""
    known = {name for flow in view.flows for name in (flow.state, flow.following)}
    first = [name for name in dict.fromkeys(view.first) if name in known]
    arrived: Counter[str] = Counter()
    for flow in view.flows:
        arrived[flow.following] += flow.times
    rest = sorted(known - set(first), key=lambda name: (-visits[name] - arrived[name], name))
    return [*first, *rest]


def _picture(view: ProcessView, names: Sequence[str], visits: Counter[str]) -> str:
    shown = set(names)
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for flow in view.flows:
        counts[flow.state, flow.following][flow.action or NOTHING] += flow.times
    arrows, stays = [], {}
    for (state, following), by_action in counts.items():
        share = sum(by_action.values()) / visits[state]
        if state == following:
            stays[state] = share
        elif state in shown and following in shown and share >= 0.02:
            most = ", ".join(f"{action} {n:,} times" for action, n in by_action.most_common(3))
            chosen = view.policy.get(state) in by_action
            arrows.append(Arrow(state, following, share, most, chosen))
    nodes = [
        Node(
            name,
            view.values.get(name, float("nan")),
            _node_text(name, view, visits, stays),
            view.starts.get(name, 0),
        )
        for name in names
    ]
    return drawing(
        nodes, _likeliest(arrows), "The decision process: states, and where actions lead"
    )


def _likeliest(arrows: Sequence[Arrow]) -> list[Arrow]:
    drawn: Counter[tuple[str, bool]] = Counter()
    kept = []
    for arrow in sorted(arrows, key=lambda one: -one.share):
        drawn[arrow.source, arrow.chosen] += 1
        if drawn[arrow.source, arrow.chosen] <= MOST_ARROWS:
            kept.append(arrow)
    return kept


def _node_text(
    name: str, view: ProcessView, visits: Counter[str], stays: Mapping[str, float]
) -> tuple[str, ...]:
    value = view.values.get(name)
    risk = [] if value is None else [f"p = {value:.3g}"]
    times = f"{visits[name]:,} times" if visits[name] else "no action seen"
    again = [f"stays {percent(stays[name])}"] if name in stays else []
    return (", ".join([*risk, times]), *again)


def _choices(view: ProcessView, names: Sequence[str], visits: Counter[str]) -> str:
    following: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for flow in view.flows:
        following[flow.state, flow.action][flow.following] += flow.times
    place = {name: i for i, name in enumerate(names)}
    ordered = sorted(
        following.items(), key=lambda one: (place[one[0][0]], -sum(one[1].values()), one[0][1])
    )
    rows = []
    for (state, action), targets in ordered[:MOST_ROWS]:
        total = sum(targets.values())
        chosen = " <span class=tag>policy</span>" if view.policy.get(state) == action else ""
        rows.append(
            [
                escape(state),
                escape(action or NOTHING) + chosen,
                f"{total:,}",
                percent(total / visits[state]),
                escape(_leads_to(targets, total)),
            ]
        )
    rest = len(ordered) - len(rows)
    return (
        "<h3>What was done, and what followed</h3>"
        + table(("state", "action", ">times", ">share", "leads to"), rows, long="leads to")
        + (absent(f"{rest:,} more, in states that are seldom visited.") if rest else "")
    )


def _leads_to(targets: Counter[str], total: int) -> str:
    most: Iterable[tuple[str, int]] = targets.most_common(MOST_FOLLOWING)
    text = ", ".join(f"{name} {percent(count / total)}" for name, count in most)
    rest = len(targets) - MOST_FOLLOWING
    return text + (f" and {rest} more" if rest > 0 else "")


def _map(view: ProcessView, names: Sequence[str], visits: Counter[str]) -> dict[str, Any]:
    known = [name for name in names if view.values.get(name) is not None]
    layout = base_layout(360, 16, 56)
    layout["xaxis"] = axis(title={"text": "probability"}, range=[-0.03, 1.03])
    layout["yaxis"] = axis(title={"text": "times"}, type="log", nticks=5)
    layout["hovermode"] = "closest"
    dots = {
        "type": "scatter",
        "mode": "markers",
        "name": "states",
        "x": [round(view.values[name], 6) for name in known],
        "y": [max(visits[name], 0.7) for name in known],
        "text": [label(name) for name in known],
        "hovertemplate": "%{text}<br>%{x:.4f}, %{y} times<extra></extra>",
        "marker": {"size": 8, "color": COLOURS["risk"], "opacity": 0.7},
    }
    return {"data": [dots], "layout": layout}


def process_part(model: CountModel) -> Part | None:
    """Return the section about the actions that a model counts; None if it counts none."""
    flows = flows_of(model.steps, model.vocabulary)
    if not flows:
        return None
    starts = {model.name(i): int(model.starts[i]) for i in model.starts.nonzero()[0]}
    picture = process_body(ProcessView(flows, {}, {}, starts), "process-map")
    return part("process", "Process", "The process", COUNTED, picture)
