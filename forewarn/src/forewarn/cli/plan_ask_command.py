"""``forewarn plan ask``: prompts for planners, with and without rules."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.common import add_output
from forewarn.cli.output import Output
from forewarn.cli.plan_check_command import add_rules, read_rules
from forewarn.errors import InputError
from forewarn.files.outputs import check_output, write_output
from forewarn.plans.prompts import KINDS, ask
from forewarn.plans.readers import read_records

DESCRIPTION = """\
Write for each task the three prompts of SENTINEL: with the rules as formulas, in words, and
without."""

EPILOG = """\
exit codes: 0 prompts were written, 2 wrong usage or input.

example: forewarn plan ask tasks.jsonl --rules kitchen.yaml -o prompts.jsonl"""


@dataclass(frozen=True)
class Options:
    """The arguments of ``plan ask``."""

    tasks: list[Path]
    rules: Path
    allow_unreadable: bool
    output: Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "tasks", nargs="+", type=Path, metavar="TASKS", help="the tasks, JSON lines"
    )
    add_rules(parser)
    add_output(parser, "JSON lines")


def run(options: Options, output: Output) -> int:
    """Write the prompts."""
    check_output(options.output)
    rules = read_rules(options.rules, output, keep_going=options.allow_unreadable)
    lines = []
    for path in options.tasks:
        for number, record in enumerate(read_records(path)):
            try:
                lines += [json.dumps(chat, ensure_ascii=False) for chat in ask(record, rules)]
            except InputError as error:
                raise error.located(file=f"{path}: task {number + 1}") from None
    write_output(options.output, "\n".join(lines) + "\n")
    output.say(f"{len(lines)} prompts ({', '.join(KINDS)}) -> {options.output}")
    output.emit({"prompts": len(lines), "output": options.output})
    return 0
