"""Property templates mean what their patterns say, tried on all short traces."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from forewarn.config.file import parse_spec
from forewarn.config.templates import TEMPLATES
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError
from forewarn.logic.automaton import Automaton
from forewarn.logic.specification import compile_spec

Letters = Sequence[tuple[bool, bool]]


def spec(section: str) -> Any:
    return parse_spec(
        parse_document(
            "clock: steps\nsignals: {x: {}, y: {}}\npredicates: {a: x > 0, b: y > 0}\n"
            f"properties: {{p: {section}}}\n"
        )
    )


def violated_at(automaton: Automaton, letters: Letters) -> int | None:
    """Return the step at which the automaton finds a violation first."""
    state = automaton.initial
    for step, (a, b) in enumerate(letters):
        holds = {"a": a, "b": b}
        letter = sum(1 << i for i, name in enumerate(automaton.atoms) if holds[name])
        state = int(automaton.transitions[state, automaton.letter_class[letter]])
        if state == automaton.violated:
            return step
    return None


def first(steps: Any) -> int | None:
    return next(iter(steps), None)


def never_answered(letters: Letters) -> int | None:
    return first(
        i + 2
        for i, (a, _) in enumerate(letters)
        if a and i + 2 < len(letters) and not any(b for _, b in letters[i : i + 3])
    )


def reach(letters: Letters) -> int | None:
    for i, (a, b) in enumerate(letters):
        if a:  # success
            return None
        if b or i == 2:
            return i
    return None


def avoid(letters: Letters) -> int | None:
    success = first(i for i, (a, _) in enumerate(letters) if a)
    failure = first(i for i, (_, b) in enumerate(letters) if b)
    if failure is None or (success is not None and success <= failure):
        return None
    return failure


CASES: list[tuple[str, Callable[[Letters], int | None]]] = [
    ("{template: absence, event: a}", lambda w: first(i for i, (a, _) in enumerate(w) if a)),
    (
        "{template: existence, event: a, within: 2}",
        lambda w: 2 if len(w) > 2 and not any(a for a, _ in w[:3]) else None,
    ),
    ("{template: response, event: a, answer: b, within: 2}", never_answered),
    (
        "{template: precedence, event: a, before: b}",
        lambda w: first(i for i, (a, _) in enumerate(w) if a and not any(b for _, b in w[: i + 1])),
    ),
    (
        "{template: precedence, event: a, before: b, within: 1}",
        lambda w: first(
            i for i, (a, _) in enumerate(w) if a and not any(b for _, b in w[max(i - 1, 0) : i + 1])
        ),
    ),
    ("{template: reach_avoid, success: a, failure: b}", avoid),
    ("{template: reach_avoid, success: a, failure: b, within: 2}", reach),
]


@pytest.mark.parametrize(("section", "meaning"), CASES)
def test_a_template_is_violated_when_its_pattern_is(
    section: str, meaning: Callable[[Letters], int | None]
) -> None:
    (automaton,) = compile_spec(spec(section)).automata
    truth = list(itertools.product((False, True), repeat=2))
    for length in range(1, 5):
        for word in itertools.product(truth, repeat=length):
            assert violated_at(automaton, word) == meaning(word), (section, word)


def test_every_template_is_tried() -> None:
    tried = {section.split("template: ")[1].split(",")[0] for section, _ in CASES}
    assert tried == set(TEMPLATES)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("{template: presence, event: a}", "template 'presence' is unknown (accepted: absence,"),
        ("{template: response, event: a, answer: b}", "response needs within"),
        ("{template: absence, event: a, within: 2}", "absence has no within"),
        ("{template: absence, event: a, formula: always(a)}", "a formula or a template, not both"),
        ("{template: absence, event: [a]}", "event: ['a'] is no name"),
        ("{template: [absence], event: a}", "template ['absence'] is unknown"),
        ("{template: absence, event: a, horzon: 2}", "horzon"),
        ("{formula: always(a), success: b}", "success"),
    ],
)
def test_a_wrong_template_is_told_with_its_place(section: str, said: str) -> None:
    with pytest.raises(ConfigError) as found:
        spec(section)
    assert said in str(found.value) and "properties.p" in str(found.value)


def test_an_unknown_name_in_a_template_is_an_error_of_the_formula() -> None:
    with pytest.raises(ConfigError, match="nothing"):
        compile_spec(spec("{template: absence, event: nothing}"))
