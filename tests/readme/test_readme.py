"""Runs what README.md and guides tell users to run, in an empty folder, and compares the output.

A block is marked by a comment on the line above it: `<!-- run -->` above a bash block,
`<!-- prints -->` above the text block that shows what the last command block printed. In the latter
a line `...` stands for any number of lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from documentation import pages
from live_process import environment as environment_of
from live_process import free_domain

BLOCK = re.compile(
    r"^<!-- (?P<mark>run|prints) -->\n```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
LANGUAGES = {"run": "bash", "prints": "text"}


class Snippet(NamedTuple):
    """A block to run: its line in the file, the commands, and the text it should print, if any."""

    line: int
    commands: str
    prints: str | None


def snippets(markdown: str) -> list[Snippet]:
    """Return the marked blocks in order; raises ValueError for a mark that leads nowhere."""
    found: list[Snippet] = []
    for match in BLOCK.finditer(markdown):
        mark, language = match["mark"], match["language"]
        line = markdown.count("\n", 0, match.start("text")) + 1
        if language != LANGUAGES[mark]:
            raise ValueError(f"line {line}: <!-- {mark} --> stands above a {language!r} block")
        if mark == "run":
            found.append(Snippet(line, match["text"], None))
        elif not found or found[-1].prints is not None:
            raise ValueError(f"line {line}: nothing was run that could print this")
        else:
            found[-1] = found[-1]._replace(prints=match["text"])
    marks = len(re.findall(r"^<!-- (?:run|prints) -->", markdown, re.M))
    blocks = len(found) + sum(s.prints is not None for s in found)
    if marks != blocks:
        raise ValueError(f"{marks} marks, but {blocks} marked blocks: a mark has no block below it")
    return found


def shown_in(expected: str, printed: str) -> bool:
    """Tell whether the printed text is as shown, `...` standing for any lines."""
    parts = [re.escape(line.rstrip()) for line in expected.strip("\n").splitlines()]
    pattern = "\n".join("(?:.*\n)*?.*" if part == re.escape("...") else part for part in parts)
    text = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    return re.fullmatch(pattern, text) is not None


HOWTOS = ("requirements", "plans", "trees", "tuning")
PAGES = (
    "README.md",
    "docs/reference/recordings.md",
    "docs/tutorial/README.md",
    *(f"docs/howto/{name}.md" for name in HOWTOS),
)
LONG = ("docs/howto/trajectories.md",)


@pytest.fixture
def nodes_environment() -> Iterator[dict[str, str]]:
    """Return an environment in which nodes are alone."""
    with free_domain() as domain:
        yield environment_of(domain)


@pytest.mark.clocked
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "page", [*PAGES, *(pytest.param(page, marks=pytest.mark.long) for page in LONG)]
)
def test_page_runs_as_shown(
    page: str, repository: Path, tmp_path: Path, nodes_environment: dict[str, str]
) -> None:
    # One shell after the other in one folder: later blocks use what earlier ones made.
    variables = {"FOREWARN": str(repository), "COLUMNS": "100", "NO_COLOR": "1"}
    environment = {**nodes_environment, **variables}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    found = snippets((repository / page).read_text(encoding="utf-8"))
    assert found, f"{page} marks nothing to run"
    for snippet in found:
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", snippet.commands],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        where = f"{page}:{snippet.line}"
        assert result.returncode == 0, f"{where} fails:\n{result.stdout}{result.stderr}"
        if snippet.prints is not None:
            assert shown_in(snippet.prints, result.stdout), f"{where} prints:\n{result.stdout}"


def test_every_page_with_marks_is_run(repository: Path) -> None:
    marked = {str(path.relative_to(repository)) for path in pages(repository)
              if "<!-- run -->" in path.read_text(encoding="utf-8")}  # fmt: skip
    assert marked == {*PAGES, *LONG}


def prose(path: Path) -> str:
    """Return a page without its code, in which brackets mean something else."""
    return re.sub(
        r"`[^`]*`",
        "",
        re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S),
    )


def anchors(path: Path) -> set[str]:
    """Return what the headings of a page are called in links."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere(repository: Path) -> None:
    astray = []
    for page in pages(repository):
        for target in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", prose(page)):
            path, _, anchor = target.partition("#")
            there = page.parent / path if path else page
            if not there.exists() or (anchor and anchor not in anchors(there)):
                astray.append(f"{page.relative_to(repository)}: {target}")
    assert not astray


def test_the_index_leads_to_every_page_of_the_documentation(repository: Path) -> None:
    index = repository / "docs" / "README.md"
    linked = {
        (index.parent / target.partition("#")[0]).resolve()
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(index))
    }
    written = {page for page in pages(repository) if page.is_relative_to(index.parent)}
    assert not {page.relative_to(repository) for page in written - linked - {index}}


def test_finds_marked_blocks_and_their_output() -> None:
    ran = "a\n<!-- run -->\n```bash\necho hi\n```\n\n"
    text = ran + "<!-- prints -->\n```text\nhi\n```\n```bash\nno\n```\n"
    assert snippets(text) == [Snippet(4, "echo hi\n", "hi\n")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- run -->\n\n```bash\nx\n```\n", "1 marks, but 0 marked blocks"),
        ("<!-- run -->\n```python\nx\n```\n", "line 3: .* 'python' block"),
        ("<!-- prints -->\n```text\nx\n```\n", "line 3: nothing was run"),
    ],
)
def test_refuses_marks_that_lead_nowhere(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        snippets(text)


def test_output_is_compared_line_by_line() -> None:
    assert shown_in("a\n...\nd\n", "a\nb\nc\nd\n")
    assert shown_in("a (1.0)\n", "a (1.0)  \n")
    assert not shown_in("a\n", "a\nb\n")
    assert not shown_in("a\n...\nd\n", "a\nb\n")
