"""``forewarn explain``: what a formula means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from forewarn.cli.common import config_option, hertz_or_steps
from forewarn.cli.options import argument, option
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
          forewarn explain -c monitor.yaml keep_distance --draw dot | dot -Tsvg > automaton.svg
          forewarn explain 'always(near implies eventually[0:2](slow))' --rate 5"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``explain``."""

    formula: str | None = argument("a formula, or a property", "FORMULA")
    config: Path | None = config_option(required=False)
    rate: Rate = option(
        "ticks a second, or steps; with -c the monitor file's",
        "HZ",
        of=hertz_or_steps,
        default=10.0,
    )
    draw: Literal["dot", "mermaid"] | None = option("only a drawing, for Graphviz or Mermaid")


def run(options: Options, output: Output) -> int:
    """Explain."""
    compiled = None if options.config is None else load_compiled(options.config)
    found = dict(_explanations(options, compiled))
    estimators = {} if compiled is None else _estimators(compiled.spec)
    fits = () if compiled is None else compiled.abstraction.fitted
    for name, explanation in found.items():
        if options.draw is not None:
            output.say(explanation.dot if options.draw == "dot" else explanation.mermaid)
            continue
        if name:
            output.say(f"{name}: {explanation.formula}")
        else:
            output.say(explanation.formula)
        output.say(explanation.words)
        if estimators.get(name):
            output.say(estimators[name])
        for fit in fits:
            if fit.foresees == name:
                output.say(fit.in_words)
        output.say()
    output.emit(found if options.config is not None else found[""])
    return 0


def _estimators(spec: MonitorSpec) -> dict[str, str]:
    """Say what risks are estimated from, where that is not the chain."""
    estimators = {}
    for name, section in spec.properties.items():
        if section.estimator != "chain":
            scores = ", ".join(spec.scores_of(name))
            more = f", with the scores {scores}" if scores else ""
            estimators[name] = (
                f"Its risk is estimated from recordings by {section.estimator}{more}; `forewarn "
                "inspect MODEL` says what was chosen."
            )
    return estimators


def _explanations(
    options: Options, compiled: CompiledSpec | None
) -> Iterator[tuple[str, Explanation]]:
    if compiled is None:
        if options.formula is None:
            raise InputError("neither a formula nor a monitor file", accepted="FORMULA or -c FILE")
        yield "", _explain(options.formula, options.rate)
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
        yield "", _explain(options.formula, compiled.spec.rate)
        return
    for name, automaton in zip(names, compiled.automata, strict=True):
        if options.formula in (None, name):
            formula = parse_formula(properties[name].formula, clock.unit)
            yield name, explain(formula, automaton, clock.noun)


def _explain(text: str, rate: Rate) -> Explanation:
    clock = clock_of(rate)
    with located(FormulaError, key="FORMULA"):
        formula = parse_formula(text, clock.unit)
        automaton = compile_formula(formula, rate)
        return explain(formula, automaton, clock.noun)
