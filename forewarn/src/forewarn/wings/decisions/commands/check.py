"""``forewarn check``: ask a model anything, through Storm and by ourselves."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.ctl import is_ctl
from forewarn.checking.interface import ENDED, label_states
from forewarn.checking.numeric import risk_table
from forewarn.checking.sound import CONFIDENCE
from forewarn.cli.common import config_option, report_option, storm_speaks, top_option, write_report
from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.errors import CheckingError, ExpressionError, ModelError, located, plural
from forewarn.files.outputs import check_output
from forewarn.logic.specification import CompiledSpec
from forewarn.models.chain import Chain
from forewarn.models.counts import CountModel
from forewarn.models.file import load_model
from forewarn.monitoring.loading import load_compiled
from forewarn.monitoring.model_fit import check_model
from forewarn.signals.clock import horizon_ticks, within
from forewarn.states.abstraction import Abstraction
from forewarn.wings.decisions import storm
from forewarn.wings.decisions.chains import chain_of, unsmoothed_option
from forewarn.wings.decisions.process_answers import (
    Checked,
    QueryText,
    evidence_record,
    print_answer,
    process_evidence,
    process_record,
    tell_process_answer,
)
from forewarn.wings.decisions.process_query import (
    answer_process_query,
    is_process_query,
    parse_process_query,
    storm_process_query,
)
from forewarn.wings.decisions.storm import QueryResult, check_query
from forewarn.wings.decisions.storm_api import Storm

DESCRIPTION = """\
Answer queries about a model: PCTL over predicates and terminal labels in double quotes, through
Storm (stormpy has to be installed), and CTL (AX AG AF AU EX EG EF EU, with bounds as in AF[<=5]).
A step is a tick: at 10 Hz, F<=50 looks five seconds ahead. With a monitor file, a query may be the
name of a property, and names may be comparisons.

Of a model that counts actions, Pmax and Pmin are the greatest and the least probability over all
choices among the actions seen: Pmax=? [ F "arrived" ], Pmin=? [ "near" U<=50 "collision" ],
Pmin=? [ G<=50 !"collision" ], or in short Pmin(collision) >= 0.3 and Pmax(collision, 50). They
come with bounds and need no Storm; Tmin=? [ F "arrived" ] (expected steps) does."""

EPILOG = """\
exit codes: 0 a number was found, or the formula holds in every state that episodes begin in;
1 a formula does not hold in one of them, or the risk of a property reaches its threshold `act`;
2 wrong usage or input.

examples: forewarn check monitor.model.json 'P=? [ F<=50 "collision" ]'
          forewarn check monitor.model.json 'P<0.1 [ F<=50 "collision" ]' 'EF collision'
          forewarn check monitor.model.json 'AG !collision' --unsmoothed
          forewarn check monitor.model.json -c monitor.yaml keep_distance
          forewarn check monitor.model.json 'Pmax=? [ F "arrived" ]' 'Pmin(collision) < 0.3'
          forewarn check monitor.model.json 'Pmax(collision) < 0.3' --confidence 0.99 --grown"""

SHOWN = 40
"""Letters of a query beside the bar."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``check``."""

    model: Path = argument("the model file", "MODEL")
    queries: list[str] = argument("a PCTL or CTL formula, or with -c a property", "QUERY")
    config: Path | None = config_option("the monitor file, for its names", required=False)
    top: int = top_option()
    unsmoothed: bool = unsmoothed_option()
    confidence: float = option(
        "of the bounds of Pmax and Pmin, between 0 and 1", "P", of=float, default=CONFIDENCE
    )
    grown: bool = option(
        "the states were learned from the traces that the model counts: bounds are not sound"
    )
    report: Path | None = report_option()


