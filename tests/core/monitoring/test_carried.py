"""What a record carries: tables by digest and by changed rows, and what decided at a tick."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from forewarn.errors import RecordingError
from forewarn.monitoring.carried import TablePacker, TableReader

floats = st.floats(allow_nan=True, allow_infinity=True, width=64)
tables = st.dictionaries(
    st.sampled_from(["a.table.values", "a.table.lower", "b.steps"]),
    arrays.arrays(np.float64, st.tuples(st.integers(0, 6), st.integers(1, 3)), elements=floats),
    max_size=3,
)


def same(one: dict[str, Any], other: Any) -> bool:
    return list(one) == list(other) and all(
        one[k].shape == other[k].shape and one[k].tobytes() == other[k].tobytes() for k in one
    )


@given(st.lists(tables, max_size=6), st.data())
def test_all_tables_are_read_back_to_the_bit_in_any_order(
    sets: list[dict[str, Any]], data: st.DataObject
) -> None:
    packer, files, names = TablePacker(), dict[str, bytes](), []
    for item in [*sets, *sets[:2]]:
        name, packed = packer.pack(item)
        assert (packed is None) == (name in files)
        if packed is not None:
            files[name] = packed
        names.append((name, item))
    reader = TableReader(files)
    for name, item in data.draw(st.permutations(names)):
        assert same(item, reader.read(name))


def test_a_swap_stores_the_rows_that_changed() -> None:
    draw = np.random.default_rng(0)
    first = {"a.table.values": draw.random((2000, 20)), "a.steps": draw.random((2000, 20))}
    second = {name: array.copy() for name, array in first.items()}
    second["a.table.values"][[3, 700]] *= 1.1
    packer = TablePacker()
    _, whole = packer.pack(first)
    _, changed = packer.pack(second)
    assert whole is not None
    assert changed is not None
    assert len(changed) < 1000 < len(whole) / 500
    assert packer.pack({name: array.copy() for name, array in first.items()})[1] is None


@pytest.mark.parametrize("damage", ["cut", "bits", "gone", "no base"])
def test_damaged_tables_are_an_error(damage: str) -> None:
    packer = TablePacker()
    first = {"a.table.values": np.arange(12.0).reshape(6, 2)}
    second = {"a.table.values": first["a.table.values"].copy()}
    second["a.table.values"][2] = 7.0
    base, whole = packer.pack(first)
    name, changed = packer.pack(second)
    assert whole is not None
    assert changed is not None
    files = {base: whole, name: changed}
    if damage == "cut":
        files[base] = whole[:-5]
    elif damage == "bits":
        files[base] = TablePacker().pack({"a.table.values": np.ones((6, 2))})[1] or b""
    elif damage == "gone":
        del files[name]
    else:
        del files[base]
    with pytest.raises(RecordingError, match="its risk tables are damaged"):
        TableReader(files).read(name)
