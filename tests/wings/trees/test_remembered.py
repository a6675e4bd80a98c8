"""What a session has seen comes back from the traces that are written of it, while it stays."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.logic.specification import compile_spec
from forewarn.recordings.registry import open_recording
from forewarn.wings.trees.remembered import RememberedRuns

TEXT = """\
version: 1
{clock}
signals:
  gap: {{}}
  tool: {{}}
  path: {{}}
  twice: {{value: 2 * gap}}
predicates: {{near: gap < 2}}
properties: {{far: {{formula: always(not near), horizon: 3}}}}
"""


def compiled(clock: str):
    return compile_spec(parse_spec(parse_document(TEXT.format(clock=clock))))


def written(runs: RememberedRuns, folder: Path) -> list[list[tuple]]:
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*"):
        old.unlink()
    runs.write(folder)
    found = []
    for path in sorted(folder.iterdir()):
        with open_recording(path) as recording:
            rows = [sample.data for sample in recording.read()]
        found.append([tuple(_known(row[name]) for name in ("gap", "tool", "path")) for row in rows])
    return found


def _known(value):
    return None if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize("clock", ["clock: steps", "rate: 10"])
def test_runs_part_at_gaps_and_after_labels(clock: str, tmp_path: Path) -> None:
    abstraction = compiled(clock).abstraction
    runs = RememberedRuns(abstraction, 100)
    path = np.array([1.0, 2.0])
    gaps = {3: 1, 4: None, 5: 7, 6: 7, 7: 2, 9: 3}
    moments = [(tick, gap, tick in (5, 6)) for tick, gap in gaps.items()]
    for tick, gap, ended in moments:
        runs.observe(tick, [gap, "read", path, None], ended=ended)
    found = written(runs, tmp_path / "traces")
    parts = sorted([row[0] for row in run] for run in found if run[0][0] != 1)
    assert parts == [[2], [3]]
    assert [row[0] for row in next(run for run in found if run[0][0] == 1)] == [1, None, 7, 7]
    assert found[0][0][1:] == ("read", [1.0, 2.0])


def test_equal_runs_are_no_copies(tmp_path: Path) -> None:
    runs = RememberedRuns(compiled("rate: 10").abstraction, 100)
    for tick in (1, 2, 11, 12):
        runs.observe(tick, [1, "read", [], None], ended=False)
    assert len(written(runs, tmp_path / "traces")) == 2
    digests = set()
    for path in (tmp_path / "traces").iterdir():
        with open_recording(path) as recording:
            digests.add(recording.digest())
    assert len(digests) == 2


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=40), st.integers(2, 40))
def test_the_newest_moments_stay(tmp_path_factory, moments, most):
    runs = RememberedRuns(compiled("clock: steps").abstraction, most)
    folder = tmp_path_factory.mktemp("traces")
    for tick, (gap, drain) in enumerate(moments):
        runs.observe(tick, [gap, "a", (), None], ended=False)
        if drain == 9:
            runs.write(folder)
    newest = [gap for gap, _ in moments][-most:]
    assert [[row[0] for row in run] for run in written(runs, folder)] == (
        [newest] if newest else []
    )