def run(options: Options, output: Output) -> int:
    """Ask, and print the answers for the states where they matter most."""
    check_output(options.report)
    model = load_model(options.model)
    compiled = None if options.config is None else _fitting(options.config, model, options.model)
    if not all(_is_ours(query) or is_ctl(query) for query in options.queries):
        _need_storm()
    chain = chain_of(model, options.model, options.unsmoothed)
    first = model.starts > 0
    if not first.any():
        first = model.observed
        output.note("note: the model does not tell where episodes begin: every state counts alike")
    checked, records = [], []
    for query in options.queries:
        with output.progress(f"checking {textwrap.shorten(query, SHOWN)}"):
            if is_process_query(query):
                found, record = _of_process(query, model, first, compiled, options, output)
            else:
                found, record = _of_chain(query, model, first, compiled, options, chain, output)
        print_answer(found.text, options.top, output)
        checked.append(found)
        records.append(record)
    if options.report is not None:
        from forewarn.wings.decisions.report import check_page

        write_report(options.report, check_page(model, checked, str(options.model)), output)
    starts = {
        model.vocabulary.key(model.states[i]): model.starts[i] for i in model.starts.nonzero()[0]
    }
    head = {"model": options.model, "rate": model.rate, "smoothed": chain.smoothed}
    output.emit({**head, "starts": starts, "queries": records})
    return 0 if all(record["fine"] for record in records) else 1


def _of_chain(
    query: str,
    model: CountModel,
    first: Mask,
    compiled: CompiledSpec | None,
    options: Options,
    chain: Chain,
    output: Output,
) -> tuple[Checked, dict[str, Any]]:
    """Answer a query about the chain, or the risk of a property."""
    with storm_speaks(output), located(CheckingError, file=options.model, key=query):
        answer = _answer(query, model, chain, compiled)
    return Checked(_answer_text(answer, model, first)), _record(answer, model, first)


def _is_ours(query: str) -> bool:
    """Tell whether a query can be answered, or refused, without Storm."""
    try:
        return is_process_query(query) and parse_process_query(query) is not None
    except CheckingError:
        return True


def _of_process(
    text: str,
    model: CountModel,
    first: Mask,
    compiled: CompiledSpec | None,
    options: Options,
    output: Output,
) -> tuple[Checked, dict[str, Any]]:
    """Answer a query about the decision process."""
    asked = text if compiled is None else _in_vocabulary(text, compiled.abstraction)
    smoothing = replace(model.smoothing, alpha="none") if options.unsmoothed else model.smoothing
    with located(CheckingError, file=options.model, key=text):
        query = parse_process_query(asked)
        if query is None:
            with storm_speaks(output):
                result = storm_process_query(model, asked, smoothing)
            return Checked(_answer_text(result, model, first)), _record(result, model, first)
        found = answer_process_query(
            model, query, smoothing=smoothing, confidence=options.confidence, grown=options.grown
        )
        evidence = None if options.report is None else process_evidence(found, model, first)
    answer_text = tell_process_answer(text, found, model, first)
    record = process_record(text, found, model, first) | evidence_record(evidence, found, model)
    return Checked(answer_text, found, evidence), record


def _fitting(config: Path, model: CountModel, file: Path) -> CompiledSpec:
    compiled = load_compiled(config, model)
    with located(ModelError, file=file):
        check_model(compiled, model)
    return compiled


def _need_storm() -> None:
    try:
        Storm()
    except CheckingError as error:
        raise CheckingError(
            f"queries are answered by Storm, which is not there: {error.__cause__}",
            accepted="an installed stormpy: pip install 'stormpy<2'",
        ) from error


def _answer(
    query: str, model: CountModel, chain: Chain, compiled: CompiledSpec | None
) -> QueryResult:
    if compiled is not None and query in compiled.spec.properties:
        return _risk(query, model, chain, compiled)
    asked = query if compiled is None else _in_vocabulary(query, compiled.abstraction)
    result = check_query(model, chain, asked)
    notes = list(result.notes)
    if asked != query:
        notes.append(f"{query} was understood as {asked}")
    if chain.smoothed and is_ctl(asked):
        notes.append(
            "smoothing makes nearly every transition possible, and CTL asks what is possible: "
            "--unsmoothed asks about what was counted"
        )
    return QueryResult(query, result.values, tuple(notes))


