"""The study of translators: its page is what its figures say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.harness.page import replaced
from evaluation.translators.page import SENTINEL, section
from evaluation.translators.spots_words import words_replaced


@pytest.fixture(scope="module")
def results(repository: Path) -> dict[str, Any]:
    path = repository / "evaluation" / "translators" / "results.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_the_page_shows_the_figures(repository: Path, results: dict[str, Any]) -> None:
    page = (repository / "evaluation" / "RESULTS.md").read_text(encoding="utf-8")
    assert replaced(page, "translators", section(results)) == page


def test_spot_agrees_and_the_outcomes_add_up(results: dict[str, Any]) -> None:
    answers = results["answers"]
    assert answers["spot"]["disagreements"] == 0
    assert all(found["disagreements"] == 0 for found in results["pairs"].values())
    assert sum(found["pairs"] for found in results["pairs"].values()) > 17_000
    total = sum(answers["outcomes"].values())
    assert total == sum(row["answers"] for row in answers["rows"]) == 28_868
    equivalent = sum(row["equivalent"]["count"] for row in answers["rows"])
    assert equivalent == answers["outcomes"]["equivalent"]
    assert answers["milliseconds"]["median"] < 5


def test_the_published_figures_are_marked_theirs(repository: Path) -> None:
    page = (repository / "evaluation" / "RESULTS.md").read_text(encoding="utf-8")
    part = page.split("## Formulas of translators", 1)[1]
    assert "SENTINEL's, theirs" in part
    assert all(name in part for name, *_ in SENTINEL)


def test_words_become_spots_without_our_reader() -> None:
    assert words_replaced("globally ( prop_1 implies next b )").split() == [
        "G", "(", '"prop_1"', "->", "X", '"b"', ")",
    ]  # fmt: skip
    assert words_replaced("not photo(car, road)").split() == ["!", '"photo(car,road)"']
