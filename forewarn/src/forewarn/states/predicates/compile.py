"""From the names and expressions of a monitor file to a compiled abstraction."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from forewarn.errors import ConfigError, ConfigErrors, ExpressionError, InputError, suggestion
from forewarn.expressions.comparisons import Comparison, as_comparison
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.functions import FUNCTIONS
from forewarn.expressions.syntax import Expression, parse_expression
from forewarn.signals.clock import NANOSECONDS
from forewarn.signals.clock_kinds import clock_of
from forewarn.signals.sources import SourceSignal
from forewarn.states import learned_signal
from forewarn.states.abstraction import PHASES, DerivedSignal
from forewarn.states.predicates.abstraction import PredicateAbstraction
from forewarn.states.predicates.digest import Conditions, digest
from forewarn.states.predicates.kleene import KleeneCompiler, observation_source
from forewarn.states.predicates.maps import load_shapes
from forewarn.states.predicates.remembering import Remembered, Remembering
from forewarn.states.vocabulary import PAST, Observation, Vocabulary

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.config.signals import SignalSpec
    from forewarn.states.learned_signal import LearnedSignal, SignalFit

MAX_PREDICATES = 1000
"""Python's own compiler runs out of stack at some two or three thousand."""


def build_abstraction(
    spec: MonitorSpec,
    inline: Iterable[str] = (),
    further: Mapping[str, str] | None = None,
    fitted: Sequence[SignalFit] = (),
) -> PredicateAbstraction:
    """Resolve and compile the abstraction part of a monitor file.

    `inline`: atoms of the formulas; a comparison that no predicate states becomes a predicate.
    `further`: more conditions by their key path; they become the last predicates.
    `fitted`: learned scores of the model; others are unknown at every moment.
    Raises ConfigError for unknown names, cycles and expressions outside the language; all findings
    at once.
    """
    return _Builder(spec, further or {}, fitted).build(inline)


