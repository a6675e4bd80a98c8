"""The language of expressions: what may be written, and where it goes wrong.

Expressions are a part of Python's expression syntax. They are parsed with :mod:`ast`, checked node
by node against a list of what is allowed, and only then compiled by
:mod:`forewarn.expressions.compiler`; nothing that is not on the list can run.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
import warnings
from dataclasses import dataclass

from forewarn.errors import ExpressionError, suggestion
from forewarn.expressions.comparisons import BY_NODE
from forewarn.expressions.functions import CONSTANTS, FUNCTIONS, arity_problem

MAX_LENGTH = 4000
MAX_DEPTH = 100
MAX_BRACKETS = 40
MAX_NODES = 1000
MAX_INTEGER = 2**64
MAX_TEXT = 1000

ACCEPTED = (
    "numbers, text, signals or fields, + - * / // % **, comparisons, in, and or not, a.b, a[i], "
    "a[i:j], x if c else y, [... for x in list if ...], and the functions "
    + " ".join(sorted(FUNCTIONS))
)

_BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_UNARY = (ast.UAdd, ast.USub, ast.Not)
_COMPARISONS = (*BY_NODE, ast.In, ast.NotIn)

_REFUSED = {
    ast.Lambda: "a lambda",
    ast.NamedExpr: "an assignment (:=)",
    ast.JoinedStr: "an f-string",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dictionary comprehension",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Starred: "an unpacking (*)",
    ast.MatMult: "the operator @",
    ast.BitAnd: "the operator & (write 'and')",
    ast.BitOr: "the operator | (write 'or')",
    ast.BitXor: "the operator ^ (write '**' for a power)",
    ast.Invert: "the operator ~ (write 'not')",
    ast.LShift: "the operator <<",
    ast.RShift: "the operator >>",
    ast.Is: "'is' (write '==')",
    ast.IsNot: "'is not' (write '!=')",
}


@dataclass(frozen=True)
class Expression:
    """A checked expression.

    `names`: the names it reads: signals, or fields of a message. Functions, constants and the
    variables of comprehensions are not among them.
    """

    source: str  # the text it was parsed from, on one line
    tree: ast.expr  # its syntax tree, made of allowed nodes only
    names: frozenset[str]

    @property
    def by_platform(self) -> bool:
        """Tell whether the last bits of the value depend on the type of processor.

        Sums are among what does not: numpy adds in an order of its own on all of them.
        """
        return any(
            FUNCTIONS[called(node)].by_platform
            if isinstance(node, ast.Call)
            else isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Pow)
            and not (isinstance(node.right, ast.Constant) and node.right.value == 2)
            for node in ast.walk(self.tree)
        )

    @property
    def remembers(self) -> bool:
        """Tell whether the value depends on earlier moments, too."""
        return any(
            isinstance(node, ast.Call) and FUNCTIONS[called(node)].remembers
            for node in ast.walk(self.tree)
        )

    def __hash__(self) -> int:
        """Hash the text, which decides the rest."""
        return hash(self.source)

    def __eq__(self, other: object) -> bool:
        """Compare the texts."""
        return isinstance(other, Expression) and self.source == other.source


def parse_expression(source: str) -> Expression:
    """Parse and check an expression.

    `source`: for example ``hypot(twist.twist.linear.x, twist.twist.linear.y)``. Line breaks count
    as spaces.
    Raises ExpressionError if it cannot be parsed, uses anything outside the language, or is longer
    or deeper nested than any real expression. The message shows the column and what is accepted.
    """
    if not isinstance(source, str):
        raise ExpressionError(
            f"{source!r} is not an expression", accepted="a text in quotes, such as 'speed > 0.5'"
        )
    if len(source) > MAX_LENGTH:
        raise ExpressionError(
            f"the expression has {len(source)} characters: {source[:60]!r}...",
            accepted=f"at most {MAX_LENGTH} characters",
        )
    text = re.sub(r"\s", " ", source).strip()
    if not text:
        raise ExpressionError("the expression is empty", accepted=ACCEPTED)
    _refuse_deep_brackets(text)
    checker = _Checker(text)
    try:
        tree = _parse(text)
        checker.check(tree, frozenset(), 1)
    except (RecursionError, MemoryError):  # also of a caller who has used up most of the stack
        raise ExpressionError(
            f"the expression {text[:60]!r}... is nested too deeply", accepted=ACCEPTED
        ) from None
    return Expression(text, _Spelled().visit(tree), frozenset(checker.names))


class _Spelled(ast.NodeTransformer):
    """Spells out ``nearest_beam`` of a scan, so that every way of evaluation has it."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if called(node) != "nearest_beam" or len(node.args) == 1:
            return node
        beams = ast.Call(ast.Name("beam_ranges", ast.Load()), node.args, [])
        return ast.copy_location(ast.Call(node.func, [ast.copy_location(beams, node)], []), node)


