"""Command lines on pages and in help: each can be parsed, and together they show every option."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from forewarn.cli.main import COMMANDS, build_parser, parser_of

ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
PARSER = build_parser()
#: Every command has them, or they are shown by a whole page.
EVERYWHERE = {"--help", "--json", "--quiet"}


def command_lines() -> Iterator[tuple[str, list[str]]]:
    """Yield where a command line stands, and its words up to a pipe or another command."""
    for page in PAGES:
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(), re.M | re.S):
            yield from lines_of(page.name, block)
    for name in COMMANDS:
        for text in (parser_of(PARSER, name).epilog or "").split("\n\n"):
            if text.startswith("example"):
                yield from lines_of(f"{name} --help", text.partition(":")[2])


def lines_of(place: str, text: str) -> Iterator[tuple[str, list[str]]]:
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        found = re.match(r"\s*(?:\$ )?forewarn (.*)", line)
        if found is None:
            continue
        lexer = shlex.shlex(found[1], posix=True, punctuation_chars="|;&<>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in lexer:
            if set(word) <= set("|;&<>"):
                break
            words.append(word)
        yield place, words


LINES = [(place, words) for place, words in command_lines() if words and words[0][0] != "-"]


def options_of(name: str) -> Iterator[argparse.Action]:
    for action in parser_of(PARSER, name)._actions:
        if action.option_strings and action.option_strings[-1] not in EVERYWHERE:
            yield action


def command_of(words: list[str]) -> str:
    two = " ".join(words[:2])
    return two if two in COMMANDS else words[0]


@pytest.mark.parametrize(("place", "words"), LINES, ids=lambda value: str(value)[:60])
def test_a_command_line_can_be_parsed(
    place: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        PARSER.parse_all(words)
    except SystemExit as leaving:
        assert not leaving.code, f"{place}: {capsys.readouterr().err}"


def test_every_option_is_shown() -> None:
    shown = {(command_of(words), word.partition("=")[0]) for _, words in LINES for word in words}
    wanted: dict[tuple[str, str | None], list[str]] = {}
    seen = set()
    for name in COMMANDS:
        for action in options_of(name):
            # What several commands declare alike is shown once.
            key = action.option_strings[-1], action.help
            wanted.setdefault(key, []).append(name)
            if any((name, flag) in shown for flag in action.option_strings):
                seen.add(key)
    assert not [f"{names[0]} {key[0]}" for key, names in wanted.items() if key not in seen]
