"""A learned score among the signals of a monitor: windows, gaps, ends of episodes, digests."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError, ConfigErrors
from forewarn.learning.folds import parted, unseeing
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.signals.snapshots import Snapshot
from forewarn.states.abstraction import Past
from forewarn.wings.scores.fit import Ensemble, LearnedScoreFit, lags_of
from tests import trees_interpreter as oracle

TEXT = """
rate: 10
signals:
  gap: {timeout: never}
  speed: {timeout: never}
  crashed: {timeout: never}
  halved: {value: gap / 2}
learned_score:
  ahead: {for: keeps_distance, from: [halved, speed], history: 0.4, directions: {speed: rising}}
predicates: {close: gap < 2, grave: ahead > 0.5}
bins: {ahead: auto}
terminal: {crash: crashed}
properties: {keeps_distance: {formula: always(not close), horizon: 2.0}}
"""
MOMENTS = 4
LAGS = lags_of(MOMENTS)


def fit(**changes: Any) -> LearnedScoreFit:
    """Ask whether speed is above 3, and whether halved has fallen by more than 1 in 0.4 s."""
    width = 1 + len(LAGS)
    falls = len(LAGS)
    ensemble = Ensemble(
        base=-1.0,
        roots=(0, 3),
        feature=(width, -1, -1, falls, -1, -1),
        threshold=(3.0, 0.0, 0.0, -1.0, 0.0, 0.0),
        left=(1, -1, -1, 4, -1, -1),
        right=(2, -1, -1, 5, -1, -1),
        missing_left=(1, 0, 0, 0, 0, 0),
        value=(0.0, -1.0, 1.0, 0.0, 2.0, -0.5),
        needed=tuple(int(i == falls) for i in range(2 * width)),
    )
    sound: dict[str, Any] = {
        "name": "ahead",
        "foresees": "keeps_distance",
        "formula": "always(not close)",
        "horizon": 2.0,
        "signals": ("halved", "speed"),
        "moments": MOMENTS,
        "lags": LAGS,
        "directions": (0, 1),
        "ensemble": ensemble,
        "cuts": (0.1, 0.4),
    }
    return LearnedScoreFit(**{**sound, **changes})


def compiled(text: str = TEXT, *fits: LearnedScoreFit) -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(text)), fits)


FITTED = compiled(TEXT, fit())
MODEL = FITTED.abstraction

ticks = st.tuples(
    st.integers(1, 2),  # of which 2 misses one
    st.one_of(st.none(), st.floats(-8, 8), st.just(math.inf)),
    st.one_of(st.none(), st.floats(0, 6), st.booleans()),
    st.sampled_from([False] * 8 + [True, None]),
)


@given(st.lists(ticks, max_size=14))
def test_a_score_is_that_of_the_window_since_what_is_known(run: list[Any]) -> None:
    past: Past | None = None
    window: list[tuple[float | None, ...]] = []
    tick = 0
    lost = ((None, None),) * (MOMENTS + 1)
    for step, gap, speed, crashed in run:
        tick += step
        if step > 1 and past is not None:
            window = [*lost]
        seen = MODEL.observe(Snapshot(tick, (gap, speed, crashed)), past)
        row = tuple(
            None if v is None else max(min(float(v), 1e300), -1e300)
            for v in (None if gap is None else gap / 2, speed)
        )
        window = [*window, row][-MOMENTS - 1 :]
        x = oracle.features(window, LAGS)
        value = seen.values[MODEL.signals.index("ahead")]
        assert value == oracle.score(fit().ensemble, x)
        assert MODEL.window("ahead", seen.past) == tuple(window)
        past = MODEL.parse_past(json.loads(json.dumps(seen.past, allow_nan=False)))
        assert past == seen.past
        window = [] if crashed else [*lost] if crashed is None else window


def test_predicates_bins_and_formulas_may_use_the_score() -> None:
    assert MODEL.vocabulary.predicates == ("close", "grave", "ahead<0.1", "ahead<0.4")
    seen = MODEL.observe(Snapshot(1, (4.0, 5.0, False)), None)
    x = oracle.features([(2.0, 5.0)], LAGS)
    danger = oracle.score(fit().ensemble, x)
    assert danger is not None and 0.1 < danger < 0.4
    assert seen.observation.state is not None
    assert MODEL.vocabulary.name(seen.observation.state) == "ahead<0.4"


def test_a_text_is_no_number_and_that_is_told() -> None:
    seen = MODEL.observe(Snapshot(1, (4.0, "fast", False)), None)
    assert seen.values[MODEL.signals.index("ahead")] is None
    reasons = {failure.where: failure.reason for failure in seen.failures}
    assert reasons["ahead"] == "speed is text, not a number"


def test_before_it_is_fitted_it_is_unknown_and_says_so() -> None:
    bare = compiled().abstraction
    assert bare.vocabulary.predicates == ("close", "grave")
    seen = bare.observe(Snapshot(1, (4.0, 5.0, False)), None)
    assert seen.values[bare.signals.index("ahead")] is None
    assert "forewarn learn" in seen.failures[0].reason
    assert seen.observation.known == 1


def test_the_digest_covers_what_is_fitted() -> None:
    assert MODEL.digest == compiled(TEXT, fit()).abstraction.digest
    others = [fit(cuts=(0.1, 0.5)), fit(recordings=("a",))]
    others.append(fit(ensemble=replace(fit().ensemble, base=0.0)))
    digests = {compiled(TEXT, other).abstraction.digest for other in others}
    assert len({MODEL.digest, compiled().abstraction.digest, *digests}) == 5


def test_states_that_depend_on_it_are_learned_from_its_recordings() -> None:
    fitted = fit(recordings=("ab" * 32, "cd" * 32))
    marks = ("ab" * 6, "cd" * 6)
    assert compiled(TEXT, fitted).abstraction.learned_from == marks
    aside = TEXT.replace("bins: {ahead: auto}\n", "").replace(", grave: ahead > 0.5", "")
    assert compiled(aside, fitted).abstraction.learned_from == ()
    derived = aside.replace("learned_score:", "  worse: {value: ahead * 2}\nlearned_score:", 1)
    derived = derived.replace("{close: gap < 2}", "{close: gap < 2, bad: worse > 1}")
    assert compiled(derived, fitted).abstraction.learned_from == marks
    tree = (
        aside + "states: {kind: tree, state_source_recordings: [00aa], "
        "tree: {if: ahead > 0.3, then: a, else: b}}\n"
    )
    assert compiled(tree, fitted).abstraction.learned_from == ("00aa", *marks)


def test_it_travels_to_other_processes_with_its_folds() -> None:
    unseeing = (replace(fit().ensemble, base=2.0), replace(fit().ensemble, base=-3.0))
    there = pickle.loads(pickle.dumps(compiled(TEXT, fit(unseeing=unseeing)).abstraction))
    assert there.digest == MODEL.digest
    snapshot = Snapshot(1, (4.0, 5.0, False))
    x = oracle.features([(2.0, 5.0)], LAGS)
    for fold in (0, 1):
        seen = there.without({"ahead": fold}).observe(snapshot, None)
        slot = there.signals.index("ahead")
        assert seen.values[slot] == oracle.score(unseeing[fold], x)


@pytest.mark.parametrize("count", [12, 40])
def test_each_score_has_folds_of_its_own(count: int) -> None:
    """How many they are depends on the violations that a score foresees."""
    line = next(line for line in TEXT.splitlines() if line.startswith("  ahead: "))
    both = TEXT.replace(line, f"{line}\n{line.replace('ahead', 'other')}")
    recordings = tuple(f"run{i}" for i in range(count))
    fits = {
        name: fit(
            name=name,
            recordings=recordings,
            unseeing=tuple(replace(fit().ensemble, base=float(k)) for k in range(folds)),
        )
        for name, folds in (("ahead", 10), ("other", 11))
    }
    abstraction = compiled(both, *fits.values()).abstraction
    for digest in recordings:
        seen = dict(unseeing(abstraction, digest).scores)
        for name, whole in fits.items():
            own = parted(recordings, len(whole.unseeing))[recordings.index(digest)]
            assert seen[name].fit == replace(whole, ensemble=whole.unseeing[own])
    stored = compiled(both, *(replace(one, unseeing=()) for one in fits.values())).abstraction
    assert unseeing(stored, "run0") is stored


def test_what_pushes_it_is_told_by_signal() -> None:
    score = dict(MODEL.scores)["ahead"]
    past = MODEL.observe(Snapshot(1, (4.0, 5.0, False)), None).past
    pushes = score.pushes(MODEL.window("ahead", past))
    assert pushes == {"speed": 1.0, "halved": -0.5}
    assert list(pushes) == ["speed", "halved"]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"foresees": "other"}, "learned_score.ahead.for"),
        ({"formula": "always(not grave)"}, "learned_score.ahead.for"),
        ({"horizon": 3.0}, "learned_score.ahead.for"),
        ({"signals": ("halved", "gap")}, "learned_score.ahead.from"),
        ({"moments": 5}, "learned_score.ahead.history"),
        ({"directions": (0, 0)}, "learned_score.ahead.directions"),
    ],
)
def test_a_fit_of_something_else_is_refused(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        compiled(TEXT, fit(**changes))
    found = [error for error in caught.value.errors if error.key == key]
    assert found and "learn again" in found[0].accepted


@pytest.mark.parametrize(
    ("before", "after", "key", "accepted"),
    [
        ("for: keeps_distance", "for: other", "learned_score.ahead.for", "keeps_distance"),
        ("[halved, speed]", "[halved, spede, speed]", "learned_score.ahead.from[1]", "gap, speed"),
        ("[halved, speed]", "[halved, ahead, speed]", "learned_score.ahead.from[1]", "not learned"),
        ("[halved, speed]", "[speed, speed]", "learned_score.ahead.from[1]", "once"),
        ("{speed: rising}", "{gap: rising}", "learned_score.ahead.directions.gap", "halved, speed"),
        ("{speed: rising}", "{speed: up}", "learned_score.ahead.directions.speed", ""),
        ("history: 0.4", "history: 90", "learned_score.ahead.history", "0.1 to 20"),
        ("history: 0.4", "history: 0.01", "learned_score.ahead.history", "0.1 to 20"),
        ("bins: {ahead: auto}", "bins: {gap: auto}", "bins.gap", "ahead"),
        ("gap / 2", "gap / 2 + ahead", "learned_score.ahead.from[0]", "not learned"),
        ("always(not close)", "always(not grave)", "learned_score.ahead.for", "no learned score"),
        ("always(not close)", "always(ahead < 0.9)", "learned_score.ahead.for", "no learned score"),
        ("{crash: crashed}", "{crash: grave}", "learned_score.ahead.for", "no learned score"),
        ("  halved:", "  ahead: {timeout: never}\n  halved:", "learned_score.ahead", "of its own"),
    ],
)
def test_what_cannot_be_meant_is_an_error(before: str, after: str, key: str, accepted: str) -> None:
    text = TEXT.replace(before, after)
    assert text != TEXT
    with pytest.raises(ConfigError) as caught:
        compiled(text)
    errors = caught.value.errors if isinstance(caught.value, ConfigErrors) else [caught.value]
    found = [error for error in errors if error.key.rpartition(" ")[2] == key]
    assert found, [str(error) for error in errors]
    assert accepted in found[0].accepted


def test_under_steps_the_history_is_in_steps() -> None:
    text = TEXT.replace("rate: 10", "clock: steps").replace("horizon: 2.0", "horizon: 2")
    steps = compiled(text.replace("history: 0.4", "history: 3")).abstraction
    assert steps.scores[0][1].moments == 3
    with pytest.raises(ConfigError, match="whole number of steps"):
        compiled(text)
