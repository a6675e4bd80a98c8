"""What the page says of the model: coverage, ways to a violation, all its states."""

from __future__ import annotations

from collections.abc import Sequence

from forewarn.assessment.replay import RecordedRun
from forewarn.learning.estimates.choice import in_words
from forewarn.models.counts import CountModel
from forewarn.models.hierarchical_prior import prior_in_words
from forewarn.monitoring.composition import is_estimated
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.tables import CompiledProperty
from forewarn.reports.chain import chain_figure
from forewarn.reports.coverage import cover
from forewarn.reports.page import absent, escape, plot, section, table
from forewarn.reports.paths import likeliest_way
from forewarn.reports.states import no_risk_text, risk_text, riskiest, state_cell
from forewarn.reports.treepicture import tree_picture

RISKY_STATES = 8
COLUMNS = (">risk", ">bounds", "state", "obligation", ">visits")
TREE = (
    "The commonest last steps before a violation, and the likeliest way to each of them from the "
    "state that is most common. Read from the top; a box says what begins (+) and what ends "
    "(\N{MINUS SIGN}), a number on a line is the probability of that step when the state is left. "
    "The edge of a box has the colour of its risk."
)
MAP = (
    "All states: further right is riskier, further up was seen more often; lines are transitions. "
    "Point at a dot for its name. The thick line is the likeliest way to a violation."
)


def coverage_part(monitor: Monitor, model: CountModel, runs: Sequence[RecordedRun]) -> str:
    """Return the section about coverage."""
    seen = int(model.observed.sum())
    lead = (
        f"{model.size} states, {seen} of them observed; {int(model.counts.sum()):,} transitions of "
        f"{model.counts.nnz:,} kinds from {len(model.provenance)} recordings; smoothing "
        f"{model.smoothing.alpha} over {model.smoothing.candidates} states. A state with few "
        "visits has a risk that is little more than a guess."
    )
    if borrowed := prior_in_words(model):
        lead += f" {borrowed[:1].upper()}{borrowed[1:]}."
    return section("coverage-part", "Coverage", escape(lead), cover(monitor, model, runs))


def chain_part(monitor: Monitor, model: CountModel) -> str:
    """Return the section with the chain of every property."""
    body, noun = "", monitor.clock.noun
    for number, compiled in enumerate(monitor.properties):
        if compiled.table is not None:
            body += f"<h3>{escape(compiled.name)}</h3>{_made_of(compiled, noun)}"
            body += _ways(compiled, model)
            body += _riskiest(compiled, model) + _map(compiled, model, number)
    return section("chain", "How violations come about", escape(TREE), body)


def _made_of(compiled: CompiledProperty, noun: str) -> str:
    """Return what the risk is made of, where it is not the chain's."""
    if compiled.estimate is None or not is_estimated(compiled):
        return ""
    words = in_words(compiled.estimate)
    text = f"{words[0].upper()}{words[1:]}. The ways drawn here are those of the chain alone"
    if compiled.scored is not None:
        text += f"; scores move the risk of a state at each {noun}, and are left out here"
    return f'<p class="lead">{escape(text)}.</p>'


def _ways(compiled: CompiledProperty, model: CountModel) -> str:
    picture = tree_picture(compiled, model)
    if picture is not None:
        return picture
    return absent(
        "No way to draw: nothing that was counted leads to a violation, or the chain has too many "
        "states to search. A risk above 0 comes from smoothing alone."
    )


def _riskiest(compiled: CompiledProperty, model: CountModel) -> str:
    assert compiled.table is not None
    bounded = compiled.table.lower is not None
    rows = [
        [
            risk_text(state.risk),
            f"{state.lower:.3f} to {state.upper:.3f}" if bounded else "-",
            state_cell(state.name),
            escape(state.automaton),
            f"{state.visits:,}",
        ]
        for state in riskiest(compiled, model, RISKY_STATES)
    ]
    shown = (
        table(COLUMNS, rows, long="state")
        if rows
        else absent(f"{no_risk_text(compiled).capitalize()}.")
    )
    return f"<details><summary><small>The riskiest states</small></summary>{shown}</details>"


def _map(compiled: CompiledProperty, model: CountModel, number: int) -> str:
    figure = chain_figure(compiled, model, likeliest_way(compiled, model))
    return (
        f"<details><summary><small>All states by risk and visits</small></summary>"
        f'<p class="lead">{escape(MAP)}</p>{plot(f"chain{number}", figure)}</details>'
    )
