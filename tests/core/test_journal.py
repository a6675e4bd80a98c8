"""A journal is replaced as a whole, kept when it is damaged, and no other file is touched."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.errors import RecordingError
from forewarn.journal import LARGEST, JournalFile

BODY = {"memory": [1, 2.5, None, "text"]}


def journal(path: Path, owner: str = "monitor", version: int = 1) -> JournalFile:
    return JournalFile(path, owner, version)


def plain(body: Any) -> Mapping[str, Any]:
    return dict(body)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def test_what_was_written_is_read(path: Path) -> None:
    assert journal(path).read(plain) == (None, "")
    journal(path).write(BODY)
    assert journal(path).read(plain) == (BODY, "")
    assert list(path.parent.iterdir()) == [path]


@given(st.binary(max_size=40))
def test_no_file_of_somebody_else_is_touched(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("foreign") / "journal"
    content = b"#" + content
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="no journal of ours"):
        journal(path).read(plain)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_a_journal_of_another_kind_of_process_is_somebody_else_s(path: Path) -> None:
    journal(path, "bridge").write(BODY)
    with pytest.raises(RecordingError, match="no journal of ours"):
        journal(path, "monitor").read(plain)


def whole(folder: Path) -> bytes:
    journal(folder / "whole").write(BODY)
    return (folder / "whole").read_bytes()


@pytest.mark.parametrize("cut", [0, 1, 10, 40, 60, -1])
def test_a_torn_journal_is_kept_aside_and_not_read(path: Path, tmp_path: Path, cut: int) -> None:
    torn = whole(tmp_path)[:cut]
    path.write_bytes(torn)
    found, damage = journal(path).read(plain)
    aside = path.with_name("journal.damaged-1")
    assert found is None
    assert str(aside) in damage
    assert aside.read_bytes() == torn
    assert not path.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"2.5", b"2.6"),
        lambda text: text.replace(b'"format": 1', b'"format": 9'),
        lambda text: text + b"}",
        lambda text: b"\0" * len(text),
        lambda text: text[:40] + b"[" * 100_000,
        lambda text: text + b" " * LARGEST,
    ],
    ids=["byte", "format", "longer", "zeros", "nested", "large"],
)
def test_a_changed_journal_is_kept_aside_and_not_read(
    path: Path, tmp_path: Path, change: Any
) -> None:
    changed = change(whole(tmp_path))
    path.write_bytes(changed)
    found, damage = journal(path).read(plain)
    assert found is None
    assert "is damaged" in damage
    assert path.with_name("journal.damaged-1").read_bytes() == changed


def test_one_that_makes_no_sense_is_damaged(path: Path) -> None:
    journal(path).write(BODY)
    found, damage = journal(path).read(lambda body: body["absent"])
    assert found is None
    assert "'absent'" in damage


def test_each_damaged_journal_gets_a_name_of_its_own(path: Path) -> None:
    first = path.with_name("journal.damaged-1")
    first.write_text("somebody else's")
    for number in (2, 3):
        path.write_bytes(b"")
        _, damage = journal(path).read(plain)
        assert damage.endswith(f"journal.damaged-{number}")
    assert first.read_text() == "somebody else's"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "folder"])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(path: Path, make: Any) -> None:
    make(path)
    with pytest.raises(RecordingError, match="is no plain file"):
        journal(path).read(plain)
