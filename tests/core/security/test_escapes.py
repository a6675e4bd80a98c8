"""Attempts to reach more than numbers from an expression: each is refused when it is loaded."""

from __future__ import annotations

import ast
import re
from types import ModuleType

import pytest

from forewarn.errors import ExpressionError, ForewarnError, FormulaError
from forewarn.expressions import compiler
from forewarn.expressions.compiler import compile_expression
from forewarn.expressions.functions import FUNCTIONS
from forewarn.expressions.syntax import parse_expression
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import atoms_of

SIGNALS = ("a", "b", "xs", "name")

ATTEMPTS = {
    # attributes that lead out of a value
    "class": "a.__class__",
    "class of a literal": "(1).__class__.__base__",
    "class of text": "''.__class__.__mro__[1]",
    "subclasses": "().__class__.__bases__[0].__subclasses__()",
    "class of a list": "[].__class__",
    "init globals": "a.__init__.__globals__",
    "module of a function": "abs.__self__",
    "globals of a function": "hypot.__globals__",
    "code of a function": "min.__code__",
    "dict of a value": "a.__dict__",
    "an attribute behind an index": "xs[0].__class__",
    "an attribute behind a call": "max(xs).__class__",
    "an attribute behind a condition": "(a if b else xs).__class__",
    "private field": "a._private",
    "mangled": "a.__x",
    # names that exist in Python
    "import": "__import__('os').system('true')",
    "builtins": "__builtins__",
    "builtins by index": "__builtins__['eval']",
    "name of the module": "__name__",
    "loader": "__loader__",
    "eval": "eval('1')",
    "exec": "exec('1')",
    "compile": "compile('1', '', 'eval')",
    "open": "open('/etc/passwd')",
    "getattr": "getattr(a, '__class__')",
    "getattr spelt in parts": "getattr(a, '__cla' + 'ss__')",
    "setattr": "setattr(a, 'x', 1)",
    "globals": "globals()",
    "locals": "locals()",
    "vars": "vars(a)",
    "dir": "dir(a)",
    "type": "type(a)",
    "type with three arguments": "type('X', (), {})",
    "object": "object()",
    "super": "super()",
    "breakpoint": "breakpoint()",
    "input": "input()",
    "print": "print(a)",
    "str": "str(a)",
    "bytes": "bytes(10)",
    "iter": "iter(xs)",
    "map": "map(abs, xs)",
    "memoryview": "memoryview(name)",
    # the names that the compiled code is made of
    "own operator": "_add(a, b)",
    "own function": "_f_min(a)",
    "own constant": "_c_pi",
    "notes": "_notes",
    "gather": "_gather(lambda: 1)",
    # text that formats
    "format method": "'{0.__class__}'.format(a)",
    "format map": "'{a}'.format_map(a)",
    "percent": "'%s' % a",
    "percent from the right": "a % '%s'",
    "f-string": "f'{a.__class__}'",
    "f-string with a call": "f'{__import__(\"os\")}'",
    "nested f-string": "f'{f\"{a!r}\"}'",
    "join": "''.join(xs)",
    "encode": "name.encode()",
    "bytes literal": "b'x'",
    "translate": "name.translate(a)",
    # code objects, generators, assignments
    "lambda": "lambda: a",
    "lambda called": "(lambda: a)()",
    "lambda as a default": "(lambda x=a: x)()",
    "walrus": "(x := a)",
    "walrus in a comprehension": "[(x := y) for y in xs]",
    "walrus over a function": "(min := a)",
    "generator frame": "(x for x in xs).gi_frame.f_globals()",
    "generator code": "(x for x in xs).gi_code.co_consts()",
    "generator method": "(x for x in xs).send(1)",
    "yield": "(yield a)",
    "yield from": "(yield from xs)",
    "await": "(await a)",
    "async comprehension": "[x async for x in xs]",
    # comprehensions that bind what they should not
    "binding an attribute": "[1 for a.b in xs]",
    "binding an item": "[1 for xs[0] in xs]",
    "binding a dunder": "[__class__ for __class__ in xs]",
    "binding a function": "[min for min in xs]",
    "binding a constant": "[pi for pi in xs]",
    "binding an operator": "[_add for _add in xs]",
    "binding the notes": "[1 for _notes in xs]",
    "binding by star": "[a for *a, b in xs]",
    "dict comprehension": "{x: x for x in xs}",
    "set comprehension": "{x for x in xs}",
    "dictionary": "{'a': 1}['a']",
    "set": "{1, 2}",
    # subscripts
    "several indices": "xs[0, 1]",
    "ellipsis": "xs[...]",
    "none as an index": "xs[None]",
    "index by assignment": "xs[(i := 0)]",
    "index by f-string": "xs[f'{a}']",
    "dunder item of a call": "min(xs)[b'x']",
    # calls
    "unpacking": "min(*xs)",
    "unpacking keywords": "min(**xs)",
    "a keyword that is none": "min(xs, key=abs)",
    "out": "hypot(a, b, out=xs)",
    "dtype": "sqrt(a, dtype=name)",
    "a called call": "min(xs)()",
    "a called item": "xs[0]()",
    "a called attribute": "a.system('true')",
    "a called condition": "(min if a else max)(xs)",
    # statements and several expressions
    "import statement": "import os",
    "semicolon": "a; import os",
    "line break": "a\nimport os",
    "assignment": "a = 1",
    "assert": "assert a",
    "del": "del a",
    "decorator": "@a",
    "comment that hides a bracket": "(a # )",
    "line continuation": "a \\\n.__class__",
    "type comment and walrus": "(a := 1) # type: int",
    # other letters for the same names: Python normalises identifiers (NFKC)
    "full-width underscores": "a.\uff3f\uff3fclass\uff3f\uff3f",
    "mathematical letters": "a.__\U0001d41c\U0001d425\U0001d41a\U0001d42c\U0001d42c__",
    "full-width name": "\uff3f\uff3fimport\uff3f\uff3f('os')",
    "mathematical eval": "\U0001d41e\U0001d42f\U0001d41a\U0001d425('1')",
    "ligature": "o\ufb03ce()",
    "small capital long s": "\u017fetattr(a, 'x', 1)",
    "presentation form of low line": "\ufe33x",
    "null": "a\x00b",
    "right-to-left override": "a \u202e+ __class__",
    "zero width space": "a\u200b.__class__",
    # sizes
    "text times a number": "'x' * 1000000000",
    "number times text": "1000000000 * 'x'",
    "text plus text": "'a' + 'b'",
    "huge number": "9" * 4000,
    "huge hexadecimal number": "0x" + "f" * 3900,
    "longer than any expression": "a + " * 2000 + "a",
    "deep brackets": "(" * 2000 + "a" + ")" * 2000,
    "deep lists": "[" * 100 + "]" * 100,
    "deep unary": "-" * 3000 + "a",
    "deep attributes": "a" + ".b" * 1500,
    "deep powers": "2" + "**9" * 1000,
    "deep conditions": "a if b else " * 300 + "a",
    "deep comprehensions": "[" * 45 + "x" + " for x in xs]" * 45,
    "wide list": "[" + "a," * 1500 + "]",
    "complex": "1j",
    "matrix product": "a @ b",
    "shift": "1 << 1000000000",
    "bit operations": "a & b | ~a",
    "identity": "a is name",
    "none": "None",
}  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("source", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_an_attempt_is_refused_when_it_is_loaded(source: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(parse_expression(source), SIGNALS)
    text = str(caught.value)
    positioned = re.search(r"column \d+", text) or "characters" in text or "deep" in text
    assert positioned or "null bytes" in text, text
    assert caught.value.accepted
    with pytest.raises(ForewarnError):  # a formula is no way around
        for atom in atoms_of(parse_formula(f"always({source} > 0)")):
            compile_expression(parse_expression(atom), SIGNALS)


HARMLESS = {
    "2 ** 2 ** 2 ** 2 ** 2 ** 2": float,
    "9 ** 9 ** 9": float,
    "(10 ** 300) * (10 ** 300)": float,
    "1e308 * 10 ** 19": float,
    "range(999999999999)[0]": object,
    "[x for x in range(10 ** 12)]": object,
    "len(range(10 ** 18))": object,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("source", HARMLESS)
def test_what_is_allowed_and_large_stays_small(source: str) -> None:
    try:
        evaluate = compile_expression(parse_expression(source), SIGNALS)
    except ExpressionError:
        return
    result = evaluate([1.0, 2.0, 3.0, "x"])
    assert isinstance(result, (int, float, tuple)) or len(result) <= 1 << 20
    assert not isinstance(result, int) or abs(result) < 1 << 70


def test_compiled_code_has_no_builtins_and_nothing_that_holds_modules() -> None:
    scope = compiler._scope()
    assert scope["__builtins__"] == {}
    assert not any(isinstance(value, ModuleType) for value in scope.values())
    dangerous = {eval, exec, compile, open, getattr, setattr, __import__, vars, globals, type}
    assert not any(value in dangerous for value in scope.values() if callable(value))
    assert not any(name.startswith("_") for name in FUNCTIONS)


def test_the_list_of_nodes_is_a_list_of_what_is_allowed() -> None:
    """A kind of node that a later Python brings is refused until somebody allows it."""
    from forewarn.expressions.syntax import _Checker

    allowed = {name[6:] for name in dir(_Checker) if name.startswith("check_")}
    assert allowed == {
        "Constant", "Name", "Attribute", "Subscript", "UnaryOp", "BinOp", "BoolOp", "Compare",
        "IfExp", "List", "Tuple", "ListComp", "GeneratorExp", "Call",
    }  # fmt: skip
    assert all(issubclass(getattr(ast, name), ast.expr) for name in allowed)


def test_a_formula_error_is_no_expression_error() -> None:
    with pytest.raises(FormulaError, match=r"position|column|line"):
        parse_formula("always(a.__class__ > 0)")
