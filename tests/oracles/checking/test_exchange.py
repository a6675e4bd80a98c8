"""What others write is read, and what we write is read back equal, with Storm as the reader."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extent import sampled
from numpy.typing import NDArray
from others_data import DATA
from scipy import sparse

from forewarn.checking.numeric import risk_table
from forewarn.logic.automaton import Automaton
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.models.file import load_model, save_model
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.decisions.exporters import export_chain
from forewarn.wings.decisions.importers import import_probguard
from forewarn.wings.decisions.storm_api import Storm

stormpy = pytest.importorskip("stormpy", reason="Storm's Python package is the oracle here")

PROBGUARD = DATA / "probguard"
NEVER = Automaton(
    ("goal",),
    np.array([0, 1], dtype=np.int32),
    np.array([[0, 1], [1, 1]], dtype=np.int32),
    0,
    1,
    None,
    ("safe", "violated"),
)


def published() -> list[Any]:
    if not PROBGUARD.is_dir():
        skip = pytest.mark.skip(reason=f"{PROBGUARD} is absent: models of others do not ship")
        return [pytest.param(Path(), marks=skip, id="probguard")]
    folders = sampled(sorted(path.parent for path in PROBGUARD.rglob("model.json")))
    return [pytest.param(path, id=str(path.relative_to(PROBGUARD))) for path in folders]


def storm_from_prism(text: str, tmp_path: Path) -> tuple[Any, Any]:
    """Build Storm's model of a PRISM file, all labels and the value of s kept."""
    file = tmp_path / "model.prism"
    file.write_text(text)
    program = stormpy.parse_prism_program(str(file))
    options = stormpy.BuilderOptions()
    options.set_build_state_valuations()
    options.set_build_all_labels()
    if hasattr(stormpy, "build_sparse_model_with_options"):
        return program, stormpy.build_sparse_model_with_options(program, options)
    return program, stormpy.build_model(program, options=options)


def position(model: Any, state: int) -> int:
    """Return the value of s in one of Storm's states."""
    valuations = model.state_valuations
    text = (
        valuations.get_string(state)
        if hasattr(valuations, "get_string")
        else str(valuations.to_string(state))
    )
    found = re.search(r"\bs\W+(\d+)", text)
    assert found
    return int(found[1])


