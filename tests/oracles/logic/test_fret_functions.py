"""FRET's functions of several moments: by the words of its manual, and by its own formulas."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from extent import WHOLE
from formula_semantics import evaluate
from fret_semantics import ATOMS, Trace, holds, intervals

from forewarn.logic import syntax
from forewarn.wings.plans.equivalence.decision import Verdict, compare
from forewarn.wings.plans.fret.explanation import in_words
from forewarn.wings.plans.fret.functions import meaning
from forewarn.wings.plans.fret.meaning import translate
from forewarn.wings.plans.fret.requirement import SCOPES, FretFunction
from forewarn.wings.plans.fret.sentences import read_requirement
from forewarn.wings.plans.notations.reader import read_formula

WORDS = {
    "null": "", "in": "in m,", "notin": "when not in m", "before": "before m", "after": "after m",
    "onlyIn": "only in m,", "onlyBefore": "only before m", "onlyAfter": "only after m",
}  # fmt: skip
MOMENTS = 4
STEP = slice(None, None, 1 if WHOLE else 7)
USES = (
    "persisted(1, c)", "persisted(1, 2, c)", "occurred(1, c)", "occurred(1, 2, c)",
    "preBool(false, c)", "preBool(true, c)", "preBool(p, c)", "prevOcc(c, p)", "FTP",
)  # fmt: skip


def said(use: str, start: int, t: int, c: list[bool], p: list[bool]) -> bool:
    """Return what the manual says of a moment in an interval that begins at `start`."""
    word, _, rest = use.partition("(")
    if word == "FTP":
        return t == 0
    if word == "preBool":
        initial = {"false": False, "true": True, "p": p[t]}[rest.partition(",")[0]]
        return c[t - 1] if t else initial
    if word == "prevOcc":
        before = [i for i in range(start, t) if c[i]]
        return not before or p[before[-1]]
    numbers = [int(part) for part in rest.split(",")[:-1]]
    first, last = [0, *numbers][-2:]
    if word == "persisted":
        return t - last >= start and all(c[t - last : t - first + 1])
    return any(c[i] for i in range(max(start, t - last), t - first + 1))


@pytest.mark.parametrize("scope", SCOPES)
def test_functions_say_what_the_manual_says(scope: str) -> None:
    free = itertools.product(itertools.product((False, True), repeat=3), repeat=MOMENTS)
    letters = np.array([[(*letter, False) for letter in trace] for trace in free])[STEP]
    numbers = (letters * (1 << np.arange(4))).sum(axis=2)
    for use in USES:
        requirement = read_requirement(
            f"{WORDS[scope]} when {use} the robot shall immediately satisfy p"
        )
        assert requirement.scope == scope
        found = translate(requirement)
        assert found.formula is not None
        ours = evaluate(found.formula, numbers, ATOMS).may[:, 0]
        for trace, mine in zip(letters, ours, strict=True):
            m, c, p, s = trace.T.tolist()
            told = list(c)
            for start, end in intervals(scope, m):
                told[start : end + 1] = [said(use, start, t, c, p) for t in range(start, end + 1)]
            expected = holds(scope, "regular", "immediately", 0, Trace(m, told, p, s))
            assert mine == expected, (use, trace.T.tolist())


#: The patterns of FRET's xform.js (Apache-2.0), with its H[<n], O[<=n], Y and Z in our spelling;
#: LEFT is where an interval begins, and FTP is Z FALSE.
FRETS = {
    ("preBool", 0, 0): "(prev(false) and p) or (s_prev(true) and s_prev(q))",
    ("persisted", 0, 2): "historically[0:2](p) and historically[0:1](not(LEFT))",
    ("persisted", 1, 3): "historically[1:3](p) and historically[0:2](not(LEFT))",
    ("occurred", 0, 2): "(not(LEFT) since p) and once[0:2](p)",
    ("occurred", 1, 3): "not(LEFT) since[1:3] p",
    ("prevOcc", 0, 0): "LEFT or s_prev(((not(LEFT) and not(p)) since p) implies "
    "((not(LEFT) and not(p)) since (p and q)))",
}


@pytest.mark.parametrize("mode", ["true", "m"])
@pytest.mark.parametrize(("word", "first", "last"), FRETS)
def test_functions_mean_what_frets_formulas_do(word: str, first: int, last: int, mode: str) -> None:
    inside = read_formula(mode).formula
    operands = (syntax.Atom("p"), syntax.Atom("q"))[: 1 if last else 2]
    ours = meaning(FretFunction("f", word, first, last, operands), operands, inside)
    left = read_formula(f"{mode} and not(s_prev({mode}))").formula
    text = FRETS[word, first, last]
    theirs = syntax.substituted(read_formula(text, ("LEFT",), "rtamt").formula, {"LEFT": left})
    pair = (syntax.Always(syntax.Implies(inside, part)) for part in (ours, theirs))
    assert compare(*pair).verdict is Verdict.EQUIVALENT


def test_functions_within_functions_are_explained() -> None:
    requirement = read_requirement(
        "the robot shall always satisfy if persisted(2, occurred(1, c) & !p) then p"
    )
    words = in_words(requirement)
    assert "`occurred(1, c)`: `c` held at some moment from 1 moment ago on" in words
    assert "`occurred(1, c) and not(p)` held at every moment from 2 moments ago on" in words
    assert "which began 2 moments ago or earlier" in words
