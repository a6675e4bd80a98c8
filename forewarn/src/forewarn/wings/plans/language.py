"""Rules about objects: formulas in time over relations, with `forall` and `exists`.

``forall f in objects: f.type == "Fork" implies always(not (inside(f, "Microwave")))``

The temporal part is the language of `forewarn.logic`. Relations, quantifiers and the notation of
papers (``G(ON(Candle) -> NOT(CLOSE(Bed, Candle)))``, ``F[<=5](p)``) are read here: each is replaced
by a name of the same length, so that errors point into the text as it was written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from forewarn.errors import FormulaError
from forewarn.logic.parser import Token, failure, parse_formula, tokenize
from forewarn.logic.syntax import Atom, Formula, walk
from forewarn.wings.plans.world import folded

LONGEST = 200_000
MOST_QUANTIFIERS = 4
_WORDS = {"NOT": "not", "AND": "and", "OR": "or", "IMPLIES": "->"}
_SYMBOLS = {"~": "!"}
_LESS = re.compile(r"\[\s*<=?\s*([\w.]+)\s*\]")
_OUTSIDE_TEXT = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|[^'\"]+|['\"]")
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_FORMS = 'a relation such as inside(x, "Microwave"), a property such as x.isOpen, or a comparison'


class Name(NamedTuple):
    """An object by a variable, by its own name, or by its type."""

    text: str


class Property(NamedTuple):
    """What one object has: ``f.type``."""

    owner: Name
    key: str


class Relation(NamedTuple):
    """``inside(f, "Microwave")``: holds for some objects that the names stand for."""

    name: str
    arguments: tuple[Name, ...]


class Comparison(NamedTuple):
    """``f.type == "Fork"``, ``f.mass > 2``, ``f != g``."""

    left: Any
    operator: str
    right: Any


class Quantified(NamedTuple):
    """``forall x in objects: body``, or `exists`."""

    every: bool
    variable: str
    body: Rule


@dataclass(frozen=True)
class Rule:
    """A formula whose atoms stand in `atoms`, by the texts that they have in `formula`."""

    text: str
    formula: Formula
    atoms: Mapping[str, Relation | Comparison | Quantified]


def parse_rule(text: str, parameters: Mapping[str, float] | None = None) -> Rule:
    """Parse a rule; bounds are in steps, and may name `parameters`: ``F[<=T_MAX](...)``.

    Raises FormulaError with the position and what could stand there.
    """
    if len(text) > LONGEST:
        raise FormulaError(f"has {len(text)} characters", accepted=f"at most {LONGEST}")
    plain = _bounds(_spelled(text), parameters or {})
    return _Reader(plain).rule(0, len(plain), ())


def _spelled(text: str) -> str:
    """Return the text with words for operators in the spelling of the language."""

    def outside(found: re.Match[str]) -> str:
        part = found[0]
        if part[0] in "'\"":
            return part
        for symbol, ours in _SYMBOLS.items():
            part = part.replace(symbol, ours)
        return re.sub(r"\b(NOT|AND|OR|IMPLIES)\b", lambda word: _WORDS[word[0]], part)

    return _OUTSIDE_TEXT.sub(outside, text)


def _bounds(text: str, parameters: Mapping[str, float]) -> str:
    def bound(found: re.Match[str]) -> str:
        number = found[1]
        if number in parameters:
            number = f"{parameters[number]:g}"
        elif not number.replace(".", "", 1).isdecimal():
            raise FormulaError(
                f"the bound {number} is no number",
                accepted=f"a number, or parameters: {{{number}: 5}}",
            )
        return f"[0:{number}]"

    return _LESS.sub(bound, text)


class _Reader:
    """Reads one text; positions are offsets into it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.taken = {token.text for token in self.tokens}
        self.count = 0

    def rule(self, start: int, end: int, variables: tuple[str, ...]) -> Rule:
        """Read what stands from `start` to `end`, in which `variables` are bound."""
        atoms: dict[str, Relation | Comparison | Quantified] = {}
        parts: list[str] = []
        at, index = start, 0
        tokens = [token for token in self.tokens if start <= token.start and token.end <= end]
        tokens = [token for token in tokens if token.kind != "end"]
        while index < len(tokens):
            following, found = self._special(tokens, index, end, variables)
            if found is not None:
                first, last = tokens[index].start, tokens[following - 1].end
                name = self._placeholder(last - first)
                atoms[name] = found
                parts += [self.text[at:first], name]
                at = last
            index = following
        parts.append(self.text[at:end])
        # Blanks keep the columns of what stands before.
        whole = " " * start + "".join(parts)
        try:
            formula = parse_formula(whole, unit="steps")
        except FormulaError as error:
            raise self._original(error, whole) from None
        for part in walk(formula):
            if isinstance(part, Atom) and part.text not in atoms:
                atoms[part.text] = self._comparison(part.text, variables)
        return Rule(self.text[start:end].strip(), formula, atoms)

    def _placeholder(self, length: int) -> str:
        while True:
            self.count += 1
            name = f"q{self.count:x}".ljust(length, "_")
            if name not in self.taken:
                return name

    def _original(self, error: FormulaError, whole: str) -> FormulaError:
        """Return the error with the text as it was written; placeholders are as long."""
        head, _, rest = error.problem.partition("\n  ")
        shown, _, marker = rest.partition("\n")
        at = whole.find(shown)
        if shown and at >= 0:
            shown = self.text[at : at + len(shown)]
            return FormulaError(f"{head}\n  {shown}\n{marker}", accepted=error.accepted)
        return error

    def _special(
        self, tokens: list[Token], index: int, end: int, variables: tuple[str, ...]
    ) -> tuple[int, Relation | Quantified | None]:
        token = tokens[index]
        if token.kind != "name":
            return index + 1, None
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.text in ("forall", "exists") and after is not None and after.kind == "name":
            return self._quantified(tokens, index, end, variables)
        previous = tokens[index - 1].text if index else ""
        if after is not None and after.text == "(" and previous != ".":
            return self._relation(tokens, index)
        return index + 1, None

    def _quantified(
        self, tokens: list[Token], index: int, end: int, variables: tuple[str, ...]
    ) -> tuple[int, Quantified]:
        head = [token.text for token in tokens[index : index + 5]]
        if len(head) < 5 or head[2:] != ["in", "objects", ":"]:
            raise failure(
                self.text, tokens[index].start, "a quantifier is not understood",
                f"{head[0]} x in objects: ...",
            )  # fmt: skip
        if len(variables) >= MOST_QUANTIFIERS:
            raise failure(
                self.text, tokens[index].start, "too many quantifiers, one within another",
                f"at most {MOST_QUANTIFIERS}",
            )  # fmt: skip
        if head[1] in variables:
            raise failure(
                self.text, tokens[index + 1].start, f"{head[1]} is bound already", "another name"
            )
        # The body reaches to the bracket that closes around the quantifier, or to the end.
        last, depth = index + 5, 0
        while last < len(tokens):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(tokens[last].text, 0)
            if depth < 0:
                break
            last += 1
        stop = tokens[last].start if last < len(tokens) else end
        body = self.rule(tokens[index + 4].end, stop, (*variables, head[1]))
        return last, Quantified(head[0] == "forall", head[1], body)

    def _relation(self, tokens: list[Token], index: int) -> tuple[int, Relation]:
        name, arguments, at = tokens[index], [], index + 2
        accepted = 'names separated by commas: inside(x, "Microwave")'
        expect_name = True
        while at < len(tokens) and tokens[at].text != ")":
            token = tokens[at]
            if expect_name == (token.kind not in ("name", "string", "number")):
                raise failure(
                    self.text, token.start, f"{name.text}(...) is not understood", accepted
                )
            if not expect_name and token.text != ",":
                raise failure(
                    self.text, token.start, f"{name.text}(...) is not understood", accepted
                )
            if expect_name:
                arguments.append(Name(token.text.strip("'\"")))
            expect_name = not expect_name
            at += 1
        if expect_name and arguments and at < len(tokens):
            raise failure(self.text, tokens[at].start, "a name is missing", accepted)
        if at >= len(tokens):
            raise failure(self.text, name.start, f"{name.text}( is never closed", ")")
        return at + 1, Relation(folded(name.text), tuple(arguments))

    def _comparison(self, text: str, variables: tuple[str, ...]) -> Relation | Comparison:
        tree = ast.parse(text, mode="eval").body
        if isinstance(tree, ast.Name):
            return Relation(folded(tree.id), ())
        if isinstance(tree, ast.Attribute):
            return Comparison(self._operand(tree, text), "==", True)
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
            operator = _COMPARISONS.get(type(tree.ops[0]))
            if operator is not None:
                left = self._operand(tree.left, text)
                return Comparison(left, operator, self._operand(tree.comparators[0], text))
        raise FormulaError(f"{text} is no statement about objects", accepted=_FORMS)

    def _operand(self, node: ast.expr, text: str) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str)):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._operand(node.operand, text)
            if isinstance(inner, (int, float)):
                return -inner
        if isinstance(node, ast.Name):
            return {"true": True, "false": False}.get(node.id, Name(node.id))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return Property(Name(node.value.id), folded(node.attr))
        raise FormulaError(f"{text} is no statement about objects", accepted=_FORMS)


def objects_named(rule: Rule, bound: frozenset[str] = frozenset()) -> set[str]:
    """Return the objects and types that a rule names, as written: what is no variable."""
    found: set[str] = set()
    for atom in rule.atoms.values():
        if isinstance(atom, Quantified):
            found |= objects_named(atom.body, bound | {atom.variable})
        elif isinstance(atom, Relation):
            names = atom.arguments[1:] if atom.name == "does" else atom.arguments
            found.update(name.text for name in names)
        elif isinstance(atom.left, Property) and atom.left.key in ("type", "id"):
            found.update(side for side in (atom.left, atom.right) if isinstance(side, str))
    return found - bound - {"_"}


def names_of(rule: Rule) -> dict[str, str]:
    """Return what a rule asks of objects, folded, and how it is written there."""
    found: dict[str, str] = {}
    for atom in rule.atoms.values():
        if isinstance(atom, Quantified):
            found.update(names_of(atom.body))
        elif isinstance(atom, Relation):
            found.setdefault(atom.name, f"{atom.name}({', '.join(a.text for a in atom.arguments)})")
        else:
            for side in (atom.left, atom.right):
                if isinstance(side, Property):
                    found.setdefault(side.key, f"{side.owner.text}.{side.key}")
    return found
