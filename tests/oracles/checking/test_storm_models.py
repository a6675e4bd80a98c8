"""Chains in PRISM's language, DRN and JANI: published values, in and out and in again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extent import WHOLE, sampled
from others_data import DATA

from forewarn.cli.main import main
from forewarn.errors import ModelError
from forewarn.models.counts import CountModel
from forewarn.models.estimation import estimate_chain
from forewarn.models.file import load_model, save_model
from forewarn.wings.decisions.exporters import export_chain
from forewarn.wings.decisions.storm import check_query
from forewarn.wings.decisions.storm_models import Imported, import_chain

pytest.importorskip("stormpy", reason="Storm reads the files")

QCOMP = DATA / "qcomp"
CHAINS = 14

# Knuth and Yao (1976): a fair die from a fair coin. Each face has probability 1/6.
DIE = """\
dtmc
module die
  s : [0..12] init 0;
  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [] s=1 -> 0.5 : (s'=3) + 0.5 : (s'=4);
  [] s=2 -> 0.5 : (s'=5) + 0.5 : (s'=6);
  [] s=3 -> 0.5 : (s'=1) + 0.5 : (s'=7);
  [] s=4 -> 0.5 : (s'=8) + 0.5 : (s'=9);
  [] s=5 -> 0.5 : (s'=10) + 0.5 : (s'=11);
  [] s=6 -> 0.5 : (s'=2) + 0.5 : (s'=12);
  [] s>6 -> true;
endmodule
label "one" = s=7;
label "done" = s>6;
"""
# The gambler's ruin: from stake k of N, P(ruin) = (r^k - r^N) / (1 - r^N), r = (1 - p) / p.
RUIN = """\
dtmc
const int N;
const double p;
module gambler
  stake : [0..N] init 2;
  [] stake>0 & stake<N -> p : (stake'=stake+1) + 1-p : (stake'=stake-1);
  [] stake=0 | stake=N -> true;
endmodule
label "ruin" = stake=0;
label "rich" = stake=N;
"""


def value(model: CountModel, query: str) -> float:
    (first,) = np.flatnonzero(model.starts)
    return float(check_query(model, estimate_chain(model), query).values[first])


def given(tmp_path: Path, text: str, name: str = "given.prism", **options: Any) -> Imported:
    file = tmp_path / name
    file.write_text(text)
    return import_chain(file, **options)


def read_again(model: CountModel, form: str, tmp_path: Path, **options: Any) -> CountModel:
    save_model(model, tmp_path / "kept.json")
    kept = load_model(tmp_path / "kept.json")
    return given(tmp_path, export_chain(kept, form), f"again.{form}", **options).model


def published() -> list[Any]:
    if not (QCOMP / "manifest.json").is_file():
        skip = pytest.mark.skip(reason=f"{QCOMP} is absent: benchmarks of others do not ship")
        return [pytest.param({}, marks=skip, id="qcomp")]
    entries = json.loads((QCOMP / "manifest.json").read_text())
    # haddad-monmege takes sound iteration seconds, and from 100 on defeats it.
    chains = [e for e in entries if e["kind"] == "dtmc" and e["model"] != "haddad-monmege"]
    chosen = sorted(chains, key=lambda entry: entry["states"])[:CHAINS]
    return [
        pytest.param(entry, id=Path(entry["file"]).stem) for entry in chosen[:: 1 if WHOLE else 6]
    ]


def drn_of(entry: dict[str, Any]) -> str:
    """Write a benchmark's arrays as DRN, with the labels phi and psi of its question."""
    arrays = np.load(QCOMP / entry["file"], allow_pickle=False)
    data, indices, indptr = (arrays[key].tolist() for key in ("data", "indices", "indptr"))
    masks = {key: np.asarray(arrays[key], dtype=bool) for key in ("phi", "psi")}
    first = np.atleast_1d(arrays["init"])
    firsts = set(np.flatnonzero(first).tolist() if first.dtype == bool else first.tolist())
    n = len(indptr) - 1
    lines = ["@type: DTMC", "@parameters", "", "@reward_models", "", "@nr_states", str(n)]
    lines += ["@nr_choices", str(n), "@model"]
    for i in range(n):
        held = [key for key, mask in masks.items() if mask[i]]
        lines.append(" ".join([f"state {i}", *(["init"] if i in firsts else []), *held]))
        lines.append("\taction 0")
        row = range(indptr[i], indptr[i + 1])
        lines += [f"\t\t{indices[k]} : {data[k]!r}" for k in row]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("entry", published())
def test_published_probabilities_are_found_again(entry: dict[str, Any], tmp_path: Path) -> None:
    model = given(tmp_path, drn_of(entry), "given.drn").model
    query = 'P=? [ "phi" U "psi" ]'
    assert value(model, query) == pytest.approx(entry["value"], rel=1e-6)
    again = read_again(model, "drn", tmp_path)
    assert again.size == model.size == entry["states"]
    assert value(again, query) == pytest.approx(entry["value"], rel=1e-6)


