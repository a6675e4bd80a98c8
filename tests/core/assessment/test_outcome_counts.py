"""What followed each moment, against a monitor that replays every prefix and then looks on."""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.assessment.outcome_counts import LAGS, EndObserver, OutcomeObserver, watch_for
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigErrors, ModelError
from forewarn.learning.executors import local
from forewarn.learning.folds import fold_of
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.file import (
    VERSION,
    _checksum,
    canonical,
    load_model,
    merge_models,
    save_model,
)
from forewarn.models.run_ends import RunEnd
from forewarn.models.score_bins import bin_of, logit_of
from forewarn.models.shards import ENDED, VIOLATED, judged_in
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.step import Monitor, MonitorState
from forewarn.monitoring.verdict import PropertyStatus, Verdict
from forewarn.signals.snapshots import Snapshot

HORIZON = 4
TEXT = """
rate: 1
startup_grace: 0
signals:
  {{x: {{timeout: never}}, y: {{timeout: never}},
    active: {{timeout: never}}, ours: {{timeout: never}}}}
active_when: active > 0
intervened_when: ours > 0
predicates: {{high: x > 0, low: y < 0}}
terminal: {{over: x > 5}}
properties: {{p: {{formula: "{formula}", horizon: 4, estimator: {estimator}, {more} }}}}
"""
FORMULAS = (
    "always(not high)",
    "always(high implies eventually[0:2 s](low))",
    "always(low implies not eventually[0:1 s](over))",
)


@lru_cache(maxsize=16)
def compiled(formula: str, estimator: str = "multi_step", more: str = "") -> CompiledSpec:
    text = TEXT.format(formula=formula, estimator=estimator, more=more)
    return compile_spec(parse_spec(parse_document(text)))


VALUES = st.tuples(
    st.sampled_from([-1.0, -1.0, 1.0, 1.0, 9.0, None]),
    st.sampled_from([-1.0, 1.0, 1.0, None]),
    st.sampled_from([1.0] * 9 + [0.0, None]),
    st.sampled_from([0.0] * 9 + [1.0, None]),
)
RUNS = st.lists(st.tuples(st.sampled_from([1] * 12 + [2, 4]), VALUES), min_size=1, max_size=25)
Moment = tuple[MonitorState, Verdict]


def stepped(monitor: Monitor, snapshots: list[Snapshot], upto: int) -> Moment:
    """Replay a prefix from its beginning."""
    state = monitor.start()
    for snapshot in snapshots[: upto + 1]:
        state, verdict = monitor.step(state, snapshot)
    return state, verdict


def usable(verdict: Verdict) -> bool:
    ours = verdict.properties[0]
    return (
        verdict.observation.intervened is False
        and len(ours.automaton) == 1
        and not ours.possible_violation
        and ours.status is not PropertyStatus.INACTIVE
    )


def runs_of(verdicts: list[Verdict]) -> list[list[Verdict]]:
    """Cut a recording where a tick is missing or nothing is monitored."""
    found: list[list[Verdict]] = [[]]
    for verdict in verdicts:
        active = verdict.properties[0].status is not PropertyStatus.INACTIVE
        if found[-1] and (not active or verdict.tick != found[-1][-1].tick + 1):
            found.append([])
        if active:
            found[-1].append(verdict)
    return [run for run in found if run]


def what_follows(
    monitor: Monitor,
    moment: Moment,
    rest: list[Snapshot],
    steps: int,
    closing: frozenset[int] = frozenset(),
) -> tuple[str, Verdict | None]:
    """Look on for so many steps: violated, ended, arrived, or unknown.

    A violation at one of the ticks in `closing` ends the run.
    """
    state, verdict = moment
    before = verdict.tick
    told = ""
    for snapshot in rest:
        state, verdict = monitor.step(state, snapshot)
        if snapshot.tick != before + 1 or not usable(verdict):
            return "unknown", None
        before = snapshot.tick
        violated = verdict.properties[0].violation
        ended = verdict.observation.ended
        told = told or ("violated" if violated else "ended" if ended else "")
        steps -= 1
        if ended or not steps or (violated and snapshot.tick in closing):
            return told or "arrived", verdict
    return "unknown", None


