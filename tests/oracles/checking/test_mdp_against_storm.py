"""Extreme probabilities of decision processes, learned ones among them, against Storm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extent import examples, sampled
from learned_runs import SPEC, record
from others_data import DATA
from scipy import sparse

from forewarn.cli import main
from forewarn.models.file import load_model
from forewarn.models.process import DecisionProcess
from forewarn.wings.decisions.mdp import extreme_within, optimal
from forewarn.wings.decisions.model_process import process_of_model
from forewarn.wings.decisions.storm_api import Storm

pytest.importorskip("stormpy", reason="Storm is the oracle")
ROOT = Path(__file__).resolve().parents[3]
FOLDER = DATA / "qcomp"
LEARNED = {"agentdojo": ("agents/agentdojo", ROOT / "config" / "agents.yaml")}


def entries() -> list[Any]:
    manifest = FOLDER / "manifest.json"
    if not manifest.is_file():
        skip = pytest.mark.skip(reason=f"{FOLDER} is absent: benchmarks of others do not ship")
        return [pytest.param("", marks=skip, id="qcomp")]
    files = (entry["file"] for entry in json.loads(manifest.read_text()) if entry["kind"] == "mdp")
    return [pytest.param(file, id=Path(file).stem) for file in sampled(sorted(set(files)))]


def compare(process: DecisionProcess, phi: Any, psi: Any, horizon: int) -> None:
    storm = Storm()
    model = storm.mdp(process, {"phi": phi, "psi": psi})
    for word, maximise in (("max", True), ("min", False)):
        theirs = storm.check(model, f'P{word}=? [ "phi" U "psi" ]', 1e-11)
        ours = optimal(process, psi, phi, maximise=maximise).values
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
        theirs = storm.check(model, f'P{word}=? [ "phi" U<={horizon} "psi" ]')
        ours = extreme_within(process, psi, phi, horizon, maximise=maximise)
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("file", entries())
def test_benchmarks_of_others(file: str) -> None:
    loaded = np.load(FOLDER / file, allow_pickle=False)
    matrix = sparse.csr_matrix(
        (loaded["data"], loaded["indices"], loaded["indptr"]), shape=tuple(loaded["shape"])
    )
    process = DecisionProcess(matrix, loaded["groups"].astype(np.int64))
    compare(process, loaded["phi"].astype(bool), loaded["psi"].astype(bool), 25)


@pytest.mark.parametrize("seed", range(examples(20)))
def test_processes_made_at_random(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 80))
    groups = np.concatenate([[0], np.cumsum(rng.integers(1, 5, n))])
    matrix = np.zeros((groups[-1], n))
    for choice in range(groups[-1]):
        targets = rng.choice(n, size=int(rng.integers(1, min(n, 4) + 1)), replace=False)
        matrix[choice, targets] = rng.dirichlet(np.full(targets.size, 0.3))
    process = DecisionProcess(sparse.csr_matrix(matrix), groups.astype(np.int64))
    compare(process, rng.random(n) < 0.9, rng.random(n) < 0.1, int(rng.integers(0, 40)))


@pytest.mark.parametrize("maximise", [True, False])
def test_rational_arithmetic_knows_a_trap_of_end_components(maximise: bool) -> None:
    """Two states may pass each other the turn for ever; value iteration from above never ends."""
    matrix = np.array([[0, 1, 0, 0], [0.0, 0, 0.3, 0.7], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    process = DecisionProcess(sparse.csr_matrix(matrix), np.array([0, 2, 3, 4, 5]))
    psi = np.arange(4) == 2
    storm = Storm()
    word = "max" if maximise else "min"
    theirs = storm.check(storm.mdp(process, {"psi": psi}, exact=True), f'P{word}=? [ F "psi" ]')
    ours = optimal(process, psi, np.ones(4, dtype=bool), maximise=maximise).values
    np.testing.assert_allclose(ours, theirs, atol=1e-15)
    assert ours[0] == (pytest.approx(0.3) if maximise else 0.0)


def check_all(model_file: Path, horizon: int = 7) -> None:
    """Compare the process of a model with Storm, for each predicate and label as goal."""
    model = load_model(model_file)
    bounds = process_of_model(model)
    states, vocabulary = bounds.counted.states, model.vocabulary
    everywhere = np.ones(len(states), dtype=bool)
    goals = [np.array([vocabulary.holds(atom, s) for s in states]) for atom in vocabulary.atoms]
    assert any(goal.any() and not goal.all() for goal in goals)
    for goal in goals:
        if goal.any():
            compare(bounds.process, everywhere, goal, horizon)
    compare(bounds.process, ~goals[0], goals[-1], horizon)


@pytest.mark.parametrize("seed", range(examples(4)))
def test_a_process_of_a_learned_tree(tmp_path: Path, seed: int) -> None:
    config, model = tmp_path / "monitor.yaml", tmp_path / "model.json"
    config.write_text(SPEC)
    runs = record(tmp_path / "runs.jsonl", seed, 120, share=0.3)
    asked = [str(runs), "-c", str(config), "-q"]
    assert main(["learn-states", *asked, "--leaf-size", "3", "--leaves", "6", "--write"]) == 0
    assert main(["learn", *asked, "-o", str(model)]) == 0
    check_all(model)


@pytest.mark.parametrize("name", LEARNED)
def test_processes_of_agents(tmp_path: Path, name: str) -> None:
    folder, config = DATA / LEARNED[name][0], LEARNED[name][1]
    if not folder.exists():
        pytest.skip(f"{folder} is absent: recordings of others do not ship")
    model, paths = tmp_path / "model.json", sorted(map(str, folder.glob("*.gz")))[:2]
    asked = [*paths, "-c", str(config), "-q", "--allow-missing", "-o", str(model)]
    assert main(["learn", *asked]) == 0
    check_all(model)
