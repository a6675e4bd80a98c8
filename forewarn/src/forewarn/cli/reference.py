"""The command-line reference, written from the parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from forewarn.cli.main import COMMANDS, DESCRIPTION, build_parser, parser_of

HEAD = """\
# Command line

{description}
`forewarn COMMAND --help` prints what stands here. This page is written from the parsers by
`make docs`.

Exit codes of every command: 0 fine, 1 findings, 2 wrong usage or input; 130 when interrupted.
Results go to stdout; progress bars, remarks and warnings to stderr. Every command takes `--json`,
which prints the result as one JSON document, and `-q`, which leaves out bars and remarks (warnings
stay). A wrong input is told by file, key path, value and what would be accepted.

A file that is written is replaced whole or not at all, and keeps owner and mode; a symbolic link
stays, and the file that it leads to is replaced. Devices, FIFOs and pipes are written straight
into. With `-o /dev/stdout`, results for people go to stderr.
Output that cannot be written, on a full disk for instance, is an error as well (exit code 2).

In a terminal, tables fit its width: columns that matter less are left out, then texts are wrapped
between words, then figures stand below each other; a long state shows what it gained (+) and lost
(-) since the line before. Violations, alerts, errors and warnings are coloured unless `NO_COLOR` is
set. `forewarn completion` installs tab completion.

| Command | |
|---|---|
"""


def reference() -> str:
    """Return the page in Markdown."""
    table = "".join(
        f"| [`{name}`](#{name.replace(' ', '-')}) | {text} |\n" for name, text in COMMANDS.items()
    )
    parser = build_parser()
    sections = "".join(_section(name, parser_of(parser, name)) for name in COMMANDS)
    return HEAD.format(description=DESCRIPTION) + table + sections


def _section(name: str, parser: argparse.ArgumentParser) -> str:
    lines = ["", f"## {name}", "", parser.description or "", ""]
    lines += ["| Argument | |", "|---|---|"]
    lines += [f"| {_label(action)} | {_text(action)} |" for action in _arguments(parser)]
    lines += ["", *_epilog(parser.epilog or "")]
    return "\n".join(lines) + "\n"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if action.dest not in ("help", "as_json", "quiet"):
            yield action


def _label(action: argparse.Action) -> str:
    choices = ",".join(action.choices or ())
    value = f"{{{choices}}}" if choices else str(action.metavar or "")
    if not action.option_strings:
        return f"`{value}{'...' if action.nargs == '+' else ''}`"
    needed = " (required)" if action.required else ""
    value = "" if action.nargs == 0 else f" {value}"
    return f"`{', '.join(action.option_strings)}{value}`{needed}"


def _text(action: argparse.Action) -> str:
    return (action.help or "").replace("|", "\\|")


def _epilog(text: str) -> Iterator[str]:
    """Yield prose as paragraphs and examples as a block."""
    for paragraph in text.strip().split("\n\n"):
        head, _, rest = paragraph.partition(":")
        if head in ("example", "examples"):
            yield "```bash"
            yield from (line.strip() for line in rest.strip().splitlines())
            yield "```"
        else:
            yield paragraph[0].upper() + paragraph[1:] + ("" if paragraph.endswith(".") else ".")
            yield ""
