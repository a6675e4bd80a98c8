"""The expected risk against Bayes' rule over all state paths, and against Storm's tracker.

Storm's belief tracker is that of premise (Junges, Torfah and Seshia, CAV 2021).
"""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.learning.counting import TransitionCounter, build_model
from forewarn.logic.specification import compile_spec
from forewarn.models.counts import CountModel, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import PropertyVerdict
from forewarn.signals.snapshots import Snapshot

NOISE = {"pa": 0.1, "pb": 0.25}
TEXT = """
rate: 10
startup_grace: 0
bounds: {kind: none}
signals: {a: {timeout: never}, b: {timeout: never}, e: {timeout: never}}
predicates: {pa: a, pb: b}
terminal: {ended: e == 1, crashed: e == 2}
observation_error: {}
properties:
  response: {formula: "always(pa implies eventually[0:2 steps](pb))", horizon: 0.5}
  invariant: {formula: "always(not (pa and pb))", horizon: 0.5}
  crash: {formula: "always(not crashed)", horizon: 0.5}
"""
NOISY = TEXT.replace("observation_error: {}", "observation_error: {pa: 0.1, pb: 0.25}")
PLAIN = TEXT.replace("observation_error: {}\n", "")
Values = tuple[float | None, ...]
Run = tuple[Values, ...]


def learned(alpha: float | str) -> CountModel:
    """Count episodes of 20 ticks; with alpha 'none' 3 never follows 0."""
    rng = np.random.default_rng(7)
    compiled = compile_spec(parse_spec(parse_document(PLAIN)))
    counter = TransitionCounter(compiled.abstraction.vocabulary)
    rows = {0: [0.6, 0.3, 0.1, 0.0], 1: [0.2, 0.5, 0.2, 0.1], 2: [0.3, 0.2, 0.4, 0.1]}
    for _ in range(40):
        state = 0
        for tick in range(20):
            counter.add(tick, state)
            state = int(rng.choice(4, p=rows.get(state, [0.25] * 4)))
        counter.add(20, int(rng.choice([-1, -2])))
        counter.end_recording()
    return build_model(
        counter, rate=10.0, digest=compiled.abstraction.digest, smoothing=Smoothing(alpha)
    )


MODELS = {alpha: learned(alpha) for alpha in ("sparse", "none")}


def monitor(text: str, alpha: str) -> Monitor:
    return build_monitor(compile_spec(parse_spec(parse_document(text))), MODELS[alpha])


MONITORS = {
    (text, alpha): monitor(text, alpha) for text in (PLAIN, TEXT, NOISY) for alpha in MODELS
}
KNOWN = {0: (0.0, 0.0, 0.0), 1: (1.0, 0.0, 0.0), 2: (0.0, 1.0, 0.0), 3: (1.0, 1.0, 0.0)}
ENDS = {-1: (0.0, 0.0, 1.0), -2: (0.0, 0.0, 2.0)}
STATES = {**KNOWN, **ENDS}


def play(used: Monitor, run: list[Values], start: int = 0) -> list[tuple[PropertyVerdict, ...]]:
    state, found = used.start(), []
    for tick, values in enumerate(run, start):
        state, verdict = used.step(state, Snapshot(tick, tuple(values)))
        found.append(verdict.properties)
    return found


def reading(values: Values, state: int, noise: dict[str, float]) -> float:
    """Return how probable it is to read these values in a state."""
    a, b, e = values
    if state < 0:
        return float(e is None or e == -state)
    found = float(not e)
    for value, bit, wrong in ((a, 0, noise.get("pa", 0.0)), (b, 1, noise.get("pb", 0.0))):
        if value is not None:
            found *= 1.0 - wrong if bool(value) == bool(state >> bit & 1) else wrong
    return found


