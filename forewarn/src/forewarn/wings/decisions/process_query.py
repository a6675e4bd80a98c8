"""Questions about a decision process, such as ``Pmin=? [ F<=50 "collision" ]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forewarn.checking import ctl
from forewarn.checking.interface import where_holds
from forewarn.checking.sound import CONFIDENCE
from forewarn.errors import CheckingError
from forewarn.models.estimation import smoothed_process
from forewarn.wings.decisions.model_process import need_actions, process_of_model
from forewarn.wings.decisions.process_bounds import BoundedValues, CountedProcess, Query
from forewarn.wings.decisions.storm import QueryResult, named_for_storm
from forewarn.wings.decisions.storm_api import Storm

if TYPE_CHECKING:
    from forewarn.models.chain import Floats
    from forewarn.models.counts import CountModel, Smoothing
    from forewarn.models.process import Mask
    from forewarn.states.interface import StateSpace

_LIMIT = r"(?:=\s*\?|(?P<sign>[<>]=?)\s*(?P<threshold>\d*\.?\d+(?:[eE][-+]?\d+)?))"
_LONG = re.compile(rf"\s*P(?P<word>max|min)\s*{_LIMIT}\s*\[(?P<path>.*)\]\s*", re.DOTALL)
_SHORT = re.compile(
    rf"\s*P(?P<word>max|min)\s*\((?P<goal>.*?)(?:,\s*(?P<steps>\d+)\s*)?\)\s*(?:{_LIMIT})?\s*",
    re.DOTALL,
)
_EVENTUALLY = re.compile(r"\s*F\s*(?:<=\s*(?P<steps>\d+)|(?![\w<>]))(?P<goal>.*)", re.DOTALL)
_ALWAYS = re.compile(r"\s*G\s*(?:<=\s*(?P<steps>\d+)|(?![\w<>]))(?P<goal>.*)", re.DOTALL)
_UNTIL = re.compile(
    r"(?P<way>.*)(?<!\w)U\s*(?:<=\s*(?P<steps>\d+)|(?![\w<>]))(?P<goal>.*)", re.DOTALL
)
MAX_HORIZON = 1_000_000


@dataclass(frozen=True)
class ProcessQuery:
    """An extreme probability of ``phi U psi`` (`way`, `goal`), and what it is compared with.

    ``Pmax [ G phi ]`` is one minus ``Pmin [ F !phi ]``, and is solved as that (`always`). A horizon
    of None is unbounded; the sign is empty without a comparison.
    """

    maximise: bool
    way: str
    goal: str
    horizon: int | None
    sign: str = ""
    threshold: float = 0.0
    always: bool = False

    @property
    def most(self) -> float | None:
        """The probability of ``phi U psi`` that is allowed at most, if the comparison says so."""
        if not self.sign.startswith(">" if self.always else "<"):
            return None
        return 1.0 - self.threshold if self.always else self.threshold

    def holds(self, values: Floats) -> Mask:
        """Tell where a probability satisfies the comparison; NaN never does."""
        if self.sign in {"<", "<="}:
            below = values < self.threshold
            return np.asarray(below | ((self.sign == "<=") & (values == self.threshold)))
        above = values > self.threshold
        return np.asarray(above | ((self.sign == ">=") & (values == self.threshold)))


@dataclass(frozen=True, eq=False)
class ProcessQueryResult:
    """The answer to a query, over the n states of the process; those of the model come first.

    `holds` tells whether the estimate satisfies the comparison, `settled` whether all values within
    the bounds agree with it on that. `goal` and `way` tell where psi and where phi holds; of ``G
    phi``, where it is broken and everywhere.
    """

    query: ProcessQuery
    states: tuple[int, ...]
    values: BoundedValues
    holds: Mask
    settled: Mask
    goal: Mask
    way: Mask
    counted: CountedProcess


def is_process_query(text: str) -> bool:
    """Tell whether a query is about a decision process."""
    return re.match(r"\s*(P|T|LRA|R(\{[^}]*\})?)(max|min)\b", text) is not None


def parse_process_query(text: str) -> ProcessQuery | None:
    """Return the query that our own solver answers; None for others, which are Storm's."""
    names: list[str] = []

    def masked(found: re.Match[str]) -> str:
        names.append(found[0])
        return f'"{len(names) - 1}"'

    def named(part: str) -> str:
        return re.sub(r'"(\d+)"', lambda found: names[int(found[1])], part).strip()

    bare = re.sub(r'"[^"]*"', masked, text)
    found = _LONG.fullmatch(bare)
    path, always = None, False
    if found is not None:
        path = _ALWAYS.fullmatch(found["path"])
        always = path is not None
        path = path or _EVENTUALLY.fullmatch(found["path"]) or _UNTIL.fullmatch(found["path"])
    else:
        found = path = _SHORT.fullmatch(bare)
    if found is None or path is None or re.search(r"\bP(max|min)?\s*[<>=(]", path["goal"]):
        return None
    way = path.groupdict().get("way") or "true"
    if way.count("[") != way.count("]") or re.search(r"[\[\]]|(?<!\w)[UFGX]\b", path["goal"]):
        return None
    horizon = None if path["steps"] is None else int(path["steps"])
    if horizon is not None and horizon > MAX_HORIZON:
        raise CheckingError(
            f"a bound of {horizon:,} steps", accepted=f"at most {MAX_HORIZON:,}", key=text
        )
    threshold = float(found["threshold"] or 0.0)
    if threshold > 1.0:
        raise CheckingError(f"a probability of {threshold:g}", accepted="0 to 1", key=text)
    goal = named(path["goal"])
    return ProcessQuery(
        (found["word"] == "max") != always, named(way), f"!({goal})" if always else goal, horizon,
        found["sign"] or "", threshold, always,
    )  # fmt: skip