class _Builder:
    """Builds one abstraction; without `maps`, one that cannot be evaluated."""

    def __init__(
        self,
        spec: MonitorSpec,
        further: Mapping[str, str],
        fitted: Sequence[SignalFit],
        *,
        maps: bool = True,
    ) -> None:
        self.spec = spec
        self._further = further
        self._fitted = tuple(fit for fit in fitted if fit.name in spec.learned_score)
        self._scores: dict[str, LearnedSignal] = {}
        self._maps = maps
        self.errors: list[InputError] = []
        self._clock = clock_of(spec.rate, spec.step)
        self._remembering = Remembering(self._clock)
        self._shapes: dict[str, Any] = {}

    def build(self, inline: Iterable[str]) -> PredicateAbstraction:
        spec = self.spec
        self._check_names()
        parsed = {
            name: self._parse(signal.value, f"signals.{name}.value")
            for name, signal in spec.signals.items()
            if signal.value is not None
        }
        if spec.learned_score:
            signals = learned_signal.wing("signals")
            self._scores, found = signals.scorings(spec, self._clock, parsed, self._fitted)
            self.errors += found
        self._raise()
        sources = tuple(
            self._source(name, signal, parsed.get(name))
            for name, signal in spec.signals.items()
            if not signal.is_derived
        )
        computed = {
            name: self._remember(expression, f"signals.{name}.value")
            for name, expression in parsed.items()
            if spec.signals[name].is_derived
        }
        written = self._conditions(inline)
        conditions = self._remembered_conditions(written)
        predicates, terminals, phases = conditions
        doing = None if spec.action is None else self._parse(spec.action, "action")
        done = None if doing is None else self._remember(doing, "action")
        self._raise()
        remembered = self._remembering.signals
        computed.update({name: one.argument for name, one in remembered.items()})
        computed.update({name: one.expression for name, one in self._scores.items()})
        order = self._derivation_order(computed)
        slots = {name: i for i, name in enumerate([*(s.name for s in sources), *order])}
        derived = tuple(self._derive(name, computed[name], slots) for name in order)
        evaluate = self._compile(slots, conditions)
        action = self._action(done, slots)
        self._raise()
        before = [f"{name}{PAST}" for name in predicates] if spec.history == 2 else []
        comparisons: dict[Comparison, int] = {}
        for index, expression in enumerate(predicates.values()):
            comparison = as_comparison(expression.tree)
            if comparison is not None:
                comparisons.setdefault(comparison, index)
        return PredicateAbstraction(
            vocabulary=Vocabulary((*predicates, *before), tuple(terminals)),
            sources=sources,
            derived=derived,
            predicates=tuple(predicates.values()),
            comparisons=comparisons,
            clock=self._clock,
            digest=digest(spec, parsed, written, doing, self._fitted)
            if spec.origin is spec
            else _Builder(spec.origin, self._further, self._fitted, maps=False)
            .build(inline)
            .digest,
            evaluate=evaluate,
            remembers=spec.history == 2,
            terminals=tuple(terminals.values()),
            conditions={
                **{f"predicates.{name}": one for name, one in predicates.items()},
                **{f"terminal.{name}": one for name, one in terminals.items()},
            },
            phases=phases,
            action=action,
            fitted=self._fitted,
        )

    @property
    def _named(self) -> dict[str, None]:
        """Names of the signals of the monitor file, learned ones last."""
        return dict.fromkeys((*self.spec.signals, *self.spec.learned_score))

    def _raise(self) -> None:
        if self.errors:
            raise ConfigErrors(self.errors)

    def _error(self, problem: str, key: str, accepted: str = "") -> None:
        self.errors.append(ConfigError(problem, file=self.spec.file, key=key, accepted=accepted))

    def _parse(self, text: str, key: str) -> Expression:
        try:
            return parse_expression(text)
        except ExpressionError as error:
            self.errors.append(error.located(file=self.spec.file, key=key))
            return parse_expression("0")

    def _remember(
        self,
        expression: Expression,
        key: str,
        predicates: Mapping[str, Expression] = MappingProxyType({}),
    ) -> Expression:
        """Return an expression in which calls that remember are signals."""
        names = self._named | self.spec.shapes.keys()
        try:
            return self._remembering.replaced(expression, key, predicates, names)
        except ExpressionError as error:
            self.errors.append(error.located(file=self.spec.file, key=key))
            return expression

    def _remembered_conditions(self, written: Conditions) -> Conditions:
        """Return the conditions with signals for calls that remember.

        Such a call may name the predicates that stand before it.
        """
        before: dict[str, Expression] = {}
        for name, expression in written.predicates.items():
            before[name] = self._remember(expression, f"predicates.{name}", before)
        terminals = {
            name: self._remember(expression, f"terminal.{name}", before)
            for name, expression in written.terminals.items()
        }
        phases = {
            key: self._remember(expression, key, before)
            for key, expression in written.phases.items()
        }
        self._raise()
        return Conditions(before, terminals, phases)

    def _check_names(self) -> None:
        taken: dict[str, str] = {}
        for section in ("signals", "shapes", "learned_score", "predicates", "terminal"):
            for name in getattr(self.spec, section):
                if name in FUNCTIONS and section != "signals":  # columns may be called count
                    self._error(f"{name!r} is a function of the language", f"{section}.{name}")
                if name in taken:
                    self._error(
                        f"{name!r} is already one of the {taken[name]}",
                        f"{section}.{name}",
                        "a name of its own",
                    )
                taken[name] = section

    def _source(self, name: str, signal: SignalSpec, expression: Expression | None) -> SourceSignal:
        usual = clock_of(self.spec.rate).timeout
        timeout = usual if signal.timeout is None else signal.timeout
        return SourceSignal(
            name,
            signal.source or "",
            signal.message_type,
            expression,
            -1 if math.isinf(timeout) else round(timeout * NANOSECONDS),
            signal.default,
            signal.stale,
            None if signal.where is None else self._parse(signal.where, f"signals.{name}.where"),
            signal.frame,
            signal.within,
        )

    def _derivation_order(self, derived: Mapping[str, Expression]) -> list[str]:
        """Order derived signals so that inputs come first; report unknown names and cycles."""
        order: list[str] = []
        for name, expression in derived.items():
            known = self._named.keys() | self.spec.shapes.keys()
            for used in sorted(expression.names - known - derived.keys()):
                self._unknown_name(used, f"signals.{name}.value", sorted(known))
        self._raise()
        waiting = dict(derived)
        while waiting:
            ready = [n for n, e in waiting.items() if not e.names & waiting.keys()]
            if not ready:
                cycle = " -> ".join(sorted(waiting))
                self._error(
                    f"the signals {cycle} depend on each other",
                    f"signals.{next(iter(waiting))}.value",
                )
                self._raise()
            for name in ready:
                del waiting[name]
            order += ready
        return order

    def _unknown_name(self, name: str, key: str, known: Iterable[str]) -> None:
        names = list(known)
        problem = f"unknown name {name!r}{suggestion(name, names)}"
        self._error(problem, key, ", ".join(names) or "nothing is declared")

    def _derive(self, name: str, expression: Expression, slots: Mapping[str, int]) -> DerivedSignal:
        score = self._scores.get(name)
        if score is not None:
            read = tuple(slots[n] for n in score.signals)
            return DerivedSignal(name, expression, read, score.row, score, f"learned_score.{name}")
        remembered: Remembered | None = self._remembering.signals.get(name)
        memory, key = (None, "") if remembered is None else (remembered.memory, remembered.key)
        if memory is not None and memory.judges:
            names = sorted(expression.names)
            compiler = KleeneCompiler({used: i for i, used in enumerate(names)})
            source = f"def judge(v): return {self._emit(compiler, expression, key)}"
            judge = compiler.compile(source, "judge")
            return DerivedSignal(
                name, expression, tuple(slots[n] for n in names), judge, memory, key
            )
        layers = sorted(expression.names & self.spec.shapes.keys())
        names = sorted(expression.names - self.spec.shapes.keys())
        function = compile_expression(expression, [*names, *layers])
        if layers and self._maps:
            function = self._with_shapes(function, layers)
        return DerivedSignal(
            name, expression, tuple(slots[n] for n in names), function, memory, key
        )

    def _action(
        self, expression: Expression | None, slots: Mapping[str, int]
    ) -> DerivedSignal | None:
        if expression is None:
            return None
        for used in sorted(expression.names - slots.keys()):
            self._unknown_name(used, "action", slots)
            return None
        return self._derive("action", expression, slots)

    def _with_shapes(
        self, function: Callable[[Sequence[Any]], Any], layers: Sequence[str]
    ) -> Callable[[Sequence[Any]], Any]:
        """Give a compiled expression the shapes that it reads after its signals."""
        found: list[Any] = []
        for name in layers:
            if name not in self._shapes:
                try:
                    self._shapes[name] = load_shapes(self.spec, name)
                except InputError as error:
                    self.errors.append(error.located(file=self.spec.file, key=f"shapes.{name}"))
                    self._shapes[name] = None
            found.append(self._shapes[name])
        return lambda values: function([*values, *found])

    def _conditions(self, inline: Iterable[str]) -> Conditions:
        predicates = self._predicates(self._named, inline)
        terminals = {
            name: self._parse(text, f"terminal.{name}") for name, text in self.spec.terminal.items()
        }
        phases = {
            key: self._parse(text, key)
            for key in PHASES
            if (text := getattr(self.spec, key)) is not None
        }
        self._raise()
        return Conditions(predicates, terminals, phases)

    def _predicates(self, signals: Collection[str], inline: Iterable[str]) -> dict[str, Expression]:
        found: dict[str, Expression] = {}
        names = {*signals}
        for name, text in self.spec.predicates.items():
            expression = self._parse(text, f"predicates.{name}")
            for used in sorted(expression.names - names - found.keys()):
                self._unknown_name(used, f"predicates.{name}", [*signals, *found])
            found[name] = expression
        for signal, cuts in self.spec.bins.items():
            if signal not in signals:
                self._unknown_name(signal, f"bins.{signal}", signals)
            if cuts == "auto":
                score = self._scores.get(signal)
                cuts = () if score is None or score.fit is None else score.fit.cuts
            if list(cuts) != sorted(set(cuts)):
                self._error(f"{list(cuts)} does not rise", f"bins.{signal}", "rising thresholds")
            for cut in cuts:
                found[f"{signal}<{cut:g}"] = parse_expression(f"{signal} < {cut!r}")
        self._raise()
        found.update(dict(self._inline(dict.fromkeys(inline), found, signals)))
        for key, text in self._further.items():
            expression = self._parse(text, key)
            for used in sorted(expression.names - names):
                self._unknown_name(used, key, signals)
            found[key] = expression
        return found

    def _inline(
        self, atoms: Iterable[str], found: Mapping[str, Expression], signals: Collection[str]
    ) -> Iterator[tuple[str, Expression]]:
        """Yield the comparisons in formulas that no predicate states, positive or negated."""
        comparisons = {as_comparison(e.tree) for e in found.values()}
        for atom in atoms:
            if atom in found or atom in self.spec.terminal:
                continue
            expression = parse_expression(atom)
            if atom in signals:
                yield atom, expression
                continue
            comparison = as_comparison(expression.tree)
            if comparison is None or comparison.signal not in signals:
                continue
            if comparison not in comparisons and comparison.negated() not in comparisons:
                comparisons.add(comparison)
                yield str(comparison), expression

    def _compile(
        self, slots: Mapping[str, int], conditions: Conditions
    ) -> Callable[[Sequence[Any]], Observation]:
        predicates, terminals, phases = conditions
        if len(predicates) > MAX_PREDICATES:
            raise ConfigError(
                f"there are {len(predicates)}, those of bins included",
                file=self.spec.file,
                key="predicates",
                accepted=f"at most {MAX_PREDICATES}",
            )
        compiler = KleeneCompiler(slots)
        lines = ["def observe(v):"]
        for i, (name, expression) in enumerate(predicates.items()):
            lines.append(f"    p{i} = {self._emit(compiler, expression, f'predicates.{name}')}")
            compiler.predicates[name] = f"p{i}"
        for i, (name, expression) in enumerate(terminals.items()):
            lines.append(f"    e{i} = {self._emit(compiler, expression, f'terminal.{name}')}")
        lines.append("    active, intervened = True, False")
        for key, expression in phases.items():
            variable = key.removesuffix("_when")
            lines.append(f"    {variable} = {self._emit(compiler, expression, key)}")
        lines += observation_source(len(predicates), len(terminals))
        self._raise()
        raw = compiler.compile("\n".join(lines), "observe")

        def observe(values: Sequence[Any]) -> Observation:
            return Observation._make(raw(values))

        return observe

    def _emit(self, compiler: KleeneCompiler, expression: Expression, key: str) -> str:
        for used in sorted(expression.names - compiler.slots.keys() - compiler.predicates.keys()):
            self._unknown_name(used, key, [*compiler.slots, *compiler.predicates])
            return "None"
        try:
            return compiler.emit(expression.tree)
        except ExpressionError as error:
            self.errors.append(error.located(file=self.spec.file, key=key))
            return "None"
