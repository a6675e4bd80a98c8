"""Estimates that share strength: against scikit-learn, today's chain, and worlds that are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from scipy.stats import binomtest, ttest_1samp
from sklearn.linear_model import LogisticRegression

from forewarn.assessment.outcome_counts import watch_for
from forewarn.checking.credible import RiskQuery
from forewarn.checking.interface import RiskTable, label_states
from forewarn.checking.numeric import risk_table
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigErrors, ModelError
from forewarn.learning.estimates.choice import details_in_words, in_words, mixture_table
from forewarn.learning.estimates.crossing import cross, log_loss, logit
from forewarn.learning.estimates.ensemble import (
    HOLD,
    fit_weights,
    held_weights,
    mixed,
    prior,
    surely,
)
from forewarn.learning.estimates.frequency import Bayes, Frequency
from forewarn.learning.estimates.logistic import Logistic, design, fit_logit
from forewarn.learning.estimates.multi_step import MultiStep
from forewarn.learning.estimates.problem import Problem
from forewarn.learning.folds import FEW
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.calibration_map import Recalibration
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimates import PLAIN, Line, Mixture, Part
from forewarn.models.estimation import estimate_chain
from forewarn.models.file import _checksum, load_model, save_model
from forewarn.models.shards import Outcomes, PropertyKey, Shard
from forewarn.monitoring.build import build_monitor, with_estimates
from forewarn.monitoring.carried import tables_of, with_tables
from forewarn.monitoring.estimated import judged_property
from forewarn.monitoring.online_learning import OnlineLearner
from forewarn.monitoring.scored import Scored
from forewarn.monitoring.solving import calibrated
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.tables import BOUNDS
from forewarn.monitoring.verdict import PropertyVerdict
from forewarn.signals.snapshots import Snapshot
from forewarn.states.vocabulary import Vocabulary

TEXT = """
rate: 1
startup_grace: 0
signals:
  x: {{timeout: never}}
  y: {{timeout: never}}
  score: {{timeout: never}}