@given(st.sampled_from(FORMULAS), RUNS, st.booleans())
def test_outcomes_are_those_of_every_prefix_replayed(
    formula: str, run: list[tuple[int, tuple[Any, ...]]], concluded: bool
) -> None:
    ticks = np.cumsum([gap for gap, _ in run]).tolist()
    snapshots = [Snapshot(tick, values) for tick, (_, values) in zip(ticks, run, strict=True)]
    spec = compiled(formula)
    watcher, light = OutcomeObserver(spec), EndObserver(spec)
    monitor = build_monitor(spec, None)
    state, verdicts = monitor.start(), list[Verdict]()
    for snapshot in snapshots:
        state, verdict = monitor.step(state, snapshot)
        verdicts.append(verdict)
        watcher.add(snapshot, verdict.observation)
        light.add(snapshot, verdict.observation)
    codes, found, ends = watcher.result()
    told = runs_of(verdicts)
    violated = [[v.properties[0].violation for v in part] for part in told]
    assert (
        ends["p"]
        == light.result().ends["p"]
        == tuple(
            RunEnd(
                len(hits), tuple(i for i, hit in enumerate(hits) if hit and not (i and hits[i - 1]))
            )
            for hits in violated
        )
    )
    (outcomes,) = found.values()
    closing = frozenset[int]()
    if concluded:
        outcomes = outcomes.concluded
        closing = frozenset(v.tick for part in told for v in part[1 - HORIZON :])
    visits: Counter[tuple[int, int, bool]] = Counter()
    steps: dict[int, Counter[tuple[int, int, int, int]]] = {k: Counter() for k in LAGS}
    for index in range(len(snapshots)):
        moment = stepped(monitor, snapshots, index)
        rest = snapshots[index + 1 :]
        code, ours = moment[1].observation.state, moment[1].properties[0]
        going = (PropertyStatus.SATISFIED_SO_FAR, PropertyStatus.CANNOT_BE_VIOLATED)
        if code is None or not usable(moment[1]) or ours.status not in going:
            continue
        here = code, ours.automaton[0]
        what, _ = what_follows(monitor, moment, rest, HORIZON, closing)
        if what != "unknown":
            visits[(*here, what == "violated")] += 1
        for lag in [k for k in LAGS if k <= HORIZON]:
            # A step that is shown whole counts as it is.
            what, last = what_follows(monitor, moment, rest, lag)
            if what == "unknown":
                what, last = what_follows(monitor, moment, rest, lag, closing)
            if what == "arrived":
                assert last is not None
                if last.observation.state is not None:
                    there = last.observation.state, last.properties[0].automaton[0]
                    steps[lag][(*here, *there)] += 1
            elif what != "unknown":
                # no state code is below that of the one label
                end = -100 + (VIOLATED if what == "violated" else ENDED)
                steps[lag][(*here, end, 0)] += 1
    counted: Counter[tuple[int, int, bool]] = Counter()
    for state_, automaton, judged, violations in outcomes.visits.tolist():
        counted[codes[state_], automaton, True] += violations
        counted[codes[state_], automaton, False] += judged - violations
    assert +counted == visits
    assert set(outcomes.lags) == {k for k in LAGS if k <= HORIZON}
    for lag, rows in outcomes.lags.items():
        ours_there: Counter[tuple[int, int, int, int]] = Counter()
        for s, q, t, r, n in rows.tolist():
            ours_there[codes[s], q, codes[t] if t >= 0 else -100 + t, r] += n
        assert ours_there == steps[lag]


