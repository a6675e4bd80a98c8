"""``forewarn validate``: everything that can be wrong with a monitor file, found before it runs.

What judges recordings and models is imported only where some are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forewarn.cli.findings import Finding, error_findings, warning
from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.cli.validate_messages import against_packages
from forewarn.config.file import MonitorSpec, load_spec
from forewarn.errors import InputError, plural
from forewarn.expressions.syntax import parse_expression
from forewarn.logic.automaton import Automaton, horizon_notes, is_stricter, letter_of, step
from forewarn.logic.specification import Check, CompiledSpec, all_problems, compile_spec
from forewarn.monitoring.memory_bound import growing_parts, memory_bound
from forewarn.registry import part
from forewarn.signals.clock import horizon_ticks
from forewarn.states.inputs import plan_readers
from forewarn.states.learned_signal import SignalFit

if TYPE_CHECKING:
    from forewarn.models.counts import CountModel

DESCRIPTION = """\
Check monitor files: YAML, keys, names, expressions, formulas, constraints; message fields against
the installed packages or against recordings (--bag); that a model fits the file (--model)."""

EPILOG = """\
Errors keep the monitor from running as it was meant; warnings do not; notes are harmless. One says
how much memory a node takes at most for what grows while it runs, part by part.

exit codes: 0 valid, 1 warnings only, 2 errors, or wrong usage.

examples: forewarn validate monitor.yaml --bag run.mcap --model monitor.model.json
          forewarn validate rules.yaml --tools tools.json"""


# Checks that compiling does not do.
CHECKS: tuple[Check, ...] = (
    lambda compiled: compiled.abstraction.validity(compiled.spec),
    lambda compiled: plan_readers(compiled.spec),
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``validate``."""

    files: list[Path] = argument("monitor files", "FILE")
    bags: list[Path] = option(
        "check topics, types and fields against this recording (may be repeated)",
        "BAG",
        "-b",
        "--bag",
    )
    model: Path | None = option("check that this model fits", "FILE", "-m")
    tools: Path | None = option(
        "check tools and arguments that rules name against the JSON schemas of an agent's "
        "tools, as MCP, OpenAI or Anthropic write them",
        "FILE",
    )


def run(options: Options, output: Output) -> int:
    """Check every file and print all findings."""
    tools = None if options.tools is None else _tools(options.tools)
    document = {}
    worst = 0
    for file in options.files:
        # Several recordings may have the same to say.
        findings = list(dict.fromkeys(check_file(file, options.bags, options.model, tools)))
        for finding in findings:
            output.say(f"{finding.severity}: {finding.text}")
        errors = sum(finding.severity == "error" for finding in findings)
        warnings = sum(finding.severity == "warning" for finding in findings)
        worst = max(worst, 2 if errors else 1 if warnings else 0)
        document[str(file)] = findings
        if errors or warnings:
            output.say(f"{file}: {plural(errors, 'error')}, {plural(warnings, 'warning')}")
        else:
            output.say(f"{file}: valid")
    output.emit(document)
    return worst


def check_file(
    file: Path, bags: list[Path], model: Path | None, tools: Any | None = None
) -> Iterator[Finding]:
    """Yield all findings about one monitor file."""
    opened = cache(_open)
    try:
        with all_problems(file, *CHECKS):
            spec = load_spec(file)
            path = model if model is not None else _named_model(spec)
            compiled = compile_spec(spec, _fits(spec, path, opened))
            for check in CHECKS:
                check(compiled)
    except InputError as error:
        yield from error_findings(error)
        return
    if tools is not None:
        yield from _tool_schemas().against_tools(compiled.spec, tools)
    yield from _unused(compiled)
    yield from _properties(compiled)
    if (box := compiled.spec.black_box) is not None:
        bound = f"{compiled.spec.beside(box.folder)}: {box.bound}"
        yield warning(compiled.spec, "black_box", bound)._replace(severity="note")
    if bags:
        from forewarn.cli.validate_recording import against_recording
        from forewarn.recordings.registry import existing_recordings

        for bag in existing_recordings(bags, compiled.spec):
            yield from against_recording(compiled, bag)
    else:
        yield from against_packages(compiled)
    if path is None:
        parts = growing_parts(compiled.spec, compiled.abstraction)
        yield Finding("note", f"{file}: {memory_bound(parts)}")
    else:
        from forewarn.cli.validate_model import against_model

        yield from against_model(compiled, path, opened(path))


