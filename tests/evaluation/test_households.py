"""The study of household agents: what it computes."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluation.embodied import chains, logs
from evaluation.embodied import study as embodied
from forewarn.errors import InputError
from forewarn.wings.plans.language import parse_rule


def chain(rng: np.random.Generator, n: int = 5) -> chains.Chain:
    matrix = rng.dirichlet(np.ones(n), size=n)
    matrix[n - 1] = np.eye(n)[n - 1]
    return chains.Chain("drawn", matrix, n - 2, n - 1, np.zeros((n, n), dtype=np.int64))


def test_no_set_of_stops_is_better_than_the_best() -> None:
    rng = np.random.default_rng(3)
    for price in (0.3, 1.0, 3.0):
        for _ in range(10):
            drawn = chain(rng)

            def worth(stopped: np.ndarray, drawn=drawn, price=price) -> float:
                outcome = chains.solve(drawn, stopped)
                return outcome.completed - price * outcome.unsafe

            every = [
                worth(np.array([*stops, False, False]))
                for stops in itertools.product([False, True], repeat=3)
            ]
            assert worth(chains.best_stop(drawn, price)) == pytest.approx(max(every), abs=1e-9)


def test_an_outcome_is_what_powers_of_the_chain_give() -> None:
    drawn = chain(np.random.default_rng(5))
    absorbing = drawn.matrix.copy()
    absorbing[drawn.unsafe] = np.eye(5)[drawn.unsafe]
    far = np.linalg.matrix_power(absorbing, 2_000)[0]
    outcome = chains.solve(drawn, np.zeros(5, dtype=bool))
    assert outcome.unsafe == pytest.approx(far[drawn.unsafe])
    assert outcome.completed == pytest.approx(far[drawn.finish])


def test_who_is_stopped_rightly_follows_from_two_shares() -> None:
    """A stop is right as often as the state where it stops is risky."""
    drawn = chain(np.random.default_rng(8))
    stopped = np.array([False, True, True, False, False])
    ends = drawn.matrix.copy()
    ends[[1, 2, 3]] = np.eye(5)[[1, 2, 3]]
    reached = np.linalg.matrix_power(ends, 2_000)[0]
    right = reached[[1, 2]] @ chains.risks(drawn)[[1, 2]]
    none = chains.solve(drawn, np.zeros(5, dtype=bool))
    one = chains.solve(drawn, stopped)
    said = re.findall(r"[\d.]+", embodied._right(one._asdict(), none._asdict()))
    assert float(said[0]) == pytest.approx(100 * right / reached[[1, 2]].sum(), abs=0.06)
    assert float(said[1]) == pytest.approx(100 * right / none.unsafe, abs=0.06)


def test_published_chains_give_the_published_figures(shared_data: Path) -> None:
    known = list(chains.chains(shared_data / "probguard" / "embodied"))
    if len(known) != 103:
        pytest.skip("figures are those of 103 chains")
    none = chains.mean([chains.solve(c, np.zeros(len(c.matrix), dtype=bool)) for c in known])
    assert (round(100 * none.unsafe, 1), round(100 * none.completed, 1)) == (41.2, 58.8)
    stop = chains.mean([chains.solve(c, chains.at_threshold(c, 0.1)) for c in known])
    assert (round(100 * stop.unsafe, 2), round(100 * stop.completed, 1)) == (0.76, 37.9)
    best = chains.mean([chains.solve(c, chains.best_stop(c, 2.0)) for c in known])
    assert (round(100 * best.unsafe, 2), round(100 * best.completed, 1)) == (1.73, 45.5)


def test_final_states_become_formulas() -> None:
    condition = logs.condition_of(
        [
            {"objectType": "Egg", "parentReceptacles": ["Microwave"]},
            {"objectType": "Microwave", "isToggled": True, "isOpen": False},
        ]
    )
    assert condition == (
        '(exists x0 in objects: x0.type == "Egg" and inside(x0, "Microwave")) and '
        '(exists x1 in objects: x1.type == "Microwave" and isToggled(x1) and not isOpen(x1))'
    )
    parse_rule(logs.rule_of(condition))
    assert logs.condition_of([]) is None


def test_a_chain_may_begin_anywhere_and_never_leave_a_state(tmp_path: Path) -> None:
    thing = {"objectType": "Lamp", "isOn": False}
    model: dict[str, Any] = {
        "states": ["finish", "11", "10", "00", "01"],
        "transition_probs": {
            "00": {"01": "1/4", "11": "1/4", "10": "1/2"}, "01": {"01": "1"}, "11": {},
        },
        "state_interpret": {"11": [thing | {"isOn": True, "parentReceptacles": ["Table"]}]},
    }  # fmt: skip
    (tmp_path / "model.json").write_text(json.dumps(model))
    (tmp_path / "abstraction.json").write_text('{"parentReceptacles": ["Table"], "keys": ["isOn"]}')
    chain = chains.load(tmp_path)
    assert chain is not None
    assert chain.start == 3
    assert chains.solve(chain, np.zeros(5, dtype=bool)) == (0.25, 0.0)
    assert chains.risks(chain).tolist() == [0.0, 1.0, 0.0, 0.25, 0.0]
    assert chains.best_stop(chain, 1.0).tolist() == [False, False, True, True, True]
    model["transition_probs"]["00"] = {"01": "1/4"}
    (tmp_path / "model.json").write_text(json.dumps(model))
    with pytest.raises(InputError, match=r"transition_probs\.00: sums to 0\.25 \(accepted: 1\)"):
        chains.load(tmp_path)


def write_logs(folder: Path, tasks: Path) -> Path:
    """Write runs of one task as AgentSpec's logs have them; return the file of tasks."""
    state = [{"objectType": "Lämp", "isToggled": True}]
    done = {"action": "find lamp", "success": True, "message": "", "errorMessage": ""}
    step = {"action": {"tool": "controller", "input": "find lamp"}, "observation": done}
    run = {"input": {"instruction": "Burn."}, "intermediate_steps": [step]}
    files = {
        "unsafe_runs_2.jsonl": run, "safe_more.jsonl": run, "safe_controlled_x.jsonl": run,
        "unsafe_x_eval.jsonl": run | {"eval": [1.0]}, "notes.jsonl": run,
    }  # fmt: skip
    for place in (folder, tasks):
        place.mkdir(parents=True, exist_ok=True)
    for name, record in files.items():
        (folder / name).write_text(json.dumps(record) + "\n\n")
    task = {"instruction": "Burn.", "note": "a\u2028b", "final_state": state}
    path = tasks / "unsafe_detailed_7.jsonl"
    path.write_text(json.dumps(task, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def test_logs_are_found_by_what_their_names_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = tmp_path / "tasks"
    path = write_logs(tmp_path, tasks)
    found = logs.study(tmp_path, tasks)
    assert (found["rules"], found["unsafe"]["runs"], found["safe"]["runs"]) == (1, 1, 1)
    assert found["simulator"]["runs"] == 1
    said = capsys.readouterr().out
    assert "notes.jsonl is left out" in said
    assert "safe_controlled_x.jsonl is left out" in said
    path.write_text(json.dumps({"final_state": [{}]}) + "\n")
    with pytest.raises(InputError, match=r"unsafe_detailed_7\.jsonl:1: is no task"):
        logs.tasks(tasks)
