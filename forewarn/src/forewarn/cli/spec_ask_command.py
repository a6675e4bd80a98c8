"""``forewarn spec ask``: have a language model write formulas for requirements."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.assessment.asking import (
    TRACES,
    Endpoint,
    NoAnswerError,
    ask,
    check_endpoint,
    prompt,
)
from forewarn.assessment.requirement_files import Requirement, load_requirements
from forewarn.cli.common import positive_number, whole_number
from forewarn.cli.output import Output
from forewarn.errors import InputError
from forewarn.files.outputs import OutputFile, check_output, write_output

DESCRIPTION = """\
Ask a language model for the formula of each requirement, through any endpoint that speaks OpenAI's
protocol for chats, and write the answers for spec grade; or write the prompts alone. The key is
read from the environment, and appears nowhere."""

EPILOG = """\
A request that times out, breaks off or is refused for load is repeated; one that stays without an
answer is written as null, with the reason.

exit codes: 0 all were answered, 1 some were not, 2 wrong usage or input, or the endpoint refuses.

example: forewarn spec ask rules.jsonl --url http://localhost:8000/v1 --model M -o answers.jsonl"""


@dataclass(frozen=True)
class Options:
    """The arguments of ``spec ask``."""

    rules: Path
    url: str | None
    model: str
    output: Path | None
    prompts: Path | None
    key_env: str
    traces: str
    timeout: float
    retries: int
    pause: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("rules", type=Path, metavar="RULES", help="requirements: id, text, and atoms if known")
    add("--url", metavar="URL", help="the endpoint, up to /chat/completions")
    add("--model", default="", metavar="NAME", help="the model to ask for")
    add("-o", "--output", type=Path, metavar="FILE", help="the answers file to write")
    add("--prompts", type=Path, metavar="FILE", help="write the prompts, JSON lines")
    add(
        "--key-env",
        default="OPENAI_API_KEY",
        metavar="NAME",
        help="the variable of the environment that holds the key, if any (default: OPENAI_API_KEY)",
    )
    add(
        "--traces",
        choices=tuple(TRACES),
        default="infinite",
        help="which traces formulas are about (default: infinite)",
    )
    add(
        "--timeout",
        type=positive_number,
        default=60.0,
        metavar="S",
        help="seconds that a request may take (default: 60)",
    )
    add(
        "--retries",
        type=whole_number,
        default=3,
        metavar="N",
        help="how often a request is repeated (default: 3)",
    )
    add(
        "--pause",
        type=positive_number,
        default=1.0,
        metavar="S",
        help="seconds before the first repetition; then twice as long each time (default: 1)",
    )


def run(options: Options, output: Output) -> int:
    """Ask."""
    if options.prompts is None and options.url is None:
        raise InputError("neither --url nor --prompts", accepted="one of them, or both")
    if options.url is not None and (options.output is None or not options.model):
        raise InputError("--url needs --model and -o", accepted="--url URL --model NAME -o FILE")
    check_output(options.output, options.prompts)
    requirements = load_requirements(options.rules, with_formulas=False)
    prompts = {name: prompt(asked, options.traces) for name, asked in requirements.items()}
    if options.prompts is not None:
        lines = (
            json.dumps({"id": name, "messages": messages}) for name, messages in prompts.items()
        )
        write_output(options.prompts, "".join(f"{line}\n" for line in lines))
        output.say(f"{options.prompts}: {len(prompts)} prompts")
    if options.url is None or options.output is None:
        output.emit({"prompts": len(prompts)})
        return 0
    endpoint = Endpoint(
        options.url, options.model, os.environ.get(options.key_env, "").strip(),
        options.timeout, options.retries, options.pause,
    )  # fmt: skip
    check_endpoint(endpoint)
    return _ask_all(endpoint, prompts, requirements, options.output, output)


def _ask_all(
    endpoint: Endpoint,
    prompts: Mapping[str, list[dict[str, str]]],
    requirements: Mapping[str, Requirement],
    path: Path,
    output: Output,
) -> int:
    answered, calls, tokens = 0, 0, 0
    with OutputFile(path) as file, output.progress("asking") as bar:
        for count, name in enumerate(requirements, 1):
            line: dict[str, Any] = {"id": name, "model": endpoint.model, "answer": None}
            try:
                reply = ask(endpoint, prompts[name])
            except NoAnswerError as error:
                line["error"] = str(error)
                output.warn(f"{name}: {error}")
            else:
                line |= {"answer": reply.text, "tokens": reply.tokens, "calls": reply.calls}
                answered, calls = answered + 1, calls + reply.calls
                tokens += reply.tokens or 0
            file.write(json.dumps(line) + "\n")
            bar(count, len(requirements))
    output.say(
        f"{path}: {answered} of {len(requirements)} requirements answered, {calls} calls, "
        f"{tokens} tokens"
    )
    asked = len(requirements)
    output.emit({"asked": asked, "answered": answered, "calls": calls, "tokens": tokens})
    return int(answered < asked)
