"""``forewarn plan check``: finite plans against rules before anything moves."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forewarn.cli.common import top_option
from forewarn.cli.options import argument, option
from forewarn.cli.output import Output, json_value
from forewarn.errors import located
from forewarn.files.outputs import check_output, write_output
from forewarn.wings.plans.actions import load_actions
from forewarn.wings.plans.judge import Judgement, judge
from forewarn.wings.plans.language import objects_named
from forewarn.wings.plans.readers import read_plans
from forewarn.wings.plans.rules import Rules, load_rules
from forewarn.wings.plans.summary import GROUPS, SUCCESS, Fields, rows_by_group, table_of
from forewarn.wings.plans.world import type_in

DESCRIPTION = """\
Judge finite plans by rules about objects before anything moves, under LTL on finite traces: what is
still pending when the plan is over is violated. It says which rule breaks, at which step, by which
objects, and how many plans succeed, are safe, and both."""

EPILOG = """\
exit codes: 0 all plans are safe; 1 a plan breaks a rule, or what it would take to judge it is not
known; 2 wrong usage or input.

examples: forewarn plan check plans.jsonl --rules kitchen.yaml
          forewarn plan check tree.xml --rules kitchen.yaml --actions household
          forewarn plan check plans.jsonl --rules kitchen.yaml --by prompt --success done --top 0 \\
              --output judged.jsonl --allow-unreadable"""


@dataclass(frozen=True, kw_only=True)
class RuleOptions:
    """The rules, and what to do with those that cannot be read."""

    rules: Path = option(
        "the rules: YAML, JSON lines, or SENTINEL's JSON", "FILE", "-r", required=True
    )
    allow_unreadable: bool = option("go on without rules that cannot be read, and say which")


@dataclass(frozen=True, kw_only=True)
class Options(RuleOptions):
    """The arguments of ``plan check``."""

    plans: list[Path] = argument(
        "JSON with plans anywhere in it, text with a step on each line (PDDL, VirtualHome), "
        "the XML of a behaviour tree, or a folder of these",
        "PLANS",
    )
    actions: str | None = option(
        "what actions do, in YAML, or `household`; without it, what the rules' file says",
        "FILE",
        "-a",
    )
    by: list[str] | None = option(
        "a field of the plans to make tables by; may be repeated (default: prompt, model)", "FIELD"
    )
    success: str | None = option(
        "the field that says whether a plan reached its goal (default: success, completed)", "FIELD"
    )
    top: int = top_option("plans that are not safe")
    output: Path | None = option("a file for all judgements in JSON lines", "FILE", "-o")


def read_rules(file: Path, output: Output, *, keep_going: bool) -> Rules:
    """Load the rules, and say which were left out."""
    rules = load_rules(file, keep_going=keep_going)
    for text in rules.left_out:
        output.warn(f"left out: {file}: {' '.join(text.split())}")
    return rules


def run(options: Options, output: Output) -> int:
    """Judge the plans."""
    check_output(options.output)
    rules = read_rules(options.rules, output, keep_going=options.allow_unreadable)
    if options.actions is not None:
        rules = replace(rules, actions=load_actions(options.actions))
    return _check(options, rules, output)


def _check(options: Options, rules: Rules, output: Output) -> int:
    names = tuple(options.by or GROUPS)
    success = (options.success,) if options.success else SUCCESS
    judged: list[tuple[Fields, str]] = []
    broken: list[Judgement] = []
    by_rule: dict[str, dict[str, int]] = {rule.name: defaultdict(int) for rule in rules.rules}
    lines: list[str] = []
    found: list[Any] = []
    unsafe = empty = 0
    absent = {name.casefold(): name for rule in rules.rules for name in objects_named(rule.rule)}
    for judgement in _judged(options.plans, rules, output):
        judged.append((judgement.plan.fields, judgement.verdict))
        empty += not judgement.plan.steps
        if absent:
            for name, kind in judgement.plan.objects.items():
                for key in (name, kind, type_in(name)):
                    absent.pop(key.casefold(), None)
        for finding in judgement.findings:
            by_rule[finding.rule][finding.outcome] += 1
        if judgement.verdict != "safe":
            unsafe += 1
            if not options.top or len(broken) < options.top:
                broken.append(judgement)
        if options.output is not None:
            lines.append(json.dumps(json_value(_record(judgement)), ensure_ascii=False))
        if output.as_json and (not options.top or len(found) < MOST_IN_JSON):
            found.append(_record(judgement))
    if options.output is not None:
        write_output(options.output, "\n".join(lines) + "\n")
    if absent:
        output.warn(f"no plan has these, which rules name: {', '.join(sorted(absent.values()))}")
    if empty:
        output.warn(f"{empty} plans have no steps: they do nothing, and so break little")
    rows, whole = rows_by_group(judged, names, success)
    _print(broken, unsafe, output)
    _print_rules(by_rule, output)
    output.table(*table_of(rows, whole, names))
    output.emit(
        {"plans": len(judged), "unsafe": unsafe, "groups": names, "rows": rows, "rules": by_rule,
         "left_out": rules.left_out, "judgements": found}
    )  # fmt: skip
    return 1 if unsafe else 0


MOST_IN_JSON = 10_000


def _judged(paths: list[Path], rules: Rules, output: Output) -> Iterator[Judgement]:
    with output.progress("judging plans") as bar:
        for at, path in enumerate(paths):
            for plan in read_plans(path):
                with located(file=path):
                    yield judge(plan, rules)
            bar(at + 1, len(paths))


def _record(judgement: Judgement) -> dict[str, Any]:
    first = judgement.first
    return {
        "id": judgement.plan.name,
        **{key: value for key, value in judgement.plan.fields.items() if _short(value)},
        "verdict": judgement.verdict,
        "first": None if first is None else first.rule,
        "findings": [finding for finding in judgement.findings if finding.outcome != "satisfied"],
    }


def _short(value: object) -> bool:
    return not isinstance(value, str) or len(value) <= 200


def _print(broken: list[Judgement], unsafe: int, output: Output) -> None:
    rows = []
    for judgement in broken:
        first = judgement.first
        assert first is not None
        where = "" if first.step is None else str(first.step)
        objects = ", ".join(f"{variable} = {name}" for variable, name in first.objects)
        rows.append(
            [_cut(judgement.plan.name), judgement.verdict, first.rule, where,
             _cut(first.action or first.reason), objects]
        )  # fmt: skip
    output.table(("plan", "verdict", "rule", ">step", "action", "objects"), rows)
    if unsafe > len(rows):
        output.say(f"... and {unsafe - len(rows)} more: -n 0 shows all")
    if rows:
        output.say()


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _print_rules(by_rule: dict[str, dict[str, int]], output: Output) -> None:
    outcomes = ("satisfied", "violated", "pending", "unknown")
    rows = [
        [name, *(str(counts[outcome]) for outcome in outcomes)] for name, counts in by_rule.items()
    ]
    output.table(("rule", *(f">{outcome}" for outcome in outcomes)), rows)
    output.say()