def write(path: Path, values: list[tuple[float, float]]) -> Path:
    rows = [
        json.dumps({"t": float(t), "x": x, "y": y, "active": 1.0, "ours": 0.0})
        for t, (x, y) in enumerate(values)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    rng = np.random.default_rng(3)
    return [
        write(tmp_path / f"{i}.jsonl", [tuple(rng.choice([-1.0, 1.0], 2)) for _ in range(40)])
        for i in range(4)
    ]


def test_a_model_keeps_what_each_recording_gave(runs: list[Path], tmp_path: Path) -> None:
    spec = compiled(FORMULAS[1])
    learned = learn(
        runs, spec.spec, spec.abstraction, watch=watch_for(spec), executor=local(2)
    ).model
    assert len(learned.shards) == 4
    apart = sum(shard.transitions[:, 2].sum() for shard in learned.shards)
    assert apart == learned.counts.sum()
    path = tmp_path / "m.json"
    save_model(learned, path)
    assert json.loads(path.read_text())["version"] == VERSION
    assert load_model(path).fingerprint == learned.fingerprint
    plain = learn(runs, spec.spec, spec.abstraction).model
    assert plain.shards == ()
    assert plain.fingerprint == plain.seed == learned.seed


def test_a_file_whose_risks_are_the_chains_is_what_it_was(runs: list[Path], tmp_path: Path) -> None:
    spec = compiled(FORMULAS[0], "chain")
    assert watch_for(spec) is None
    save_model(
        learn(runs, spec.spec, spec.abstraction, watch=watch_for(spec)).model, tmp_path / "m"
    )
    content = json.loads((tmp_path / "m").read_text())
    assert content["version"] == 1
    assert "shards" not in content


def test_merged_is_learned_at_once(runs: list[Path]) -> None:
    spec = compiled(FORMULAS[1])
    watch = watch_for(spec)
    whole = learn(runs, spec.spec, spec.abstraction, watch=watch).model
    parts = [learn([run], spec.spec, spec.abstraction, watch=watch).model for run in runs]
    merged = canonical(merge_models(parts))
    assert merged.fingerprint == canonical(whole).fingerprint
    assert [*judged_in(merged.shards)] == [*judged_in(whole.shards)]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda m: m["shards"][0]["outcomes"][0].update(property=7), "property"),
        (lambda m: m["shards"][0]["outcomes"][0]["visits"][0].__setitem__(0, 99), "visits"),
        (lambda m: m["shards"][0]["outcomes"][0]["visits"][3].__setitem__(0, 1 << 20), "visits"),
        (lambda m: m["shards"][0]["outcomes"][0]["visits"].pop(), "visits"),
        (lambda m: m["shards"][0]["transitions"][2].__setitem__(0, 1 << 20), "shards"),
        (lambda m: m["shards"][0]["outcomes"][0]["lags"][0].update(ticks=0), "ticks"),
        (lambda m: m["judged"][0].update(horizon=-1.0), "horizon"),
        (lambda m: m["shards"][0]["outcomes"][0]["end"].update(runs=[[40, [7, 7]]]), "end.runs"),
        (lambda m: m["shards"][0]["outcomes"][0]["end"].update(runs=[[4, [4]]]), "end.runs"),
        (lambda m: m["shards"][0]["outcomes"][0]["end"]["lags"].pop(), "end.lags"),
    ],
)
def test_what_cannot_be_is_refused_by_key(
    runs: list[Path], tmp_path: Path, change: Any, key: str
) -> None:
    spec = compiled(FORMULAS[1])
    path = tmp_path / "m.json"
    save_model(learn(runs, spec.spec, spec.abstraction, watch=watch_for(spec)).model, path)
    content = json.loads(path.read_text())
    content.pop("checksum")
    change(content)
    content["checksum"] = _checksum(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError) as caught:
        load_model(path)
    assert key in caught.value.key


def test_scores_are_kept_in_bins_of_their_logit(runs: list[Path]) -> None:
    spec = compiled(FORMULAS[0], "ensemble", "scores: [y]")
    model = learn(runs, spec.spec, spec.abstraction, watch=watch_for(spec)).model
    (judged,) = judged_in(model.shards)
    assert judged.scores == ("y",)
    for shard in model.shards:
        bins = shard.outcomes[judged].visits[:, 4]
        assert {*np.unique(bins).tolist()} == {-1, int(bin_of(np.array([1.0]))[0])}  # -1: no score
    scores = np.array([0.0, 0.3, 0.5, 0.98, 1.0, 1.1, -0.1, np.nan])
    told = logit_of(bin_of(scores))
    assert np.isnan(told[5:]).all()
    inner = scores[1:4]
    assert np.abs(told[1:4] - np.log(inner / (1 - inner))).max() <= 0.125
    assert told[0] == -told[4] < -10


def test_a_score_has_to_be_a_signal_and_to_be_used() -> None:
    with pytest.raises(ConfigErrors, match=r"no signal 'z'"):
        compiled(FORMULAS[0], "ensemble", "scores: [z]")
    with pytest.raises(ConfigErrors, match="adds no scores"):
        compiled(FORMULAS[0], "bayes", "scores: [y]")
    with pytest.raises(ConfigErrors, match="risk of an action"):
        compiled(FORMULAS[0], "bayes", "risk_of: action")


def test_folds_of_many_come_from_the_digest_alone() -> None:
    names = [f"{i:x}" for i in range(2000)]
    sizes = Counter(fold_of(name, 5) for name in names)
    assert sorted(sizes) == [0, 1, 2, 3, 4]
    assert min(sizes.values()) > 330
    assert fold_of("", 5) == fold_of("", 5)
