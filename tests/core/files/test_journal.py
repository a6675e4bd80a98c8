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
from forewarn.files.journal import LARGEST, JournalFile

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
    refused(path, "is no journal of ours, and is not written over")
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def refused(path: Path, problem: str) -> None:
    """Expect that nothing is read, and that the error says all that a user needs."""
    with pytest.raises(RecordingError) as caught:
        journal(path).read(plain)
    found = caught.value
    assert (found.problem, found.file, found.key) == (problem, str(path), "journal")
    assert found.accepted == "a name that is free, or the journal of a former life of this process"


@pytest.mark.parametrize("content", [b"  \n", b"X\0X"])
def test_what_is_not_all_zeros_is_no_damaged_journal(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused(path, "is no journal of ours, and is not written over")


def test_what_cannot_be_read_is_refused(path: Path) -> None:
    path.write_bytes(b"a file, and no folder")
    refused(path / "journal", "cannot be read (Not a directory)")


def test_a_damaged_journal_that_cannot_be_kept_aside_stays(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)  # with its ending the new name is too long
    path.write_bytes(b"")
    refused(path, "is damaged and cannot be renamed (File name too long)")
    assert path.exists()


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_nothing_is_written_that_would_be_called_damaged(path: Path, extra: int) -> None:
    journal(path).write(BODY)
    room = LARGEST - path.stat().st_size - len(', "more": ""')
    longer = {**BODY, "more": "m" * (room + extra)}
    if extra <= 0:
        journal(path).write(longer)
    else:
        with pytest.raises(RecordingError) as caught:
            journal(path).write(longer)
        found = caught.value
        assert found.problem.startswith(f"a memory of {LARGEST + extra} bytes is too long")
        assert (found.file, found.key) == (str(path), "journal")
        assert found.accepted == f"at most {LARGEST} bytes"
    assert journal(path).read(plain) == (longer if extra <= 0 else BODY, "")
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_is_an_error_of_this_kind(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="absent"):
        journal(tmp_path / "absent" / "journal").write(BODY)


def test_a_journal_of_another_kind_of_process_is_somebody_else_s(path: Path) -> None:
    journal(path, "bridge").write(BODY)
    with pytest.raises(RecordingError, match="no journal of ours"):
        journal(path, "monitor").read(plain)


def whole(folder: Path) -> bytes:
    journal(folder / "whole").write(BODY)
    return (folder / "whole").read_bytes()


@pytest.mark.parametrize("cut", [0, 1, 10, 36, 40, 60, -1])
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
    ("change", "reason"),
    [
        (lambda text: text.replace(b"2.5", b"2.6"), "its checksum is wrong"),
        (lambda text: text.replace(b'"format": 1', b'"format": 9'), "format 9, not 1"),
        (lambda text: text[:20], "cut short"),
        (lambda text: text + b"}", "Extra data: "),
        (lambda text: b"\0" * len(text), "cut short"),
        (lambda text: text[:40] + b"[" * 100_000, ""),
        (lambda text: text + b" " * LARGEST, f"larger than {LARGEST} bytes"),
    ],
    ids=["byte", "format", "cut", "longer", "zeros", "nested", "large"],
)
def test_a_changed_journal_is_kept_aside_and_not_read(
    path: Path, tmp_path: Path, change: Any, reason: str
) -> None:
    changed = change(whole(tmp_path))
    path.write_bytes(changed)
    found, damage = journal(path).read(plain)
    aside = path.with_name("journal.damaged-1")
    assert found is None
    assert damage.startswith(f"{path} is damaged ({reason}")
    assert damage.endswith(f") and was kept as {aside}")
    assert aside.read_bytes() == changed


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
    refused(path, "is no plain file")