def answer_process_query(
    model: CountModel,
    query: ProcessQuery,
    *,
    smoothing: Smoothing | None = None,
    confidence: float = CONFIDENCE,
    grown: bool = False,
) -> ProcessQueryResult:
    """Return an extreme probability over all ways to choose, with bounds (`process_of_model`)."""
    bounds = process_of_model(model, smoothing=smoothing, confidence=confidence, grown=grown)
    states = bounds.counted.states
    goal, way = (state_mask(text, model.vocabulary, states) for text in (query.goal, query.way))
    choosing = "greatest" if query.maximise else "least"
    found = bounds.value(Query(goal, way | goal, choosing, query.horizon))  # type: ignore[arg-type]
    found = found.complement() if query.always else found
    holds: Mask = np.ones(goal.size, dtype=bool)
    settled = holds
    if query.sign:
        holds = query.holds(found.estimate)
        settled = (query.holds(found.lower) == holds) & (query.holds(found.upper) == holds)
    return ProcessQueryResult(query, states, found, holds, settled, goal, way, bounds)


def storm_process_query(
    model: CountModel, text: str, smoothing: Smoothing | None = None
) -> QueryResult:
    """Return Storm's answer to a PCTL query about the decision process, for the model's states."""
    need_actions(model)
    process = smoothed_process(model, smoothing)
    asked, labels = named_for_storm(text, model.vocabulary, process.states)
    starts = np.pad(model.starts > 0, (0, process.size - model.size))
    storm = Storm()
    made = storm.mdp(process, labels, starts if starts.any() else 0)
    notes = ("Storm's answer has no bounds: they are computed for F, G and U of state formulas",)
    return QueryResult(text, storm.check(made, asked)[: model.size], notes)


def state_mask(text: str, space: StateSpace, states: tuple[int, ...]) -> Mask:
    """Return in which states a state formula holds: names with !, &, | between them."""
    return _truth(ctl.parse(text), space, states, text)


def _truth(formula: ctl.CtlFormula, space: StateSpace, states: tuple[int, ...], text: str) -> Mask:
    parts = [_truth(part, space, states, text) for part in formula.operands]
    if formula.operator == "name":
        return where_holds(formula.name, space, states, text)
    if formula.operator in {"true", "false"}:
        return np.full(len(states), formula.operator == "true")
    if formula.operator == "!":
        return ~parts[0]
    if formula.operator in {"&", "|"}:
        return parts[0] & parts[1] if formula.operator == "&" else parts[0] | parts[1]
    raise CheckingError(
        f"{formula.operator} is no part of a state formula", accepted="names, !, &, |", key=text
    )
