"""Sentences of FRET's structured English, cut into their fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from forewarn.errors import FormulaError
from forewarn.logic import syntax
from forewarn.logic.syntax import And, Bound, Formula, Not, Or, is_propositional
from forewarn.wings.plans.fret.functions import Functions
from forewarn.wings.plans.fret.requirement import FretRequirement
from forewarn.wings.plans.notations.reader import read_formula
from forewarn.wings.plans.notations.tables import FRET

SHAPE = "[scope] [condition] component shall [timing] satisfy response"
LONGEST = 20_000
_IN = r"(?:during|(?:(?:when|if)\s+)?in|while)"
_SCOPES = tuple(
    (re.compile(rf"{pattern}\b\s*", re.I), scope)
    for pattern, scope in (
        (rf"only\s+{_IN}", "onlyIn"),
        (r"only\s+after", "onlyAfter"),
        (r"only\s+before", "onlyBefore"),
        (rf"except\s+{_IN}", "notin"),
        (r"(?:when|if)\s+not\s+in", "notin"),
        (r"unless\s+in", "notin"),
        (_IN, "in"),
        (r"after", "after"),
        (r"before", "before"),
    )
)
_QUALIFIER = re.compile(
    r"(?:\b(?P<joint>and|or)\s+)?\b(?P<word>upon|whenever|when|unless|where|if)\b\s*", re.I
)
_COMPONENT = re.compile(r"(?:^|[\s,])(?:the\s+)?(?P<name>[A-Za-z][\w.%]*|\"[^\"]+\")\s*$", re.I)
#: As in "only while armed shall the drone satisfy x".
_COMPONENT_BEHIND = re.compile(
    r"\s*(?:the\s+)?(?!(?:within|for|after|until|before|at|with|satisfy|immediately|initially|finally"
    r"|eventually|always|never)\b)(?P<name>[A-Za-z][\w.%]*|\"[^\"]+\")(?=[\s,].*\bsatisfy\b)",
    re.I,
)
_TRUTH = re.compile(r"\s+is\s+(true|false)\s*$", re.I)
_DURATION = re.compile(
    r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ticks?|(?:micro|milli)?sec(?:ond)?s?|minutes?|hours?)",
    re.I,
)
_UNITS = {"tick": (1.0, "steps"), "microsec": (1.0, "us"), "millisec": (1.0, "ms"),
          "sec": (1.0, "s"), "minute": (60.0, "s"), "hour": (3600.0, "s")}  # fmt: skip
_POINTS = {"first": "immediately", "same": "immediately", "next": "next", "last": "finally"}
_BARE = {"immediately": "immediately", "initially": "immediately", "finally": "finally",
         "eventually": "eventually", "always": "always", "never": "never",
         "": "eventually"}  # fmt: skip
_TIMINGS = (
    "within, for or after a duration, until or before a condition, at the next timepoint, "
    + (", ".join(word for word in _BARE if word))
)


def read_requirement(text: str) -> FretRequirement:
    """Read a sentence, such as ``while autonomous, when red the car shall satisfy stopped``.

    Raises FormulaError, which names the field that is missing or not understood.
    """
    if len(text) > LONGEST:
        raise FormulaError(f"{len(text)} characters", accepted=f"at most {LONGEST}")
    functions = Functions(lambda condition: _boolean(condition, "condition"))
    sentence = functions.taken_out(" ".join(text.split()).removesuffix("."))
    parts = re.split(r"\bshall\b", sentence, flags=re.I)
    if len(parts) != 2:
        problem = "the sentence has no 'shall'" if len(parts) == 1 else "'shall' stands twice"
        raise FormulaError(problem, accepted=SHAPE)
    before, after = parts
    component = _COMPONENT_BEHIND.match(after)
    if component is not None:
        head, after = before.strip(" ,"), after[component.end() :]
    else:
        component = _COMPONENT.search(before)
        if component is None or _QUALIFIER.fullmatch(component["name"]):
            raise FormulaError("no component stands before 'shall'", accepted=SHAPE)
        head = before[: component.start()].strip(" ,")
    scope, mode, head = _scope(head)
    if mode is not None:
        functions.check_scope(mode)
    condition, trigger = _condition(head)
    timing, duration, stop, response = _demand(after)
    name = component["name"].strip('"')
    return FretRequirement(
        scope, mode, condition, trigger, name, timing, duration, stop, response,
        tuple(functions.found.values()),
    )  # fmt: skip


def _scope(head: str) -> tuple[str, Formula | None, str]:
    """Return the scope, its mode, and what follows."""
    for pattern, scope in _SCOPES:
        found = pattern.match(head)
        if found is None:
            continue
        rest = head[found.end() :]
        end = next((place for place, _ in _outer(rest, re.compile(r","))), len(rest))
        end = min(end, next((place for place, _ in _outer(rest, _QUALIFIER)), len(rest)))
        named = rest[:end].strip()
        named = re.sub(r"^mode\s+|\s+mode$", "", named, flags=re.I)
        return scope, _boolean(named, "scope"), rest[end:].strip(" ,")
    return "null", None, head


def _condition(head: str) -> tuple[str, Formula | None]:
    """Return the kind of condition and its formula."""
    if not head:
        return "null", None
    head = re.sub(r"^and\s+", "", head, flags=re.I)
    found = list(_outer(head, _QUALIFIER))
    if not found or found[0][0] != 0:
        raise FormulaError(
            f"{head[:60]!r} is neither a scope nor a condition",
            accepted="in, while, before, after ...; when, whenever, upon, if, where, unless ...",
        )
    whole: Formula | None = None
    ends = [place for place, _ in found[1:]] + [len(head)]
    for (_, match), end in zip(found, ends, strict=True):
        text = head[match.end() : end].strip(" ,")
        truth = _TRUTH.search(text)
        part = _boolean(text[: truth.start()] if truth else text, "condition")
        denied = truth is not None and truth[1].lower() == "false"
        if denied != (match["word"].lower() == "unless"):
            part = Not(part)
        joint = (match["joint"] or "and").lower()
        whole = part if whole is None else Or(whole, part) if joint == "or" else And(whole, part)
    holding = all(match["word"].lower() == "whenever" for _, match in found)
    return ("holding" if holding else "regular"), whole


def _demand(after: str) -> tuple[str, Bound | None, Formula | None, Formula]:
    """Return timing, duration, stop condition and response."""
    timed, satisfy, response = re.split(r"(\bsatisfy\b)", after, maxsplit=1, flags=re.I) + (
        [] if re.search(r"\bsatisfy\b", after, re.I) else ["", ""]
    )
    if not satisfy:
        raise FormulaError("no 'satisfy' stands after 'shall'", accepted=SHAPE)
    if re.search(r"\bwith\s+probability\b", timed, re.I):
        raise FormulaError(
            "a probability is no property of one run",
            accepted="the sentence without it; `forewarn check` asks a model for probabilities",
        )
    timed = timed.strip(" ,")
    timing, duration, stop = _timing(timed)
    return timing, duration, stop, _boolean(response, "response")


def _timing(text: str) -> tuple[str, Bound | None, Formula | None]:
    word, _, rest = text.partition(" ")
    word = word.lower()
    if not rest and word in _BARE:
        return _BARE[word], None, None
    if word in ("until", "before"):
        return word, None, _boolean(rest, "timing")
    if word in ("within", "for", "after"):
        return word, _duration(rest), None
    point = re.fullmatch(r"at\s+the\s+(first|same|next|last)\s+timepoint", text, re.I)
    if point is not None:
        return _POINTS[point[1].lower()], None, None
    raise FormulaError(f"timing: {text[:60]!r} is not understood", accepted=_TIMINGS)


def _duration(text: str) -> Bound:
    found = _DURATION.fullmatch(text.strip(" ,"))
    if found is None:
        raise FormulaError(
            f"timing: {text[:60]!r} is no duration",
            accepted="a number with ticks, microseconds, milliseconds, seconds, minutes or hours",
        )
    unit = found["unit"].lower().removesuffix("s").removesuffix("ond")
    factor, name = _UNITS[unit]
    value = float(found["number"]) * factor
    if name == "steps" and value != int(value):
        raise FormulaError(f"timing: {value:g} ticks", accepted="a whole number of ticks")
    return Bound(value, name)


def _boolean(text: str, field: str) -> Formula:
    """Return a formula about one moment."""
    text = text.strip(" ,")
    if not text:
        raise FormulaError(f"the {field} is empty", accepted=SHAPE)
    implication = re.fullmatch(r"\(?\s*if\s+(.+?)\s+then\s+(.+?)\s*\)?", text, re.I)
    if implication is not None and text.startswith("(") == text.endswith(")"):
        sides = (_boolean(side, field) for side in implication.groups())
        return syntax.Implies(*sides)
    try:
        formula = read_formula(text, notation=FRET.name).formula
    except FormulaError as error:
        raise FormulaError(f"{field}: {error.problem}", accepted=error.accepted) from None
    if not is_propositional(formula):
        raise FormulaError(
            f"{field}: {text[:60]!r} is about more than one moment", accepted="and, or, not, names"
        )
    return formula


class _Found(NamedTuple):
    place: int
    match: re.Match[str]


def _outer(text: str, pattern: re.Pattern[str]) -> Iterator[_Found]:
    """Yield the matches that lie in no parentheses and no quotes."""
    depth, quoted, at = 0, False, 0
    for found in pattern.finditer(text):
        for character in text[at : found.start()]:
            quoted ^= character == '"'
            depth += 0 if quoted else {"(": 1, ")": -1}.get(character, 0)
        at = found.start()
        if not depth and not quoted:
            yield _Found(found.start(), found)
