"""Rules that tell anomalous runs: against definitions, scipy, and simulated normal runs."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from forewarn.errors import ModelError, RecordingError
from forewarn.models.counts import CountModel
from forewarn.models.process import Step, ordered
from forewarn.states.vocabulary import Vocabulary
from forewarn.wings.anomalies.calibration import (
    PROMISING,
    RULES,
    Calibration,
    calibrate,
    deviation,
    find_checkpoints,
    least_runs,
)
from forewarn.wings.anomalies.calibration_file import load_calibration, save_calibration
from forewarn.wings.anomalies.drift import find_drift, sequential_p
from forewarn.wings.anomalies.step_evidence import conformal_p
from forewarn.wings.anomalies.surprise import WHATS, Predictor, Surprise, predictor_of
from forewarn.wings.anomalies.transitions import Transition

ACTIONS = ("read", "write")
STATES = (0, 1, 2, 3)
SPACE = Vocabulary(("a", "b"), ())


def simulated(rng: np.random.Generator, length: int, bias: float = 0.5) -> list[Transition]:
    """Walk over three states; an action leads on, or back, with its own chances."""
    state, run = 0, []
    for tick in range(length):
        action = ACTIONS[int(rng.random() > bias)]
        ahead = 0.8 if action == "read" else 0.3
        following = (state + (1 if rng.random() < ahead else 2)) % 3
        run.append(Transition(tick, state, action, following))
        state = following
    return run


def learned(runs: list[list[Transition]], actions: bool = True) -> CountModel:
    moves = Counter((one.state, one.following) for run in runs for one in run)
    steps = Counter(
        Step(one.action, False, one.state, one.following)
        for run in runs for one in run if actions and one.action
    )  # fmt: skip
    counts = np.zeros((len(STATES), len(STATES)), dtype=np.int64)
    for (state, following), number in moves.items():
        counts[state, following] = number
    starts = np.zeros(len(STATES), dtype=np.int64)
    return CountModel(
        SPACE, "steps", "d", STATES, sparse.csr_matrix(counts), starts, steps=ordered(steps)
    )


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    rng = np.random.default_rng(1)
    return predictor_of(learned([simulated(rng, 20) for _ in range(30)]), "both")


def surprises(predictor: Predictor, run: list[Transition], what: str = "both") -> list[float]:
    return [predictor.surprise(one).of(what) for one in run]  # type: ignore[arg-type]


def calibrated(runs: list[list[float]], **changes: object) -> Calibration:
    given_ = {
        "model": "m", "abstraction": "d", "statistic": "both", "test": "conformal", "period": 5,
        "alpha": 0.1, "recordings": ["r"], **changes,
    }  # fmt: skip
    return calibrate(runs, **given_)  # type: ignore[arg-type]


def test_the_likelihood_of_a_run_is_that_of_the_definition():
    rng = np.random.default_rng(2)
    runs = [simulated(rng, 12) for _ in range(8)]
    model = predictor_of(learned(runs), "both")
    every = [one for run in runs for one in run]
    for run in runs:
        by_definition = 1.0
        for one in run:
            tried = [x for x in every if (x.state, x.action) == (one.state, one.action)]
            by_definition *= sum(x.following == one.following for x in tried) / len(tried)
        assert model.likelihood(run) == pytest.approx(math.log(by_definition))
    # Without actions it is the chain's.
    chain = predictor_of(learned(runs, actions=False), "outcome")
    by_definition = 1.0
    for one in runs[0]:
        tried = [x for x in every if x.state == one.state]
        by_definition *= sum(x.following == one.following for x in tried) / len(tried)
    assert chain.likelihood(runs[0]) == pytest.approx(math.log(by_definition))
    assert model.likelihood([Transition(0, 0, "read", 3)]) == -math.inf


def test_smoothed_probabilities_are_distributions_by_hand(predictor):
    # Seen 3 times "1" and once "2" after (0, read): N = 4, T = 2.
    run = [Transition(0, 0, "read", f) for f in (1, 1, 1, 2)]
    small = predictor_of(learned([run]), "both")
    uniform = 1 / 5  # four states and a new one
    arrivals = (3 + 2 * uniform) / 6
    state = (3 + 2 * arrivals) / 6
    assert small.outcome_probability(0, "read", 1) == pytest.approx((3 + 2 * state) / 6)
    assert small.choice_probability(0, "read") == pytest.approx(
        (4 + (4 + 1 / 2) / 5) / 5  # one action, or a new one: 1 / 2
    )
    for state_ in (*STATES, 77):
        for action in (*ACTIONS, "never", None):
            chances = [predictor.outcome_probability(state_, action, f) for f in (*STATES, 99)]
            assert sum(chances) == pytest.approx(1.0) and min(chances) > 0
        chances = [predictor.choice_probability(state_, a) for a in (*ACTIONS, "never")]
        assert sum(chances) == pytest.approx(1.0) and min(chances) > 0


def test_what_may_be_surprising_is_chosen(predictor):
    usual, odd = Transition(0, 0, "read", 1), Transition(0, 0, "delete", 1)
    assert predictor.surprise(odd).choice > predictor.surprise(usual).choice + 2
    both = predictor.surprise(odd)
    assert both.of("both") == both.of("choice") + both.of("outcome")
    expected = predictor.expected(odd, "both")
    assert expected.part == "choice" and {name for name, _ in expected.likeliest} == {*ACTIONS}
    lost = predictor.expected(Transition(0, 0, "read", 3), "both")
    assert lost.part == "outcome" and lost.likeliest[0] == (
        SPACE.name(1), predictor.outcome_probability(0, "read", 1)
    )  # fmt: skip
    with pytest.raises(ModelError, match="counts no actions"):
        predictor_of(replace(predictor.model, steps=()), "choice")


@pytest.mark.parametrize("seed", range(20))
def test_what_is_expected_is_the_likeliest_of_all_states_and_actions(seed):
    rng = np.random.default_rng(seed)
    runs = [
        [
            Transition(0, int(rng.integers(4)), ACTIONS[rng.integers(2)], int(f))
            for f in rng.integers(0, 4, 4)
        ]
        for _ in range(3)
    ]
    model = predictor_of(learned(runs), "both")
    for state in (*STATES, 9):
        for action in (*ACTIONS, "never", None):
            one = Transition(0, state, action, 2)
            found = [share for _, share in model.expected(one, "outcome", 2).likeliest]
            every = sorted(model.outcome_probability(state, action, f) for f in STATES)
            assert found == pytest.approx(every[::-1][:2])
            known = {x.action for run in runs for x in run}
            every = sorted(model.choice_probability(state, str(a)) for a in known)
            found = [share for _, share in model.expected(one, "choice", 2).likeliest]
            assert found == pytest.approx(every[::-1][:2])


def test_actions_change_the_digest_although_the_chain_is_the_same(predictor):
    model = predictor.model
    bare = predictor_of(replace(model, steps=()), "outcome")
    assert model.seed == bare.model.seed and predictor.digest != bare.digest


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(-1, 6))
def test_p_values_of_runs_are_those_of_the_definition(past, value):
    expected = (1 + sum(x >= value for x in past)) / (len(past) + 1)
    assert conformal_p(sorted(past), value) == pytest.approx(expected)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.integers(1, 12))
def test_p_values_are_conservative_whatever_the_scores(scores, k):
    """Each score in turn is the new one: at most a share alpha of them has p <= alpha."""
    alpha = k / len(scores)
    told = sum(
        conformal_p(sorted(scores[:i] + scores[i + 1 :]), scores[i]) <= alpha
        for i in range(len(scores))
    )
    assert told <= alpha * len(scores) + 1e-9


@given(
    st.lists(
        st.lists(st.sampled_from([0.1, 0.5, 1.0, 2.0]), min_size=1, max_size=6),
        min_size=9, max_size=20,
    ),
    st.lists(st.sampled_from([0.05, 0.1, 0.7, 2.0, 3.0]), min_size=1, max_size=6),
)  # fmt: skip
def test_a_step_is_judged_among_steps_of_runs_that_weigh_equally(runs, new):
    found = calibrated(runs)
    for value, p in zip(new, found.step_p(new), strict=True):
        shares = [sum(x >= value for x in run) / len(run) for run in runs]
        assert p == pytest.approx((1 + sum(shares)) / (len(runs) + 1))
    judged = found.judge(new)
    assert judged.anomalous == (judged.value > judged.limit)  # p and limit say the same
    assert (judged.since is not None) == judged.anomalous


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_the_normal_rules_are_those_of_scipy(alpha):
    rng = np.random.default_rng(3)
    runs = [rng.exponential(size=int(rng.integers(3, 40))).tolist() for _ in range(120)]
    past = np.array([-sum(run) for run in runs])
    normal = calibrated(runs, test="normal", alpha=alpha)
    limit = stats.norm(past.mean(), past.std(ddof=1)).ppf(alpha)
    assert normal.judge([1.0]).limit == pytest.approx(limit)
    assert normal.judge([-limit - 0.01]).anomalous is False
    assert normal.judge([-limit + 0.01]).anomalous is True
    quantile = calibrated(runs, test="quantile", alpha=alpha)
    assert quantile.judge([1.0]).limit == pytest.approx(np.sort(past)[math.floor(alpha * 120)])
    for one in find_checkpoints(runs, 5):
        cut = [-sum(run[: one.steps]) for run in runs if len(run) >= one.steps]
        assert one[1:] == pytest.approx((len(cut), np.mean(cut), stats.tstd(cut)))
    checkpoints = calibrated(runs, test="checkpoints", alpha=alpha)
    first = checkpoints.checkpoints[0]
    fall = stats.norm(first.mean, first.deviation).ppf(alpha)
    for extra, told in ((0.01, True), (-0.01, False)):
        judged = checkpoints.judge([0.0, 0.0, 0.0, 0.0, -fall + extra])
        assert judged.anomalous is told and judged.since == (4 if told else None)


@pytest.fixture(scope="module")
def normal_runs(predictor: Predictor) -> list[list[list[Surprise]]]:
    """Return the surprises of 200 times 20 normal runs."""
    rng = np.random.default_rng(4)
    return [
        [
            [predictor.surprise(one) for one in simulated(rng, int(rng.integers(4, 30)))]
            for _ in range(20)
        ]
        for _ in range(200)
    ]


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("rule", PROMISING)
def test_the_promised_share_of_false_alarms_is_kept(normal_runs, rule, what):
    alpha, told = 0.1, 0
    for trial in normal_runs:
        *past, new = [[one.of(what) for one in run] for run in trial]
        found = calibrated(past, test=rule, alpha=alpha, statistic=what)
        told += found.judge(new).anomalous
    assert stats.binomtest(told, len(normal_runs), alpha, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize("rule", PROMISING)
def test_without_ties_the_promised_share_is_the_real_one(rule):
    """Of 39 scores and a new one, each is among the greatest four with a probability of 0.1."""
    rng = np.random.default_rng(9)
    runs, trials = (39 if rule == "conformal" else 78), 300

    def normal() -> list[float]:
        return rng.exponential(size=int(rng.integers(5, 30))).tolist()

    told = sum(
        calibrated([normal() for _ in range(runs)], test=rule, period=1).judge(normal()).anomalous
        for _ in range(trials)
    )
    assert stats.binomtest(told, trials, 0.1).pvalue > 0.01


def test_a_sum_of_evidence_is_that_of_pages_definition():
    """Page (1954): the greatest sum of any stretch of steps; here by trying all stretches."""
    rng = np.random.default_rng(11)
    past = [rng.exponential(size=30).tolist() for _ in range(40)]
    found = calibrated(past, test="cusum")
    run = rng.exponential(scale=1.5, size=40).tolist()
    reference = past[::2]
    shares = [[np.mean(np.array(one) >= value) for one in reference] for value in run]
    p_values = [min((1 + sum(share)) / (len(reference) + 1), 1.0) for share in shares]
    bets = [math.log(0.5 * p**-0.5) for p in p_values]
    greatest = [
        max(0.0, *(sum(bets[i:j]) for j in range(1, k + 1) for i in range(j)))
        for k in range(1, len(run) + 1)
    ]
    assert found.path(run).tolist() == pytest.approx(greatest)
    assert found.judge(run).value == pytest.approx(greatest[-1])
    value, level, likelihood = math.nan, 0.0, 0.0
    for number, surprise in enumerate(run, 1):
        likelihood -= surprise
        value, level = found.advance(value, level, number, surprise, likelihood)
        assert value == found.path(run[:number])[-1], "the same bits live"


@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_runs_whose_steps_depend_on_each_other_are_told_no_more_often_than_promised(alpha):
    """Each run has a pace of its own, and its surprises come in spells."""
    rng = np.random.default_rng(12)

    def normal() -> list[float]:
        pace, spell, found = rng.uniform(0.5, 2.0), 0.0, []
        for _ in range(int(rng.integers(20, 60))):
            spell = 0.9 * spell + 0.1 * rng.exponential()
            found.append(float(pace * spell))
        return found

    runs, trials = 2 * round(2 / alpha - 1), 150
    told = sum(
        calibrated([normal() for _ in range(runs)], test="cusum", alpha=alpha)
        .judge(normal())
        .anomalous
        for _ in range(trials)
    )
    assert stats.binomtest(told, trials, alpha).pvalue > 0.01


def test_what_changes_late_and_a_little_shows_in_the_sum_and_in_no_single_step():
    """After 150 normal steps of 200, each step is more surprising by a half."""
    rng = np.random.default_rng(13)

    def walk(scale: float) -> list[float]:
        return [*rng.exponential(size=150), *rng.exponential(scale=scale, size=50)]

    past = [walk(1.0) for _ in range(80)]
    shifted = [walk(1.8) for _ in range(60)]
    judges = {rule: calibrated(past, test=rule) for rule in ("conformal", "prefix", "cusum")}
    told = {
        rule: np.mean([judge.judge(run).anomalous for run in shifted])
        for rule, judge in judges.items()
    }
    assert told["cusum"] > 0.75
    assert told["cusum"] > told["prefix"] + 0.2 and told["cusum"] > told["conformal"] + 0.2
    since = [judges["cusum"].judge(run).since for run in shifted]
    late = [at for at in since if at is not None]
    assert np.median(late) > 150, "told after the change"


def test_unusual_choices_are_told_by_likelihood_and_not_by_the_outcome_alone(predictor):
    rng = np.random.default_rng(5)
    past = [simulated(rng, 40) for _ in range(60)]
    odd = [simulated(rng, 40, bias=0.97) for _ in range(40)]
    shares = {}
    skewed = predictor_of(learned([simulated(rng, 40, bias=0.2) for _ in range(30)]), "both")
    past = [simulated(rng, 40, bias=0.2) for _ in range(60)]
    for what in ("outcome", "choice"):
        found = calibrated(
            [surprises(skewed, run, what) for run in past], test="prefix", statistic=what
        )
        shares[what] = np.mean([found.judge(surprises(skewed, run, what)).anomalous for run in odd])
    assert shares["choice"] > 0.9 and shares["outcome"] < 0.3


def test_too_few_runs_are_refused_and_one_more_is_enough():
    for rule in RULES:
        for alpha in (0.05, 0.1, 1 / 3, 0.5):
            least = least_runs(rule, alpha)
            with pytest.raises(RecordingError, match=f"{least - 1} normal runs"):
                calibrated([[1.0]] * (least - 1), test=rule, alpha=alpha)
            odd = calibrated([[1.0] * 5] * least, test=rule, alpha=alpha).judge([9.0] * 5)
            assert odd.anomalous
    assert least_runs("conformal", 0.05) == 19
    for rule in ("prefix", "checkpoints"):
        with pytest.raises(RecordingError, match="too few normal runs have 5 transitions"):
            calibrated([[1.0] * 4] * 40, test=rule)


def test_runs_that_never_fall_below_or_end_before_a_checkpoint_deviate_by_nothing():
    checkpoints = find_checkpoints([[1.0] * 10, [2.0] * 10], 5)
    assert deviation(checkpoints, [9.0, 9.0]).tolist() == [0.0, 0.0]
    assert deviation(checkpoints, [0.0] * 12).tolist() == [0.0] * 12


def test_a_calibration_is_kept_and_refused_for_another_model(tmp_path: Path):
    rng = np.random.default_rng(6)
    runs = [rng.exponential(size=12).tolist() for _ in range(20)]
    file = tmp_path / "anomalies.json"
    for rule in RULES:
        found = calibrated(runs, test=rule)
        save_calibration(found, file)
        assert load_calibration(file, "m", "d") == found
    with pytest.raises(ModelError, match=r"another model.*digest m") as refused:
        load_calibration(file, "other", "d")
    assert refused.value.file == str(file)
    with pytest.raises(ModelError, match="another abstraction"):
        load_calibration(file, "m", "other")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("alpha", 0, "alpha"),
        ("alpha", 0.001, "20 normal runs"),
        ("test", "magic", "test"),
        ("statistic", 3, "statistic"),
        ("period", 0, "period"),
        ("format", "forewarn-model", "format"),
        ("version", 1, "version"),
        ("recordings", [1], "recordings"),
        ("greatest", [2.0, 1.0], "greatest"),
        ("greatest", ["x"], r"greatest\[0\]"),
        ("likelihoods", [1.0], "likelihoods"),
        ("steps", [], "steps"),
        ("steps", [[1.0]], r"steps\[0\]"),
        ("steps", [[1.0, -1.0]], "steps"),
        ("reference_steps", [], "reference_steps"),
        ("sums", [1.0], "1 sums"),
        ("checkpoints", [[1, 1, 0, 0]], r"checkpoints\[0\]"),
        ("reference", [[1, 2, 0]], r"reference\[0\]"),
    ],
)
def test_a_damaged_calibration_is_refused_with_its_key(tmp_path: Path, key, value, said):
    file = tmp_path / "anomalies.json"
    save_calibration(calibrated([[1.0, 2.0]] * 20), file)
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    with pytest.raises((ModelError, RecordingError), match=said) as refused:
        load_calibration(file, "m", "d")
    assert refused.value.file == str(file)


def test_p_values_in_order_are_uniform_and_drift_is_seldom_told_without_any():
    rng = np.random.default_rng(7)
    told, every = 0, []
    for trial in range(400):
        scores = rng.integers(0, 6, size=50).astype(float)  # with many ties
        p_values = sequential_p(scores[:10].tolist(), scores[10:].tolist(), trial)
        assert p_values.min() > 0 and p_values.max() <= 1
        every.append(p_values)
        told += find_drift(p_values, 0.1).since is not None
    assert stats.kstest(np.concatenate(every), "uniform").pvalue > 0.01
    assert stats.binomtest(told, 400, 0.1, alternative="greater").pvalue > 0.01


def test_drift_is_told_where_it_begins():
    rng = np.random.default_rng(8)
    scores = [*rng.normal(size=40), *rng.normal(loc=2.5, size=40)]
    drift = find_drift(sequential_p(rng.normal(size=50).tolist(), scores), 0.05)
    assert drift.since is not None and 40 <= drift.since < 60
    # The martingale by its definition.
    p_values = sequential_p([], scores[:5])
    exponents = [(i + 0.5) / 200 for i in range(200)]
    paths = [
        np.mean([math.prod(e * p ** (e - 1) for p in p_values[:n]) for e in exponents])
        for n in range(6)
    ]
    assert find_drift(p_values, 0.05).evidence == pytest.approx(math.log(max(paths)))


def test_a_run_that_stays_where_none_stays_is_told_by_rarity_alone() -> None:
    def walk(rng: np.random.Generator) -> list[Transition]:
        states = rng.integers(3, size=21).tolist()
        return [Transition(i, a, None, b) for i, (a, b) in enumerate(pairwise(states))]

    rng = np.random.default_rng(4)
    odd = [Transition(i, 3, None, 3) for i in range(20)]
    model = learned([odd, *(walk(rng) for _ in range(200))], actions=False)
    normal = [walk(rng) for _ in range(200)]
    told = {}
    for what in ("outcome", "state"):
        predictor = predictor_of(model, what)  # type: ignore[arg-type]
        runs = [[predictor.surprise(one).of(what) for one in run] for run in (*normal, odd)]  # type: ignore[arg-type]
        made = calibrate(
            runs[:-1], model="", abstraction="", statistic=what, test="prefix",  # type: ignore[arg-type]
            period=5, alpha=0.05, recordings=(),
        )  # fmt: skip
        told[what] = made.judge(runs[-1]).anomalous
    assert told == {"outcome": False, "state": True}


def test_the_rarity_of_a_state_is_its_share_of_all_steps() -> None:
    runs = [[Transition(0, 0, None, 1), Transition(1, 1, None, 1), Transition(2, 1, None, 2)]]
    predictor = predictor_of(learned(runs, actions=False), "state")
    # Two values in three steps, four states and a new one that are known: (C + T/5) / (N + T).
    for state, count in ((1, 2), (2, 1), (3, 0)):
        expected = (count + 2 / 5) / (3 + 2)
        assert predictor.state_probability(state) == pytest.approx(expected)
        assert predictor.surprise(Transition(0, 0, None, state)).state == -math.log(expected)
    likeliest = predictor.expected(Transition(0, 0, None, 3), "state").likeliest
    assert [chance for _, chance in likeliest][:2] == [pytest.approx(0.48), pytest.approx(0.28)]
