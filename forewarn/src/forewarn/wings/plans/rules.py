"""Files of rules about plans: YAML of ours, JSON lines, or SENTINEL's JSON by object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.config.yaml_text import load_document
from forewarn.errors import FormulaError
from forewarn.wings.plans.actions import read_actions
from forewarn.wings.plans.language import Rule, parse_rule
from forewarn.wings.plans.texts import json_lines, parsed, read_text
from forewarn.wings.plans.world import Descriptions, PlanError, folded

MOST_BYTES = 4_000_000
MOST_RULES = 2_000
LONGEST_TEXT = 2_000
ACCEPTED = "rules: {name: formula}, or {name: {formula: ..., text: ...}}"
_KEYS = {"version", "rules", "actions", "facts", "transitive", "symmetric", "parameters"}


class NamedRule(NamedTuple):
    """A rule, its name, and what it means in words, if the file says so."""

    name: str
    rule: Rule
    text: str = ""


@dataclass(frozen=True)
class Rules:
    """Rules, and what is taken for granted when they are judged.

    Relations in `facts` are known, though nothing may ever say that they hold; `transitive` ones
    hold along chains, `symmetric` ones either way. `left_out` are rules that cannot be read, and
    why.
    """

    rules: tuple[NamedRule, ...]
    actions: Descriptions | None = None
    facts: frozenset[str] = frozenset()
    transitive: frozenset[str] = frozenset()
    symmetric: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()


@dataclass
class _Reading:
    """Rules as they are read; `keep_going` leaves out those that cannot be."""

    path: Path
    keep_going: bool
    parameters: Mapping[str, float] = field(default_factory=dict)
    rules: list[NamedRule] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, name: str, formula: Any, text: Any = "", key: str = "") -> None:
        key = key or name
        try:
            if not isinstance(formula, str):
                raise PlanError(f"{formula!r:.60} is no formula", accepted=ACCEPTED)
            if not isinstance(text, str) or len(text) > LONGEST_TEXT:
                raise PlanError(
                    "text: is empty or too long", accepted=f"up to {LONGEST_TEXT} characters"
                )
            if any(rule.name == name for rule in self.rules):
                raise PlanError("stands twice", accepted="another name")
            parsed = parse_rule(formula, self.parameters)
        except (FormulaError, PlanError) as error:
            if not self.keep_going:
                raise error.located(file=self.path, key=key) from None
            self.left_out.append(f"{key}: {error.problem}")
            return
        if len(self.rules) >= MOST_RULES:
            raise PlanError("has too many rules", file=self.path, accepted=f"at most {MOST_RULES}")
        self.rules.append(NamedRule(name, parsed, text))

    def done(self, **others: Any) -> Rules:
        if not self.rules:
            raise PlanError("holds no rule", file=self.path, accepted=ACCEPTED)
        return Rules(tuple(self.rules), left_out=tuple(self.left_out), **others)


def load_rules(path: Path, *, keep_going: bool = False) -> Rules:
    """Read a file of rules; raises InputError with file and key.

    With `keep_going`, rules that cannot be read are left out and stand in `Rules.left_out`.
    """
    reading = _Reading(path, keep_going)
    if path.suffix in (".yaml", ".yml"):
        return _ours(load_document(path).data, reading)
    text = read_text(path, MOST_BYTES, "a file of rules")
    try:
        document = parsed(text, ACCEPTED)
    except PlanError:  # not one document: one on each line
        accepted = 'lines like {"name": "...", "formula": "..."}; YAML in a .yaml file'
        document = [record for _, record in json_lines(text, path, accepted)]
    if isinstance(document, dict) and "rules" in document:
        return _ours(document, reading)
    if isinstance(document, dict) and "formula" not in document:
        return _by_object(document, reading)
    return _records(document if isinstance(document, list) else [document], reading)


def _records(records: list[Any], reading: _Reading) -> Rules:
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            record = {"formula": record}
        name = str(record.get("name", record.get("id", f"rule_{number + 1}")))
        formula = record.get("formula", record.get("ltl"))
        text = record.get("text", record.get("utt", ""))
        reading.add(name, formula, text, f"[{number}]")
    return reading.done()


def _by_object(document: Mapping[str, Any], reading: _Reading) -> Rules:
    """Read SENTINEL's rules: formulas by the type of object that each is about.

    Within a formula that type means one and the same object, and ``Object`` any other.
    """
    reading.parameters = {"T_MAX": 5}
    for kind, formulas in document.items():
        if not isinstance(formulas, list):
            raise PlanError(
                f"{formulas!r:.60} is no list of formulas", file=reading.path, key=kind,
                accepted='{"Candle": ["G(ON(Candle) -> ...)", ...]}',
            )  # fmt: skip
        for number, formula in enumerate(formulas):
            name = f"{kind}[{number}]"
            if isinstance(formula, str):
                formula = about(formula, kind)
            reading.add(name, formula)
    return reading.done(symmetric=frozenset({"near", "close"}))


def about(formula: str, kind: str) -> str:
    """Return a formula of SENTINEL's about each object of a type, and about any ``Object``."""
    for name, guard in (("Object", ""), (kind, f'one_{kind}.type == "{kind}" implies ')):
        if re.search(rf"\b{re.escape(name)}\b", formula):
            formula = re.sub(rf"\b{re.escape(name)}\b", f"one_{name}", formula)
            formula = f"forall one_{name} in objects: {guard}({formula})"
    return formula


def _ours(data: Any, reading: _Reading) -> Rules:
    if not isinstance(data, dict) or not isinstance(data.get("rules"), (dict, list)):
        raise PlanError("has no rules", file=reading.path, accepted=ACCEPTED)
    for key in data:
        if key not in _KEYS:
            raise PlanError(
                f"{key!r} is not known", file=reading.path, accepted=", ".join(sorted(_KEYS))
            )
    if data.get("version", 1) != 1:
        raise PlanError(f"{data['version']!r}", file=reading.path, key="version", accepted="1")
    parameters = data.get("parameters", {})
    if not isinstance(parameters, dict) or not all(
        isinstance(value, (int, float)) for value in parameters.values()
    ):
        raise PlanError(
            "are no numbers", file=reading.path, key="parameters", accepted="{T_MAX: 5}"
        )
    reading.parameters = parameters
    for name, entry in _entries(data["rules"]):
        if isinstance(entry, dict):
            extra = set(entry) - {"formula", "text", "name"}
            if extra:
                raise PlanError(
                    f"{sorted(extra)[0]!r} is not known", file=reading.path, key=f"rules.{name}",
                    accepted="formula, text",
                )  # fmt: skip
            reading.add(name, entry.get("formula"), entry.get("text", ""), f"rules.{name}")
        else:
            reading.add(name, entry, key=f"rules.{name}")
    return reading.done(
        actions=read_actions(data["actions"], reading.path) if "actions" in data else None,
        **{
            name: _names(data.get(name, []), reading.path, name)
            for name in ("facts", "transitive", "symmetric")
        },
    )


def _entries(rules: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(rules, dict):
        yield from ((str(name), entry) for name, entry in rules.items())
        return
    for number, entry in enumerate(rules):
        named = isinstance(entry, dict) and isinstance(entry.get("name"), str)
        yield entry["name"] if named else f"rule_{number + 1}", entry


def _names(value: Any, path: Path, key: str) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise PlanError(
            f"{value!r:.60}",
            file=path,
            key=key,
            accepted='a list of names, on and off in quotes: [inside, "on"]',
        )
    return frozenset(folded(name) for name in value)