def normal_form(expression: Expression) -> str:
    """Return a text that does not depend on spaces, quotes or needless brackets."""
    return ast.unparse(expression.tree)


def position(source: str, node: ast.AST) -> str:
    """Describe where `node` stands in `source`: ``column 9``."""
    offset = getattr(node, "col_offset", 0)
    return f"column {len(source.encode()[:offset].decode(errors='ignore')) + 1}"


def bound_names(target: ast.expr) -> list[str]:
    """Return the variables that a comprehension's target binds."""
    if isinstance(target, ast.Tuple):
        return [name for part in target.elts for name in bound_names(part)]
    return [target.id] if isinstance(target, ast.Name) else []


def shown(source: str) -> str:
    """Quote an expression, or the beginning of a long one."""
    return repr(source) if len(source) <= 200 else f"{source[:200]!r}..."


def called(node: ast.Call) -> str:
    """Return the name of the function that a checked call calls."""
    assert isinstance(node.func, ast.Name)
    return node.func.id


def _refuse_deep_brackets(text: str) -> None:
    """Refuse nesting that could exhaust the stack of Python's own parser."""
    depth = 0
    for column, character in enumerate(text, 1):
        depth += (character in "([{") - (character in ")]}")
        if depth > MAX_BRACKETS:
            raise ExpressionError(
                f"column {column}: brackets are nested deeper than {MAX_BRACKETS} in {shown(text)}",
                accepted=f"at most {MAX_BRACKETS} levels",
            )