def bayes(run: list[Values], noise: dict[str, float], alpha: str) -> list[list[float]] | None:
    """Return the expected risk of each property at each tick, by all paths of states.

    None if some readings are impossible together: the belief begins anew there.
    """
    model = MODELS[alpha]
    matrix = estimate_chain(model).to_csr().toarray()
    arrivals = model.counts.toarray().sum(axis=0)
    seen = np.where(model.terminal, 0.0, arrivals + model.starts).astype(float)
    seen /= seen.sum()
    paths: dict[tuple[int, ...], float] = {(): 1.0}
    found = []
    for tick, values_read in enumerate(run):
        grown: dict[tuple[int, ...], float] = {}
        for path, weight in paths.items():
            for state in STATES:
                likely = reading(values_read, state, noise)
                if not path or (path[-1] < 0 and not reading(values_read, path[-1], noise)):
                    step = seen[model.index[state]]  # an episode begins
                else:
                    step = matrix[model.index[path[-1]], model.index[state]]
                if likely * step * weight:
                    grown[(*path, state)] = likely * step * weight
        paths, total = grown, math.fsum(grown.values())
        if not total:
            return None
        risks = {
            path: play(MONITORS[PLAIN, alpha], [STATES[s] for s in path])[tick] for path in paths
        }
        found.append(
            [
                math.fsum(w * risks[path][index].probability for path, w in paths.items()) / total
                for index in range(3)
            ]
        )
    return found


UNSURE = st.tuples(
    st.sampled_from([0.0, 1.0, None]),
    st.sampled_from([0.0, 1.0, None]),
    st.sampled_from([0.0, 0.0, 0.0, 0.0, 1.0, 2.0, None]),
)


@pytest.mark.parametrize("alpha", MODELS)
@pytest.mark.parametrize("noise", [{}, NOISE], ids=["unknown", "noisy"])
def test_it_is_what_bayes_says_over_all_paths(noise: dict[str, float], alpha: str):
    used = MONITORS[NOISY if noise else TEXT, alpha]

    @settings(max_examples=examples(40), deadline=None)
    @given(st.lists(UNSURE, min_size=1, max_size=4))
    def check(run: list[Values]) -> None:
        expected = bayes(run, noise, alpha)
        if expected is None:
            return
        for verdicts, theirs in zip(play(used, run), expected, strict=True):
            for verdict, value in zip(verdicts, theirs, strict=True):
                assert verdict.expected.probability == pytest.approx(value, rel=1e-12, abs=1e-15)
                assert verdict.expected.left_out == 0.0
                assert not verdict.expected.restarted

    check()


@pytest.mark.parametrize("key", MONITORS, ids=str)
@settings(max_examples=examples(60), deadline=None)
@given(run=st.lists(UNSURE, min_size=1, max_size=8))
def test_without_noise_it_is_at_most_the_worst_case(key: tuple[str, str], run: list[Values]):
    for verdicts in play(MONITORS[key], run):
        for verdict in verdicts:
            value = verdict.expected.probability
            if key[0] == PLAIN:
                assert math.isnan(value) and math.isnan(verdict.expected.left_out)
            elif not math.isnan(value):
                assert 0.0 <= value <= 1.0
                if key[0] == TEXT and not math.isnan(verdict.probability):
                    assert value <= verdict.probability + 1e-12


@given(
    st.lists(UNSURE, min_size=1, max_size=4),
    st.integers(1, 6),
    st.lists(UNSURE, min_size=1, max_size=2),
)
@settings(max_examples=examples(40), deadline=None)
def test_a_missed_tick_is_one_step_of_the_chain(
    before: list[Values], gap: int, after: list[Values]
):
    used = MONITORS[NOISY, "sparse"]
    filled = play(used, before + [(None, None, None)] * gap + after)[len(before) + gap :]
    state = used.start()
    for tick, values in enumerate(before):
        state, _ = used.step(state, Snapshot(tick, values))
    for tick, values in enumerate(after, len(before) + gap):
        state, verdict = used.step(state, Snapshot(tick, values))
        theirs = filled[tick - len(before) - gap]
        assert [p.expected for p in verdict.properties] == [p.expected for p in theirs]


