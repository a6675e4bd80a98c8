"""Weights for outcomes that short runs hide: against scikit-survival, and against the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_runs import clips, track

from forewarn.assessment.calibration import fit
from forewarn.assessment.censoring import judge, observed_for, weighted
from forewarn.assessment.reliability import calibrate, pool, predictions
from forewarn.config.sections import PropertySpec

RULE = PropertySpec(formula="always(not p)", horizon=2.0)
FACTS = st.text("........V?-E", min_size=1, max_size=14)


def outcome(facts: str, t: int, horizon: int) -> tuple[int, str]:
    """Walk forward from tick t: what came first, and after how many ticks."""
    for u in range(t + 1, t + horizon + 1):
        if u >= len(facts) or facts[u] in "-?":
            return u - t, "lost"
        if facts[u] in "VE":
            return u - t, "violation" if facts[u] == "V" else "clear"
    return horizon, "clear"


def by_hand(runs: list[str], horizon: int) -> list[tuple[int, str, float]]:
    """Return wait, outcome and weight of every tick, factor by factor."""
    found = [
        outcome(facts, t, horizon) for facts in runs for t, fact in enumerate(facts) if fact == "."
    ]
    told = []
    for wait, what in found:
        share = 1.0
        for step in range(1, wait + 1):
            at_risk = [w for w, _ in found if w >= step]
            lost = [w for w, item in found if w == step and item == "lost"]
            share *= 1 - len(lost) / len(at_risk)
        told.append((wait, what, 0.0 if what == "lost" else 1 / share))
    return told


@settings(deadline=None)
@given(st.lists(FACTS, min_size=1, max_size=4), st.sampled_from([1, 2, 4]))
def test_weights_are_those_of_the_definition(runs: list[str], horizon: int) -> None:
    expected = by_hand(runs, horizon)
    tracks = [track("." * len(facts), facts, horizon=horizon) for facts in runs]
    found = pool(weighted(tracks))
    kept = [(what == "violation", weight) for _, what, weight in expected if weight]
    if not len(found.risk):
        at_end = [what for wait, what, _ in expected if wait == horizon and what == "clear"]
        assert not at_end or not kept
        return
    assert found.followed.tolist() == [violated for violated, _ in kept]
    assert found.weights == pytest.approx([weight for _, weight in kept])
    assert found.censored == len(expected) - len(kept)
    assert found.weights.sum() == pytest.approx(len(expected))  # nobody is lost, nobody doubled


def test_brier_score_is_that_of_scikit_survival() -> None:
    """Graf's score, on waits that are made unequal: a loss comes half a tick before a violation."""
    metrics = pytest.importorskip(
        "sksurv.metrics", reason="scikit-survival is not installed (requirements/oracles.txt)"
    )
    draws = np.random.default_rng(4)
    runs = [
        "".join("V" if hit else "." for hit in draws.random(size) < 0.05)
        for size in draws.integers(3, 40, size=60)
    ]
    horizon = 10
    risks = [draws.random(len(facts)) for facts in runs]
    tracks = [
        track("." * len(facts), facts, horizon=horizon, risk=risk.tolist())
        for facts, risk in zip(runs, risks, strict=True)
    ]
    found = calibrate(pool(weighted(tracks)))
    assert found is not None
    waits = by_hand(runs, 10**6)  # followed for as long as they go on, as the oracle wants it
    truth = np.array(
        [(what == "violation", 2 * wait - (what == "lost")) for wait, what, _ in waits],
        dtype=[("event", bool), ("time", float)],
    )
    risk = np.concatenate(
        [[r for r, f in zip(one_risk, facts, strict=True) if f == "."]
         for one_risk, facts in zip(risks, runs, strict=True)]
    )  # fmt: skip
    _, score = metrics.brier_score(truth, truth, (1 - risk)[:, None], [2 * horizon])
    assert found.brier == pytest.approx(score[0], rel=1e-12)


def test_weights_use_short_clips_and_call_a_perfect_model_right() -> None:
    tracks = clips(seed=2, seconds=3.0)
    dropped, weighed = (pool(judge(tracks, weigh=weigh)) for weigh in (False, True))
    assert len(weighed.risk) > 1.3 * len(dropped.risk)
    for pairs in (dropped, weighed):
        found = calibrate(pairs)
        assert found is not None and found.expected_error < 0.02
    parts = weighted(tracks)
    fitted = fit("rule", RULE, parts, method="isotonic", rate=10.0)
    assert fitted.found is not None
    assert fitted.found(np.array([0.332])) == pytest.approx(0.332, abs=0.02)
    assert fitted.after is not None and fitted.after.expected_error < 0.02


def test_weights_bring_back_what_ends_with_the_violation() -> None:
    """Drivers who take over after a violation end the observation of it, not of the others."""
    tracks = []
    for run in clips(seed=5, seconds=10.0, count=400):
        facts = "".join("V" if hit else "." for hit in run.violation)
        at = facts.find("V")
        cut = facts if at < 0 else facts[: at + 1] + "-" * (len(facts) - at - 1)
        tracks.append(track("." * len(cut), cut, horizon=20, risk=run.probability.tolist()))
    dropped, weighed = (calibrate(pool(judge(tracks, weigh=w))) for w in (False, True))
    assert dropped is not None and weighed is not None
    assert dropped.base_rate < 0.05  # nearly all ticks before a violation are lost
    assert weighed.base_rate == pytest.approx(0.332, abs=0.03)


def test_a_horizon_that_no_run_outlasts_cannot_be_judged() -> None:
    tracks = [track("." * 4, facts, horizon=10) for facts in ("..V.", "....")]
    for part in weighted(tracks):
        assert not len(part.risk)
    assert sum(part.censored for part in weighted(tracks)) == 7
    assert calibrate(pool(weighted(tracks))) is None


def test_a_violation_counts_though_the_automaton_is_in_doubt_from_that_tick_on() -> None:
    facts = "..V..."
    run = track("." * 6, facts, horizon=2)
    doubtful = replace(run, ambiguous=np.array([fact == "V" for fact in facts]))
    for each in (run, doubtful):
        (found,) = weighted([each])
        assert found.followed.tolist() == [True, True, False]
        assert found.censored == 2


def test_without_a_horizon_only_violations_are_known() -> None:
    (found,) = weighted([track("." * 4, "..V.", horizon=None)])
    assert (found.followed.tolist(), found.censored) == ([True, True], 1)
    assert weighted([]) == []


def test_without_any_loss_every_tick_stands_for_itself() -> None:
    times, share = observed_for(np.array([1, 2, 2]), np.array([True, True, True]))
    assert (times.tolist(), share.tolist()) == ([], [1.0])
    run = track("." * 6, "..V..E", horizon=2)
    (found,), plain = weighted([run]), predictions(run)
    assert found.weights.tolist() == [1.0] * len(found.risk)
    assert found.followed.tolist() == plain.followed.tolist()