predicates: {{near: x < 2, closing: y > 0}}
terminal: {{crash: x < 0}}
bounds: {{kind: {bounds}}}
properties: {{p: {{formula: "{formula}", horizon: 5, estimator: {estimator} {more} }}}}
"""
CRASH = "always(not crash)"
RESPONSE = "always(near implies eventually[0:2 s](not closing))"


@lru_cache(maxsize=32)
def compiled(
    estimator: str, more: str = "", formula: str = CRASH, bounds: str = "none"
) -> CompiledSpec:
    text = TEXT.format(estimator=estimator, more=more, formula=formula, bounds=bounds)
    return compile_spec(parse_spec(parse_document(text)))


def drive(path: Path, seed: int, ticks: int = 60) -> Path:
    """Write a run: something comes near, at a speed that only changes now and then."""
    rng = np.random.default_rng(seed)
    gap, speed, lines = rng.uniform(2, 6), 0.3, []
    for t in range(ticks):
        if rng.random() < 0.25:
            speed = float(rng.normal(0.0, 0.7))
        gap = min(gap - speed, 6.0)
        score = 1 / (1 + np.exp(2 * gap - 3 * speed))
        lines.append(json.dumps({"t": float(t), "x": gap, "y": speed, "score": float(score)}))
        if gap < 0:
            break
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [drive(folder / f"{seed}.jsonl", seed) for seed in range(30)]


@pytest.fixture(scope="module")
def learned(runs: list[Path]) -> Any:
    found: dict[CompiledSpec, CountModel] = {}

    def of(spec: CompiledSpec) -> CountModel:
        key = id(spec)
        if key not in found:
            found[key] = learn(runs, spec.spec, spec.abstraction, watch=watch_for(spec)).model
        return found[key]

    return of


@pytest.fixture(scope="module")
def chosen(learned: Any) -> CountModel:
    """Return the model with what `auto` has chosen."""
    spec = compiled("ensemble")
    return with_estimates(spec, learned(spec))


def problem_of(spec: CompiledSpec, model: CountModel) -> Problem:
    (section,) = spec.spec.properties.values()
    automaton = spec.automata[0]
    classes = label_states(automaton, model.vocabulary, model.states)
    question = RiskQuery(automaton, classes, spec.abstraction.clock.ticks(section.horizon))
    return Problem(model, question, judged_property(spec.spec, "p", automaton))


def everything(problem: Problem) -> Any:
    return problem.sample(np.ones(problem.recordings, dtype=np.int64))


def test_all_recordings_together_are_the_model(learned: Any) -> None:
    spec = compiled("multi_step", formula=RESPONSE)
    model = learned(spec)
    problem = problem_of(spec, model)
    sample = everything(problem)
    assert (sample.model.counts != model.counts).nnz == 0
    assert np.array_equal(sample.risk, risk_table(estimate_chain(model), *problem.question).values)
    assert sample.visits.sum() == sum(
        found.visits[:, 2].sum() for shard in model.shards for found in shard.outcomes.values()
    )


def test_without_recordings_is_what_the_others_give(runs: list[Path], learned: Any) -> None:
    spec = compiled("multi_step", formula=RESPONSE)
    problem = problem_of(spec, learned(spec))
    times = np.ones(problem.recordings, dtype=np.int64)
    times[:10] = 0
    sample = problem.sample(times)
    others = learn(runs[10:], spec.spec, spec.abstraction, watch=watch_for(spec)).model
    apart = everything(problem_of(spec, others))
    rows = [problem.model.index[state] for state in others.states]
    moves = sample.model.counts[rows][:, rows]
    assert (moves != others.counts).nnz == 0
    assert np.array_equal(sample.visits[rows], apart.visits)
    assert np.array_equal(sample.followed[rows], apart.followed)
    twice = problem.sample(2 * times)
    assert np.array_equal(twice.visits, 2 * sample.visits)


def test_counted_and_shrunk_are_their_formulas(learned: Any) -> None:
    spec = compiled("bayes")
    sample = everything(problem_of(spec, learned(spec)))
    share = (sample.followed.sum() + 0.5) / (sample.visits.sum() + 1)
    counted = Frequency().table(sample, ())
    shrunk = Bayes().table(sample, (10.0,))
    for at in np.argwhere(sample.visits > 0)[:20].tolist():
        s, q = at
        n, y = sample.visits[s, q], sample.followed[s, q]
        assert counted[s, q] == pytest.approx((y + share) / (n + 1))
        assert shrunk[s, q] == pytest.approx((y + 10 * sample.risk[s, q]) / (n + 10))
    never = sample.visits == 0
    assert np.allclose(shrunk[never], sample.risk[never])


@pytest.mark.parametrize("ridge", [0.3, 3.0, 100.0])
@pytest.mark.parametrize("order", [1, 2])
def test_the_pooled_fit_is_scikit_learns(ridge: float, order: int) -> None:
    rng = np.random.default_rng(5)
    atoms = rng.integers(0, 2, (60, 5)).astype(np.float64)
    terms = design(atoms, order)
    visits = rng.integers(1, 40, 60).astype(np.float64)
    truth = 1 / (1 + np.exp(-(atoms @ rng.normal(size=5) - 1)))
    followed = rng.binomial(visits.astype(int), truth).astype(np.float64)
    ours = fit_logit(np.hstack([np.ones((60, 1)), terms]), followed, visits, ridge)
    theirs = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=100_000)
    theirs.fit(
        np.vstack([terms, terms]),
        np.repeat([1, 0], 60),
        sample_weight=np.concatenate([followed, visits - followed]),
    )
    assert ours[0] == pytest.approx(theirs.intercept_[0], abs=2e-4)
    assert ours[1:] == pytest.approx(theirs.coef_[0], abs=2e-4)


def test_pooling_lends_a_rare_state_what_its_predicates_say() -> None:
    """Two predicates add up in the logit, and one of four states was hardly seen."""
    vocabulary = Vocabulary(("a", "b"), ("crash",))
    truth = {
        0: 0.02,
        1: 0.1,
        2: 0.1,
        3: 1 / (1 + np.exp(-(2 * np.log(0.1 / 0.9) - np.log(0.02 / 0.98)))),
    }
    rng = np.random.default_rng(1)
    visits = {0: 4000, 1: 2000, 2: 2000, 3: 3}
    rows = [[s, 0, n, int(rng.binomial(n, truth[s]))] for s, n in visits.items()]
    judged = PropertyKey("p", CRASH, 5.0, "a")
    model = CountModel(
        vocabulary,
        1.0,
        "d",
        (0, 1, 2, 3, -1),
        sparse.csr_matrix(np.ones((5, 5), dtype=np.int64) * np.array([[1]] * 4 + [[0]])),
        np.zeros(5, dtype=np.int64),
        shards=(Shard("r", np.zeros((0, 3), dtype=np.int64), {judged: Outcomes(np.array(rows))}),),
    )
    automaton = compiled("chain").automata[0]
    question = RiskQuery(automaton, label_states(automaton, vocabulary, model.states), 5)
    sample = everything(Problem(model, question, judged))
    table = Logistic().table(sample, (1.0, 1.0))
    assert table[3, 0] == pytest.approx(truth[3], abs=0.08)
    assert abs(table[3, 0] - truth[3]) < abs(Frequency().table(sample, ())[3, 0] - truth[3])


@pytest.mark.parametrize("formula", [CRASH, RESPONSE])
def test_a_lag_of_one_tick_with_all_weight_on_the_chain_is_the_chain(
    learned: Any, formula: str
) -> None:
    spec = compiled("multi_step", formula=formula)
    sample = everything(problem_of(spec, learned(spec)))
    table = MultiStep().table(sample, (1.0, 1e15))
    assert table == pytest.approx(sample.risk, abs=1e-9)


def test_a_lag_of_one_tick_is_the_chain_of_the_same_counts(learned: Any) -> None:
    """Without smoothing, and with one automaton state only, both count the same steps."""
    spec = compiled("multi_step")
    model = replace(learned(spec), smoothing=Smoothing("none"))
    sample = everything(problem_of(spec, model))
    table = MultiStep().table(sample, (1.0, 1e-12))
    entered = ~np.isnan(sample.risk)
    assert table[entered] == pytest.approx(sample.risk[entered], abs=1e-9)
    assert (sample.risk[entered] > 0).sum() > 3


def test_a_lagged_chain_is_what_its_own_product_says(learned: Any) -> None:
    """Against one linear step for each lag, written out with dense matrices."""
    spec = compiled("multi_step", formula=RESPONSE)
    sample = everything(problem_of(spec, learned(spec)))
    within = [table.ravel() for table in sample.within]
    steps = sample.steps(2).toarray()
    prior, value = 10.0, within[1]  # a horizon of 5: one tick, then two steps of two
    for done in (3, 5):
        new = np.zeros_like(value)
        for cell in range(len(value)):
            row = steps[cell]
            gained = row[:-2] @ value + row[-1]
            new[cell] = (gained + prior * within[done][cell]) / (row.sum() + prior)
        value = new
    assert MultiStep().table(sample, (2.0, 10.0)).ravel() == pytest.approx(value, abs=1e-12)


def test_weights_are_scikit_learns_where_nothing_holds_them() -> None:
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(400, 2)) @ np.array([[1.0, 0.4], [0.0, 1.0]])
    truth = 1 / (1 + np.exp(-(0.3 + logits @ np.array([0.7, 0.5]))))
    visits = rng.integers(1, 5, 400).astype(np.float64)
    followed = rng.binomial(visits.astype(int), truth).astype(np.float64)
    ours = fit_weights(logits, followed, visits, prior(2, 0, 20), 0.0)
    theirs = LogisticRegression(C=1e9, tol=1e-12, max_iter=100_000).fit(
        np.vstack([logits, logits]),
        np.repeat([1, 0], 400),
        sample_weight=np.concatenate([followed, visits - followed]),
    )
    assert ours == pytest.approx([theirs.intercept_[0], *theirs.coef_[0]], abs=1e-3)
    held = [fit_weights(logits, followed, visits, prior(2, 0, 20), h) for h in (0.01, 1.0, 1e6)]
    away = [float(np.abs(w - np.array([0.0, 0.5, 0.5])).sum()) for w in held]
    assert away[0] > away[1] > away[2]
    assert away[2] < 1e-5
    opposed = fit_weights(logits * np.array([1.0, -1.0]), followed, visits, prior(2, 0, 20), 0.0)
    assert opposed[2] == 0.0  # no weight is negative


def noisy(problem: Problem, seed: int, count: int, most: float) -> tuple[Any, Any, Any]:
    """Return what the chain predicts across folds, logits with noise added to it, and all rows."""
    crossed = cross(problem, ("chain",), everything(problem).risk)
    assert crossed is not None
    where = np.ones(len(crossed.places), dtype=bool)
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(len(where), count)) * rng.uniform(0, most)
    return crossed, logit(crossed.risks["chain"])[:, None] + noise, where


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(0, 2))
def test_the_order_of_estimates_and_of_scores_does_not_matter(
    learned: Any, seed: int, estimates: int, scores: int
) -> None:
    spec = compiled("ensemble")
    problem = problem_of(spec, learned(spec))
    crossed, logits, where = noisy(problem, seed, estimates + scores, 3.0)
    mean = prior(estimates, scores, 20)
    weights, predicted = held_weights(crossed, logits, where, mean)
    assert (weights[1:] >= 0).all()
    rng = np.random.default_rng(seed)
    order = [*rng.permutation(estimates), *(estimates + rng.permutation(scores))]
    again, same = held_weights(crossed, logits[:, order], where, mean)
    assert again[1:] == pytest.approx(weights[1:][order], abs=1e-5)
    assert same == pytest.approx(predicted, abs=1e-5)


def test_the_hold_is_weaker_the_more_recordings_have_a_violation(learned: Any) -> None:
    spec = compiled("ensemble")
    problem = problem_of(spec, learned(spec))
    crossed, logits, where = noisy(problem, 1, 3, 4.0)
    told = len({r for r, f in zip(crossed.recording, crossed.followed, strict=True) if f > 0})
    assert 5 < told < problem.recordings
    weights, _ = held_weights(crossed, logits, where, prior(2, 1, 20))
    fitted, far = (
        fit_weights(logits, crossed.followed, crossed.visits, prior(2, 1, 20), HOLD / count)
        for count in (told, 1)
    )
    assert weights == pytest.approx(fitted, abs=1e-9)
    moved = [float(np.abs(one[1:] - prior(2, 1, 20)).sum()) for one in (weights, far)]
    assert moved[0] > moved[1] > 0


def test_what_a_fold_predicts_does_not_depend_on_its_outcomes(learned: Any) -> None:
    spec = compiled("ensemble")
    problem = problem_of(spec, learned(spec))
    crossed, logits, where = noisy(problem, 2, 3, 2.0)
    _, before = held_weights(crossed, logits, where, prior(2, 1, 20))
    here = crossed.fold == crossed.fold[0]
    rows = problem.rows
    places = crossed.places[here]
    rows.followed[places] = rows.visits[places] - rows.followed[places]
    other = replace(crossed)  # without what was computed from the rows
    _, after = held_weights(other, logits, where, prior(2, 1, 20))
    assert np.array_equal(before[here], after[here])
    assert not np.array_equal(before[~here], after[~here])


@given(arrays(np.float64, st.integers(1, FEW - 1), elements=st.floats(-1, 3, width=16)))
def test_of_few_recordings_sure_is_what_students_test_calls_sure(gained: Any) -> None:
    assert not surely(gained[:1])
    assume(len({*gained.tolist()}) > 1)
    chance = ttest_1samp(gained, 0, alternative="greater").pvalue
    assume(abs(chance - 0.05) > 1e-4)  # 1.645 is rounded
    assert surely(gained) == (chance < 0.05)


@pytest.mark.parametrize(("violated", "share"), [(0, 0.0), (6, 0.3), (10**6, 0.6)])
def test_scores_weigh_the_more_the_more_recordings_have_a_violation(
    violated: int, share: float
) -> None:
    assert prior(4, 0, violated).tolist() == [0.25] * 4
    each = [(1 - share) / 4] * 4 + [share / 2] * 2
    assert prior(4, 2, violated) == pytest.approx(each, abs=1e-5)


def test_predictions_of_a_fold_do_not_depend_on_its_outcomes(learned: Any) -> None:
    spec = compiled("ensemble")
    model = learned(spec)
    problem = problem_of(spec, model)
    found = cross(problem, ("bayes", "logistic"), everything(problem).risk)
    assert found is not None
    fold = int(found.fold[0])
    mine = {int(r) for r in found.recording[found.fold == fold]}

    def spoiled(index: int, shard: Shard) -> Shard:
        if index not in mine:
            return shard
        outcomes = {}
        for judged, kept in shard.outcomes.items():
            visits = kept.visits.copy()
            visits[:, 3] = visits[:, 2] - visits[:, 3]
            outcomes[judged] = Outcomes(visits, kept.lags)
        return replace(shard, outcomes=outcomes)

    other = replace(model, shards=tuple(spoiled(i, s) for i, s in enumerate(model.shards)))
    problem = problem_of(spec, other)
    times = np.ones(problem.recordings, dtype=np.int64)
    times[sorted(mine)] = 0
    for base, setting in ((Bayes(), (10.0,)), (Logistic(), (3.0, 1.0))):
        one, two = (base.table(problem_of(spec, m).sample(times), setting) for m in (model, other))
        assert np.array_equal(one, two)


def test_auto_adds_up_all_estimates_and_says_so(chosen: CountModel) -> None:
    (estimate,) = chosen.estimates
    losses = {loss.name: loss.log_loss for loss in estimate.losses}
    assert set(losses) == {"chain", "bayes", "logistic", "multi_step", "ensemble"}
    assert estimate.chosen == "ensemble"
    assert {part.base for part in estimate.plain.parts} <= {*losses} - {"ensemble"}
    words = in_words(estimate)
    assert words.startswith("the risk combines ")
    assert "30 recordings" in words
    assert details_in_words(estimate).startswith("weighted sum of log-odds: ")
    assert any(words in note for note in build_monitor(compiled("ensemble"), chosen).remarks)


def test_with_too_few_violations_it_is_the_chain(runs: list[Path]) -> None:
    spec, plain = compiled("ensemble"), compiled("chain")
    few = learn(runs[:1], spec.spec, spec.abstraction, watch=watch_for(spec)).model
    monitor = build_monitor(spec, few)
    chain = build_monitor(plain, replace(few, shards=()))
    table, theirs = monitor.properties[0].table, chain.properties[0].table
    assert table is not None
    assert theirs is not None
    assert np.array_equal(table.values, theirs.values, equal_nan=True)
    assert any("(ensemble: 2 or more)" in note for note in monitor.notes)


@pytest.mark.parametrize("horizon", ["5", "unbounded"])
def test_where_no_outcome_is_known_counted_is_the_chain(tmp_path: Path, horizon: str) -> None:
    """Recordings end before the horizon does: there is no share of anything."""
    text = TEXT.format(estimator="frequency", more="", formula=RESPONSE, bounds="none")
    spec = compile_spec(
        parse_spec(parse_document(text.replace("horizon: 5", f"horizon: {horizon}")))
    )
    paths = [tmp_path / f"{i}.jsonl" for i in range(3)]
    for i, path in enumerate(paths):
        rows = [{"t": t, "x": 1.0 + (t + i) % 3, "y": float(t % 2), "score": 0.5} for t in range(5)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = learn(paths, spec.spec, spec.abstraction, watch=watch_for(spec)).model
    (estimate,) = with_estimates(spec, model).estimates
    assert estimate.is_chain and estimate.moments == 0
    assert "every recording ends before the horizon" in in_words(estimate)


def test_what_is_certain_and_what_was_never_seen_stay(learned: Any) -> None:
    for estimator in ("frequency", "bayes", "logistic", "multi_step", "ensemble"):
        spec = compiled(estimator, formula=RESPONSE)
        model = learned(spec)
        problem = problem_of(spec, model)
        chain = everything(problem).risk
        table = build_monitor(spec, model).properties[0].table
        assert table is not None
        certain = (chain == 0) | (chain == 1)
        assert certain.any()
        assert np.array_equal(table.values[certain], chain[certain])
        inner = ~certain & ~np.isnan(chain)
        assert ((table.values[inner] > 0) & (table.values[inner] < 1)).all()
        assert np.array_equal(np.isnan(table.values), np.isnan(chain))


def test_a_stored_choice_gives_the_tables_of_a_fresh_one(
    learned: Any, chosen: CountModel, tmp_path: Path
) -> None:
    spec = compiled("ensemble")
    save_model(chosen, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert loaded.estimates == chosen.estimates
    assert loaded.fingerprint == chosen.fingerprint
    tables = [build_monitor(spec, one).properties[0].table for one in (loaded, learned(spec))]
    assert tables[0] is not None
    assert tables[1] is not None
    assert np.array_equal(tables[0].values, tables[1].values, equal_nan=True)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda e: e["plain"]["parts"][0].update(weight=-0.5), "weight"),
        (lambda e: e["plain"]["parts"][0].update(base="guessed"), "base"),
        (lambda e: e["plain"].update(scores=[0.1]), "scores"),
        (lambda e: e["plain"]["parts"].append(e["plain"]["parts"][0]), "parts"),
        (lambda e: e.update(calibration=[0.0, 0.0]), "calibration"),
        (lambda e: e.update(chosen="guessed"), "chosen"),
        (lambda e: e.update(asked="guessed"), "asked"),
    ],
)
def test_estimates_that_cannot_be_are_refused(
    chosen: CountModel, tmp_path: Path, change: Any, key: str
) -> None:
    path = tmp_path / "m.json"
    save_model(chosen, path)
    content = json.loads(path.read_text())
    content.pop("checksum")
    change(content["estimates"][0])
    content["checksum"] = _checksum(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert key in caught.value.key


def test_a_model_that_does_not_tell_what_followed_is_refused(learned: Any) -> None:
    model = replace(learned(compiled("bayes")), shards=(), estimates=())
    with pytest.raises(ModelError, match="estimator bayes needs a model learned with the formula"):
        build_monitor(compiled("bayes"), model)
    monitor = build_monitor(compiled("ensemble"), model)
    assert any("0 recordings" in note for note in monitor.notes)


def test_sound_bounds_of_another_estimate_are_refused() -> None:
    with pytest.raises(ConfigErrors, match="sound bounds are the chain's"):
        compiled("bayes", bounds="sound")


# --- scores -------------------------------------------------------------------------------------


def verdicts(monitor: Monitor, rows: Sequence[tuple[Any, ...]]) -> list[PropertyVerdict]:
    state, found = monitor.start(), []
    for tick, values in enumerate(rows):
        state, verdict = monitor.step(state, Snapshot(tick, values))
        found.append(verdict.properties[0])
    return found


@pytest.fixture(scope="module")
def scored(learned: Any) -> Monitor:
    spec = compiled("ensemble", ", scores: [score]", bounds="credible")
    return build_monitor(spec, learned(spec))


def test_a_score_adds_its_weighted_logit(scored: Monitor) -> None:
    one = scored.properties[0]
    assert one.scored is not None
    assert one.table is not None
    (weight,) = one.scored.weights
    assert weight > 0.1
    rows = [(1.0, 0.5, value) for value in (0.01, 0.4, 0.5, 0.97, None, 0.0, 1.0, 1.5)]
    found = verdicts(scored, rows)
    assert scored.model is not None
    row = scored.model.index[3]  # near and closing
    for column, name in (("values", "probability"), ("lower", "lower"), ("upper", "upper")):
        base = getattr(one.scored.table, column)[row, 0]
        for verdict, (_, _, value) in list(zip(found, rows, strict=True))[:4]:
            odds = base / (1 - base) * (value / (1 - value)) ** weight
            assert getattr(verdict, name) == pytest.approx(odds / (1 + odds), rel=1e-12)
    # unknown, or no probability at all: the table that was made without scores answers
    assert found[4].probability == found[7].probability == one.table.values[row, 0]
    assert found[5].probability < found[0].probability
    assert found[6].probability > found[3].probability
    assert all(v.lower <= v.probability <= v.upper for v in found)


def test_in_a_state_never_seen_the_scores_answer(runs: list[Path]) -> None:
    more = TEXT.replace("closing: y > 0", "closing: y > 0, far: x > 100")
    text = more.format(
        estimator="ensemble", more=", scores: [score]", formula=CRASH, bounds="credible"
    )
    spec = compile_spec(parse_spec(parse_document(text)))
    model = learn(runs, spec.spec, spec.abstraction, watch=watch_for(spec)).model
    monitor = build_monitor(spec, model)
    values = (0.01, 0.4, 0.97, None, 1.5)
    found = verdicts(monitor, [(200.0, 0.5, value) for value in values])
    assert all((v.in_model, v.lower, v.upper) == (False, 0.0, 1.0) for v in found)
    for verdict, value in zip(found[:3], values, strict=False):
        assert verdict.probability == pytest.approx(value, rel=1e-9)
    assert all(np.isnan(v.probability) for v in found[3:])
    (after,) = verdicts(monitor, [(1.0, 0.5, 0.4)])
    assert after.in_model


def test_several_scores_answer_by_the_mean_of_their_log_odds() -> None:
    scored = Scored(RiskTable(np.full((1, 1), 0.5), horizon=1), (0, 1), (0.9, 0.3))
    odds = scored.odds([0.9, 0.2])
    assert odds is not None
    logits = 0.75 * np.log(9) + 0.25 * np.log(0.25)
    assert scored.alone(odds) == pytest.approx(1 / (1 + np.exp(-logits)))
    nothing = replace(scored, weights=(0.0, 0.0))
    assert np.isnan(nothing.alone(1.0))
    for extreme in (0.0, 1.0):
        odds = replace(scored, weights=(1e-9, 0.0)).odds([extreme, extreme])
        assert odds is not None
        assert 0.0 <= replace(scored, weights=(1e-9, 0.0)).alone(odds) <= 1.0


def test_the_worst_of_what_may_be_is_pushed_alike(scored: Monitor) -> None:
    one = scored.properties[0]
    assert one.scored is not None
    certain = [verdicts(scored, [(1.0, y, 0.8)])[0] for y in (0.5, -0.5)]
    unsure = verdicts(scored, [(1.0, None, 0.8)])[0]
    assert unsure.probability < 1
    assert unsure.probability == pytest.approx(max(v.probability for v in certain), abs=1e-12)
    assert unsure.lower == pytest.approx(min(v.lower for v in certain), abs=1e-12)
    assert unsure.upper == pytest.approx(max(v.upper for v in certain), abs=1e-12)


def test_the_expected_risk_is_pushed_alike(learned: Any) -> None:
    spec = compiled("ensemble", ", scores: [score], risk_measure: expected")
    monitor = build_monitor(spec, learned(spec))
    for value in (0.2, 0.8, None):
        rows = [(1.0, 0.5, value), (3.0, -0.5, value), (None, 0.5, value)]
        found = verdicts(monitor, rows)
        assert [v.expected.probability for v in found[:2]] == [v.probability for v in found[:2]]
        assert 0.0 < found[2].expected.probability < found[2].probability


def test_a_score_decides_nothing_that_is_certain(scored: Monitor) -> None:
    crashed = verdicts(scored, [(1.0, 0.5, 0.9), (-1.0, 0.5, 0.01)])
    assert crashed[1].probability == 1.0
    after = verdicts(scored, [(-1.0, 0.5, 0.99), (-1.0, 0.5, 0.99)])
    assert after[1].probability == 0.0


def test_scores_that_tell_nothing_lose_their_weight(runs: list[Path], tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    noise = []
    for run in runs:
        path = tmp_path / run.name
        lines = [json.loads(line) for line in run.read_text().splitlines()]
        path.write_text(
            "".join(json.dumps({**one, "score": float(rng.random())}) + "\n" for one in lines)
        )
        noise.append(path)
    spec = compiled("ensemble", ", scores: [score]")
    model = learn(noise, spec.spec, spec.abstraction, watch=watch_for(spec)).model
    (estimate,) = with_estimates(spec, model).estimates
    assert estimate.scored is not None
    assert estimate.scored.scores[0] < prior(4, 1, 20)[-1] / 2
    losses = {loss.name: loss.log_loss for loss in estimate.losses}
    assert losses["ensemble with scores"] < losses["score score"] / 2


# --- bounds and calibration ---------------------------------------------------------------------


def test_bounds_come_from_recordings_and_hold_the_estimate(learned: Any) -> None:
    spec = compiled("bayes", bounds="credible")
    monitor = build_monitor(spec, learned(spec))
    table = monitor.properties[0].table
    assert table is not None
    assert table.lower is not None
    assert table.upper is not None
    assert table.kind == "clustered"
    assert table.confidence == 0.95
    assert (table.lower <= table.values).all()
    assert (table.values <= table.upper).all()
    inner = (table.values > 0) & (table.values < 1)
    assert (table.upper - table.lower)[inner].max() > 0.01
    again = build_monitor(spec, learned(spec)).properties[0].table
    assert again is not None
    assert np.array_equal(again.upper, table.upper)
    assert monitor.bounded


def test_more_recordings_narrow_the_bounds(learned: Any) -> None:
    spec = compiled("frequency", bounds="credible")
    model = learned(spec)
    copies = tuple(
        replace(shard, recording=f"{shard.recording}{i}")
        for i in range(9)
        for shard in model.shards
    )
    many = replace(model, counts=model.counts * 9, shards=copies)
    few, more = (build_monitor(spec, one).properties[0].table for one in (model, many))
    assert few is not None
    assert more is not None
    inner = (few.values > 0.02) & (few.values < 0.98)
    assert few.upper is not None
    assert more.upper is not None
    assert few.lower is not None
    assert more.lower is not None
    ratio = (more.upper - more.lower)[inner].mean() / (few.upper - few.lower)[inner].mean()
    assert ratio < 0.6  # a third, as many recordings differ by chance alone


def table_of(spec: CompiledSpec, model: CountModel) -> RiskTable:
    table = build_monitor(spec, model).properties[0].table
    assert table is not None
    return table


def test_the_chain_has_clustered_bounds_where_they_are_asked_for(
    learned: Any, tmp_path: Path
) -> None:
    spec, plain = compiled("chain", bounds="clustered"), compiled("chain", bounds="credible")
    model = learned(spec)
    assert {judged.name for shard in model.shards for judged in shard.outcomes} == {"p"}
    table, credible = table_of(spec, model), table_of(plain, model)
    assert np.array_equal(table.values, credible.values)
    assert (table.kind, table.confidence, credible.kind) == ("clustered", 0.95, "credible")
    assert any("bootstrap over 30 recordings" in note for note in table.remarks)
    assert build_monitor(spec, model).properties[0].announced.bounds_kind == BOUNDS["clustered"]
    save_model(model, tmp_path / "m.json")
    again = table_of(spec, load_model(tmp_path / "m.json"))
    assert np.array_equal(again.lower, table.lower)
    assert np.array_equal(again.upper, table.upper)


def test_clustered_bounds_need_what_followed(learned: Any) -> None:
    model = learned(compiled("chain", bounds="credible"))
    assert not model.shards
    spec = compiled("chain", bounds="clustered")
    with pytest.raises(ModelError, match="need a model learned with the formula") as caught:
        build_monitor(spec, model)
    assert caught.value.key == "bounds.kind"
    assert table_of(compiled("chain", bounds="none"), model).kind == "none"


@pytest.mark.parametrize("estimator", ["chain", "frequency"])
def test_where_no_violation_was_drawn_one_may_follow(tmp_path: Path, estimator: str) -> None:
    """The upper bound is that of so many independent recordings without one, and no less."""
    number = 12
    paths = [tmp_path / f"{i}.jsonl" for i in range(number)]
    for i, path in enumerate(paths):
        rows = [{"t": t, "x": 1.0 + 2 * (t % 2), "y": 1.0 + i, "score": 0.5} for t in range(40)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = compiled(estimator, bounds="clustered")
    table = table_of(spec, learn(paths, spec.spec, spec.abstraction, watch=watch_for(spec)).model)
    exact = binomtest(0, number).proportion_ci(0.95, "exact").high
    assert table.upper is not None
    assert table.lower is not None
    assert (table.values[:, 0] == table.lower[:, 0]).all()
    assert (table.lower[:, 0] == 0).all()
    assert table.upper[:2, 0] == pytest.approx(exact)  # 0.26


def test_bounds_reach_what_followed_where_the_estimate_does_not(learned: Any) -> None:
    """All visits to a state were followed by a violation, and the chain thinks otherwise."""
    spec = compiled("chain", bounds="clustered")
    model = learned(spec)
    chain = table_of(spec, model)
    row = int(np.argmin(np.where(chain.values[:, 0] > 0, chain.values[:, 0], 2)))

    def followed(shard: Shard) -> Shard:
        outcomes = {}
        for judged, found in shard.outcomes.items():
            visits = found.visits.copy()
            here = visits[:, 0] == row
            visits[here, 3] = visits[here, 2]
            outcomes[judged] = Outcomes(visits, found.lags)
        return replace(shard, outcomes=outcomes)

    table = table_of(spec, replace(model, shards=tuple(map(followed, model.shards))))
    assert table.upper is not None
    assert table.lower is not None
    assert chain.upper is not None
    assert table.values[row, 0] == chain.values[row, 0] < 0.5
    assert chain.upper[row, 0] < table.upper[row, 0] == 1.0
    assert table.lower[row, 0] == table.values[row, 0]


def test_a_calibrated_risk_stays_within_clustered_bounds(learned: Any) -> None:
    spec = compiled("chain", bounds="clustered")
    table = table_of(spec, learned(spec))
    found = Recalibration("p", CRASH, 5.0, "platt", slope=0.5, ticks=9, recordings=("a",))
    mapped = calibrated(table, found)
    assert mapped.lower is not None
    assert mapped.upper is not None
    assert table.lower is not None
    assert table.upper is not None
    assert (mapped.lower == np.minimum(table.lower, mapped.values)).all()
    assert (mapped.upper == np.maximum(table.upper, mapped.values)).all()
    assert any("widened to hold it" in note for note in mapped.notes)


def test_a_line_calibrates_the_table_and_keeps_what_is_certain(learned: Any) -> None:
    spec = compiled("frequency")
    sample = everything(problem_of(spec, learned(spec)))
    alone = Mixture(0.0, (Part("frequency", (), 1.0),))
    plain = mixture_table(sample, alone)
    bent = mixture_table(sample, alone, Line(2.0, -0.5))
    inner = (plain > 0) & (plain < 1)
    odds = np.log(plain[inner]) - np.log1p(-plain[inner])
    assert bent[inner] == pytest.approx(1 / (1 + np.exp(-(2 * odds - 0.5))))
    assert np.array_equal(bent[~inner], plain[~inner], equal_nan=True)
    assert mixture_table(sample, alone, PLAIN) is not plain


def test_a_stack_is_the_weighted_sum_of_its_logits(learned: Any) -> None:
    spec = compiled("ensemble")
    sample = everything(problem_of(spec, learned(spec)))
    mixture = Mixture(-0.2, (Part("chain", (), 0.5), Part("bayes", (10.0,), 0.7)))
    table = mixture_table(sample, mixture)
    inner = (sample.risk > 0) & (sample.risk < 1)
    shrunk = Bayes().table(sample, (10.0,))
    odds = -0.2 + 0.5 * logit(sample.risk) + 0.7 * logit(shrunk)
    assert table[inner] == pytest.approx((1 / (1 + np.exp(-odds)))[inner])


def test_losses_are_those_of_their_definitions() -> None:
    risk = np.array([0.2, 0.9])
    assert log_loss(risk, np.array([1.0, 2.0]), np.array([3.0, 2.0])) == pytest.approx(
        [-np.log(0.2) - 2 * np.log(0.8), -2 * np.log(0.9)]
    )
    assert np.isfinite(log_loss(np.array([0.0]), np.array([1.0]), np.array([1.0]))).all()
    assert mixed(np.zeros((1, 2)), np.zeros(3)).tolist() == [0.5]


def test_a_record_takes_scored_tables_and_weights_along(scored: Monitor) -> None:
    tables = tables_of(scored)
    assert {"p.scored.values", "p.scored.lower", "p.weights"} <= {*tables}
    other = {**tables, "p.weights": tables["p.weights"] * 0.5}
    taken, difference = with_tables(scored, other)
    assert difference > 0
    rows = [(1.0, 0.5, 0.9), (1.0, None, 0.9)]
    for mine, theirs in zip(verdicts(scored, rows), verdicts(taken, rows), strict=True):
        assert mine.probability > theirs.probability
    back, none = with_tables(taken, tables)
    assert none == pytest.approx(difference)
    assert verdicts(back, rows) == verdicts(scored, rows)


def test_what_is_learned_while_watching_keeps_what_was_chosen(learned: Any) -> None:
    spec = compiled("ensemble", bounds="credible")
    model = with_estimates(spec, learned(spec))
    learner = OnlineLearner(spec, model)
    monitor = build_monitor(spec, model)
    state = monitor.start()
    for tick, (x, y) in enumerate([(3.0, 1.0), (1.0, 1.0), (1.0, -1.0), (3.0, -1.0)] * 5):
        state, verdict = monitor.step(state, Snapshot(tick, (x, y, 0.5)))
        learner.observe(tick, verdict.observation, intervened=False)
    grown = learner.model()
    assert grown.counts.sum() == model.counts.sum() + 19
    assert grown.estimates == model.estimates
    assert [shard.recording for shard in grown.shards] == [s.recording for s in model.shards]
    one, other = build_monitor(spec, model).properties[0], build_monitor(spec, grown).properties[0]
    assert one.estimate == other.estimate
    assert one.table is not None
    assert other.table is not None
    assert one.table.kind == other.table.kind == "clustered"


def test_a_score_that_knows_it_all_outweighs_everything(runs: list[Path], tmp_path: Path) -> None:
    told = []
    for run in runs:
        lines = [json.loads(line) for line in run.read_text().splitlines()]
        crashed = lines[-1]["x"] < 0
        for left, line in enumerate(reversed(lines)):
            line["score"] = 0.999 if crashed and left <= 5 else 0.001
        path = tmp_path / run.name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        told.append(path)
    spec = compiled("ensemble", ", scores: [score]")
    model = learn(told, spec.spec, spec.abstraction, watch=watch_for(spec)).model
    (estimate,) = with_estimates(spec, model).estimates
    assert estimate.scored is not None
    assert estimate.scored.scores[0] > sum(part.weight for part in estimate.scored.parts)
    # whatever the state, the score decides
    sure, safe = (
        verdicts(build_monitor(spec, model), [(x, y, score)])[0].probability
        for x, y, score in ((3.0, -0.5, 0.999), (1.0, 0.5, 0.001))
    )
    assert sure > 0.9
    assert safe < 0.1


def test_a_score_alone_needs_no_other_estimate(learned: Any) -> None:
    spec = compiled("ensemble")
    sample = everything(problem_of(spec, learned(spec)))
    alone = mixture_table(sample, Mixture(0.0, (Part("chain", (), 0.0),), (1.0,)))
    inner = (sample.risk > 0) & (sample.risk < 1)
    assert (alone[inner] == 0.5).all()  # even odds, which the score multiplies
    assert np.array_equal(alone[~inner], sample.risk[~inner], equal_nan=True)
