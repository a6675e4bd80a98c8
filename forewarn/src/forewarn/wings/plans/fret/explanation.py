"""A requirement explained back, in sentences that do not need FRET's templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forewarn.logic.syntax import format_formula

if TYPE_CHECKING:
    from forewarn.logic.syntax import Bound
    from forewarn.wings.plans.fret.requirement import FretFunction, FretRequirement

_SCOPES = {
    "null": "During the whole run",
    "in": "In every interval in which {mode} holds",
    "notin": "In every interval in which {mode} does not hold",
    "before": "Before {mode} holds for the first time (during the whole run if it never does)",
    "after": "From the moment after {mode} has ended for the first time",
    "onlyIn": "In every interval in which {mode} does not hold",
    "onlyBefore": "From the moment on at which {mode} holds for the first time",
    "onlyAfter": "Until {mode} has ended for the first time (during the whole run if it never has)",
}
_CONDITIONS = {
    "null": "from the first moment of it on",
    "regular": "each time that {trigger} becomes true, or is true as it begins",
    "holding": "at each moment at which {trigger} is true",
}
_DEMANDS = {
    "immediately": "{response} holds at that moment",
    "next": "{response} holds at the next moment",
    "always": "{response} holds from then on",
    "never": "{response} does not hold from then on",
    "eventually": "{response} holds at some moment from then on",
    "finally": "{response} holds at the last moment",
    "for": "{response} holds then and for {duration}",
    "within": "{response} holds then or within {duration}",
    "after": "{response} does not hold for {duration}, and holds one moment later",
    "until": "{response} holds up to the moment before {stop}, or throughout if that never comes",
    "before": "{response} holds at some moment before {stop}, if that comes",
}
_FUNCTIONS = {
    "FTP": "it is the first moment of the run",
    "preBool": "{second_part} held one moment ago; at the first moment of the run, {first_part}",
    "prevOcc": "within the interval, {second_part} held when {first_part} last held before, if it "
    "did",
    "persisted": "{first_part} held at every moment {when}, within the interval, which began "
    "{last} ago or earlier",
    "occurred": "{first_part} held at some moment {when}, within the interval",
}
_ENDING = frozenset(
    {"in", "notin", "onlyIn", "before", "onlyAfter"}
)  # the scopes that end before the run does


def in_words(requirement: FretRequirement) -> str:
    """Return what a requirement asks for."""
    duration = requirement.duration
    formulas = {
        name: "" if formula is None else f"`{format_formula(formula)}`"
        for name, formula in (
            ("mode", requirement.mode), ("trigger", requirement.trigger),
            ("stop", requirement.stop), ("response", requirement.response),
        )
    }  # fmt: skip
    formulas["duration"] = "" if duration is None else _lasting(duration)
    texts = (
        _SCOPES[requirement.scope],
        _CONDITIONS[requirement.condition],
        _DEMANDS[requirement.timing],
    )
    scope, condition, demand = (text.format(**formulas) for text in texts)
    if requirement.scope.startswith("only"):
        demand = f"it is not the case that {demand}"
    sentence = f"{scope}, {condition}: {demand}."
    if requirement.scope in _ENDING:
        sentence += " What is asked ends with that interval."
    return " ".join([sentence, *map(_function, requirement.functions)])


def _function(function: FretFunction) -> str:
    """Return what a function says at a moment."""
    names = ("first_part", "second_part")
    parts = {
        name: f"`{format_formula(part)}`"
        for name, part in zip(names, function.operands, strict=False)
    }
    last = _moments(function.last)
    when = f"between {function.first} and {last} ago" if function.first else f"from {last} ago on"
    sentence = _FUNCTIONS[function.word].format(**parts, when=when, last=last)
    return f"`{function.text}`: {sentence}."


def _moments(count: int) -> str:
    return f"{count} moment{'' if count == 1 else 's'}"


def _lasting(duration: Bound) -> str:
    value = f"{duration.value:g}"
    if duration.unit == "steps":
        return f"{value} tick{'' if duration.value == 1 else 's'}"
    return f"{value} {duration.unit}"
