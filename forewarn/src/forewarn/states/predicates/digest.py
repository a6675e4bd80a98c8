"""What tells one abstraction from another: a hash of all that the counts depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from forewarn.expressions.syntax import Expression, normal_form, parse_expression
from forewarn.states.predicates.maps import shape_content

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.states.learned_signal import SignalFit


class Conditions(NamedTuple):
    """All expressions that are true, false or unknown, by name."""

    predicates: Mapping[str, Expression]
    terminals: Mapping[str, Expression]
    phases: Mapping[str, Expression]


def digest(
    spec: MonitorSpec,
    parsed: Mapping[str, Expression],
    conditions: Conditions,
    action: Expression | None,
    fitted: Sequence[SignalFit] = (),
) -> str:
    """Hash what the counts depend on: not properties, thresholds, units or descriptions.

    `parsed`: values of its signals.
    `conditions`: its conditions, those of formulas included.
    `action`: what names the action that is done.
    """
    predicates, terminals, phases = conditions
    actions = {} if action is None else {"action": action}
    scores = {fit.name: fit for fit in fitted}
    signals = _used(spec, parsed, [*conditions, actions], scores)
    content = {
        "rate": spec.rate,
        "time": [spec.timestamp_source, spec.settle],
        **({"history": 2} if spec.history == 2 else {}),
        "signals": {name: _signal(spec, parsed, name) for name in signals},
        **shape_content(spec, [parsed[name] for name in signals if name in parsed]),
        "predicates": {n: normal_form(e) for n, e in predicates.items()},
        "terminal": {n: normal_form(e) for n, e in terminals.items()},
        "constraints": [c.model_dump(exclude_unset=True) for c in spec.constraints],
        "phases": {key: normal_form(e) for key, e in phases.items()},
        **{key: normal_form(e) for key, e in actions.items()},
        **({"learned_score": _danger(spec, scores)} if spec.learned_score else {}),
    }
    text = json.dumps(content, sort_keys=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _used(
    spec: MonitorSpec,
    parsed: Mapping[str, Expression],
    groups: Iterable[Mapping[str, Expression]],
    scores: Mapping[str, SignalFit],
) -> list[str]:
    """Return the signals that expressions and scores read, directly or through others, sorted."""
    used: set[str] = set()
    roots = (expression for group in groups for expression in group.values())
    pending = {n for e in roots for n in e.names if n in spec.signals}
    pending |= {n for fit in scores.values() for n in fit.signals}
    while pending:
        name = pending.pop()
        used.add(name)
        if spec.signals[name].is_derived:
            pending |= (parsed[name].names & spec.signals.keys()) - used
    return sorted(used)


def _danger(spec: MonitorSpec, scores: Mapping[str, SignalFit]) -> dict[str, object]:
    """Return what is fitted; of what is not, what the monitor file says."""
    return {
        name: scores[name].digest if name in scores else section.model_dump(mode="json")
        for name, section in spec.learned_score.items()
    }


def _signal(spec: MonitorSpec, parsed: Mapping[str, Expression], name: str) -> list[object]:
    signal = spec.signals[name]
    return [
        signal.source,
        signal.message_type if signal.source else None,
        normal_form(parsed[name]) if name in parsed else None,
        None if signal.timeout is None else repr(signal.timeout),
        signal.default,
        *([signal.stale] if signal.stale != "worst" else []),
        *(["frame", *vars(signal.frame).values()] if signal.frame is not None else []),
        *(["where", normal_form(parse_expression(signal.where))] if signal.where else []),
        *(["within", signal.within] if signal.within != "last" else []),
        # Not what the rules say: a model may serve under others, as it serves on another map.
        *(["rules"] if signal.rules is not None else []),
    ]
