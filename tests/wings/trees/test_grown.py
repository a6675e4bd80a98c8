"""It stays known which recordings made the tree: bounds from their counts are not sound."""

from __future__ import annotations

import json
import random
import re

import pytest

from forewarn.config.yaml_text import load_document
from forewarn.models.counts import with_states
from forewarn.models.file import _checksum, load_model, merge_models

TEXT = """\
version: 1
clock: steps
signals: {written: {}, kind: {}}
terminal: {broken: kind == 'broken', over: kind == 'over'}
properties: {whole: {formula: always(not broken), horizon: 3}}
"""
QUERY = "Pmax(broken, 3)"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "monitor.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two folders of two traces each: those that grow a tree, and others."""
    chance, found = random.Random(5), []
    for name in ("growing", "counted"):
        folder = tmp_path_factory.mktemp(name)
        for part in "ab":
            rows = []
            for run in range(25):
                last = chance.randint(2, 6)
                for written in range(last):
                    action = "write" if written < 3 else "risk" if written == 5 else "check"
                    row = {
                        "run": f"{name}{part}{run}",
                        "written": written,
                        "kind": "",
                        "action": action,
                    }
                    rows.append(json.dumps(row))
                end = "broken" if last == 6 and chance.random() < 0.5 else "over"
                rows.append(json.dumps({"run": f"{name}{part}{run}", "kind": end}))
            (folder / f"{part}.jsonl").write_text("\n".join(rows) + "\n")
        found.append(folder)
    return found


def _asked(forewarn, model, *arguments):
    (found,) = json.loads(forewarn("check", model, QUERY, "--json", *arguments).out)["queries"]
    return found["sound"], " ".join(found["notes"])


@pytest.fixture
def grown(forewarn, config, folders):
    assert forewarn("learn-states", folders[0], "-c", config, "--leaves", 2, "--write").code == 0
    return config


def _learned(forewarn, config, folder, path):
    assert forewarn("learn", folder, "-c", config, "-o", path).code == 0
    return path


def test_counts_of_traces_that_grew_the_tree_are_called_unsound(forewarn, grown, folders, tmp_path):
    model = _learned(forewarn, grown, folders[0], tmp_path / "same.model.json")
    sound, notes = _asked(forewarn, model)
    assert not sound
    assert "50 of the 50 recordings that are counted made the states" in notes
    assert "(not sound)" in forewarn("check", model, QUERY).out


def test_counts_of_other_traces_are_sound_and_it_is_said_why(forewarn, grown, folders, tmp_path):
    model = _learned(forewarn, grown, folders[1], tmp_path / "other.model.json")
    sound, notes = _asked(forewarn, model)
    assert sound and "none of the 50 recordings that are counted made the states" in notes
    assert not _asked(forewarn, model, "--grown")[0]


def test_merging_and_refining_forget_no_trace(forewarn, grown, folders, tmp_path):
    own = _learned(forewarn, grown, folders[0] / "a.jsonl", tmp_path / "own.model.json")
    other = _learned(forewarn, grown, folders[1], tmp_path / "other.model.json")
    merged = tmp_path / "merged.model.json"
    assert forewarn("merge", other, own, "-o", merged).code == 0
    sound, notes = _asked(forewarn, merged)
    assert not sound and "25 of the 75 recordings" in notes
    first = set(load_document(grown).data["states"]["state_source_recordings"])
    query = ("--query", "Pmax(broken) <= 0.12", "--leaf-size", "2")
    refined = forewarn("refine", folders[1], "-c", grown, *query, "--write", "--json")
    assert json.loads(refined.out)["written"], "the test needs a tree that is refined"
    assert set(load_document(grown).data["states"]["state_source_recordings"]) > first
    model = _learned(forewarn, grown, folders[1], tmp_path / "refined.model.json")
    assert not _asked(forewarn, model)[0]


def test_a_tree_by_hand_leaves_it_open(forewarn, grown, folders, tmp_path):
    grown.write_text(re.sub(r"  state_source_recordings: \[[^]]*\]\n", "", grown.read_text()))
    model = _learned(forewarn, grown, folders[0], tmp_path / "open.model.json")
    sound, notes = _asked(forewarn, model)
    assert sound and "does not tell which recordings its states were learned from" in notes
    assert "grown" not in json.loads(model.read_text())


def test_the_marks_stay_with_the_counts(forewarn, grown, folders, tmp_path):
    model = load_model(_learned(forewarn, grown, folders[0], tmp_path / "m.model.json"))
    assert model.state_source_recordings == tuple(
        sorted(load_document(grown).data["states"]["state_source_recordings"])
    )
    assert (
        with_states(model, model.states[::-1]).state_source_recordings
        == model.state_source_recordings
    )
    assert merge_models([model, model]).state_source_recordings == model.state_source_recordings
    assert len(model.state_source_provenance) == 50


def test_what_would_be_written_is_shown_without_all_marks(forewarn, config, folders):
    command = ("learn-states", folders[0], "-c", config, "--leaves", 2)
    assert "+  state_source_recordings: [\n+    ...\n+  ]\n" in forewarn(*command).out
    change = json.loads(forewarn(*command, "--json").out)["diff"]
    assert len(re.findall('"[0-9a-f]{12}"', change)) == 50


def test_predicates_are_made_by_nobody_s_traces(forewarn, config, folders, tmp_path):
    config.write_text(TEXT + "predicates: {many: written > 3}\n")
    model = _learned(forewarn, config, folders[0], tmp_path / "plain.model.json")
    sound, notes = _asked(forewarn, model)
    assert sound and "made the states" not in notes and "learned from" not in notes


@pytest.mark.parametrize("state_source_provenance", [[7], [""], "ab", [["ab"]]])
def test_marks_that_are_none_are_refused(
    forewarn, grown, folders, tmp_path, state_source_provenance
):
    path = _learned(forewarn, grown, folders[1], tmp_path / "m.model.json")
    content = json.loads(path.read_text())
    del content["checksum"]
    content["state_source_recordings"] = state_source_provenance
    path.write_text(json.dumps({**content, "checksum": _checksum(content)}))
    found = forewarn("check", path, QUERY)
    assert found.code == 2 and "state_source_recordings" in found.err
