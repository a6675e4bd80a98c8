"""Tables fit where they are shown, whatever is in them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from forewarn.cli.layout import Column, table_lines, wrapped

WORDS = st.text(alphabet="abcxyz_<.0123456789日", min_size=1, max_size=12)
TEXTS = st.lists(WORDS | st.sampled_from(["&", "%"]), max_size=8).map(" ".join)
FIGURES = st.floats(0, 1e6).map(lambda value: f"{value:,.1f} %")


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[str]]]:
    """Return headings, whose names tell them apart, and rows."""
    marks = draw(st.lists(st.sampled_from(["", ">", "?", "?>"]), min_size=1, max_size=9))
    marks[0] = marks[0].replace("?", "")
    columns = [f"{mark}{draw(WORDS)}{at} head" for at, mark in enumerate(marks)]
    row = st.tuples(*(FIGURES if ">" in mark else TEXTS for mark in marks)).map(list)
    return columns, draw(st.lists(row, min_size=1, max_size=4))


@given(tables(), st.integers(20, 200))
def test_lines_fit_unless_a_single_word_does_not(
    table: tuple[list[str], list[list[str]]], width: int
) -> None:
    columns, rows = table
    lines = [line.plain for line in table_lines(columns, rows, width)]
    longest = max(cell_len(word) for row in (columns, *rows) for cell in row for word in wide(cell))
    label = max(cell_len(Column.of(name).name) for name in columns)
    assert max(map(cell_len, lines)) <= max(width, label + 2 + longest)
    assert all(line == line.rstrip() for line in lines)


def wide(cell: str) -> list[str]:
    """Return what stays together in a cell: each word with the signs and units after it."""
    return re.findall(r"\S+(?: [&%])*", cell)


@given(tables(), st.integers(20, 200))
def test_nothing_is_broken_or_lost_but_spare_columns(
    table: tuple[list[str], list[list[str]]], width: int
) -> None:
    columns, rows = table
    shown = "\n".join(line.plain for line in table_lines(columns, rows, width))
    heads = [Column.of(name) for name in columns]
    for at, head in enumerate(heads):
        if not head.spare:
            for row in rows:
                for word in row[at].split():
                    assert word in shown
                assert not head.right or row[at] in shown


@given(tables())
def test_a_table_with_room_has_a_line_for_each_row(
    table: tuple[list[str], list[list[str]]],
) -> None:
    columns, rows = table
    head, *lines = (line.plain for line in table_lines(columns, rows, 10_000))
    assert head.split() == " ".join(Column.of(name).name for name in columns).split()
    assert [line.split() for line in lines] == [" ".join(row).split() for row in rows]


@given(TEXTS, st.integers(1, 60))
def test_a_wrapped_text_has_the_same_words(text: str, width: int) -> None:
    assert " ".join(wrapped(text, width)).split() == text.split()


def test_what_gives_way_first() -> None:
    columns = ("state", "?key", ">visits")
    rows = [["near & fast", "1100", "1,234"]]
    shown = {
        width: [line.plain for line in table_lines(columns, rows, width)] for width in (26, 20, 13)
    }
    assert shown[26] == ["state        key   visits", "near & fast  1100   1,234"]
    assert shown[20] == ["state        visits", "near & fast   1,234"]
    assert shown[13] == ["state   near &", "        fast", "visits  1,234"]


def test_figures_of_many_columns_stand_below_each_other() -> None:
    columns = ("rule", *(f">figure {number}" for number in range(12)))
    rows = [["slow", *(f"{number}.5 s" for number in range(12))]]
    head, *lines = [line.plain for line in table_lines(columns, rows, 40)]
    assert head.split() == ["rule", "slow"]
    assert lines[3] == "figure 3    3.5 s"
    assert len(lines) == 12
