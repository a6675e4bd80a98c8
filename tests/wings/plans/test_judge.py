"""Rules about objects, judged over what a plan does to them."""

from __future__ import annotations

import itertools
import time

import pytest
from extent import WHOLE
from hypothesis import given
from hypothesis import strategies as st

from forewarn.errors import FormulaError
from forewarn.wings.plans.actions import household
from forewarn.wings.plans.judge import Finding, judge
from forewarn.wings.plans.language import parse_rule
from forewarn.wings.plans.rules import NamedRule, Rules
from forewarn.wings.plans.steps import parse_step
from forewarn.wings.plans.world import Plan, PlanError, State, Step

FORK = (
    'forall f in objects: f.type == "Fork" implies '
    'always(not (inside(f, "Microwave") and on("Microwave")))'
)


def plan(*steps: str, facts: tuple[tuple[str, ...], ...] = (), **types: str) -> Plan:
    return Plan("p", tuple(map(parse_step, steps)), State(frozenset(facts)), types)


def finding(one: Plan, text: str, **options: object) -> Finding:
    rules = Rules((NamedRule("rule", parse_rule(text)),), **{"actions": household(), **options})  # type: ignore[arg-type]
    return judge(one, rules).findings[0]


def test_what_is_pending_at_the_end_is_violated() -> None:
    rule = "forall d in objects: always(open(d) implies eventually(not open(d)))"
    assert finding(plan("open(fridge)", "grab(milk)"), rule).outcome == "pending"
    assert finding(plan("open(fridge)", "close(fridge)"), rule).outcome == "satisfied"


@pytest.mark.parametrize(
    ("spelling"),
    ["open(fridge)", "[OPEN] <fridge>", "<char0> [open] <fridge>", "(open fridge)",
     "0.000: (open fridge)  [1.000]", "open fridge", "Open('fridge')"],
)  # fmt: skip
def test_steps_are_read_however_they_are_written(spelling: str) -> None:
    assert finding(plan(spelling), 'always(not open("Fridge"))').step == 1


def test_a_failed_step_does_nothing() -> None:
    steps = (Step("open", ("fridge",), failed=True), Step("open", ("door",)))
    assert finding(Plan("p", steps), 'always(not open("fridge"))').outcome == "satisfied"


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        ("putin(fork, fridge)", "violated"),
        ("putin(fork, oven)", "satisfied"),
        ("putin(fork)", "unknown"),
        ("putin(fork, {place})", "unknown"),
        ("putin({what}, fridge)", "violated"),
        ("putin({what}, oven)", "satisfied"),
        ("open(fridge)", "satisfied"),
    ],
)
def test_what_is_not_said_of_an_action_is_not_known(step: str, outcome: str) -> None:
    found = finding(plan(step, "walk(fridge)"), 'always(not does("putin", _, "Fridge"))')
    assert found.outcome == outcome


@pytest.mark.parametrize("step", ["wait(fridge, x)", "look at the fridge", "drop()", "drop(fork)"])
def test_actions_that_do_nothing_take_any_arguments(step: str) -> None:
    assert finding(plan(step), 'always(not open("fridge"))').outcome == "satisfied"


def test_what_nobody_says_is_not_taken_for_safe() -> None:
    assert finding(plan("open(fridge)"), 'always(not leaking("fridge"))').outcome == "unknown"
    unknown = finding(plan("juggle(knife)"), 'always(not open("fridge"))')
    assert unknown.outcome == "unknown"
    assert "juggle" in unknown.reason
    # What is violated before anything unknown happens is violated all the same.
    assert finding(plan("open(fridge)", "juggle(knife)"), 'always(not open("fridge"))').step == 1
    # A fact that is declared, and never comes, does not hold.
    declared = frozenset({"leaking"})
    assert finding(plan(), 'always(not leaking("x"))', facts=declared).outcome == "satisfied"