def _tools(path: Path) -> Any:
    return _tool_schemas().read_tools(path)


def _tool_schemas() -> Any:
    return part("agents", "tools", "--tools")


def _open(path: Path) -> CountModel | InputError:
    """Return the model of a file, or why it cannot be read."""
    from forewarn.models.file import load_model

    try:
        return load_model(path)
    except InputError as error:
        return error


def _fits(
    spec: MonitorSpec, path: Path | None, opened: Callable[[Path], CountModel | InputError]
) -> tuple[SignalFit, ...]:
    """Return the learned scores of a model that can be read; `against_model` tells of others."""
    if path is None or not spec.learned_score:
        return ()
    model = opened(path)
    return () if isinstance(model, InputError) else model.learned_score


def _unused(compiled: CompiledSpec) -> Iterator[Finding]:
    spec, abstraction = compiled.spec, compiled.abstraction
    texts = [
        *spec.predicates.values(),
        *spec.terminal.values(),
        *(
            text
            for text in (spec.active_when, spec.intervened_when, spec.action)
            if text is not None
        ),
        *(s.value for s in spec.signals.values() if s.is_derived and s.value is not None),
        *(() if spec.escape is None else spec.escape.conditions.values()),
        *(p.hold_while for p in spec.properties.values() if p.hold_while is not None),
    ]
    used = {name for text in texts for name in parse_expression(text).names}
    used |= abstraction.deciding
    used |= {name for _, score in abstraction.scores for name in score.signals}
    used |= {score for name in spec.properties for score in spec.scores_of(name)}
    unused = [name for name in spec.signals if name not in used]
    if unused:
        problem = f"no predicate and no other signal uses {', '.join(unused)}"
        yield warning(spec, "signals", problem)._replace(severity="note")


def _properties(compiled: CompiledSpec) -> Iterator[Finding]:
    spec = compiled.spec
    clock = compiled.abstraction.clock
    for (name, section), automaton in zip(spec.properties.items(), compiled.automata, strict=True):
        key = f"properties.{name}"
        if automaton.violated is None or automaton.satisfied == automaton.initial:
            yield warning(spec, f"{key}.formula", "it can never be violated")
        for label in _obliging(automaton, spec.terminal):
            problem = f"what {label} asks for later cannot be violated: it ends the episode"
            yield warning(spec, f"{key}.formula", problem, "a predicate that is no terminal label")
        if section.risk_measure == "upper" and spec.bounds.kind == "none":
            problem = "without bounds there is no upper one: only violations would raise an alert"
            yield warning(spec, f"{key}.risk_measure", problem, "risk, or bounds: {kind: credible}")
        horizon = horizon_ticks(clock, section.horizon)
        if horizon == 0:
            yield warning(
                spec,
                f"{key}.horizon",
                f"{clock.say(section.horizon)} is less than one {clock.noun}: risk is 0",
                f"at least {clock.duration(1):g}",
            )
        for note in horizon_notes(automaton, horizon):
            yield warning(spec, f"{key}.horizon", note)
        if horizon is None and not spec.terminal:
            yield warning(
                spec,
                f"{key}.horizon",
                "without a terminal label an unbounded risk is mostly 0 or 1",
                "a horizon, or terminal: labels such as arrived",
            )


def _obliging(automaton: Automaton, terminals: Iterable[str]) -> Iterator[str]:
    """Yield the terminal labels that raise an obligation in a formula."""
    quiet = step(automaton, automaton.initial, 0)
    for label in terminals:
        read = step(automaton, automaton.initial, letter_of(automaton, {label}))
        if read != automaton.violated and is_stricter(automaton, read, quiet):
            yield label


def _named_model(spec: MonitorSpec) -> Path | None:
    path = spec.model_path
    return path if path is not None and path.exists() else None
