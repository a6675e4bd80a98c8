"""``forewarn explain``: what a formula means."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.common import add_config, hertz_or_steps
from forewarn.cli.learned_score_output import danger_in_words
from forewarn.cli.output import Output
from forewarn.config.fields import Rate
from forewarn.config.file import MonitorSpec
from forewarn.errors import ConfigError, FormulaError, InputError, located
from forewarn.logic.compilation import compile_formula
from forewarn.logic.explanation import Explanation, explain
from forewarn.logic.parser import parse_formula
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.loading import load_compiled
from forewarn.signals.clock_kinds import clock_of

DESCRIPTION = """\
Say in words what a formula means and when it counts as violated, and draw the automaton that
monitors it. With a monitor file, FORMULA may be the name of one of its properties; without
FORMULA, all of them are explained."""

EPILOG = """\
exit codes: 0 fine, 2 wrong usage or input.

examples: forewarn explain 'always(near implies eventually[0:2](slow))'
          forewarn explain -c monitor.yaml keep_distance --dot | dot -Tsvg > automaton.svg"""


@dataclass(frozen=True)
class Options:
    """The arguments of ``explain``."""

    formula: str | None
    config: Path | None
    rate: Rate
    probguard_step_count: bool
    drawing: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("formula", nargs="?", metavar="FORMULA", help="a formula, or a property")
    add_config(parser, required=False)
    parser.add_argument(
        "--rate",
        type=hertz_or_steps,
        default=10.0,
        metavar="HZ",
        help="ticks a second, for bounds in seconds, or steps (default: 10, or the monitor file's)",
    )
    parser.add_argument(
        "--probguard-step-count",
        action="store_true",
        help="count the bound one step later, as ProbGuard's Definition 5.2 does",
    )
    drawing = parser.add_mutually_exclusive_group()
    drawing.add_argument(
        "--dot", dest="drawing", action="store_const", const="dot", help="only a Graphviz drawing"
    )
    drawing.add_argument(
        "--mermaid",
        dest="drawing",
        action="store_const",
        const="mermaid",
        help="only a Mermaid drawing",
    )


def run(options: Options, output: Output) -> int:
    """Explain."""
    compiled = None if options.config is None else load_compiled(options.config)
    found = dict(_explanations(options, compiled))
    told = {} if compiled is None else _estimators(compiled.spec)
    fits = () if compiled is None else compiled.abstraction.fitted
    for name, explanation in found.items():
        if options.drawing is not None:
            output.say(explanation.dot if options.drawing == "dot" else explanation.mermaid)
            continue
        if name:
            output.say(f"{name}: {explanation.formula}")
        else:
            output.say(explanation.formula)
        output.say(explanation.words)
        if told.get(name):
            output.say(told[name])
        for fit in fits:
            if fit.foresees == name:
                output.say(danger_in_words(fit))
        output.say()
    output.emit(found if options.config is not None else found[""])
    return 0


def _estimators(spec: MonitorSpec) -> dict[str, str]:
    """Say what risks are estimated from, where that is not the chain."""
    told = {}
    for name, section in spec.properties.items():
        if section.estimator != "chain":
            scores = ", ".join(spec.scores_of(name))
            more = f", with the scores {scores}" if scores else ""
            told[name] = (
                f"Its risk is estimated from recordings by {section.estimator}{more}; `forewarn "
                "inspect MODEL` says what was chosen."
            )
    return told


def _explanations(
    options: Options, compiled: CompiledSpec | None
) -> Iterator[tuple[str, Explanation]]:
    if compiled is None:
        if options.formula is None:
            raise InputError("neither a formula nor a monitor file", accepted="FORMULA or -c FILE")
        yield "", _explain(options.formula, options.rate, options.probguard_step_count)
        return
    properties, clock = compiled.spec.properties, compiled.abstraction.clock
    names = list(properties)
    if options.formula is not None and options.formula not in properties:
        if options.formula.isidentifier():
            raise ConfigError(
                f"no property {options.formula!r}",
                file=options.config,
                key="properties",
                accepted=", ".join(names),
            )
        yield "", _explain(options.formula, compiled.spec.rate, options.probguard_step_count)
        return
    for name, automaton in zip(names, compiled.automata, strict=True):
        if options.formula in (None, name):
            formula = parse_formula(properties[name].formula, clock.unit)
            yield name, explain(formula, automaton, clock.noun)


def _explain(text: str, rate: Rate, probguard_step_count: bool) -> Explanation:
    clock = clock_of(rate)
    with located(FormulaError, key="FORMULA"):
        formula = parse_formula(text, clock.unit)
        automaton = compile_formula(formula, rate, probguard_step_count=probguard_step_count)
        return explain(formula, automaton, clock.noun)
