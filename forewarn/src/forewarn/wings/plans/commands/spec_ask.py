"""``forewarn spec ask``: have a language model write formulas for requirements."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.wings.plans.commands.asking import (
    ASKED,
    AskingOptions,
    ask_for,
    check_asking,
)
from forewarn.wings.plans.formula_prompts import TRACES, prompt
from forewarn.wings.plans.requirement_files import load_requirements

DESCRIPTION = """\
Ask a language model for the formula of each requirement, through any endpoint that speaks
OpenAI's protocol for chats; or write the prompts alone."""

EPILOG = f"""\
{ASKED}

exit codes: 0 all were answered, 1 some were not, 2 wrong usage or input, or the endpoint refuses.

examples: forewarn spec ask rules.jsonl --url http://localhost:8000/v1 --model M -o answers.jsonl
          forewarn spec ask rules.jsonl --url https://HOST/v1 --model M -o answers.jsonl \\
              --traces finite --key-env KEY --concurrency 8 --timeout 120 --retries 5 --backoff 2"""


@dataclass(frozen=True, kw_only=True)
class Options(AskingOptions):
    """The arguments of ``spec ask``."""

    rules: Path = argument("requirements: id, text, and atoms if known", "RULES")
    traces: str = option(
        "which traces formulas are about", default="infinite", choices=tuple(TRACES)
    )


def run(options: Options, output: Output) -> int:
    """Ask."""
    check_asking(options)
    requirements = load_requirements(options.rules, with_formulas=False)
    chats = [
        {"id": name, "messages": prompt(asked, options.traces)}
        for name, asked in requirements.items()
    ]
    return ask_for(options, chats, "requirements", output)