def _parse(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        column = min(error.offset or 1, len(text) + 1)
        words = [word for word in re.findall(r"\w+", text) if keyword.iskeyword(word)]
        odd = next((word for word in words if word in _STATEMENTS), None)
        hint = f" ({odd!r} is a reserved word)" if odd else ""
        raise ExpressionError(
            f"column {column}: {error.msg}{hint} in {shown(text)}", accepted=ACCEPTED
        ) from None
    except (ValueError, OverflowError) as error:
        raise ExpressionError(
            f"the expression {text[:60]!r}... cannot be parsed: {error}", accepted=ACCEPTED
        ) from None


_STATEMENTS = frozenset(keyword.kwlist) - {
    *("True", "False", "None", "and", "or", "not", "in", "is", "if", "else", "for", "lambda")
}


class _Checker:
    """Walks a tree once and refuses whatever is not allowed."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.names: set[str] = set()
        self.nodes = 0
        self.iterated: set[int] = set()

    def fail(self, node: ast.AST, problem: str, accepted: str = ACCEPTED) -> ExpressionError:
        where = position(self.source, node)
        return ExpressionError(f"{where}: {problem} in {shown(self.source)}", accepted=accepted)

    def check(self, node: ast.AST, bound: frozenset[str], depth: int) -> None:
        self.nodes += 1
        if depth > MAX_DEPTH:
            raise self.fail(node, "nested too deep", f"at most {MAX_DEPTH} levels")
        if self.nodes > MAX_NODES:
            raise self.fail(node, "too long", f"at most {MAX_NODES} parts")
        method = getattr(self, f"check_{type(node).__name__}", None)
        if method is None:
            what = _REFUSED.get(type(node), type(node).__name__)
            raise self.fail(node, f"{what} is not allowed")
        method(node, bound, depth + 1)

    def check_Constant(self, node: ast.Constant, bound: frozenset[str], depth: int) -> None:
        value = node.value
        if isinstance(value, str):
            if len(value) > MAX_TEXT:
                raise self.fail(node, "the text is too long", f"at most {MAX_TEXT} characters")
        elif isinstance(value, int):
            if abs(value) >= MAX_INTEGER:
                raise self.fail(
                    node, "the whole number is too large", "below 2**64, or 1e30 instead"
                )
        elif isinstance(value, float):
            if math.isinf(value):
                raise self.fail(node, "the number is too large", "below 1.8e308, or inf")
        else:
            raise self.fail(
                node, f"{value!r} is not allowed", "numbers, text, true, false, inf, nan"
            )

    def check_Name(self, node: ast.Name, bound: frozenset[str], depth: int) -> None:
        if node.id.startswith("_"):
            raise self.fail(node, f"the name {node.id!r} begins with an underscore")
        if node.id not in bound and node.id not in CONSTANTS:
            self.names.add(node.id)

    def check_Attribute(self, node: ast.Attribute, bound: frozenset[str], depth: int) -> None:
        if node.attr.startswith("_"):
            raise self.fail(node, f"the field {node.attr!r} begins with an underscore")
        self.check(node.value, bound, depth)

    def check_Subscript(self, node: ast.Subscript, bound: frozenset[str], depth: int) -> None:
        self.check(node.value, bound, depth)
        if isinstance(node.slice, ast.Slice):
            for part in (node.slice.lower, node.slice.upper, node.slice.step):
                if part is not None:
                    self.check(part, bound, depth)
        elif isinstance(node.slice, ast.Tuple):
            raise self.fail(node.slice, "an index of several parts", "a[i][j]")
        else:
            self.check(node.slice, bound, depth)

    def check_UnaryOp(self, node: ast.UnaryOp, bound: frozenset[str], depth: int) -> None:
        if not isinstance(node.op, _UNARY):
            raise self.fail(node, f"{_REFUSED[type(node.op)]} is not allowed")
        self.check(node.operand, bound, depth)

    def check_BinOp(self, node: ast.BinOp, bound: frozenset[str], depth: int) -> None:
        if not isinstance(node.op, _BINARY):
            raise self.fail(node, f"{_REFUSED[type(node.op)]} is not allowed")
        for side in (node.left, node.right):
            if isinstance(side, ast.Constant) and isinstance(side.value, str):
                raise self.fail(side, "arithmetic on text", "numbers and arrays of numbers")
            self.check(side, bound, depth)

    def check_BoolOp(self, node: ast.BoolOp, bound: frozenset[str], depth: int) -> None:
        for value in node.values:
            self.check(value, bound, depth)

    def check_Compare(self, node: ast.Compare, bound: frozenset[str], depth: int) -> None:
        for operator in node.ops:
            if not isinstance(operator, _COMPARISONS):
                raise self.fail(node, f"{_REFUSED[type(operator)]} is not allowed")
        for value in (node.left, *node.comparators):
            self.check(value, bound, depth)

    def check_IfExp(self, node: ast.IfExp, bound: frozenset[str], depth: int) -> None:
        for value in (node.test, node.body, node.orelse):
            self.check(value, bound, depth)

    def check_List(self, node: ast.List | ast.Tuple, bound: frozenset[str], depth: int) -> None:
        for value in node.elts:
            self.check(value, bound, depth)

    check_Tuple = check_List

    def check_ListComp(
        self, node: ast.ListComp | ast.GeneratorExp, bound: frozenset[str], depth: int
    ) -> None:
        for generator in node.generators:
            if generator.is_async:
                raise self.fail(node, "'async for' is not allowed")
            self.iterated.add(id(generator.iter))
            self.check(generator.iter, bound, depth)
            self._check_target(generator.target, generator.iter)
            bound = bound | set(bound_names(generator.target))
            for condition in generator.ifs:
                self.check(condition, bound, depth)
        self.check(node.elt, bound, depth)

    check_GeneratorExp = check_ListComp

    def _check_target(self, target: ast.expr, items: ast.expr) -> None:
        names = bound_names(target)
        parts = len(target.elts) if isinstance(target, ast.Tuple) else 1
        if len(names) != parts or len(set(names)) != parts:
            raise self.fail(target, "not a variable", "for x in ..., or for i, x in enumerate(...)")
        given = 1
        if isinstance(items, ast.Call) and FUNCTIONS[called(items)].iterated:
            given = len(items.args) if called(items) == "zip" else 2
        if parts != given or isinstance(target, ast.Tuple) != (given > 1):
            raise self.fail(
                target,
                f"{parts} variable{'s' * (parts > 1)} for {given} value{'s' * (given > 1)}",
                "as many variables as zip() or enumerate() give, else one",
            )
        for name in names:
            if name.startswith("_") or name in FUNCTIONS or name in CONSTANTS:
                raise self.fail(
                    target,
                    f"{name!r} cannot name a variable",
                    "a name without leading underscore that is no function or constant",
                )

    def check_Call(self, node: ast.Call, bound: frozenset[str], depth: int) -> None:
        if not isinstance(node.func, ast.Name):
            raise self.fail(node, "only the listed functions can be called")
        name = node.func.id
        if name not in FUNCTIONS:
            hint = suggestion(name, list(FUNCTIONS))
            raise self.fail(node.func, f"there is no function {name!r}{hint}")
        if FUNCTIONS[name].iterated and id(node) not in self.iterated:
            raise self.fail(
                node, f"{name}() outside of 'for ... in'", f"[... for a, b in {name}(...)]"
            )
        keywords = [given.arg or "**" for given in node.keywords]
        problem = arity_problem(name, len(node.args), keywords)
        refusal = FUNCTIONS[name].refusal
        if problem is None and refusal is not None:
            problem = refusal(node.args)
        if problem:
            raise self.fail(node, *problem)
        for value in (*node.args, *(given.value for given in node.keywords)):
            self.check(value, bound, depth)
