"""Each command of `forewarn` that a page names has the options that it shows, and is run."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from page_commands import Named, named, of_forewarn

from forewarn.cli.main import COMMANDS, GROUPS, build_parser, parser_of

ROOT = Path(__file__).resolve().parents[3]
RUNS = (
    "init {held} -o {folder}/base.yaml --kind mobile_base --rate 20 --seconds 60",
    "init {held} -o {folder}/steps.yaml --rate steps --step /odom",
    "info {bags} --jobs 2",
    "replay {held} -c {config} -m {model} --allow-missing",
    "tune {held} -c {config} -m {model} --false-alarms-per-hour 60 --alert-share 0.9 "
    "--miss-rate 0.5 --confidence 0.5 --property slow_down -q",
    "tune {bags} -c {config} --folds 2 --false-alarms-per-hour 60 --write",
    "learn {bags}/run0.mcap {bags}/run1.mcap -c {config} -o {folder}/two.json",
    "anomalies {held} -c {config} -m {folder}/two.json --calibrate {bags}/run[2-5].mcap "
    "--alpha 0.3 --save {folder}/kept.json",
    "anomalies {held} -c {config} -m {folder}/two.json --calibration {folder}/kept.json",
)
"""What no test function elsewhere has in one place: commands of pages, on the corridor."""
HELP = "--help"
"""Each of its examples shows many options; tests run these a few at a time."""
NO_RUNS = ("test_layout.py", "test_completion.py", Path(__file__).name)
"""Tests that name options without running a command."""


class Asked(NamedTuple):
    """A command with the full names of its options."""

    command: str
    options: frozenset[str]


class Words(NamedTuple):
    """The words of a test function, or of a helper beside it."""

    where: str
    words: frozenset[str]


@cache
def names_of(command: str) -> dict[str, str]:
    """Return the full name of each option of a command."""
    actions = parser_of(build_parser([command]), command)._actions
    return {
        name: max(one.option_strings, key=len) for one in actions for name in one.option_strings
    }


def asked_in(words: list[str]) -> Asked:
    """Return what a command asks for; options that do not exist keep their names."""
    two = " ".join(words[:2])
    command = two if two in COMMANDS else words[0]
    known = names_of(command) if command in COMMANDS else {}
    options = [word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
    return Asked(command, frozenset(known.get(option, option) for option in options))


def of_help() -> Iterator[Named]:
    """Yield the examples below the help of each command."""
    parser = build_parser()
    for name in COMMANDS:
        text = re.sub(r"\\\n\s*", " ", parser_of(parser, name).epilog or "")
        for line in re.findall(r"^(?:examples?:)?\s*(forewarn .*)", text, re.M):
            yield Named(HELP, line)


def of_pages() -> Iterator[tuple[Named, Asked]]:
    for one in (*of_help(), *named(ROOT)):
        words = of_forewarn(one)
        if (words and words != ["--version"] and words[0] not in GROUPS) or (
            words and len(words) > 1
        ):
            yield one, asked_in(words)


@cache
def functions() -> tuple[Words, ...]:
    """Return the words of all functions of the tests, fixtures and helpers included."""
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in (
            ast.parse(path.read_text(encoding="utf-8")).body if path.name not in NO_RUNS else ()
        ):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                texts = (
                    one.value
                    for one in ast.walk(node)
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                )
                words = frozenset(word for text in texts for word in text.split())
                found.append(Words(f"{path.name}: {node.name}", words))
    return tuple(found)


def spellings(command: str) -> dict[str, set[str]]:
    """Return all names of each option of a command, by its full name."""
    found: dict[str, set[str]] = {}
    for short, name in names_of(command).items():
        found.setdefault(name, set()).add(short)
    return found


def is_run(one: Asked) -> bool:
    """Tell whether a command runs here, or in a function that has all of its words."""
    here = (asked_in(shlex.split(run)) for run in RUNS)
    if any(one.command == run.command and one.options <= run.options for run in here):
        return True
    spelled = spellings(one.command)
    return any(
        set(one.command.split()) <= each.words
        and all(spelled[option] & each.words for option in one.options)
        for each in functions()
    )


@cache
def files() -> tuple[frozenset[str], ...]:
    """Return the words of all files of tests."""
    found: dict[str, frozenset[str]] = {}
    for each in functions():
        name = each.where.partition(":")[0]
        found[name] = found.get(name, frozenset()) | each.words
    return tuple(found.values())


def has_each_option_run(one: Asked) -> bool:
    """Tell whether each option of an example runs with its command, maybe without the others."""
    runs = [asked_in(shlex.split(run)) for run in RUNS]
    command, spelled = set(one.command.split()), spellings(one.command)
    return all(
        any(one.command == run.command and option in run.options for run in runs)
        or any(command <= words and spelled[option] & words for words in files())
        for option in one.options
    )


def test_every_command_and_option_that_a_page_names_exists() -> None:
    astray = [
        f"{one.page}: {one.text}"
        for one, asked in of_pages()
        if asked.command not in COMMANDS or asked.options - set(names_of(asked.command).values())
    ]
    assert not astray


def test_every_command_that_a_page_names_is_run_by_a_test() -> None:
    named_by = {asked: one.page for one, asked in reversed(list(of_pages()))}
    assert len(named_by) > 90
    astray = [
        f"{page}: {asked}"
        for asked, page in named_by.items()
        if not (is_run(asked) or (page == HELP and has_each_option_run(asked)))
    ]
    assert not astray, "add them to RUNS"
    never = Asked("learn", frozenset({"--add-to", "--calibration", "--store", "--delta"}))
    assert not is_run(never), "a combination that no test has is told"


def test_the_commands_of_pages_run_on_the_corridor(
    forewarn: Callable[..., Any], corridor_run: Any, corridor_model: Path, tmp_path: Path
) -> None:
    config = tmp_path / "monitor.yaml"
    config.write_text(corridor_run.config.read_text())
    given = {
        "held": corridor_run.held_out,
        "bags": corridor_run.recordings[0].parent,
        "config": config,
        "model": corridor_model,
        "folder": tmp_path,
    }
    for run in RUNS:
        result = forewarn(*shlex.split(run.format(**given)))
        assert result.code in (0, 1), f"{run}: {result.err}"
