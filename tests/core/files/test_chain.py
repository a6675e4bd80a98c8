"""A record is held against its chain: what was changed is found, and what a kill left is said."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.errors import InputError, RecordingError
from forewarn.files.chain import LEAST_KEY, ChainedFile, chain_of, read_key
from forewarn.files.chain_check import check_chain

KEY = bytes(range(32))
LINES = [f'{{"run":"a","step":{n},"gap":{n / 7}}}\n'.encode() for n in range(12)]
Keys = pytest.mark.parametrize("key", [None, KEY])


def written(path: Path, lines: list[bytes] = LINES, key: bytes | None = None) -> Path:
    with ChainedFile(path, key) as file:
        for line in lines:
            file.write(line)
    return path


def relined(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> Path:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    return path


@Keys
def test_what_was_written_is_found_as_it_was(tmp_path: Path, key: bytes | None) -> None:
    found = check_chain(written(tmp_path / "r.jsonl", key=key), key)
    assert (found.findings, found.remarks, found.blocks) == ([], [], len(LINES))


@Keys
def test_each_of_a_thousand_bits_is_found_in_record_and_chain(
    tmp_path: Path, key: bytes | None
) -> None:
    path = written(tmp_path / "r.jsonl", key=key)
    chooser = random.Random(7)
    for number in range(1000):
        target = (path, chain_of(path))[number % 2]
        data = bytearray(whole := target.read_bytes())
        place = chooser.randrange(len(data))
        data[place] ^= 1 << chooser.randrange(8)
        target.write_bytes(data)
        try:
            found = check_chain(path, key).findings
        except RecordingError as error:
            found = [str(error)]
        assert found, (target, place)
        if target == path:
            assert found[0].startswith(f"{path}:{whole[:place].count(10) + 1}: ")
            assert len(found) == 1
        target.write_bytes(whole)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: lines[:4] + lines[5:], 5),
        (lambda lines: [*lines[:4], lines[0], *lines[4:]], 5),
        (lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]], 5),
        (lambda lines: lines[:-1], 12),
        (lambda lines: [*lines[:-1], lines[-1][:9]], 12),
        (lambda lines: [*lines, lines[0]], 13),
        (lambda lines: [*lines, b"{"], 13),
        (lambda lines: lines[1:], 1),
    ],
    ids=["deleted", "inserted", "swapped", "cut", "torn", "added", "added part", "first"],
)
@Keys
def test_lines_that_were_moved_are_found_where_they_begin(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], line: int, key: bytes | None
) -> None:
    path = relined(written(tmp_path / "r.jsonl", key=key), change)
    assert f"{path}:{line}:" in check_chain(path, key).findings[0]


@given(
    blocks=st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8),
    restarts=st.sets(st.integers(0, 7)),
    data=st.data(),
)
def test_any_other_bytes_are_found_and_the_same_are_not(
    tmp_path_factory: pytest.TempPathFactory,
    blocks: list[bytes],
    restarts: set[int],
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.mktemp("chain") / "r.mcap"
    for number, block in enumerate(blocks):
        if number in restarts or number == 0:
            file = ChainedFile(path)
        file.write(block)
        if number + 1 in restarts or number + 1 == len(blocks):
            file.close()
    whole = b"".join(blocks)
    assert check_chain(path).findings == []
    other = data.draw(st.binary(max_size=len(whole) + 9).filter(lambda drawn: drawn != whole))
    path.write_bytes(other)
    assert check_chain(path).findings


def test_two_writers_make_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with ChainedFile(path) as one, ChainedFile(path) as other:
        for number, line in enumerate(LINES):
            (one, other)[number % 2].write(line)
    found = check_chain(path)
    assert (found.findings, found.remarks, found.blocks) == ([], [], len(LINES))


def test_a_line_that_was_never_finished_is_no_tampering(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl")
    entries = chain_of(path).read_bytes().splitlines(keepends=True)
    chain_of(path).write_bytes(b"".join(entries[:-2]))  # killed before the last line had an entry
    relined(path, lambda lines: [*lines[:-1], lines[-1][:7]])
    found = check_chain(path)
    assert found.findings == []
    assert "killed while it wrote them" in found.remarks[0]


def test_a_chain_that_was_never_finished_is_no_tampering(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl")
    chain = chain_of(path).read_bytes()
    chain_of(path).write_bytes(chain[:-10])
    found = check_chain(path)
    assert found.findings == []
    assert "was killed while it wrote this" in found.remarks[0]


def test_the_next_life_goes_on_after_a_kill(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl")
    entries = chain_of(path).read_bytes().splitlines(keepends=True)
    chain_of(path).write_bytes(b"".join([*entries[:-2], entries[-2][:20]]))
    written(path)
    found = check_chain(path)
    assert found.findings == []
    assert f"{path}:12: was there when its writer began again" in found.remarks[0]


def test_lines_added_between_two_lives_are_found(tmp_path: Path) -> None:
    path = relined(written(tmp_path / "r.jsonl"), lambda lines: lines + lines[:2])
    written(path)
    assert check_chain(path).findings == [f"{path}:13-14: was added by another than its writer"]


def test_a_record_cut_between_two_lives_is_found(tmp_path: Path) -> None:
    path = relined(written(tmp_path / "r.jsonl"), lambda lines: lines[:-3])
    written(path)
    assert check_chain(path).findings


def test_a_head_tells_of_an_end_that_record_and_chain_lack(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl")
    head = check_chain(path).head
    relined(path, lambda lines: lines[:-3])
    relined(chain_of(path), lambda lines: lines[:-4])
    assert check_chain(path).findings == []
    assert "only --head tells" in check_chain(path).remarks[0]
    assert head in check_chain(path, head=head).findings[0]


def test_who_has_no_key_makes_no_other_chain(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", key=KEY)
    forged = written(tmp_path / "f.jsonl", LINES[:-1], key=b"another key, as long")
    path.write_bytes(forged.read_bytes())
    chain_of(path).write_bytes(chain_of(forged).read_bytes())
    assert check_chain(path, KEY).findings
    with pytest.raises(RecordingError, match="has a key"):
        check_chain(path)
    with pytest.raises(RecordingError, match="accepted: a chain without a key"):
        ChainedFile(path)


def test_a_key_too_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(LEAST_KEY - 1))
    with pytest.raises(InputError, match="has 15 bytes"):
        read_key(tmp_path / "key")
