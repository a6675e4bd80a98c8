"""The automata that monitor and the comparison of formulas, which read them separately, agree."""

from __future__ import annotations

from extent import examples
from formula_semantics import ATOMS, safety_formulas
from hypothesis import HealthCheck, assume, given, note, settings

from forewarn.errors import FormulaError
from forewarn.logic.automaton import Automaton
from forewarn.logic.compilation import compile_formula
from forewarn.logic.syntax import Formula, format_formula
from forewarn.wings.plans.equivalence.decision import Verdict, compare

LETTERS = range(1 << len(ATOMS))


def automaton_of(formula: Formula) -> Automaton | None:
    """Return the automaton; None if no run satisfies the formula."""
    try:
        return compile_formula(formula, 1.0, max_states=500)
    except FormulaError as error:
        assume("more than" not in error.problem)
        assert error.problem == "no run satisfies the formula"
        return None


def letter_of(automaton: Automaton, letter: int) -> int:
    """Return the class of a letter over all of `ATOMS`."""
    places = (ATOMS.index(atom) for atom in automaton.atoms)
    return int(automaton.letter_class[sum((letter >> at & 1) << i for i, at in enumerate(places))])


def violated_alike(first: Automaton, second: Automaton) -> bool:
    """Tell whether both are violated after the same prefixes."""
    pending = [(first.initial, second.initial)]
    seen = {*pending}
    while pending:
        ours, theirs = pending.pop()
        for letter in LETTERS:
            pair = (
                int(first.transitions[ours, letter_of(first, letter)]),
                int(second.transitions[theirs, letter_of(second, letter)]),
            )
            if (pair[0] == first.violated) != (pair[1] == second.violated):
                return False
            if pair not in seen:
                seen.add(pair)
                pending.append(pair)
    return True


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(safety_formulas(), safety_formulas())
def test_formulas_are_equivalent_if_their_automata_are(first: Formula, second: Formula) -> None:
    note(f"{format_formula(first)}   {format_formula(second)}")
    ours, theirs = automaton_of(first), automaton_of(second)
    alike = ours is theirs if None in (ours, theirs) else violated_alike(ours, theirs)
    found = compare(first, second, rate=1.0)
    assume(found.verdict is not Verdict.UNDECIDED)
    assert (found.verdict is Verdict.EQUIVALENT) == alike