def _in_vocabulary(query: str, abstraction: Abstraction) -> str:
    """Replace comparisons in quotes by the predicates that stand for them."""

    def named(found: re.Match[str]) -> str:
        try:
            resolved = abstraction.resolve(found[1])
        except ExpressionError:
            return found[0]
        if resolved is None or resolved[0] == found[1]:
            return found[0]
        name, negated = resolved
        return f'(!"{name}")' if negated else f'"{name}"'

    return re.sub(r'"([^"]*)"', named, query)


def _risk(name: str, model: CountModel, chain: Chain, compiled: CompiledSpec) -> QueryResult:
    """Return the risk of a property where monitoring begins, by Storm and by our own solver."""
    section = compiled.spec.properties[name]
    automaton = compiled.automata[list(compiled.spec.properties).index(name)]
    clock = compiled.abstraction.clock
    horizon = horizon_ticks(clock, section.horizon)
    classes = label_states(automaton, model.vocabulary, model.states)
    theirs = storm.risk_table(chain, automaton, classes, horizon)
    ours = risk_table(chain, automaton, classes, horizon)
    both = np.isfinite(theirs.values) & np.isfinite(ours.values)
    difference = float(np.abs(theirs.values - ours.values)[both].max(initial=0.0))
    entered = automaton.transitions[automaton.initial, np.maximum(classes, 0)]
    values = theirs.values[np.arange(model.size), entered]
    values = np.where(classes == ENDED, 0.0, values)
    span = within(clock, section.horizon)
    notes = (
        f"risk of {section.formula} {span}, where monitoring begins in the state",
        f"over all {theirs.values.size:,} product states Forewarn's own solver is at most "
        f"{difference:.1g} away from Storm",
        *ours.notes,
    )
    return QueryResult(name, values, notes, section.thresholds.act)


def _answer_text(answer: QueryResult, model: CountModel, first: Mask) -> QueryText:
    rank = answer.values.astype(np.float64)
    if answer.is_truth:
        # What breaks the formula comes first, foremost where episodes begin.
        order = np.lexsort((-model.visits, ~first, rank))
    else:
        order = np.lexsort((-model.visits, np.where(np.isnan(rank), np.inf, -rank)))
    rows = tuple(
        (
            _shown(answer.values[i]),
            model.vocabulary.key(model.states[i]),
            model.name(i),
            str(int(model.visits[i])),
            str(int(model.starts[i])),
        )
        for i in order.tolist()
    )
    columns = (">value", "state", "name", ">visits", ">starts")
    summary = (_summary(answer, model, first),)
    return QueryText(answer.query, summary, answer.notes, columns, rows)


def _shown(value: np.bool_ | np.float64) -> str:
    if isinstance(value, np.bool_):
        return "holds" if value else "fails"
    return f"{value:.6g}"


def _summary(answer: QueryResult, model: CountModel, first: Mask) -> str:
    values, begin = answer.values, int(first.sum())
    where = "that episodes begin in" if model.starts.any() else "that were observed"
    if answer.is_truth:
        return (
            f"holds in {int(values.sum())} of {model.size} states, and in "
            f"{int(values[first].sum())} of the {begin} {where}"
        )
    text = f"{_mean(answer, model, first):.6g} on average over the {plural(begin, 'state')} {where}"
    if answer.act is not None:
        reached = int((~answer.fine & first).sum())
        text += f"; act {answer.act:g} is reached in {reached or 'none'} of them"
    return text


def _mean(answer: QueryResult, model: CountModel, first: Mask) -> float:
    """Return the mean value over the first states, each by the episodes that began there."""
    weights = model.starts[first] if model.starts.any() else np.ones(int(first.sum()))
    return float(np.average(answer.values[first].astype(np.float64), weights=weights))


def _record(answer: QueryResult, model: CountModel, first: Mask) -> dict[str, Any]:
    values = answer.values
    return {
        "query": answer.query,
        "kind": "truth" if answer.is_truth else "value",
        "fine": bool(answer.fine[first].all()),
        "initial": (bool(values[first].all()) if answer.is_truth else _mean(answer, model, first)),
        "values": {model.vocabulary.key(code): values[i] for i, code in enumerate(model.states)},
        "notes": answer.notes,
    }
