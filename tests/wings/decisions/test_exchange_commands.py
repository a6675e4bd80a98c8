"""Chains of others in, our chains out: with Storm reading both sides."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forewarn.models.estimation import estimate_chain
from forewarn.models.file import load_model
from forewarn.wings.decisions.exporters import FORMATS

Run = Callable[..., Any]

VEHICLES = ["s1", "s2", "s3", "s4", "s5", "s9", "s10"]


def probguard(folder: Path) -> Path:
    """Write a chain of four states as ProbGuard's repository keeps them."""
    folder.mkdir()
    keys = ["000", "001", "101", "010"]
    rows = {
        "000": {"000": "1/3", "001": "2/3"},
        "001": {"000": "1/2", "101": "1/10", "010": "2/5"},
        "101": {"101": "1"},
        "010": {"010": "1"},
    }
    (folder / "model.json").write_text(json.dumps({"states": keys, "transition_probs": rows}))
    (folder / "abstraction.json").write_text(json.dumps({"predicates": [["speed", "<", "0.5"]]}))
    (folder / "dtmc.prism").write_text("dtmc\nmodule m\n  s : [0..3] init 1;\nendmodule\n")
    return folder


def test_an_imported_chain_keeps_its_probabilities(forewarn: Run, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    result = forewarn("import", probguard(tmp_path / "chain"), "-o", path)
    assert result.code == 0
    assert "4 states" in result.out
    assert "terminal labels collision, reach" in result.out
    model = load_model(path)
    chain = estimate_chain(model).to_csr().toarray()
    slow, other, hit = (model.index[code] for code in (1, 0, -1))
    assert chain[other, slow] == pytest.approx(2 / 3)
    assert chain[slow, hit] == pytest.approx(1 / 10)
    assert model.starts[slow] == 1
    assert model.vocabulary.predicates == ("speed<0.5",)
    assert forewarn("inspect", path).code == 0


def test_without_a_file_the_text_goes_to_stdout(
    forewarn: Run, corridor_model: Path, tmp_path: Path
) -> None:
    for name in FORMATS:
        path = tmp_path / f"chain.{name}"
        assert forewarn("export", corridor_model, "-o", path, "-q").code == 0
        result = forewarn("export", corridor_model, "--format", name)
        assert result.out == path.read_text()
        as_json = forewarn("export", corridor_model, "-f", name, "-o", "-", "--json")
        assert json.loads(as_json.out)["text"] == result.out


def test_unsmoothed_leaves_only_what_was_counted(forewarn: Run, corridor_model: Path) -> None:
    model = load_model(corridor_model)
    text = forewarn("export", corridor_model, "--format", "dot", "--unsmoothed").out
    # Terminal labels, and states that only end recordings, stay where they are.
    stays = int((np.asarray(model.counts.sum(axis=1)).ravel() == 0).sum())
    assert len(re.findall(r"->", text)) == model.counts.nnz + stays
    full = forewarn("export", corridor_model, "--format", "dot").out
    assert len(re.findall(r"->", full)) > 2 * model.counts.nnz


def test_an_export_without_a_format_is_refused(
    forewarn: Run, corridor_model: Path, tmp_path: Path
) -> None:
    unknown = forewarn("export", corridor_model, "-o", tmp_path / "chain.txt")
    assert unknown.code == 2
    assert "chain.txt" in unknown.err
    assert ".prism" in unknown.err
    neither = forewarn("export", corridor_model)
    assert neither.code == 2
    assert "--format" in neither.err
    assert "prism, drn, jani, dot" in neither.err
    assert forewarn("export", corridor_model, "-f", "xml").code == 2
    nowhere = forewarn("export", corridor_model, "-o", tmp_path / "none" / "chain.drn")
    assert nowhere.code == 2
    assert "there is no folder" in nowhere.err


def test_rows_that_smoothing_would_fill_beyond_memory_are_refused(
    forewarn: Run, corridor_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forewarn.wings.decisions.chains.MAX_TRANSITIONS", 10)
    result = forewarn("export", corridor_model, "-f", "drn")
    assert result.code == 2
    assert "accepted: at most 10; --unsmoothed" in result.err
    assert forewarn("export", corridor_model, "-f", "drn", "--unsmoothed").code == 0


RING = """\
dtmc
const double p;
module ring
  s : [0..2] init 0;
  [] s=0 -> p : (s'=1) + 1-p : (s'=0);
  [] s>0 -> true;
endmodule
label "hit" = s=1;
"""


def test_a_prism_file_is_imported_with_its_constants(forewarn: Run, tmp_path: Path) -> None:
    pytest.importorskip("stormpy", reason="Storm reads the PRISM file")
    source, path = tmp_path / "ring.prism", tmp_path / "m.json"
    source.write_text(RING)
    opened = forewarn("import", source, "-o", path)
    assert opened.code == 2
    assert "constants open: p" in opened.err
    result = forewarn(
        "import", source, "-o", path, "--constants", "p=0.25", "--terminal", "hit", "--json"
    )
    assert result.code == 0
    assert json.loads(result.out)["terminals"] == ["hit"]
    answer = json.loads(forewarn("check", path, 'P=? [F<=2 "hit"]', "--json").out)
    assert answer["queries"][0]["initial"] == pytest.approx(1 - 0.75**2)


@pytest.mark.parametrize("update", ["s'=5", "s'=s+3"])
def test_values_out_of_range_are_refused_and_not_wrapped(
    forewarn: Run, tmp_path: Path, update: str
) -> None:
    pytest.importorskip("stormpy", reason="Storm reads the PRISM file")
    source = tmp_path / "ring.prism"
    text = RING.replace("const double p;", "").replace(
        "p : (s'=1) + 1-p", f"1/2 : ({update}) + 1/2"
    )
    source.write_text(text)
    result = forewarn("import", source, "-o", tmp_path / "m.json")
    assert result.code == 2
    assert "a variable leaves its range" in " ".join(result.err.split())
    assert not (tmp_path / "m.json").exists()


def test_options_and_files_that_do_not_fit_are_refused(forewarn: Run, tmp_path: Path) -> None:
    folder, other, path = probguard(tmp_path / "chain"), tmp_path / "x.txt", tmp_path / "m.json"
    other.write_text(RING)
    for arguments, said in [
        ((folder, "--terminal", "hit"), "--terminal"),
        ((folder, "--constants", "p=1"), "--constants"),
        ((other,), ".prism, .pm, .drn, .jani"),
    ]:
        result = forewarn("import", *arguments, "-o", path)
        assert result.code == 2
        assert said in result.err
