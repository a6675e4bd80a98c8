"""Requirements of FRET's language against their meaning, evaluated on all short traces."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from extent import WHOLE
from formula_semantics import evaluate
from fret_semantics import ATOMS, Trace, holds, intervals

from forewarn.logic.compilation import compile_formula
from forewarn.logic.syntax import Atom, Bound
from forewarn.wings.plans.fret.meaning import translate
from forewarn.wings.plans.fret.requirement import CONDITIONS, SCOPES, TIMINGS, FretRequirement

TEMPLATES = list(itertools.product(SCOPES, CONDITIONS, TIMINGS))


def requirement(scope: str, condition: str, timing: str, n: int) -> FretRequirement:
    return FretRequirement(
        scope,
        None if scope == "null" else Atom("m"),
        condition,
        None if condition == "null" else Atom("c"),
        "robot",
        timing,
        Bound(float(n), "steps") if timing in ("for", "within", "after") else None,
        Atom("s") if timing in ("until", "before") else None,
        Atom("p"),
    )


def all_letters(moments: int, timing: str) -> np.ndarray:
    """Return all traces, shape (traces, moments, 4); without stops where there is no such thing."""
    free = [(False, True)] * 3 + [(False, True) if timing in ("until", "before") else (False,)]
    return np.array(list(itertools.product(itertools.product(*free), repeat=moments)))


def meanings(template: tuple[str, str, str], n: int, letters: np.ndarray) -> np.ndarray:
    return np.array([holds(*template, n, Trace(*trace.T.tolist())) for trace in letters])


@pytest.mark.parametrize("scope", SCOPES)
def test_a_property_is_violated_where_the_requirement_is(scope: str) -> None:
    mine = [template for template in TEMPLATES if template[0] == scope]
    short = [(template, 0) for template in mine if template[2] in ("for", "within", "after")]
    for template, n in [*short, *((template, 1) for template in mine)]:
        found = translate(requirement(*template, n))
        letters = all_letters(3, template[2])[:: 1 if WHOLE else 7]
        expected = meanings(template, n, letters)
        if found.formula is None:
            # Whatever has happened, one more moment can make it true: no run breaks it.
            rescued = np.zeros(len(letters), bool)
            for letter in itertools.product((False, True), repeat=4):
                last = np.broadcast_to(np.array(letter), (len(letters), 1, 4))
                rescued |= meanings(template, n, np.concatenate([letters, last], axis=1))
            assert found.reason
            assert rescued.all(), template
            continue
        numbers = (letters * (1 << np.arange(4))).sum(axis=2)
        not_violated = evaluate(found.formula, numbers, ATOMS).may[:, 0]
        assert compile_formula(found.formula, "steps").n_states > 1
        if not found.reason:
            assert (not_violated == expected).all(), template
            continue
        assert (not_violated | ~expected).all(), template
        closed = np.array([_ended(scope, trace) for trace in letters])
        assert (not_violated == expected)[closed].all(), template


def _ended(scope: str, trace: np.ndarray) -> bool:
    return all(end < len(trace) - 1 for _, end in intervals(scope, trace[:, 0].tolist()))
