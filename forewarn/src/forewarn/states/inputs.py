"""The feed that a monitor file asks for, and its signals whose values are plans.

The wing `plans` judges each plan when it arrives. What comes of it is a text, so that predicates,
properties, policy and record treat a plan as they treat every other signal: empty for a safe plan,
or what its rules have against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forewarn.errors import located
from forewarn.registry import part
from forewarn.signals.clock import NANOSECONDS

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec
    from forewarn.messages.definitions import MessageType
    from forewarn.signals.feed import Feed, Reader
    from forewarn.states.abstraction import Abstraction


def open_feed(
    spec: MonitorSpec,
    abstraction: Abstraction,
    message_types: Mapping[str, MessageType],
    readers: Mapping[str, Reader] | None = None,
) -> Feed:
    """Return a feed for the sources of `abstraction`; `readers` are those of `Feed`.

    Raises FieldError if an expression reads a field that its message does not have; names the file.
    """
    from forewarn.signals.feed import Feed  # the step of a monitor needs none

    stamped = spec.timestamp_source == "header"
    with located(file=spec.file):
        return Feed(
            abstraction.sources,
            message_types,
            abstraction.clock,
            stamped=stamped,
            settle_ns=round(spec.settle * NANOSECONDS) if stamped else 0,
            readers=readers or {},
        )


SAFE = ""
WING = "plans"
Value = object


def has_plans(spec: MonitorSpec) -> bool:
    """Tell whether a monitor file has signals that are plans."""
    return any(signal.rules is not None for signal in spec.signals.values())


def plan_readers(spec: MonitorSpec) -> dict[str, Callable[[Value], str]]:
    """Return what says of the plans in signals what their rules have against them.

    Raises ConfigErrors if a file of rules cannot be used; names each.
    Raises MissingWingError if the wing is not installed.
    """
    return dict(_signals().plan_readers(spec)) if has_plans(spec) else {}


def packed_rules(spec: MonitorSpec) -> dict[str, bytes]:
    """Return the files of rules that a monitor file names, for `unpacked_readers`."""
    return dict(_signals().packed_rules(spec)) if has_plans(spec) else {}


def unpacked_readers(
    spec: MonitorSpec, files: Mapping[str, bytes]
) -> dict[str, Callable[[Value], str]]:
    """Return what `plan_readers` does, by files that travel with a record, not by those here."""
    return dict(_signals().unpacked_readers(spec, files)) if has_plans(spec) else {}


def _signals() -> Any:
    return part(WING, "signals", "a signal with rules about plans")


def verdicts(
    spec: MonitorSpec, names: Sequence[str], values: Sequence[Value]
) -> dict[str, Value | None]:
    """Return the verdict about the newest plan of each signal: a text, or None without a plan."""
    judged = {name for name, signal in spec.signals.items() if signal.rules is not None}
    return {n: v for n, v in zip(names, values, strict=True) if n in judged} if judged else {}
