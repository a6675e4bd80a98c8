"""Layout of tables: they fit the terminal, and no word or number is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

GAP = 2
#: What stays on the line of the word before it.
UNITS = frozenset({"&", "|", "->", "%", "s", "ms", "min", "h", "Hz"})


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    name : str
        Its heading.
    right : bool
        Aligned right, and never wrapped: a column of figures.
    spare : bool
        Left out where the table would be too wide.
    """

    name: str
    right: bool
    spare: bool

    @staticmethod
    def of(text: str) -> Column:
        """Read a heading with its marks: > for right, ? for spare."""
        name = text.lstrip("?>")
        marks = text[: len(text) - len(name)]
        return Column(name, ">" in marks, "?" in marks)


class _Widths(NamedTuple):
    least: list[int]
    natural: list[int]

    def fit(self, width: int, *, wrap: bool) -> bool:
        found = self.least if wrap else self.natural
        return sum(found) + GAP * (len(found) - 1) <= width


def table_lines(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    styles: Mapping[str, str] | None = None,
) -> list[Text]:
    """Return the lines of a table that is at most `width` wide where that can be.

    Where it is too wide, spare columns are left out, the last one first; then texts are wrapped
    between words. If that is not enough rows and columns change places, or else each row becomes
    a paragraph.

    Parameters
    ----------
    columns : Sequence[str]
        Headings; with > in front for figures, with ? in front for what may be left out.
    rows : Sequence[Sequence[str]]
        Cells.
    width : int
        Cells of the terminal.
    styles : Mapping[str, str], optional
        The styles of cells with these texts, as rich names them.
    """
    heads, cells = [Column.of(text) for text in columns], [list(row) for row in rows]
    given = styles or {}
    while not (widths := _measure(heads, cells)).fit(width, wrap=False):
        at = next((i for i in reversed(range(len(heads))) if heads[i].spare), None)
        if at is None:
            break
        heads = [*heads[:at], *heads[at + 1 :]]
        cells = [[*row[:at], *row[at + 1 :]] for row in cells]
    if widths.fit(width, wrap=True):
        return _drawn(heads, cells, _shared(widths, width), given)
    turned = _turned(heads, cells)
    widths = _measure(*turned)
    if widths.fit(width, wrap=False):
        return _drawn(*turned, widths.natural, given)
    return _paragraphs(heads, cells, width, given)


def _turned(heads: list[Column], cells: list[list[str]]) -> tuple[list[Column], list[list[str]]]:
    columns = [heads[0], *(Column(row[0], True, False) for row in cells)]
    return columns, [[head.name, *(row[i] for row in cells)] for i, head in enumerate(heads) if i]


def _measure(heads: list[Column], cells: list[list[str]]) -> _Widths:
    least, natural = [], []
    for at, head in enumerate(heads):
        texts = [row[at] for row in cells]
        whole = max(map(cell_len, texts), default=0)
        word = whole if head.right else max(map(_longest, texts), default=0)
        least.append(max(word, _longest(head.name)))
        natural.append(max(whole, cell_len(head.name)))
    return _Widths(least, natural)


def _shared(widths: _Widths, width: int) -> list[int]:
    """Return widths for all columns: the widest give way first, none below its longest word."""
    found = list(widths.natural)
    while sum(found) + GAP * (len(found) - 1) > width:
        wide = [at for at in range(len(found)) if found[at] > widths.least[at]]
        found[max(wide, key=found.__getitem__)] -= 1
    return found


def _drawn(
    heads: list[Column], cells: list[list[str]], widths: list[int], styles: Mapping[str, str]
) -> list[Text]:
    titles = [head.name for head in heads]
    lines = _row(titles, heads, widths, dict.fromkeys(titles, "bold"), bottom=True)
    for row in cells:
        lines += _row(row, heads, widths, styles)
    return lines


def _row(
    cells: Sequence[str],
    heads: Sequence[Column],
    widths: Sequence[int],
    styles: Mapping[str, str],
    bottom: bool = False,
) -> list[Text]:
    columns = [wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, columns))
    for column in columns:
        missing = [""] * (height - len(column))
        column[:] = [*missing, *column] if bottom else [*column, *missing]
    lines = []
    for at in range(height):
        line = Text()
        for cell, column, head, width in zip(cells, columns, heads, widths, strict=True):
            space = " " * (width - cell_len(column[at]))
            line.append(space if head.right else "")
            line.append(column[at], styles.get(cell, ""))
            line.append(("" if head.right else space) + " " * GAP)
        line.rstrip()
        lines.append(line)
    return lines


def _paragraphs(
    heads: list[Column], cells: list[list[str]], width: int, styles: Mapping[str, str]
) -> list[Text]:
    label = max(cell_len(head.name) for head in heads)
    columns, widths = [Column("", False, False)] * 2, [label, width - label - GAP]
    lines: list[Text] = []
    for row in cells:
        lines += [Text()] if lines else []
        for head, cell in zip(heads, row, strict=True):
            if not cell:
                continue
            own = {**styles, head.name: "bold"}
            lines += _row((head.name, cell), columns, widths, own)
    return lines


def _words(text: str) -> list[str]:
    """Return what a line may be broken between: a sign or a unit stays with its figure."""
    words: list[str] = []
    for word in text.split():
        if words and word.rstrip(",;:.)") in UNITS:
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def _longest(text: str) -> int:
    return max(map(cell_len, _words(text)), default=0)


def wrapped(text: str, width: int) -> list[str]:
    """Return a text as lines of at most `width`, longer only where a word is."""
    if cell_len(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip())]
    first, *rest = _words(text)
    lines = [indent + first]
    for word in rest:
        if cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(indent + word)
    return lines
