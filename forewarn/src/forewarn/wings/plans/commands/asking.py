"""What the commands that ask a language model have in common."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from forewarn.cli.common import at_least_one, positive_number, whole_number
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.errors import InputError
from forewarn.files.outputs import check_output, write_output
from forewarn.wings.plans.asking import Endpoint, Reply, ask_all, check_endpoint

ASKED = """\
A request that fails is repeated; what stays without an answer is null, with the reason. Answers are
kept in FILE.part: after an interruption the same command asks only for what is missing."""

Chat = dict[str, Any]
"""What identifies a chat, and its ``messages``."""


@dataclass(frozen=True, kw_only=True)
class AskingOptions:
    """The arguments that say whom to ask, and how."""

    url: str | None = option("the endpoint, up to /chat/completions", "URL")
    model: str = option("the model to ask", "NAME", default="")
    output: Path | None = option("the answers file to write", "FILE", "-o")
    prompts: Path | None = option("write the prompts, JSON lines", "FILE")
    key_env: str = option(
        "the variable of the environment that holds the key, if any",
        "NAME",
        default="OPENAI_API_KEY",
    )
    concurrency: int = option("how many requests may be under way", "N", of=at_least_one, default=4)
    timeout: float = option(
        "seconds that a request may take", "S", of=positive_number, default=60.0
    )
    retries: int = option("how often a request is repeated", "N", of=whole_number, default=3)
    backoff: float = option(
        "seconds before the first repetition, then twice as long each time",
        "S",
        of=positive_number,
        default=1.0,
    )


def check_asking(options: AskingOptions) -> None:
    """Refuse arguments that do not fit together; raises InputError."""
    if options.url is None and options.output is not None:
        raise InputError("-o needs --url", accepted="--url URL --model NAME -o FILE")
    if options.prompts is None and options.url is None:
        raise InputError("neither --url nor --prompts", accepted="one of them, or both")
    if options.url is not None and (options.output is None or not options.model):
        raise InputError("--url needs --model and -o", accepted="--url URL --model NAME -o FILE")
    check_output(options.output, options.prompts)


def ask_for(
    options: AskingOptions,
    chats: Sequence[Chat],
    what: str,
    output: Output,
    made_of: Callable[[str], Mapping[str, Any]] = lambda _: {},
) -> int:
    """Write prompts, or ask about `what` and write answers, or both; return the exit code.

    `made_of` gives further fields of a line from the text of its answer; ``error`` if it is of no
    use.
    """
    if options.prompts is not None:
        write_output(options.prompts, "".join(_line(chat) for chat in chats))
        output.say(f"{options.prompts}: {len(chats)} prompts")
    if options.url is None or options.output is None:
        output.emit({"prompts": len(chats)})
        return 0
    key = os.environ.get(options.key_env, "").strip()
    endpoint = Endpoint(
        options.url, options.model, key, options.timeout, options.retries, options.backoff
    )
    check_endpoint(endpoint)
    wanted = [_unanswered(chat, endpoint) for chat in chats]
    known = _known(options.output)
    lines = [known.get(line["asked"], line) for line in wanted]
    missing = [at for at, line in enumerate(wanted) if line["asked"] not in known]
    with _part(options.output) as part, output.progress("asking") as bar:
        asked = [(_named(chats[at]), chats[at]["messages"]) for at in missing]
        for count, (number, reply) in enumerate(ask_all(endpoint, asked, options.concurrency), 1):
            line = lines[missing[number]]
            if isinstance(reply, Reply):
                line |= {"answer": reply.text, "tokens": reply.tokens, "calls": reply.calls}
                line |= made_of(reply.text)
                part.write(_line(line))
                part.flush()
            else:
                line["error"] = f"{endpoint.url}: {reply}"
            if "error" in line:
                output.warn(f"{_named(line)}: {line['error']}")
            bar(count, len(missing))
        write_output(options.output, "".join(_line(line) for line in lines))
    _sum_up(options.output, lines, [lines[at] for at in missing], what, output)
    return int(any("error" in line for line in lines))


def _sum_up(
    path: Path, lines: Sequence[Chat], asked: Sequence[Chat], what: str, output: Output
) -> None:
    """Say how many lines have an answer, and what those cost that were `asked` just now."""
    fresh = [line for line in asked if line["answer"] is not None]
    before = len(lines) - len(asked)
    found = {
        "asked": len(lines),
        "answered": len(fresh) + before,
        "before": before,
        "calls": sum(line["calls"] for line in fresh),
        "tokens": sum(line["tokens"] or 0 for line in fresh),
    }
    known = f" ({before} before)" if before else ""
    output.say(
        f"{path}: {found['answered']} of {found['asked']} {what} answered{known}, "
        f"{found['calls']} calls, {found['tokens']} tokens"
    )
    output.emit(found)


def _unanswered(chat: Chat, endpoint: Endpoint) -> Chat:
    asked = json.dumps([endpoint.model, chat], sort_keys=True)
    digest = hashlib.sha256(asked.encode()).hexdigest()[:16]
    head = {name: value for name, value in chat.items() if name != "messages"}
    return {**head, "model": endpoint.model, "answer": None, "asked": digest}


def _named(line: Chat) -> str:
    return " ".join(str(line[name]) for name in ("id", "prompt") if name in line)


def _line(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False) + "\n"


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _known(path: Path) -> dict[str, Chat]:
    """Return the answers of a former run, by what was asked."""
    found: dict[str, Chat] = {}
    for file in (path, _part_of(path)):
        if not file.is_file():
            continue
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=file) from error
        for line in text.split("\n"):
            try:
                values = json.loads(line)
            except (ValueError, RecursionError):
                continue  # cut short as the process died, or no line of ours
            if isinstance(values, dict) and isinstance(values.get("answer"), str):
                found[str(values.get("asked"))] = values
    return found


@contextmanager
def _part(path: Path) -> Iterator[TextIO]:
    """Open the file for answers as they come; it goes away when all is written."""
    part = _part_of(path)
    try:
        file = part.open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=part) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                "another process is writing answers", file=part, accepted="one at a time"
            ) from None
        file.write("\n")  # after a line that was cut short
        whole = False
        try:
            yield file
            whole = True
        finally:
            file.flush()
            if whole or part.stat().st_size <= 1:
                part.unlink()
