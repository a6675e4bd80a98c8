"""Equivalence, and how formulas are read, against Spot."""

from __future__ import annotations

import gzip
import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from extent import examples
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from trace_semantics import formulas

from evaluation.translators.spots_words import in_spots_words
from forewarn.errors import FormulaError
from forewarn.logic import syntax
from forewarn.logic.syntax import Atom, Constant, atoms_of
from forewarn.wings.plans.equivalence.decision import Verdict, compare
from forewarn.wings.plans.notations.answers import unwrapped
from forewarn.wings.plans.notations.reader import read_formula

spot = pytest.importorskip(
    "spot", reason="Spot is not installed (pip install -r requirements/oracles.txt)"
)
ATOMS = ("a", "b", "c")


def spot_agrees(first, second, *, finite: bool) -> bool:
    """Tell whether Spot's verdict on two formulas is ours."""
    found = compare(first, second, finite=finite)
    assert found.verdict is not Verdict.UNDECIDED, found.reason
    read = spot.from_ltlf if finite else spot.formula
    past = Past(finite=finite)
    texts = [in_spots_words(past.replaced(part), finite=finite) for part in (first, second)]
    texts = [" & ".join([f"({text})", *past.definitions]) for text in texts]
    return (found.verdict is Verdict.EQUIVALENT) == spot.are_equivalent(*map(read, texts))


class Past:
    """Puts an atom in the place of whatever looks back: ``y and always(next y iff what it was)``.

    Windows are spelled out. The definitions are written in Spot's words, and nothing is shared with
    the decision procedure.
    """

    def __init__(self, *, finite: bool) -> None:
        self.finite = finite
        self.definitions: list[str] = []

    def before(self, formula, *, first: bool = False):
        """Return whether a formula without past held one step ago; `first` at the first step."""
        atom = f"y{len(self.definitions)}"
        begin, text = f"{'' if first else '!'}{atom}", in_spots_words(formula, finite=self.finite)
        step, last = ("X[!]", "!X[!]1") if self.finite else ("X", "0")
        later = f"G({last} | (({step}({atom})) <-> ({text})))"
        self.definitions.append(f"{begin} & {later}")
        return syntax.Atom(atom)

    def replaced(self, formula):
        """Return a formula that looks ahead only."""
        parts = [self.replaced(part) for part in syntax.operands(formula)]
        if isinstance(formula, (syntax.Previous, syntax.StrongPrevious)):
            return self.before(parts[0], first=isinstance(formula, syntax.Previous))
        if isinstance(formula, syntax.Rise):
            return syntax.And(parts[0], syntax.Not(self.before(parts[0])))
        if isinstance(formula, syntax.Fall):
            return syntax.And(syntax.Not(parts[0]), self.before(parts[0], first=True))
        if isinstance(formula, syntax.Historically):
            denied = self.replaced(syntax.Once(syntax.Not(formula.operand), formula.interval))
            return syntax.Not(denied)
        if isinstance(formula, (syntax.Once, syntax.Since)):
            left = syntax.Constant(True) if isinstance(formula, syntax.Once) else parts[0]
            return self.since(left, parts[-1], formula.interval)
        if isinstance(formula, (Atom, Constant)):
            return formula
        bounds = (formula.interval,) if hasattr(formula, "interval") else ()
        return type(formula)(*parts, *bounds)

    def since(self, left, right, interval):
        if interval is None:
            atom = syntax.Atom(f"y{len(self.definitions)}")
            now = syntax.Or(right, syntax.And(left, atom))
            assert self.before(now) == atom
            return now
        lower, upper = int(interval.lower.value), int(interval.upper.value)
        now = right
        for _ in range(upper - lower):
            now = syntax.Or(right, syntax.And(left, self.before(now)))
        for _ in range(lower):
            now = syntax.And(left, self.before(now))
        return now


@pytest.mark.parametrize("finite", [False, True], ids=["infinite", "finite"])
@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(first=formulas(ATOMS, leaves=8), second=formulas(ATOMS, leaves=8))
def test_random_formulas(finite: bool, first, second) -> None:
    assert spot_agrees(first, second, finite=finite)


@pytest.mark.parametrize("finite", [False, True], ids=["infinite", "finite"])
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(first=formulas(ATOMS, leaves=4, past=True), second=formulas(ATOMS, leaves=4, past=True))
def test_what_looks_back_as_atoms_that_remember(finite: bool, first, second) -> None:
    """Spot has no past: `once`, `since` and `prev` become atoms with what defines them beside."""
    assert spot_agrees(first, second, finite=finite)
    assert spot_agrees(first, syntax.Not(syntax.Not(first)), finite=finite)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(formula=formulas(ATOMS, leaves=8), abbreviations=st.sampled_from(["", "FG", "FGRWM^ie"]))
def test_what_spot_rewrites_stays_equivalent_and_is_read(formula, abbreviations: str) -> None:
    written = spot.formula(in_spots_words(formula))
    rewritten = written.unabbreviate(abbreviations) if abbreviations else written.simplify()
    reading = read_formula(str(rewritten), ATOMS, "spot")
    assert compare(formula, reading.formula).verdict is Verdict.EQUIVALENT


WRITTEN = [
    *ATOMS, *ATOMS, "!", "X", "F", "G", "(", ")", "U", "W", "R", "M", "&", "|", "->", "<->", "^",
    "GF", "XX", "X[!]", "1",
]  # fmt: skip


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(WRITTEN), min_size=1, max_size=9).map(" ".join))
def test_texts_are_read_as_spot_reads_them(text: str) -> None:
    note(text)
    theirs = spot.parse_infix_psl(text)
    if theirs.errors:
        with pytest.raises(FormulaError):
            read_formula(text, ATOMS, "spot")
        return
    ours = read_formula(text, ATOMS, "spot").formula
    if "X[!]" in text:
        return  # on infinite traces Spot tells it from X
    assert spot.are_equivalent(spot.formula(in_spots_words(ours)), theirs.f)


def test_pairs_of_sentences_and_formulas(shared_data: Path) -> None:
    folder = shared_data / "nl_ltl"
    texts = [
        json.loads(line)["ltl_prefix"] for line in _lines(folder / "lang2ltl_lifted_pairs.jsonl")
    ]
    for domain in ("traffic_light", "warehouse"):
        rows = map(json.loads, _lines(folder / "vltl" / f"{domain}.jsonl.gz"))
        texts += [" ".join(row["grounded_tl"]) for row in rows]
    texts += [line.split(";")[1] for line in _lines(folder / "nl2spec_expert_LTL_dataset.txt")]
    distinct = sorted(set(texts))
    chosen = random.Random(0).sample(distinct, 150)
    for text, other in pairwise(chosen):
        first, second = (read_formula(t, ("a", "b", "c", "d", "h")).formula for t in (text, other))
        assert spot_agrees(first, first, finite=False)
        assert spot_agrees(first, second, finite=False), (text, other)


def test_answers_of_translators(shared_data: Path) -> None:
    drawn = random.Random(0)
    decided = 0
    for path in sorted((shared_data / "nl_ltl" / "vltl" / "answers").glob("nl2*spec*gpt-4o*")):
        for row in drawn.sample([json.loads(line) for line in _lines(path)], 40):
            reference = read_formula(" ".join(row["masked_tl"])).formula
            try:
                answer = read_formula(unwrapped(row["prediction"]), atoms_of(reference)).formula
            except FormulaError:
                continue
            for finite in (False, True):
                assert spot_agrees(reference, answer, finite=finite), row["prediction"]
                decided += 1
    assert decided > 200


def _lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()
