"""What the language of expressions takes, and how it refuses the rest."""

from __future__ import annotations

import sys
import traceback

import pytest

from forewarn.errors import ExpressionError
from forewarn.expressions.syntax import normal_form, parse_expression


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("speed > 0.5", {"speed"}),
        (
            "min(hypot(obj_x - ego_x, obj_y - ego_y), default=inf)",
            {"obj_x", "obj_y", "ego_x", "ego_y"},
        ),
        ("[m.pose.position.x for m in markers if m.ns == kind]", {"markers", "kind"}),
        ("[x + m for m in a for x in m]", {"a"}),
        ("a if b else -c", {"a", "b", "c"}),
        ("0 < a <= 2 and b not in (1, 2)", {"a", "b"}),
        ("x[0] + x[1:2][-1]", {"x"}),
        ("min", {"min"}),
        ("pi", set()),
        ("[i * v for i, v in enumerate(values)]", {"values"}),
        ("a\n  + b", {"a", "b"}),
    ],
)
def test_names_are_what_the_expression_reads(source: str, names: set[str]) -> None:
    assert parse_expression(source).names == names


def test_normal_form_forgets_spaces_quotes_and_needless_brackets() -> None:
    same = ["( a+b )*2 and s=='x'", '(a + b) * 2 and (s == "x")']
    assert {normal_form(parse_expression(text)) for text in same} == {"(a + b) * 2 and s == 'x'"}


@pytest.mark.parametrize(
    ("source", "column", "problem"),
    [
        ("", None, "empty"),
        ("a b", 3, "invalid syntax"),
        ("a + (b", 5, "never closed"),
        ("__import__('os')", 1, "no function '__import__'"),
        ("open('/etc/passwd')", 1, "no function 'open'"),
        ("a.__class__", 1, "'__class__' begins with an underscore"),
        ("1 + a.b._c", 5, "'_c' begins with an underscore"),
        ("_a", 1, "begins with an underscore"),
        ("a.b()", 1, "only the listed functions"),
        ("(lambda: 1)()", 1, "only the listed functions"),
        ("lambda: 1", 1, "a lambda"),
        ("[(x := 1) for y in z]", 3, "an assignment"),
        ("f'{a}'", 1, "an f-string"),
        ("{1: 2}", 1, "a dictionary"),
        ("{1, 2}", 1, "a set"),
        ("{x for x in y}", 1, "a set comprehension"),
        ("(yield)", 2, "yield"),
        ("min(*a)", 5, "an unpacking"),
        ("min(**a)", 1, "'**'"),
        ("min(a, key=b)", 1, "'key'"),
        ("min(a, b, default=1)", 1, "only with one array"),
        ("atan2(1)", 1, "given 1 arguments"),
        ("mni(a)", 1, "did you mean 'min'?"),
        ("a & b", 1, "write 'and'"),
        ("a is b", 1, "write '=='"),
        ("~a", 1, "write 'not'"),
        ("a @ b", 1, "operator @"),
        ("a[1, 2]", 3, "several parts"),
        ("'x' * 1000000", 1, "arithmetic on text"),
        ("1j", 1, "1j"),
        ("a < 1e309", 5, "the number is too large"),
        ("None", 1, "None"),
        ("b'x'", 1, "b'x'"),
        ("...", 1, "Ellipsis"),
        ("zip(a, b)", 1, "outside of 'for ... in'"),
        ("[min for min in a]", 10, "'min' cannot name a variable"),
        ("[x.y for x.y in a]", 10, "not a variable"),
        ("[a for a, b in c]", 8, "2 variables for 1 value"),
        ("[a for a in zip(b, c)]", 8, "1 variable for 2 values"),
        ("[a for a, b, c in enumerate(d)]", 8, "3 variables for 2 values"),
        ("[a for a, a in zip(b, c)]", 8, "not a variable"),
        ("[x async for x in a]", 1, "async"),
        ("import os", 1, "'import' is a reserved word"),
        ("é + _b", 5, "'_b'"),
        (3, None, "3 is not an expression"),
    ],
)
def test_refuses_with_position_and_what_is_accepted(
    source: str, column: int | None, problem: str
) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(source)
    assert problem in str(caught.value)
    assert "(accepted: " in str(caught.value)
    if column is not None:
        assert str(caught.value).startswith(f"column {column}:")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "source",
    [
        "(" * 5000 + "a" + ")" * 5000,
        "(" * 60 + "a" + ")" * 60,
        "-" * 3900 + "a",
        "not " * 900 + "a",
        "a" + ".b" * 1900,
        "a" + "[0]" * 1300,
        "a" + "**a" * 1300,
        "a" + " if a else a" * 300,
        "a" + "+a" * 1900,
        "[" * 90 + "]" * 90,
        "9" * 3000,
        "'" + "x" * 3000 + "'",
        "a\0b",
    ],
)
def test_refuses_hostile_texts_at_once(source: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(source)
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("left", [60, 200, 900])
def test_depth_is_refused_however_little_of_the_stack_is_left(left: int) -> None:
    limit, used = sys.getrecursionlimit(), len([*traceback.walk_stack(None)])
    try:
        sys.setrecursionlimit(used + left)
        with pytest.raises(ExpressionError) as caught:
            parse_expression("-" * 3000 + "a")
    finally:
        sys.setrecursionlimit(limit)
    assert "deep" in str(caught.value)
