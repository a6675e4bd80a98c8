"""The model file: what is written is read back, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from forewarn.errors import ModelError
from forewarn.models.counts import CountModel, Provenance, Smoothing
from forewarn.models.file import _checksum, load_model, merge_models, save_model
from forewarn.states.vocabulary import Vocabulary

VOCABULARY = Vocabulary(("moving", "near"), ("collision",))


def model(counts: Any = ((5, 1, 1), (0, 2, 0), (0, 0, 0))) -> CountModel:
    forbidden = np.zeros((3, 3), dtype=bool)
    forbidden[1, 2] = True
    return CountModel(
        VOCABULARY,
        10.0,
        "abc",
        (0, 2, -1),
        sparse.csr_matrix(np.array(counts, dtype=np.int64)),
        np.array([2, 0, 0]),
        Smoothing(0.5, "admissible"),
        sparse.csr_matrix(forbidden),
        (Provenance("run.mcap", "d1", 12.5, 125, 9),),
        3,
    )


def same(one: CountModel, other: CountModel) -> bool:
    fields = ("vocabulary", "rate", "digest", "states", "smoothing", "provenance", "intervened")
    return (
        all(getattr(one, name) == getattr(other, name) for name in fields)
        and (one.counts != other.counts).nnz == 0
        and (one.forbidden != other.forbidden).nnz == 0
        and bool((one.starts == other.starts).all())
        and one.fingerprint == other.fingerprint
    )


def test_a_saved_model_is_read_back_equal(tmp_path: Path) -> None:
    save_model(model(), tmp_path / "m.json")
    assert same(load_model(tmp_path / "m.json"), model())
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]


def test_writing_to_an_absent_folder_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be written"):
        save_model(model(), tmp_path / "absent" / "m.json")


def test_a_file_cut_short_anywhere_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    save_model(model(), path)
    whole = path.read_text()
    for length in range(0, len(whole.rstrip()), 7):
        path.write_text(whole[:length])
        with pytest.raises(ModelError, match=r"m\.json"):
            load_model(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff\xfe", "UTF-8"),
        (b"[" * 100_000, "nested"),
        (b"[]", "an object"),
        (b'{"format": NaN}', "NaN"),
        (b'{"format": "x", "format": "y"}', "twice"),
        (b'{"format": "other"}', "forewarn-model"),
        (b'{"format": "forewarn-model", "version": 99}', "version 1"),
        (b'{"format": "forewarn-model", "version": ' + b"9" * 6000 + b"}", "m.json"),
    ],
)
def test_hostile_content_is_a_model_error(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=said) as caught:
        load_model(path)
    assert "m.json" in str(caught.value)


def test_an_absent_file_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        load_model(tmp_path / "m.json")


def change(path: Path, **changes: Any) -> None:
    """Rewrite a model file with other values and a checksum that fits them."""
    document = json.loads(path.read_text())
    document.update(changes)
    document.pop("checksum")
    document = {key: value for key, value in document.items() if value is not ...}
    document["checksum"] = _checksum(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"rate": 0}, "rate"),
        ({"rate": "ten"}, "rate"),
        ({"rate": ...}, "rate"),
        ({"predicates": ["a", "a"]}, r"predicates\[1\]"),
        ({"states": ["00", "01", "012"]}, r"states\[2\]"),
        ({"states": ["00", "00", "!collision"]}, r"states\[1\]"),
        ({"states": ["00", "01", "!arrived"]}, r"states\[2\]"),
        ({"starts": [[3, 1]]}, r"starts\[0\]"),
        ({"starts": [[0, -1]]}, r"starts\[0\]"),
        ({"transitions": [[0, [1], [-4]]]}, r"transitions\[0\]\[2\]\[0\]"),
        ({"transitions": [[0, [1], [1.5]]]}, r"transitions\[0\]\[2\]\[0\]"),
        ({"transitions": [[0, [7], [1]]]}, r"transitions\[0\]\[1\]\[0\]"),
        ({"transitions": [[0, [1, 1], [1, 1]]]}, r"transitions\[0\]\[1\]"),
        ({"transitions": [[0, [1], [1]], [0, [1], [1]]]}, r"transitions\[1\]\[0\]"),
        ({"transitions": [[2, [0], [1]]]}, "transitions"),
        ({"transitions": [[1, [2], [1]]]}, "transitions"),
        ({"transitions": {"0": 1}}, "transitions"),
        ({"transitions": [[0, [True], [1]]]}, r"transitions\[0\]\[1\]\[0\]"),
        ({"forbidden": [[[0]]]}, r"forbidden\[0\]"),
        ({"smoothing": {"alpha": -1, "candidates": "observed"}}, r"smoothing\.alpha"),
        ({"smoothing": {"alpha": "some", "candidates": "observed"}}, r"smoothing\.alpha"),
        ({"smoothing": {"alpha": 1, "candidates": "all"}}, r"smoothing\.candidates"),
        ({"end": "ignore"}, "end"),
        ({"provenance": [{"recording": 1}]}, r"provenance\[0\]\.recording"),
        ({"intervened": -1}, "intervened"),
    ],
)
def test_a_wrong_value_is_named_with_its_key(
    tmp_path: Path, changes: dict[str, Any], key: str
) -> None:
    path = tmp_path / "m.json"
    save_model(model(), path)
    change(path, **changes)
    with pytest.raises(ModelError, match=key) as caught:
        load_model(path)
    assert "m.json" in str(caught.value)
    assert "accepted" in str(caught.value)


def test_an_edited_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    save_model(model(), path)
    path.write_text(path.read_text().replace('"rate": 10.0', '"rate": 20.0'))
    with pytest.raises(ModelError, match="checksum"):
        load_model(path)


@given(st.data())
def test_counts_of_two_models_add_up(data: st.DataObject) -> None:
    def some(states: tuple[int, ...]) -> CountModel:
        n = len(states)
        values = data.draw(st.lists(st.integers(0, 9), min_size=n * n, max_size=n * n))
        counts = np.array(values, dtype=np.int64).reshape(n, n)
        counts[[s < 0 for s in states]] = 0
        return replace(
            model(),
            states=states,
            counts=sparse.csr_matrix(counts),
            forbidden=sparse.csr_matrix((n, n), dtype=bool),
            starts=np.ones(n, dtype=np.int64),
        )

    one, other = some((0, 2, -1)), some((3, 0))
    both = merge_models([one, other])
    assert both.states == (0, 2, 3, -1)
    for i, s in enumerate(both.states):
        for j, t in enumerate(both.states):
            parts = [
                m.counts[m.index[s], m.index[t]]
                for m in (one, other)
                if s in m.index and t in m.index
            ]
            assert both.counts[i, j] == sum(parts)
    assert both.intervened == 6
    assert len(both.provenance) == 2


@pytest.mark.parametrize("changed", [{"rate": 20.0}, {"digest": "x"}, {"end": "absorb"}])
def test_models_of_another_abstraction_do_not_merge(changed: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(changed))):
        merge_models([model(), replace(model(), **changed)])


def test_merging_nothing_is_a_model_error() -> None:
    with pytest.raises(ModelError, match="at least one"):
        merge_models([])


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ModelError, match="negative count -2 from 'near' to 'near'"):
        model(((5, 1, 1), (0, -2, 0), (0, 0, 0)))


def test_the_fingerprint_changes_with_a_count() -> None:
    assert model().fingerprint != model(((5, 1, 2), (0, 2, 0), (0, 0, 0))).fingerprint


def test_a_model_of_a_fleet_names_all_its_recordings(tmp_path: Path) -> None:
    many = tuple(Provenance(f"{i}.mcap", f"{i:064x}", 1.0, 10, 0) for i in range(70_000))
    path = tmp_path / "fleet.json"
    save_model(replace(model(), provenance=many), path)
    assert load_model(path).provenance == many


def test_a_key_that_is_not_known_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    save_model(model(), path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({"new": 1, **content}))
    with pytest.raises(ModelError, match="new: unknown key"):
        load_model(path)
