"""The commands that pages name: those of `forewarn`, and of studies, benchmarks and make."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from documentation import pages

BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.M | re.S)
SHELL = ("", "bash", "sh", "console")
MODULE = re.compile(r"\b((?:evaluation|benchmarks)(?:\.[a-z_]+)+|(?<=-m )benchmarks)\b(.*)")


class Named(NamedTuple):
    """A command as a page names it."""

    page: str
    text: str


def named(root: Path) -> Iterator[Named]:
    """Yield what stands in shell blocks, line by line, and in code within sentences."""
    for path in sorted(pages(root)):
        text, page = path.read_text(encoding="utf-8"), str(path.relative_to(root))
        for language, body in BLOCK.findall(text):
            if language in SHELL:
                for line in re.sub(r"\\\n\s*", " ", body).splitlines():
                    yield Named(page, line.strip())
        for code in re.findall(r"`([^`\n]+)`", BLOCK.sub("", text)):
            yield Named(page, code.strip())


def of_forewarn(one: Named) -> list[str] | None:
    """Return the words of a command of `forewarn` behind its name; None if it is none."""
    found = re.match(r"(?:\.venv/bin/)?forewarn (?=[a-z-])(.*)", one.text)
    if found is None:
        return None
    text = re.split(r" (?:[|>#&]|\d?>)", found[1])[0]
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def of_module(one: Named) -> tuple[str, str] | None:
    """Return a module that is run, and what follows its name."""
    found = MODULE.search(one.text)
    asked = "python -m " in one.text or one.text.startswith("evaluation.")
    return (found[1], found[2]) if found and asked else None
