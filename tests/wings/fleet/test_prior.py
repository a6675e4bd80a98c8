"""Models of groups: the counts of their recordings, and what they borrow from others."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ModelError
from forewarn.learning.executors import local
from forewarn.learning.pipeline import Learned, learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import CountModel, Smoothing, with_states
from forewarn.models.estimation import estimate_chain, valid_successors
from forewarn.models.file import load_model, merge_models, save_model
from forewarn.models.hierarchical_prior import HierarchicalPrior
from forewarn.monitoring.online_learning import OnlineLearner
from forewarn.recordings.groups import grouping
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.fleet.prior import (
    borrowing,
    choose_strength,
    held_out_losses,
    strengths,
)

TEXT = """
rate: 10
signals: {{x: {{timeout: 0.1}}}}
predicates: {{high: x > 0, higher: x > 1}}
terminal: {{over: x > 2.5}}
properties: {{p: {{formula: always(not over), horizon: 1, thresholds: {{act: 0.5}}}}}}
learning: {{alpha: {alpha}}}
"""
BY_ROBOT = grouping("robot", "{robot}/*")


def compiled(alpha: str = "sparse") -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(TEXT.format(alpha=alpha))))


def traces(folder: Path, robots: int = 3, runs: int = 3, rows: int = 60) -> list[Path]:
    found = []
    for robot in range(robots):
        for run in range(runs):
            draw = random.Random(f"{robot} {run}")
            lines = [
                {
                    "t": k / 10,
                    "x": draw.gauss(0.4 * robot, 1),
                    "action": draw.choice(["go", "brake"]),
                }
                for k in range(rows)
            ]
            path = folder / f"robot{robot}" / f"{run}.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            found.append(path)
    return found


def learned(paths: list[Path], spec: CompiledSpec | None = None, jobs: int = 1) -> Learned:
    spec = spec or compiled()
    return learn(
        paths,
        spec.spec,
        spec.abstraction,
        executor=local(jobs),
        grouping=BY_ROBOT,
        per_recording=False,
    )


def test_a_group_has_the_counts_of_its_recordings(tmp_path: Path) -> None:
    paths = traces(tmp_path)
    found = learned(paths)
    assert found.groups is not None and found.groups.groups == tuple(
        f"robot=robot{i}" for i in range(3)
    )
    for number, name in enumerate(found.groups.groups):
        own = [path for path in paths if path.parent.name == f"robot{number}"]
        alone = learned(own).model
        group = found.groups.model(name, found.model)
        wide = with_states(alone, found.model.states)
        assert (wide.counts != group.counts).nnz == 0
        assert np.array_equal(wide.starts, group.starts)
        assert (group.provenance, group.steps) == (alone.provenance, alone.steps)
        assert (group.forbidden != found.model.forbidden).nnz == 0


def test_groups_have_the_same_bits_in_any_order_and_for_any_number_of_processes(
    tmp_path: Path,
) -> None:
    paths = traces(tmp_path)
    one, other = learned(paths), learned(paths[::-1], jobs=2)
    assert one.groups is not None and other.groups is not None
    a, b = (found.groups.table(found.model.index) for found in (one, other) if found.groups)
    assert (a.counts != b.counts).nnz == 0
    assert np.array_equal(a.member, b.member) and np.array_equal(a.by_group, b.by_group)
    assert choose_strength(a, one.model) == choose_strength(b, other.model)


@pytest.mark.parametrize("alpha", ["sparse", "none", "0.5"])
def test_losses_are_those_of_chains_without_each_recording(tmp_path: Path, alpha: str) -> None:
    paths = traces(tmp_path, rows=40)
    spec = compiled(alpha)
    found = learned(paths, spec)
    fleet, groups = found.model, found.groups
    assert groups is not None
    grid = strengths(float(fleet.visits.max()))
    losses, number = held_out_losses(groups.table(fleet.index), fleet, grid)
    total, over = np.zeros(len(grid)), 0
    for path in paths:
        name = name_of(path)
        left = with_states(learned([path], spec).model, fleet.states).counts
        own = groups.model(name, fleet)
        others = sparse.csr_matrix(fleet.counts - own.counts)
        rest = sparse.csr_matrix(own.counts - left)
        # What follows a state counts as valid if all recordings have it.
        numbers = valid_successors(fleet, fleet.smoothing).numbers
        weights = np.array([fleet.smoothing.weight(int(k)) for k in numbers])
        for at, strength in enumerate(grid):
            borrowed = HierarchicalPrior(others, float(strength))
            starts = fleet.observed.astype(np.int64)
            known = replace(own, counts=rest, hierarchical_prior=borrowed, starts=starts, steps=())
            chain = estimate_chain(known)
            for i, j, count in zip(*sparse.find(left), strict=True):
                if rest[i, j] + others[i, j] + weights[i] > 0:
                    p = chain.row(int(i))[int(j)]
                    total[at] += np.inf if p == 0 else -count * np.log(p)
                    over += int(count) if at == 0 else 0
    assert over == number
    np.testing.assert_allclose(losses, total / over, rtol=1e-9)


def name_of(path: Path) -> str:
    return f"robot={path.parent.name}"


def test_groups_that_are_alike_borrow_all_and_groups_that_differ_little(tmp_path: Path) -> None:
    fleet, table = _two_groups(tmp_path, "alike", 0.3, 0.3)
    alike = choose_strength(table, fleet)
    assert alike.loss <= min(alike.alone, alike.together)
    assert alike.visits >= 256
    fleet, table = _two_groups(tmp_path, "apart", 0.05, 0.8)
    apart = choose_strength(table, fleet)
    assert apart.loss <= min(apart.alone, apart.together)
    assert apart.visits <= 16


def _two_groups(folder: Path, name: str, *shares: float):  # type: ignore[no-untyped-def]
    paths = []
    for robot, share in enumerate(shares):
        for run in range(6):
            draw = random.Random(f"{name} {robot} {run}")
            path = folder / name / f"robot{robot}" / f"{run}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows = [{"t": k / 10, "x": 0.5 if draw.random() < share else -1} for k in range(100)]
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            paths.append(path)
    found = learned(paths)
    assert found.groups is not None
    return found.model, found.groups.table(found.model.index)


counts = st.lists(st.integers(0, 30), min_size=16, max_size=16)


@st.composite
def borrowers(draw: st.DrawFn) -> CountModel:
    own, others = (np.array(draw(counts)).reshape(4, 4) for _ in range(2))
    alpha = draw(st.sampled_from(["sparse", "none", 1.0]))
    strength = draw(st.sampled_from([0.0, 0.5, 7.0, 1e6]))
    return CountModel(
        vocabulary=Vocabulary(("a", "b"), ()),
        rate=10.0,
        digest="d",
        states=(0, 1, 2, 3),
        counts=sparse.csr_matrix(own.astype(np.int64)),
        starts=np.zeros(4, dtype=np.int64),
        smoothing=Smoothing(alpha),
        hierarchical_prior=HierarchicalPrior(
            sparse.csr_matrix(others.astype(np.int64)), strength, "robot=1", 3, 9.5
        ),
    )


@given(model=borrowers())
def test_a_row_is_the_mean_of_the_posterior(model: CountModel) -> None:
    assert model.hierarchical_prior is not None
    chain = estimate_chain(model)
    own, others = model.counts.toarray(), model.hierarchical_prior.counts.toarray()
    numbers = valid_successors(model, model.smoothing).numbers
    seen = (own + own.T).sum(axis=1) > 0
    if model.hierarchical_prior.strength:
        seen |= (others + others.T).sum(axis=1) > 0
    assert np.array_equal(model.observed, seen)
    for i in range(4):
        worth = min(model.hierarchical_prior.strength, others[i].sum())
        prior = worth * others[i] / max(others[i].sum(), 1)
        weight = model.smoothing.weight(int(numbers[i]))
        row = own[i] + prior + weight * seen
        expected = row / row.sum() if row.sum() else row
        np.testing.assert_allclose(chain.row(i), expected, atol=1e-12)


@given(model=borrowers())
@settings(max_examples=examples(40))
def test_a_file_keeps_what_is_borrowed(
    tmp_path_factory: pytest.TempPathFactory, model: CountModel
) -> None:
    path = tmp_path_factory.mktemp("model") / "model.json"
    save_model(model, path)
    again = load_model(path)
    assert json.loads(path.read_text())["version"] == 1
    assert (
        again.seed == model.seed
        and again.hierarchical_prior is not None
        and model.hierarchical_prior is not None
    )
    assert (again.hierarchical_prior.counts != model.hierarchical_prior.counts).nnz == 0
    kept, given = again.hierarchical_prior, model.hierarchical_prior
    assert (kept.strength, kept.group) == (given.strength, given.group)
    assert (kept.recordings, kept.duration) == (given.recordings, given.duration)


def test_borrowing_is_a_share_of_what_states_rest_on(tmp_path: Path) -> None:
    found = learned(traces(tmp_path))
    assert found.groups is not None
    own = found.groups.model("robot=robot1", found.model)
    none, some, much = (
        borrowing("robot=robot1", own, found.model, strength) for strength in (0.0, 8.0, 1e9)
    )
    shares = [
        one.hierarchical_prior.share(own.visits)
        for one in (none, some, much)
        if one.hierarchical_prior
    ]
    assert shares[0] == 0 < shares[1] < shares[2] < 1
    assert np.array_equal(none.weights.toarray(), own.counts.toarray())
    np.testing.assert_allclose(much.weights.toarray(), found.model.counts.toarray(), rtol=1e-12)
    assert much.hierarchical_prior is not None and much.hierarchical_prior.recordings == 6
    assert much.seed != own.seed


def test_merging_leaves_out_what_is_borrowed_and_a_live_session_keeps_it(tmp_path: Path) -> None:
    spec = compiled()
    found = learned(traces(tmp_path), spec)
    assert found.groups is not None
    own = found.groups.model("robot=robot1", found.model)
    model = borrowing("robot=robot1", own, found.model, 16.0)
    assert merge_models([model, own]).hierarchical_prior is None
    live = OnlineLearner(spec, model).model()
    assert live.hierarchical_prior is not None and model.hierarchical_prior is not None
    assert (live.hierarchical_prior.counts != model.hierarchical_prior.counts).nnz == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"strength": float("inf")}, "hierarchical_prior.strength"),
        ({"strength": -1.0}, "hierarchical_prior.strength"),
        ({"counts": sparse.csr_matrix((3, 3), dtype=np.int64)}, r"shape \(4, 4\)"),
    ],
)
def test_what_cannot_be_borrowed_is_an_error(change: dict[str, object], told: str) -> None:
    nothing = sparse.csr_matrix((4, 4), dtype=np.int64)
    with pytest.raises(ModelError, match=told):
        CountModel(
            Vocabulary(("a", "b"), ()), 10.0, "d", (0, 1, 2, 3), nothing,
            np.zeros(4, dtype=np.int64),
            hierarchical_prior=replace(HierarchicalPrior(nothing, 1.0), **change),  # type: ignore[arg-type]
        )  # fmt: skip