@pytest.mark.parametrize("folder", published())
def test_probguard_s_chains_have_the_risks_of_their_prism_files(
    folder: Path, tmp_path: Path
) -> None:
    model = import_probguard(folder)
    save_model(model, tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    chain = estimate_chain(model)
    assert not chain.unseen.any()
    _, theirs = storm_from_prism((folder / "dtmc.prism").read_text(), tmp_path)
    keys = keys_of(folder)
    places = np.array([position(theirs, s) for s in range(theirs.nr_states)])
    own = np.array([index_of(model, keys[place]) for place in places])
    matrix = storm_matrix(theirs)
    # Storm drops states out of reach; the rest must agree for every goal.
    for goal in range(0, len(keys), max(1, len(keys) // 3)):
        mask = places == goal
        if not mask.any():
            continue
        classes = np.zeros(chain.size, dtype=np.int64)
        classes[index_of(model, keys[goal])] = 1
        for horizon in (10, None):
            table = risk_table(chain, NEVER, classes, horizon).values[:, 0]
            expected = storm_reach(matrix, mask, horizon)
            others = classes[own] == 0
            np.testing.assert_allclose(table[own][others], expected[others], rtol=1e-6, atol=1e-9)


def keys_of(folder: Path) -> list[str]:
    import json

    return json.loads((folder / "model.json").read_text())["states"]


def index_of(model: CountModel, key: str) -> int:
    """Return our index of one of their states."""
    vocabulary = model.vocabulary
    if key == "finish":
        return model.index[-(vocabulary.terminals.index("finish") + 1)]
    marks = [name for name in vocabulary.terminals if name != "finish"]
    for i in range(len(marks)):
        if key[i] == "1":
            return model.index[-(i + 1)]
    return model.index[int(key[len(marks) :][::-1], 2)]


def storm_matrix(model: Any) -> sparse.csr_matrix:
    rows, columns, data = [], [], []
    for state in range(model.nr_states):
        for entry in model.transition_matrix.get_row(state):
            rows.append(state)
            columns.append(entry.column)
            data.append(float(entry.value() if callable(entry.value) else entry.value))
    n = model.nr_states
    return sparse.csr_matrix((data, (rows, columns)), shape=(n, n))


def storm_reach(
    matrix: sparse.csr_matrix, mask: NDArray[np.bool_], horizon: int | None
) -> NDArray[np.float64]:
    made = Storm()
    bound = "" if horizon is None else f"<={horizon}"
    model = made.dtmc(matrix, {"goal": mask}, exact=horizon is None)
    return np.asarray(made.check(model, f'P=? [F{bound} "goal"]'))


def some_model(alpha: object) -> CountModel:
    counts = np.array([[7, 3, 1, 0], [2, 0, 1, 1], [5, 5, 0, 0], [0, 0, 0, 0]])
    return CountModel(
        Vocabulary(("ttc<1", "speed > 0.5"), ("crash",)),
        10.0,
        "",
        (0, 1, 2, -1),
        sparse.csr_matrix(counts),
        np.array([0, 4, 0, 0]),
        Smoothing(alpha),  # type: ignore[arg-type]
    )


LABELS = {"ttc_lt_1": [1], "speed_gt_0_5": [2], "crash": [3]}


def check_read_back(model: Any, chain: NDArray[np.float64]) -> None:
    """Compare with the chain; states are told apart by their labels (state 0 has none)."""
    order = []
    for state in range(model.nr_states):
        held = [i for name, ids in LABELS.items() for i in ids if _has(model, name, state)]
        order.append(held[0] if held else 0)
    assert sorted(order) == [0, 1, 2, 3]
    assert [order[s] for s in model.initial_states] == [1]
    ours = chain[np.ix_(order, order)]
    np.testing.assert_allclose(storm_matrix(model).toarray(), ours, rtol=0, atol=1e-15)


def _has(model: Any, label: str, state: int) -> bool:
    return label in model.labeling.get_labels_of_state(state)


@pytest.mark.parametrize("alpha", ["sparse", 1.0, "none"])
def test_storm_reads_our_prism_back_equal(alpha: object, tmp_path: Path) -> None:
    model = some_model(alpha)
    _, theirs = storm_from_prism(export_chain(model, "prism"), tmp_path)
    check_read_back(theirs, estimate_chain(model).to_csr().toarray())


@pytest.mark.parametrize("alpha", ["sparse", 1.0, "none"])
def test_storm_reads_our_drn_back_equal(alpha: object, tmp_path: Path) -> None:
    model = some_model(alpha)
    file = tmp_path / "model.drn"
    file.write_text(export_chain(model, "drn"))
    check_read_back(
        stormpy.build_model_from_drn(str(file)), estimate_chain(model).to_csr().toarray()
    )


@pytest.mark.parametrize("alpha", ["sparse", 1.0, "none"])
def test_storm_reads_our_jani_back_equal(alpha: object, tmp_path: Path) -> None:
    model = some_model(alpha)
    file = tmp_path / "model.jani"
    file.write_text(export_chain(model, "jani"))
    parsed, _ = stormpy.parse_jani_model(str(file))
    options = stormpy.BuilderOptions()
    options.set_build_all_labels()
    if hasattr(stormpy, "build_sparse_model_with_options"):
        theirs = stormpy.build_sparse_model_with_options(parsed, options)
    else:
        theirs = stormpy.build_model(parsed, options=options)
    check_read_back(theirs, estimate_chain(model).to_csr().toarray())
