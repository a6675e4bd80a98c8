"""``forewarn plan ask``: have a language model plan, with and without rules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.cli.options import argument
from forewarn.cli.output import Output
from forewarn.errors import located
from forewarn.wings.plans.commands.asking import ASKED, AskingOptions, ask_for, check_asking
from forewarn.wings.plans.commands.plan_check import RuleOptions, read_rules
from forewarn.wings.plans.prompts import KINDS, ask, plan_in
from forewarn.wings.plans.readers import read_records

DESCRIPTION = """\
Ask a language model for a plan for each task, with the rules as formulas, in words, and without,
as SENTINEL does; or write the prompts alone."""

EPILOG = f"""\
{ASKED}

exit codes: 0 all were answered, 1 some were not, 2 wrong usage or input, or the endpoint refuses.

example: forewarn plan ask tasks.jsonl --rules kitchen.yaml --url http://localhost:8000/v1 \
--model M -o plans.jsonl"""


@dataclass(frozen=True, kw_only=True)
class Options(RuleOptions, AskingOptions):
    """The arguments of ``plan ask``."""

    tasks: list[Path] = argument("the tasks, JSON lines", "TASKS")


def run(options: Options, output: Output) -> int:
    """Ask."""
    check_asking(options)
    rules = read_rules(options.rules, output, keep_going=options.allow_unreadable)
    chats: list[dict[str, Any]] = []
    for path in options.tasks:
        for number, record in enumerate(read_records(path)):
            with located(file=f"{path}: task {number + 1}"):
                chats += ask(record, rules)
    return ask_for(options, chats, f"prompts ({', '.join(KINDS)})", output, plan_in)
