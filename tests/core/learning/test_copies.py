"""Recordings that hold the same data: a mistake, or agents that did the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from forewarn.errors import RecordingError
from forewarn.files.remote import address
from forewarn.learning.copies import Copies
from forewarn.models.counts import Provenance

A, B = Path("a.jsonl"), Path("b.jsonl")
ACCEPTED = "each recording once"


def run(trace: Path, number: int) -> Path:
    return trace.with_name(f"{trace.name}::run={number}")


def test_a_run_that_another_trace_holds_too_is_left_out_and_said_so() -> None:
    copies = Copies(allowed=True)
    assert copies.is_new(run(A, 0), "0") and copies.is_new(run(A, 1), "1")
    assert not copies.is_new(run(B, 0), "0")
    assert copies.is_new(run(B, 1), "2")
    assert not copies.is_new(run(B, 2), "1")
    remark = "2 runs left out, because another trace holds the same data: "
    assert copies.remark() == f"{remark}b.jsonl::run=0 is a.jsonl::run=0, and so on"
    assert copies.left_out == [(run(B, 0), run(A, 0)), (run(B, 2), run(A, 1))]


def test_a_trace_of_which_nothing_is_left_was_given_twice() -> None:
    copies = Copies(allowed=True)
    assert copies.remark() == ""
    copies.is_new(run(A, 0), "0")
    assert copies.remark() == ""
    copies.is_new(run(B, 0), "0")
    with pytest.raises(RecordingError, match=ACCEPTED):
        copies.remark()


@pytest.mark.parametrize(("path", "allowed"), [(B, True), (B, False), (run(B, 0), False)])
def test_any_other_recording_twice_is_refused(path: Path, allowed: bool) -> None:
    copies = Copies(allowed=allowed)
    assert copies.is_new(A, "0")
    with pytest.raises(RecordingError, match=ACCEPTED):
        copies.is_new(path, "0")


def test_what_a_model_has_already_is_no_new_recording() -> None:
    counted = [Provenance("a.jsonl", "0", 1.0, 10, 9), Provenance("learned while watching", "")]
    copies = Copies(allowed=True, counted=counted)
    with pytest.raises(RecordingError, match="which the model has already"):
        copies.is_new(A, "0")
    # Agents that are asked the same do the same; the rest of the trace is new.
    assert not copies.is_new(run(B, 0), "0") and copies.is_new(run(B, 1), "1")
    assert not copies.is_new(run(B, 0), "0"), "however often it is read"
    assert copies.left_out == [(run(B, 0), A)]
    assert "1 run left out" in copies.remark()


def test_a_remote_recording_that_gives_the_same_counts_may_be_a_copy() -> None:
    there = address("s3://bucket/b.mcap")
    for paths in ((A, there), (there, A)):
        copies = Copies(allowed=True)
        assert all(copies.is_new(path, str(path), "counts") for path in paths)
        assert copies.alike == [paths[::-1]]
        assert f"{paths[1]} and {paths[0]} give the same counts" in copies.remark()
    # The digests of files on this machine tell: these are two recordings.
    copies = Copies(allowed=True)
    assert copies.is_new(A, "0", "counts") and copies.is_new(B, "1", "counts")
    assert copies.is_new(there, "2") and copies.is_new(there.with_name("c.mcap"), "3", "others")
    assert (copies.alike, copies.remark()) == ([], "")