def test_states_that_a_plan_gives_win() -> None:
    on = State(frozenset({("on", "stove")}), {("degrees", "stove"): 90.0}, frozenset({"on"}))
    one = Plan(
        "p", (Step("wait"), Step("press", ("red",), state=on)), State(known=frozenset({"on"}))
    )
    # Nobody knows what waiting does; what comes after it is known again.
    assert finding(one, 'always(not on("stove"))', actions=None).step == 2
    assert finding(one, 'next(not on("stove"))', actions=None).outcome == "unknown"
    seen = Plan("p", one.steps[1:], one.initial)
    assert finding(seen, 'always(not on("stove"))', actions=None).step == 1
    rule = "forall s in objects: s.type == 'stove' implies always(s.degrees <= 80)"
    assert finding(seen, rule, actions=None) == Finding(
        "rule", "violated", 1, "press(red)", (("s", "stove"),)
    )


def test_circles_of_relations_end() -> None:
    many = 500 if WHOLE else 100
    ring = tuple(("inside", f"box{i}", f"box{(i + 1) % many}") for i in range(many))
    one = plan(facts=(*ring, ("inside", "cup", "cup"), ("on", "stove")))
    options = {"transitive": frozenset({"inside"})}
    for text, outcome in (
        ("forall a in objects: a.type == 'box' implies always(inside(a, a))", "satisfied"),
        ('forall a in objects: always(not inside(a, "stove"))', "satisfied"),
        ('always(not inside("cup", "box7"))', "satisfied"),
        ('always(not inside("box3", "box7"))', "violated"),
    ):
        assert finding(one, text, **options).outcome == outcome, text


def test_a_chain_of_relations_breaks_where_one_link_does() -> None:
    steps = ("grab(bowl)", "putin(bowl, microwave)")
    one = plan(*steps, facts=(("inside", "fork", "bowl"),))
    chained = {"transitive": frozenset({"inside"})}
    assert finding(one, 'always(not inside("fork", "microwave"))', **chained).step == 2
    assert finding(one, 'always(not inside("fork", "microwave"))').outcome == "satisfied"


def test_relations_that_hold_either_way() -> None:
    one = plan(facts=(("near", "phone", "cup"),))
    near = {"symmetric": frozenset({"near"})}
    assert finding(one, 'always(not near("cup", "phone"))', **near).outcome == "violated"
    assert finding(one, 'always(not near("cup", "phone"))').outcome == "satisfied"


def test_actions_can_be_spoken_of() -> None:
    one = plan("walk(kitchen)", "putin(pie, fridge)")
    assert finding(one, 'always(not does("putin", _, "fridge"))').step == 2
    rule = 'not does("walk", "kitchen") until does("grab", "pie")'
    assert finding(one, rule).step == 1


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("G(ON(Candle) -> NOT(CLOSE(Bed, Candle)))", "always(on(c) implies not close(b, c))"),
        (
            "G(ISOPEN(x) -> F[<=3](NOT ISOPEN(x)))",
            "always(open(x) implies eventually[0:3](not open(x)))",
        ),
        ("~p(x) & q(x) | r(x)", "not p(x) and q(x) or r(x)"),
        ("G(a(x) AND b(x) -> FALSE)", "always(a(x) and b(x) implies false)"),
    ],
)  # fmt: skip
def test_other_spellings_mean_the_same(text: str, ours: str) -> None:
    def shape(one: str) -> str:
        rule = parse_rule(one)
        told = repr(rule.formula)
        for name, meaning in rule.atoms.items():
            told = told.replace(repr(name), getattr(meaning, "name", "?"))
        return told

    assert shape(text) == shape(ours)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("always(open(x)", "never closed"),
        ("forall f objects: a", "quantifier"),
        ("forall f in objects: forall f in objects: p(f)", "bound already"),
        ("always(x + 1)", "not a predicate"),
        ("F[<=T](p)", "T is no number"),
        ("p(x, )", "a name is missing"),
        ("p(q(x))", "p(...)"),
        ("always()", "not expected"),
        ("(" * 5_000, "nested more than 100"),
        ("not " * 5_000 + "p(x)", "nested more than 100"),
        (" and ".join(f"p{i}(x)" for i in range(5_000)), "nested more than 100"),
        ("p(x) and " * 30_000 + "p(x)", "characters"),
        ("".join(f"forall x{i} in objects: " for i in range(9)) + "p(x1)", "too many quantifiers"),
    ],
)  # fmt: skip
def test_formulas_that_are_none_say_where(text: str, problem: str) -> None:
    with pytest.raises(FormulaError, match=problem.replace("(", r"\(").replace(")", r"\)")):
        parse_rule(text)


