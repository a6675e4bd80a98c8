"""A model is written only where nothing is, or a model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.errors import InputError
from forewarn.models.file import check_replaceable


@given(st.binary(max_size=200))
def test_what_is_no_model_is_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("foreign") / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is no model file, and is not written over"):
        check_replaceable(path)
    assert path.read_bytes() == content


def test_a_free_name_and_a_model_are_accepted(tmp_path: Path) -> None:
    check_replaceable(tmp_path / "free")
    check_replaceable(Path(__file__).parents[3] / "config" / "demo.model.json.gz")


def test_a_link_to_somebody_else_s_file_and_a_fifo_are_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("{}")
    (tmp_path / "link").symlink_to("precious")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", "none/model.json"):
        with pytest.raises(InputError):
            check_replaceable(tmp_path / name)
