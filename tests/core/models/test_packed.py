"""A model file may be packed by gzip: the same model, and the same errors."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.errors import InputError, ModelError
from forewarn.models.file import check_replaceable, load_model, save_model

CHAIN = Path(__file__).parents[3] / "evaluation" / "sumo" / "predicates.model.json"


def test_a_packed_model_is_the_same_model_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    model = load_model(CHAIN)
    packed, again = tmp_path / "a.json.gz", tmp_path / "b.json.gz"
    save_model(model, packed)
    save_model(load_model(packed), again)
    assert packed.read_bytes() == again.read_bytes()
    save_model(model, tmp_path / "plain.json")
    assert gzip.decompress(packed.read_bytes()) == (tmp_path / "plain.json").read_bytes()
    assert load_model(packed).fingerprint == model.fingerprint


def test_a_packed_model_may_be_replaced_and_what_else_is_packed_may_not(tmp_path: Path) -> None:
    packed = tmp_path / "a.json.gz"
    save_model(load_model(CHAIN), packed)
    check_replaceable(packed)
    packed.write_bytes(gzip.compress(b"a diary"))
    with pytest.raises(InputError, match="is no model file, and is not written over"):
        check_replaceable(packed)


@given(st.floats(0, 1, exclude_max=True))
def test_one_that_is_cut_short_is_named(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    packed = gzip.compress(CHAIN.read_bytes()[:2000], mtime=0)
    file = tmp_path_factory.mktemp("cut") / "model.json.gz"
    file.write_bytes(packed[: max(2, int(share * len(packed)))])
    with pytest.raises(ModelError, match=r"cannot be unpacked: it is cut short") as caught:
        load_model(file)
    assert str(file) in str(caught.value)


@given(st.integers(10, 400), st.integers(1, 255))
def test_a_damaged_one_never_becomes_another_model(
    tmp_path_factory: pytest.TempPathFactory, place: int, change: int
) -> None:
    packed = bytearray(gzip.compress(CHAIN.read_bytes(), mtime=0))
    packed[-place] ^= change
    file = tmp_path_factory.mktemp("damaged") / "model.json.gz"
    file.write_bytes(packed)
    with pytest.raises(ModelError):
        load_model(file)


def test_what_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bomb.json.gz"
    file.write_bytes(gzip.compress(b" " * 1_000_000))
    with pytest.raises(ModelError, match=r"too large when unpacked .*at most 65536 bytes"):
        load_model(file, most=65536)
