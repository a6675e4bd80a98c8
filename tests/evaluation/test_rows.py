"""The page of results is what its rows say; a study adds rows, and replaces those it asks again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evaluation.harness import page
from evaluation.harness.page import PAGE, ROWS, Made, Row, between, page_of, publish

KEYS = [*Row._fields, *Made._fields]


def test_the_page_is_made_of_the_rows() -> None:
    """`python -m evaluation.harness.page` makes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page_of(json.loads(ROWS.read_text(encoding="utf-8")))


def test_every_row_says_what_was_asked_what_came_out_and_what_made_it() -> None:
    rows = json.loads(ROWS.read_text(encoding="utf-8"))
    for row in rows:
        assert sorted(row) == sorted(KEYS)
        told = [row[key] for key in KEYS if key not in ("interval", "data")]
        assert all(told), row
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"]), row
        assert re.fullmatch(r"[0-9a-f]{7,8}", row["commit"]), row
        assert not any("\n" in text or "|" in text for text in row.values()), row
    assert len({(row["study"], row["question"]) for row in rows}) == len(rows)


def test_a_study_replaces_the_rows_that_it_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page, "ROWS", tmp_path / "results.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "RESULTS.md")
    page.ROWS.write_text("[]", encoding="utf-8")
    for study, rows in (
        ("one", [Row("a?", "1"), Row("b?", "2")]),
        ("other", [Row("a?", "3")]),
        ("one", [Row("b?", "4", "3 to 5"), Row("c?", "5")]),
    ):
        publish(study, "python -m it", rows, {"x": float("nan")}, tmp_path / "out", write=True)
    kept = [(r["study"], r["question"], r["answer"]) for r in json.loads(page.ROWS.read_text())]
    assert sorted(kept) == [
        *(("one", "a?", "1"), ("one", "b?", "4"), ("one", "c?", "5"), ("other", "a?", "3")),
    ]
    assert [study for study, *_ in kept] == ["one", "one", "one", "other"]
    assert "## one\n" in page.PAGE.read_text() and "| b? | 4 | 3 to 5 |  |" in page.PAGE.read_text()
    assert json.loads((tmp_path / "out" / "figures.json").read_text()) == {"x": None}
    before = page.ROWS.read_bytes()
    publish("one", "python -m it", [Row("a?", "9")], {}, tmp_path / "out", write=False)
    assert page.ROWS.read_bytes() == before
    assert "| a? | 9 |  |  |" in capsys.readouterr().out


def test_an_interval_that_is_not_known_is_left_out() -> None:
    assert between([0.25, 0.5], "{:.0%}") == "25% to 50%"
    assert between([None, 0.5]) == between([float("nan")] * 2) == ""
