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


def storm_value(text: str, formula: str, tmp_path: Path) -> float:
    """Return the value of a formula in the initial state of a PRISM program."""
    stormpy = pytest.importorskip("stormpy", reason="Storm reads the PRISM files")
    file = tmp_path / "given.prism"
    file.write_text(text)
    program = stormpy.parse_prism_program(str(file))
    (asked,) = stormpy.parse_properties(formula, program)
    model = stormpy.build_model(program, [asked])
    result = stormpy.model_checking(model, asked)
    values = result.get_values() if hasattr(result, "get_values") else result.get_value_vector()
    return float(list(values)[model.initial_states[0]])


@pytest.mark.parametrize("name", VEHICLES)
@pytest.mark.parametrize("bound", ["", "<=20"])
def test_the_vehicle_chains_of_probguard_have_the_risk_of_their_prism_files(
    forewarn: Run, shared_data: Path, tmp_path: Path, name: str, bound: str
) -> None:
    folder = shared_data / "probguard" / "av" / name
    keys = json.loads((folder / "model.json").read_text())["states"]
    hit = " | ".join(f"s={i}" for i, key in enumerate(keys) if key != "finish" and key[0] == "1")
    text = (folder / "dtmc.prism").read_text()
    expected = storm_value(text, f"P=? [ F{bound} ({hit}) ]", tmp_path)
    path = tmp_path / "m.json"
    assert forewarn("import", folder, "-o", path, "--rate", "10").code == 0
    assert load_model(path).rate == 10
    document = json.loads(forewarn("check", path, f'P=? [F{bound} "collision"]', "--json").out)
    assert document["queries"][0]["initial"] == pytest.approx(expected, abs=1e-6)


def test_all_household_chains_of_probguard_load(
    forewarn: Run, shared_data: Path, tmp_path: Path
) -> None:
    folders = sorted(p.parent for p in (shared_data / "probguard/embodied").rglob("model.json"))
    assert len(folders) > 50
    path = tmp_path / "m.json"
    for folder in folders:
        result = forewarn("import", folder, "-o", path, "--json")
        assert result.code == 0, folder
        document = json.loads(result.out)
        keys = json.loads((folder / "model.json").read_text())["states"]
        assert document["states"] == load_model(path).size == len(keys)


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


def test_what_others_wrote_wrongly_is_refused_by_name(forewarn: Run, tmp_path: Path) -> None:
    path, folder = tmp_path / "m.json", probguard(tmp_path / "chain")
    source = folder / "model.json"
    good = source.read_text()
    for old, new, named in [
        ('"2/3"', '"2/4"', ["transition_probs.000", "0.83", "accepted: 1"]),
        ('"2/3"', '"two"', ["transition_probs.000.001", "'two'", "3/7"]),
        ('{"000": "1/3"', '{"0": "1/3"', ["transition_probs.000", "'0' is no state"]),
        ('"states"', '"stages"', ["states", "list"]),
        (good, good[: len(good) // 2], ["model.json"]),
    ]:
        source.write_text(good.replace(old, new, 1))
        result = forewarn("import", folder, "-o", path)
        assert result.code == 2, new
        assert str(folder) in result.err
        for text in named:
            assert text in result.err
        assert not path.exists()
    missing = forewarn("import", tmp_path / "nowhere", "-o", path)
    assert missing.code == 2
    assert "nowhere" in missing.err
    usage = forewarn("import", folder, "-o", path, "--rate", "0")
    assert usage.code == 2
    assert "--rate" in usage.err


@pytest.mark.parametrize("unsmoothed", [False, True])
@pytest.mark.parametrize("name", ["prism", "drn", "jani"])
def test_storm_gives_the_exported_chain_the_value_that_check_gives(
    forewarn: Run, corridor_model: Path, tmp_path: Path, name: str, unsmoothed: bool
) -> None:
    stormpy = pytest.importorskip("stormpy", reason="Storm reads back what is exported")
    extra = ["--unsmoothed"] if unsmoothed else []
    path = tmp_path / f"chain.{name}"
    result = forewarn("export", corridor_model, "-o", path, *extra)
    assert result.code == 0
    assert f"{name} -> {path}" in result.out
    answer = forewarn("check", corridor_model, 'P=? [F<=15 "contact"]', *extra, "--json")
    values = json.loads(answer.out)["queries"][0]["values"]
    model = load_model(corridor_model)
    first = model.vocabulary.key(model.states[int(np.argmax(model.starts))])
    (asked,) = stormpy.parse_properties('P=? [F<=15 "contact"]')
    if name == "drn":
        read = stormpy.build_model_from_drn(str(path))
    elif name == "prism":
        read = stormpy.build_model(stormpy.parse_prism_program(str(path)), [asked])
    else:
        parsed, _ = stormpy.parse_jani_model(str(path))
        (asked,) = stormpy.parse_properties_for_jani_model("P=? [F<=15 contact]", parsed)
        read = stormpy.build_model(parsed, [asked])
    found = stormpy.model_checking(read, asked)
    vector = found.get_values() if hasattr(found, "get_values") else found.get_value_vector()
    assert list(vector)[read.initial_states[0]] == pytest.approx(values[first], abs=1e-9)


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