@pytest.mark.parametrize("form", ["prism", "drn", "jani"])
def test_a_die_stays_fair_in_every_format(form: str, tmp_path: Path) -> None:
    first = given(tmp_path, DIE)
    assert not first.rounded
    assert first.model.size == 13
    again = read_again(first.model, form, tmp_path)
    assert set(again.vocabulary.predicates) == set(first.model.vocabulary.predicates)
    for model in (first.model, again):
        assert value(model, 'P=? [F "one"]') == pytest.approx(1 / 6)
        assert value(model, 'P=? [F<=3 "done"]') == pytest.approx(3 / 4)


@pytest.mark.parametrize("form", sampled(["prism", "drn", "jani"]))
def test_constants_are_given_and_labels_become_terminal(form: str, tmp_path: Path) -> None:
    ends = ("rich", "ruin")
    model = given(tmp_path, RUIN, constants="N=6,p=0.45", terminals=ends).model
    assert model.vocabulary.terminals == ends
    ratio = 0.55 / 0.45
    ruin = (ratio**2 - ratio**6) / (1 - ratio**6)
    assert value(model, 'P=? [F "ruin"]') == pytest.approx(ruin)
    again = read_again(model, form, tmp_path, terminals=ends)
    assert value(again, 'P=? [F "ruin"]') == pytest.approx(ruin)
    assert again.vocabulary == model.vocabulary


def test_a_probability_without_a_small_denominator_is_rounded_and_told(tmp_path: Path) -> None:
    odd = "0.12345678901234567"
    found = given(tmp_path, RUIN, constants=f"N=3,p={odd}")
    assert found.rounded == 2
    chain = estimate_chain(found.model).to_csr().toarray()
    assert np.abs(chain - float(odd)).min() < 2**-40


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (RUIN, {}, r"constants open: N, p \(accepted: --constants"),
        (RUIN, {"constants": "N=3,p=0.5,q=1"}, "unknown undefined constant 'q'"),
        (RUIN, {"constants": "N=3,p=1e-20"}, "state 0: a probability of 1e-20"),
        (
            DIE.replace("0.5 : (s'=1)", "0.4 : (s'=1)", 1),
            {},
            "state 0: the probabilities sum to 0.9",
        ),
        (DIE.replace("[0..12]", "[0..12"), {}, "line 3, column 14"),
        (DIE.replace("dtmc", "mdp"), {}, r"kind MDP \(accepted: a DTMC\)"),
        (DIE, {"terminals": ("two",)}, r"--terminal two: no such label \(accepted: done, one\)"),
        (DIE, {"terminals": ("one",)}, "also has done"),
    ],
)
def test_what_is_not_taken_is_named_with_its_place(
    text: str, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        given(tmp_path, text, **options)
    assert "given.prism" in str(caught.value)


def test_too_many_states_are_refused_before_storm_builds_them(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"200,000 states \(accepted: at most 131,072"):
        given(tmp_path, "@type: DTMC\n@nr_states\n200000\n@model\n", "given.drn")
    with pytest.raises(ModelError, match="--constants"):
        given(tmp_path, "@type: DTMC\n", "given.drn", constants="N=1")
    with pytest.raises(ModelError, match="cannot be read"):
        import_chain(tmp_path / "absent.jani")
    with pytest.raises(ModelError, match="line 1, column"):
        given(tmp_path, '{"jani-version":}', "given.jani")


def test_a_chain_without_a_start_or_with_another_encoding_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "die.prism"
    file.write_text(DIE)
    text = export_chain(import_chain(file).model, "drn")
    with pytest.raises(ModelError, match="has no initial state"):
        given(tmp_path, text.replace(" init", ""), "given.drn")
    (tmp_path / "latin.drn").write_bytes(text.replace("done", "f\u00e4llt").encode("latin-1"))
    with pytest.raises(ModelError, match="no UTF-8"):
        import_chain(tmp_path / "latin.drn")


@pytest.mark.parametrize("name", ["given.prism", "given.drn"])
def test_what_crashes_storm_is_an_error_of_the_command(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_text(DIE)
    if name.endswith("drn"):
        (tmp_path / "die.prism").write_text(DIE)
        text = export_chain(import_chain(tmp_path / "die.prism").model, "drn")
        file.write_text(text.replace(" : 0.5", " : 1/0", 1))
    else:
        file.write_text(DIE.replace("0.5 :", "1/0 :", 1))
    assert main(["import", str(file), "-o", str(tmp_path / "model.json")]) == 2
    assert "Storm crashes on it: it divides by zero" in capsys.readouterr().err
    assert not (tmp_path / "model.json").exists()


def test_a_row_written_with_few_decimals_is_taken_and_told(tmp_path: Path) -> None:
    (tmp_path / "die.prism").write_text(DIE.replace("[] s=0 -> 0.5", "[] s=0 -> 0.499"))
    found = import_chain(tmp_path / "die.prism")
    assert found.rounded == 1
    chain = estimate_chain(found.model).to_csr()
    assert chain.sum(axis=1).min() == pytest.approx(1, abs=1e-12)
