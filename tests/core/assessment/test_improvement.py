"""Predicates that are proposed: the same risks as learning gives, and no chance findings."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from forewarn.assessment.improvement import Improvement, _corrected, _flipped, improve
from forewarn.assessment.replay import Replaying, replay
from forewarn.assessment.split_states import Cut, Recorded, Setting, Split
from forewarn.cli.improving import _read, _setting, _sources
from forewarn.cli.output import Output
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.counts import Smoothing
from forewarn.monitoring.build import build_monitor
from forewarn.recordings.registry import open_recording
from forewarn.states.vocabulary import Vocabulary

TEXT = """
rate: 10
startup_grace: 0
bounds: {kind: none}
signals: {gap: {timeout: never}, hum: {timeout: 0.25}}
predicates: {close: gap < 5}
bins: {gap: [0.6, 10]}
terminal: {parked: gap > 29}
constraints: [{forbid: {from: not close, to: "gap < 0.6"}}]
intervened_when: hum > 2.5
properties:
  apart: {formula: "always(close implies eventually[0:5](gap > 8))", horizon: 8.0}
  clear: {formula: "always(not gap<0.6)", horizon: 3.0}
"""
CUTS = (Cut("rate(gap, 0.5)", -0.5), Cut("hum", 0.0))


def compiled(text: str = TEXT) -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(text)))


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write traces of a gap that closes at times; `hum` tells nothing and is missing at times."""
    folder = tmp_path_factory.mktemp("traces")
    for seed in range(20):
        chance, gap, speed, closing = random.Random(seed), 20.0, 0.0, False
        lines = []
        for tick in range(600):
            closing = chance.random() < (0.98 if closing else 0.02)
            speed += 0.3 * ((-4.0 if closing else 1.0) - speed)
            gap = min(30.0, gap + 0.1 * speed)
            if gap < 0.3:
                gap, speed, closing = 20.0, 0.0, False
            hum = f', "hum": {chance.gauss(0, 1):.3f}' if chance.random() < 0.95 else ""
            lines.append(f'{{"t": {tick / 10}, "gap": {gap:.4f}{hum}}}\n')
        (folder / f"run{seed}.jsonl").write_text("".join(lines))
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def recorded(bags: list[Path]) -> dict[str, tuple[list[Recorded], Setting]]:
    """Return for each property what the traces say of it."""
    used = compiled()
    sources, output = dict(_sources(used.spec, used)), Output(quiet=True)
    return {
        name: (
            _read(used, name, sources, bags, output, allow_missing=False),
            _setting(used, index),
        )
        for index, name in enumerate(used.spec.properties)
    }


@pytest.fixture(scope="module")
def improved(recorded: dict[str, tuple[list[Recorded], Setting]]) -> Improvement:
    ours, setting = recorded["clear"]
    return improve(ours, setting, most=1, tries=6)


@pytest.mark.parametrize("cuts", [(), CUTS], ids=["as it is", "split"])
def test_risks_are_those_that_a_model_of_the_same_predicates_gives(bags, recorded, cuts):
    """A monitor file that has the conditions, learned and replayed by the commands' own way."""
    more = ", ".join(["close: gap < 5", *(f"c{i}: '{cut.text}'" for i, cut in enumerate(cuts))])
    full = compiled(TEXT.replace("{close: gap < 5}", f"{{{more}}}"))
    theirs = learn(bags[1:], full.spec, full.abstraction).model
    with open_recording(bags[0]) as recording:
        run = replay(Replaying(build_monitor(full, theirs)), recording)
    for (ours, setting), track in zip(recorded.values(), run.tracks, strict=True):
        split = Split(setting, ours, cuts)
        model, table = split.learned(range(1, len(bags)))
        assert model.size == theirs.size
        expected = np.where(track.state < 0, np.nan, track.probability)[ours[0].judged]
        found = split.risks(0, model, table)
        both = ~np.isnan(found) & ~np.isnan(expected)
        assert found[both] == pytest.approx(expected[both], rel=1e-9)
        assert (np.isnan(found) == np.isnan(expected)).all()
        assert both.sum() > 100 and len(set(found[both])) > 1


