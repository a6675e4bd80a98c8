"""Parts put their functions into the one table; the language knows nothing else of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forewarn.errors import ExpressionError
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.functions import FUNCTIONS, registry
from forewarn.expressions.functions.registry import Function, register
from forewarn.expressions.syntax import parse_expression


@pytest.fixture
def twice() -> Iterator[None]:
    register({"twice": Function(lambda notes, x: 2.0 * x, 1, 1, "the double", by_platform=True)})
    yield
    del registry._TABLE["twice"]


def test_a_registered_function_can_be_called(twice: None) -> None:
    expression = parse_expression("twice(speed) + 1")
    assert expression.by_platform
    assert compile_expression(expression, ["speed"])([3.0]) == 7.0
    with pytest.raises(ExpressionError, match=r"twice\(\) is given 2 arguments"):
        parse_expression("twice(1, 2)")


def test_a_function_that_nobody_registered_is_refused() -> None:
    for text in ("twice(speed)", "[x for x in twice(speed)]"):
        with pytest.raises(ExpressionError, match="there is no function 'twice'"):
            parse_expression(text)


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="'abs'"):
        register({"abs": Function(FUNCTIONS["sqrt"].call, 1, 1, "another")})
    assert FUNCTIONS["abs"].summary == "absolute value"
