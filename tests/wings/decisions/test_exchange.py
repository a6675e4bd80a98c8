"""Import and export without another tool: names, formats, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from forewarn.errors import ModelError
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.decisions.exporters import export_chain
from forewarn.wings.decisions.importers import import_probguard

ABSTRACTION = {
    "predicates": [["speed", "<", "0.5"], ["light", "==", "2"], ["light", "==", "2"]],
    "reach": ["reach", "==", "1"],
    "collision": ["collision", "==", "1"],
}
MODEL = {
    "states": ["00000", "00100", "01000", "10000"],
    "transition_probs": {
        "00000": {"00000": "1/2", "00100": "1/3", "10000": "1/6"},
        "00100": {"00000": "3/4", "01000": "1/4"},
        "01000": {},
        "10000": {},
    },
}

LARGE = ("1/1099511627791", "1099511627790/1099511627791")


def write(folder: Path, model: Any = MODEL, abstraction: Any = ABSTRACTION) -> Path:
    (folder / "model.json").write_text(json.dumps(model))
    (folder / "abstraction.json").write_text(json.dumps(abstraction))
    return folder


def test_fractions_become_counts_that_give_them_back(tmp_path: Path) -> None:
    (tmp_path / "dtmc.prism").write_text("dtmc\nmodule m\ns : [0..3] init 1;\nendmodule\n")
    model = import_probguard(write(tmp_path), rate=2.0)
    assert model.vocabulary == Vocabulary(
        ("speed<0.5", "light==2", "light==2 (2)"), ("collision", "reach")
    )
    assert model.states == (0, 1, -1, -2)
    assert model.counts.toarray()[:2].tolist() == [[3, 2, 1, 0], [3, 0, 0, 1]]
    assert model.starts.tolist() == [0, 1, 0, 0]
    assert model.rate == 2.0
    chain = estimate_chain(model)
    np.testing.assert_allclose(chain.row(0), [1 / 2, 1 / 3, 1 / 6, 0])
    assert chain.absorbing.tolist() == [False, False, True, True]


def test_household_models_name_their_objects(tmp_path: Path) -> None:
    model = {
        "states": ["0110", "1001", "finish"],
        "state_interpret": {"0110": [{"objectType": "Cup"}, {"objectType": "Mug"}]},
        "transition_probs": {
            "0110": {"0110": "1/2", "finish": "1/2"},
            "1001": {"0110": "1"},
            "finish": {"finish": "1"},
        },
    }
    meaning = {"objectTypes": [], "keys": ["isOpen"], "parentReceptacles": ["Shelf"]}
    found = import_probguard(write(tmp_path, model, meaning))
    assert found.vocabulary.predicates == (
        "Cup.isOpen",
        "Cup in Shelf",
        "Mug.isOpen",
        "Mug in Shelf",
    )
    assert found.vocabulary.terminals == ("finish",)
    assert found.name(0) == "Cup in Shelf & Mug.isOpen"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"states": []}, "states"),
        ({"states": ["00000", "00000"]}, "distinct"),
        ({"states": ["00000", "0010x", "01000", "10000"]}, "5 digits"),
        ({"transition_probs": []}, "transition_probs"),
        ({"transition_probs": {"00000": {"00000": "1/2"}}}, r"sum to 0\.5"),
        ({"transition_probs": {"00000": {"00000": "x"}}}, "no probability"),
        ({"transition_probs": {"00000": {"00000": "1/0"}}}, "no probability"),
        ({"transition_probs": {"00000": {"00000": "1e999999999"}}}, "no probability"),
        ({"transition_probs": {"00000": {"11111": "1"}}}, "no state"),
        ({"transition_probs": {"11111": {"00000": "1"}}}, "known state"),
        (
            {
                "transition_probs": {
                    "00000": {"00000": "1/1099511627791", "00100": "1099511627790/1099511627791"}
                }
            },
            "common denominator",
        ),
    ],
)
def test_what_is_no_model_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said) as caught:
        import_probguard(write(tmp_path, {**MODEL, **change}))
    assert "model.json" in str(caught.value)


def test_an_absent_or_damaged_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.json"):
        import_probguard(tmp_path)
    write(tmp_path, abstraction={"predicates": "all"})
    with pytest.raises(ModelError, match=r"abstraction\.json"):
        import_probguard(tmp_path)
    write(tmp_path)
    (tmp_path / "dtmc.prism").write_text("s : [0..3] init 9;")
    with pytest.raises(ModelError, match="initial state is 9"):
        import_probguard(tmp_path)


def some_model() -> CountModel:
    return CountModel(
        Vocabulary(('say "hi"', "2 < 3", "init"), ("crash",)),
        10.0,
        "",
        (0, 1, -1),
        sparse.csr_matrix(np.array([[1, 1, 2], [0, 0, 0], [0, 0, 0]])),
        np.zeros(3, dtype=np.int64),
        Smoothing("none"),
    )


def test_graphviz_quotes_names_and_marks_ends() -> None:
    text = export_chain(some_model(), "dot")
    assert 's1 [label="say \\"hi\\"", peripheries=2];' in text
    assert 's0 -> s2 [label="0.5"];' in text
    assert text.count("->") == 5


def test_names_become_identifiers_that_are_told() -> None:
    text = export_chain(some_model(), "prism")
    assert '// "say_hi" is say "hi"' in text
    assert '// "p_2_lt_3" is 2 < 3' in text
    assert '// "p_init" is init' in text
    assert 'label "crash" = s=2;' in text
    assert "[] s=1 -> 1.0 : (s'=1);" in text


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ModelError, match="prism, drn, jani, dot"):
        export_chain(some_model(), "xml")
    empty = CountModel(
        Vocabulary(()),
        1.0,
        "",
        (),
        sparse.csr_matrix((0, 0), dtype=np.int64),
        np.zeros(0, np.int64),
    )
    with pytest.raises(ModelError, match="no states"):
        export_chain(empty, "dot")