def test_what_closes_is_found_and_what_hums_is_not(recorded, improved):
    (ours, setting), found = recorded["clear"], improved
    (one,) = found.proposals
    assert "gap" in one.cut.source and "(" in one.cut.source, "memory of the gap"
    assert one.gain.value > 0.01
    assert len(found.choosing) == len(found.judging) == 10
    assert one.holds and found.confirmed == (one,)
    # Where four recordings judge, the least p-value that signs can have is 1/16.
    assert improve(ours[:8], setting, most=1, tries=6).confirmed == ()
    shuffled = [ours[i] for i in np.random.default_rng(2).permutation(len(ours))]
    assert improve(shuffled, setting, most=1, tries=6) == found, "whatever their order"
    no_gap = [one._replace(values={"hum": one.values["hum"]}) for one in ours]
    assert not any(one.holds for one in improve(no_gap, setting, most=1).proposals)


def test_recordings_of_a_group_stay_together_and_prove_as_much_as_one(recorded, improved):
    (ours, setting), alone = recorded["clear"], improved
    named = [one._replace(group=one.digest) for one in ours]
    assert improve(named, setting, most=1, tries=6) == alone, "groups of one change nothing"
    grouped = [one._replace(group=f"day{i % 8}") for i, one in enumerate(ours)]
    found = improve(grouped, setting, most=1, tries=6)
    day = {one.name: one.group for one in grouped}
    choosing, judging = ({day[name] for name in half} for half in (found.choosing, found.judging))
    assert len(choosing) == len(judging) == 4 and not choosing & judging
    # Signs of four days may well be alike by chance; those of ten recordings are not.
    assert alone.confirmed and not found.confirmed
    assert all(one.p_value >= 1 / 16 for one in found.proposals) and found.proposals


def simulated(rng: np.random.Generator, number: int) -> Recorded:
    """Return a run of two states, one of them violated at times, and three values of noise."""
    size = 150
    state, states = 0, []
    for _ in range(size):
        states.append(state)
        state = int(rng.random() < (0.1 if state == 0 else 0.6))
    violated = np.array(states) == 1
    after = np.array([violated[i + 1 : i + 4].any() for i in range(size)])
    judged = ~violated & (np.arange(size) < size - 3)
    slow = np.cumsum(rng.normal(size=(3, size)), axis=1) * 0.3  # each run at levels of its own
    values = {f"v{i}": row for i, row in enumerate(slow)}
    automaton = np.zeros(size, dtype=np.int64)
    nothing = np.zeros(size, dtype=bool)
    return Recorded(
        str(number), str(number), np.arange(size), tuple(states), nothing, automaton, after, judged,
        values,
    )  # fmt: skip


class Anything:
    def allows(self, source: int, target: int) -> bool:
        return True

    def forbidden_matrix(self, states):  # type: ignore[no-untyped-def]
        return np.zeros((len(states), len(states)), dtype=bool)


def test_chance_is_seldom_taken_for_a_finding():
    """Values that walk at random say nothing; a search over 96 cuts finds some that fit."""
    used = compiled(
        "rate: 10\nsignals: {x: {timeout: never}}\npredicates: {bad: x > 0}\n"
        "properties: {p: {formula: always(not bad), horizon: 0.3}}\n"
    )
    setting = replace(_setting(used, 0), vocabulary=Vocabulary(("bad",)), smoothing=Smoothing())
    rng, told, proposed, trials = np.random.default_rng(8), 0, 0, 40
    for trial in range(trials):
        runs = [simulated(rng, 100 * trial + i) for i in range(16)]
        found = improve(runs, setting, most=1, tries=3, resamples=10)
        proposed += len(found.proposals)
        told += bool(found.confirmed)
    assert proposed > 5, "the recordings that choose are fooled at times"
    assert stats.binomtest(told, trials, 0.05, alternative="greater").pvalue > 0.01


def test_p_values_of_flipped_signs_are_those_of_all_signs():
    gains = np.array([0.5, 0.3, -0.1, 0.4, 0.2])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 5)).reshape(5, -1)
    as_great = (signs * np.abs(gains)[:, None]).sum(axis=0) >= gains.sum() - 1e-12
    assert _flipped(gains) == pytest.approx(as_great.mean())
    assert _flipped(np.array([1.0])) == 1.0


def test_holms_correction_is_that_of_the_definition(recorded):
    ours, setting = recorded["clear"]
    (one,) = improve(ours, setting, most=1, tries=1).proposals
    raw = [0.01, 0.04, 0.03]
    found = [p.p_value for p in _corrected([one._replace(p_value=p) for p in raw])]
    assert found == pytest.approx([0.03, 0.06, 0.06])
