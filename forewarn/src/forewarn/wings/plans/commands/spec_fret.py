"""``forewarn spec fret``: requirements in FRET's structured English as properties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.errors import FormulaError, InputError, located
from forewarn.logic.syntax import format_formula
from forewarn.wings.plans.commands.spec_grade import plain
from forewarn.wings.plans.fret.explanation import in_words
from forewarn.wings.plans.fret.meaning import translate
from forewarn.wings.plans.fret.sentences import read_requirement
from forewarn.wings.plans.texts import parsed, read_text

DESCRIPTION = """\
Translate requirements in the structured English of NASA's FRET into properties of a monitor file,
and explain them back: [scope] [condition] component shall [timing] satisfy response. What no
monitor can watch says why."""

EPILOG = """\
exit codes: 0 all can be monitored, 1 some cannot or only in part, 2 wrong usage, or some are not
understood.

examples: forewarn spec fret 'while autonomous, when red the car shall within 2 s satisfy stopped'
          forewarn spec fret --file requirements.json"""

LARGEST = 10_000_000
LONGEST_SHOWN = 2_000


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``spec fret``."""

    sentence: str | None = argument("a requirement", "SENTENCE")
    file: Path | None = option(
        "requirements, one a line, or a .json file that FRET exported (reqid and fulltext)",
        "FILE",
        "-f",
    )


@dataclass(frozen=True)
class Translated:
    """A sentence, and what became of it; `formula` is empty where it cannot be monitored."""

    name: str
    sentence: str
    formula: str = ""
    words: str = ""
    reason: str = ""
    error: str = ""


def run(options: Options, output: Output) -> int:
    """Translate."""
    found = [_translated(name, sentence) for name, sentence in _sentences(options)]
    for one in found:
        if one.name:
            output.say(f"{plain(one.name)}: {plain(one.sentence)}")
        for label, text in (
            ("formula", one.formula), ("meaning", one.words), ("not monitored", one.reason),
            ("not understood", one.error),
        ):  # fmt: skip
            if text:
                output.say(f"  {label}: {plain(text, LONGEST_SHOWN)}")
    output.emit(found)
    if any(one.error for one in found):
        return 2
    return int(any(one.reason for one in found))


def _translated(name: str, sentence: str) -> Translated:
    try:
        requirement = read_requirement(sentence)
    except FormulaError as error:
        return Translated(name, sentence, error=str(error))
    translation = translate(requirement)
    formula = "" if translation.formula is None else format_formula(translation.formula)
    return Translated(name, sentence, formula, in_words(requirement), translation.reason)


def _sentences(options: Options) -> Iterator[tuple[str, str]]:
    if (options.sentence is None) == (options.file is None):
        raise InputError("one of SENTENCE and --file is needed", accepted="one of them")
    if options.sentence is not None:
        yield "", options.sentence
    elif options.file is not None:
        text = read_text(options.file, LARGEST, "requirements, one a line")
        if options.file.suffix == ".json":
            yield from _exported(options.file, text)
        else:
            lines = enumerate(text.splitlines(), 1)
            yield from ((f"line {i}", line) for i, line in lines if line.strip())


def _exported(path: Path, text: str) -> Iterator[tuple[str, str]]:
    accepted = (
        'a list of {"reqid": "R1", "fulltext": "the car shall ..."}, alone or as requirements'
    )
    with located(file=path):
        document = parsed(text, accepted)
    rows = document.get("requirements") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise InputError("holds no list of requirements", file=path, accepted=accepted)
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get("fulltext"), str):
            key = f"[{index}].fulltext"
            raise InputError("is no text", file=path, key=key, accepted=accepted)
        yield str(row.get("reqid") or f"[{index}]"), row["fulltext"]