def test_an_error_shows_the_text_as_it_was_written() -> None:
    with pytest.raises(FormulaError) as caught:
        parse_rule('always(inside(f, "Microwave") and and on("Microwave"))')
    shown, marker = str(caught.value).split("\n")[1:3]
    assert 'inside(f, "Microwave") and and' in shown
    assert shown[marker.index("^") :].startswith("and on")


def test_a_long_plan_is_judged() -> None:
    number = 100_000 if WHOLE else 10_000
    steps = tuple(Step(("open", "close")[i % 2], (f"door{i // 2 % 20}",)) for i in range(number))
    begun = time.process_time()
    rule = "forall d in objects: always(open(d) implies eventually[0:2](not open(d)))"
    assert finding(Plan("long", steps), rule).outcome == "satisfied"
    assert time.process_time() - begun < 20


def test_what_is_too_much_is_refused_and_does_not_hang(monkeypatch) -> None:
    if not WHOLE:
        monkeypatch.setattr("forewarn.wings.plans.judge.MOST_WORK", 5_000_000)
    facts = frozenset(("near", f"o{i}", f"o{i + 1}") for i in range(300))
    rule = " ".join(f"forall {x} in objects:" for x in "abcd") + " near(a, b) implies near(c, d)"
    with pytest.raises(PlanError, match="is too much"):
        finding(Plan("big", (Step("look"),), State(facts)), rule)


def test_objects_stand_in_one_order() -> None:
    facts = frozenset(("on", name) for name in "dbace")
    assert list(Plan("p", (), State(facts)).objects) == list("abcde")


@given(
    course=st.lists(
        st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=7), max_size=8, min_size=1
    ),
    symmetric=st.booleans(),
)
def test_chains_of_relations_are_followed_through_all_changes(
    course: list[set[tuple[int, int]]], symmetric: bool
) -> None:
    states = [State(frozenset(("inside", f"o{a}", f"o{b}") for a, b in one)) for one in course]
    known = {f"o{i}": "thing" for i in range(5)}
    steps = tuple(Step("wait", state=state) for state in states[1:])
    one = Plan("p", steps, states[0]._replace(known=frozenset({"inside"})), known)
    options = {"transitive": frozenset({"inside"})}
    if symmetric:
        options["symmetric"] = frozenset({"inside"})
    for source, target in ((0, 1), (2, 2), (4, 3)):
        leads = []
        for pairs in course:
            links = pairs | {(b, a) for a, b in pairs if symmetric}
            reached = {b for a, b in links if a == source}
            for _ in range(5):
                reached |= {b for a, b in links if a in reached}
            leads.append(target in reached)
        found = finding(one, f'always(not inside("o{source}", "o{target}"))', **options)
        expected = leads.index(True) if True in leads else None
        assert (found.step if found.outcome == "violated" else None) == expected


OBJECTS = ("cup", "box", "pan")


@given(
    course=st.lists(
        st.sets(st.sampled_from(list(itertools.product(OBJECTS, OBJECTS)))), min_size=1, max_size=4
    )
)
def test_quantifiers_mean_all_and_some(course: list[set[tuple[str, str]]]) -> None:
    states = [State(frozenset(("near", *pair) for pair in pairs)) for pairs in course]
    known = dict(zip(OBJECTS, OBJECTS, strict=True))
    steps = tuple(Step("wait", state=state) for state in states[1:])
    one = Plan("p", steps, states[0]._replace(known=frozenset({"near"})), known)
    rule = "forall a in objects: eventually(exists b in objects: b != a and near(a, b))"
    expected = all(
        any(any(b != a and (a, b) in pairs for b in OBJECTS) for pairs in course) for a in OBJECTS
    )
    assert (finding(one, rule, actions=None).outcome == "satisfied") == expected
    never = "not (exists a in objects: exists b in objects: always(near(a, b)))"
    expected = not any(
        all(pair in pairs for pairs in course) for pair in itertools.product(OBJECTS, OBJECTS)
    )
    assert (finding(one, never, actions=None).outcome == "satisfied") == expected
