"""Messages, docstrings, comments and pages keep to plain words, one meaning each."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

BETTER = {
    r"nobody": "the subject: no node, no process; or the passive",
    r"somebody": "who it is: an operator, another node, the caller",
    r"whoever": "who it is: the caller, the reader, a client",
    r"told": "what happens: printed, published, logged, called with, known by",
    r"apart": "separately, without, differ by, distinguish, in a subprocess",
    r"heeds?|heeded": "uses, acts on",
    r"anew": "again",
    r"feigns?": "looks more certain than it is",
    r"thereof|therein|thereby|hence": "of it, in it, so",
    r"paper_counting|unseen_limit|unseen_speed|mended_on|grown_from": "the key of today",
    r"merge-runs|--at-once": "the option of today",
}
"""Words that readers had to read twice, and what to write for them."""

RIDDLES = {
    r"(?:^|[.:;] )[Ww]hat (?:is|was|has been) (?:said|told)\b": "who says what: name the message",
    r"\bof which there is none\b": "none here",
    r"\b(?:can|could)not be had\b": "is unknown, cannot be loaded",
    r"\bthat of those\b": "the noun",
}
"""Turns of speech without a subject, and what to write for them."""

SOURCES = (
    "forewarn/src",
    "monitor_node/src",
    "apollo_bridge/src",
    "agent_guard/src",
    "forewarn_ros/src",
)
PAGES = ("README.md", "docs")
OF_MESSAGES = "ros2_ws/src/forewarn_msgs/"
QUOTED = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL)
NAMES = re.compile(r"``[^`]*``|`[^`]*`")


def wrong(text: str) -> Iterator[str]:
    """Yield which words of a text have a plainer one, with that one."""
    plain = NAMES.sub("", " ".join(text.split()))
    for word, better in BETTER.items():
        for found in re.finditer(rf"(?<![\w-])(?:{word})(?![\w-])", plain, re.IGNORECASE):
            yield f"{found[0]!r} (better: {better}) in {plain[max(found.start() - 40, 0) :][:90]!r}"
    for turn, better in RIDDLES.items():
        if found_turn := re.search(turn, plain):
            yield f"{found_turn[0]!r} (better: {better}) in {plain[:90]!r}"


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield strings, docstrings and comments of a module, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    within = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value for part in node.values if isinstance(part, ast.Constant))
            yield node.lineno, "{}".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in within:
            yield node.lineno, node.value if isinstance(node.value, str) else ""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


@pytest.mark.parametrize("folder", SOURCES)
def test_sources_use_plain_words(repository: Path, folder: str) -> None:
    modules = sorted((repository / folder).rglob("*.py"))
    assert modules
    found = [
        f"{path.relative_to(repository)}:{line}: {one}"
        for path in modules
        for line, text in texts(path)
        for one in wrong(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("place", PAGES)
def test_pages_use_plain_words(repository: Path, place: str) -> None:
    start = repository / place
    pages = sorted(start.rglob("*.md")) if start.is_dir() else [start]
    assert pages
    found = []
    for page in pages:
        lines = page.read_text(encoding="utf-8").splitlines()
        # The first comment of a message is a part of its definition.
        own = "\n".join("" if OF_MESSAGES in line else line for line in lines)
        text = QUOTED.sub(lambda quoted: "\n" * quoted[0].count("\n"), own)
        for number, line in enumerate(text.splitlines(), 1):
            found += [f"{page.relative_to(repository)}:{number}: {one}" for one in wrong(line)]
    assert not found, "\n".join(found)


def test_a_banned_word_is_found_in_each_kind_of_text(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""Nobody knows."""\nNAME = 1  # two metres apart\n'
        'TEXT = f"{NAME}: it begins anew"\nKEY = "told"\n'
    )
    found = [line for line, text in texts(module) if [*wrong(text)]]
    assert sorted(found) == [1, 2, 3, 4]
    assert not [*wrong("Each part of `apart.py` is partly told-free.")]
