"""The study of translators reads other halves of its data."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.translators.data import pairs, translators
from evaluation.translators.spots_words import words_replaced


def test_words_become_spots_without_our_reader() -> None:
    assert words_replaced("globally ( prop_1 implies next b )").split() == [
        "G", "(", '"prop_1"', "->", "X", '"b"', ")",
    ]  # fmt: skip
    assert words_replaced("not photo(car, road)").split() == ["!", '"photo(car,road)"']


def packed(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))


def test_another_half_of_the_data_is_read_as_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other domains, translators of other names, fewer sentences than answers, one set of three."""
    sentence = {
        "id": 1, "sentence": ["Always", "look"],
        "tl": ["globally", "look(door)"], "grounded_tl": ["globally", "prop_1"],
    }  # fmt: skip
    packed(tmp_path / "vltl" / "rescue.jsonl.gz", [sentence])
    answers = tmp_path / "vltl" / "answers"
    for name, text in (
        ("new__raw__rescue", "globally look(door)"),
        ("new__masked__rescue", "globally prop_1"),
        ("new__masked__kitchen", "globally prop_1"),
    ):
        rows = [{"id": number, "prediction": text} for number in (1, 2)]
        packed(answers / f"{name}.jsonl.gz", rows)
    assert [pair.formula for pair in pairs(tmp_path)] == ["globally prop_1"]
    found = {one.name: one for one in translators(tmp_path)}
    assert {name: len(one.answers) for name, one in found.items()} == {
        "new__masked": 1, "new__raw": 1,
    }  # fmt: skip
    assert found["new__raw"].requirements["1"].atoms == ("look(door)",)
    assert found["new__masked"].requirements["1"].atoms == ("prop_1",)
    said = capsys.readouterr().err
    assert "new__raw__rescue.jsonl.gz: 1 answers are left out" in said
    assert "new__masked__kitchen.jsonl.gz: all answers are left out" in said
    with pytest.raises(FileNotFoundError, match="has none of lang2ltl_lifted_pairs"):
        list(pairs(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="--part pairs needs none"):
        list(translators(tmp_path / "nothing"))
