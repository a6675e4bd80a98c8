"""The command-line reference, written from the parsers."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Iterator

from forewarn.cli.main import COMMANDS, DESCRIPTION, SECTIONS, build_parser, parser_of

HEAD = """\
# Command line

{description} `forewarn COMMAND --help` prints what stands here, with more examples.

- Exit codes: 0 fine, 1 findings, 2 wrong usage or input (also output that cannot be written), 130
  interrupted.
- Results go to stdout, progress bars, remarks and warnings to stderr. `--json` prints the result as
  one JSON document, `-q` leaves out bars and remarks; every command has both.
- A file is replaced as a whole or not at all. It keeps owner and mode, and a symbolic link stays.
  Devices, FIFOs and pipes are written into. With `-o /dev/stdout`, text for people goes to stderr.
- In a terminal, tables fit its width, and colours mark alerts and errors unless `NO_COLOR` is set.
  A long state is shown as what it gained (+) and lost (-) since the line before.

{commands}

## Arguments of several commands

{shared}
"""


def reference() -> str:
    """Return the page in Markdown."""
    links = "\n".join(f"- {title}: {_links(names)}" for title, names in SECTIONS.items())
    parser = build_parser()
    parsers = {name: parser_of(parser, name) for name in COMMANDS}
    shared = _shared(parsers.values())
    head = HEAD.format(description=DESCRIPTION, commands=links, shared="\n".join(shared.values()))
    return head + "".join(_section(name, parsers[name], shared) for name in COMMANDS)


def _links(names: Collection[str]) -> str:
    return ", ".join(f"[`{name}`](#{name.replace(' ', '-')})" for name in names)


def _shared(parsers: Collection[argparse.ArgumentParser]) -> dict[str, str]:
    """Return the lines of arguments that several commands have alike, by their names."""
    number = Counter(_line(action) for parser in parsers for action in _arguments(parser))
    names = {_line(action): _name(action) for parser in parsers for action in _arguments(parser)}
    meanings = Counter(names.values())
    lines = {names[line]: line for line, n in number.items() if n > 1 + (meanings[names[line]] > 1)}
    return dict(sorted(lines.items(), key=lambda item: item[0].lstrip("`-").lower()))


def _section(name: str, parser: argparse.ArgumentParser, shared: dict[str, str]) -> str:
    own = [one for one in _arguments(parser) if shared.get(_name(one)) != _line(one)]
    others = [_name(one) for one in _arguments(parser) if shared.get(_name(one)) == _line(one)]
    lines = ["", f"## {name}", "", parser.description or "", "", *map(_line, own)]
    if others:
        lines += ["", f"[Also](#arguments-of-several-commands) {', '.join(others)}."]
    lines += ["", *_epilog(parser.epilog or "")]
    return "\n".join(lines) + "\n"


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if action.dest not in ("help", "as_json", "quiet"):
            yield action


def _line(action: argparse.Action) -> str:
    return f"- {_label(action)}: {action.help or ''}"


def _name(action: argparse.Action) -> str:
    return f"`{action.option_strings[-1]}`" if action.option_strings else _label(action)


def _label(action: argparse.Action) -> str:
    choices = ",".join(action.choices or ())
    names = action.metavar or ""
    value = f"{{{choices}}}" if choices else names if isinstance(names, str) else " ".join(names)
    if not action.option_strings:
        return f"`{value}{'...' if action.nargs == '+' else ''}`"
    needed = " (required)" if action.required else ""
    value = "" if action.nargs == 0 else f" {value}"
    return f"`{', '.join(action.option_strings)}{value}`{needed}"


def _epilog(text: str) -> Iterator[str]:
    """Yield prose as paragraphs, and the first example as a block."""
    for paragraph in text.strip().split("\n\n"):
        head, _, rest = paragraph.partition(":")
        if head == "exit codes" and " 1 " not in rest:
            continue  # as the head of the page says
        if head in ("example", "examples"):
            yield "```bash"
            yield rest.strip().splitlines()[0].strip()
            yield "```"
        else:
            yield paragraph[0].upper() + paragraph[1:] + ("" if paragraph.endswith(".") else ".")
            yield ""