def endless() -> Monitor:
    """Return a monitor of runs that never end, whose model has no terminal label."""
    text = NOISY.replace("terminal: {ended: e == 1, crashed: e == 2}\n", "")
    text = text.replace(", e: {timeout: never}", "")
    text = text[: text.index("  invariant")]
    compiled = compile_spec(parse_spec(parse_document(text)))
    counter, state = TransitionCounter(compiled.abstraction.vocabulary), 0
    rng = np.random.default_rng(5)
    for tick in range(500):
        counter.add(tick, state)
        odds = [0.5, 0.3, 0.1, 0.1] if state in (0, 2) else [0.1, 0.6, 0.2, 0.1]
        state = int(rng.choice(4, p=odds))
    counter.end_recording()
    model = build_model(counter, rate=10.0, digest=compiled.abstraction.digest)
    return build_monitor(compiled, model)


def programme(used: Monitor) -> tuple[str, list[float]]:
    """Return the monitor's states and readings as a POMDP of PRISM, and the risk of each place.

    A place is a state, the automaton's branch, whether it has just been violated, and what is read.
    Place 0 lies before the first tick.
    """
    (compiled,), filter_ = used.properties, used.filter
    assert filter_ is not None and compiled.table is not None
    matrix, rows = filter_.chain.to_csr().toarray(), filter_.model.index
    places: dict[tuple[int, int, bool, int], int] = {}
    lines, risks, waiting = [], [0.0], []

    def ways(branch: int, step: np.ndarray) -> str:
        found = []
        for state, read in itertools.product(KNOWN, KNOWN):
            at = branch, compiled.letters_of(state)[0]
            key = state, int(compiled.live.following[at]), bool(compiled.live.outcome[at]), read
            p = float(step[rows[state]]) * reading((*KNOWN[read][:2], None), state, NOISE)
            if key not in places:
                places[key] = len(places) + 1
                risks.append(1.0 if key[2] else float(compiled.table.values[rows[state], key[1]]))
                waiting.append(key)
            found.append(f"{p!r}: (s'={places[key]}) & (z'={read})")
        return " + ".join(found)

    first = filter_.frequency(np.arange(4))
    lines.append(f"[] s=0 -> {ways(compiled.live.initial, first)};")
    while waiting:
        key = waiting.pop()
        lines.append(f"[] s={places[key]} -> {ways(key[1], matrix[rows[key[0]]])};")
    body = "\n".join(lines)
    return (
        f"pomdp\nobservables z endobservables\nmodule m\ns: [0..{len(places)}] init 0;\n"
        f"z: [0..4] init 4;\n{body}\nendmodule\n"
    ), risks


def test_it_is_what_storms_tracker_says(tmp_path: Path):
    stormpy = pytest.importorskip("stormpy", reason="stormpy has no wheel here")
    pomdp = pytest.importorskip("stormpy.pomdp")
    used = endless()
    text, risks = programme(used)
    (tmp_path / "belief.prism").write_text(text)
    program = stormpy.parse_prism_program(str(tmp_path / "belief.prism"))
    options = stormpy.BuilderOptions()
    options.set_build_state_valuations()
    options.set_build_observation_valuations()
    model = stormpy.build_sparse_model_with_options(program, options)
    valuations = [
        {k: int(v) for k, v in re.findall(r"(\w)=(\d+)", model.state_valuations.get_string(i))}
        for i in range(model.nr_states)
    ]
    tracker = pomdp.create_nondeterminstic_belief_tracker(model, 10_000, 10_000)
    tracker.set_risk([risks[valuation["s"]] for valuation in valuations])
    seen = {v["z"]: model.get_observation(i) for i, v in enumerate(valuations)}
    rng = np.random.default_rng(3)
    assert tracker.reset(seen[4])
    reads = [int(read) for read in rng.integers(4, size=40)]
    ours = play(used, [KNOWN[read][:2] for read in reads])
    assert len({verdicts[0].expected.probability for verdicts in ours}) > 30
    for read, verdicts in zip(reads, ours, strict=True):
        assert tracker.track(seen[read])
        assert verdicts[0].expected.probability == pytest.approx(
            tracker.obtain_current_risk(), rel=1e-9
        )
