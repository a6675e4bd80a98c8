"""Runs of scores, the policy walked over them tick by tick, and many of them drawn by a seed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from written_runs import breaches

from forewarn.assessment.episodes import AlertRule, ScoredRun, find_episodes
from forewarn.assessment.history import Track
from forewarn.monitoring.policy import RESTING, Broken, Level, Rules, decide
from forewarn.monitoring.verdict import PropertyStatus

RATE = 10.0
LEVELS = (0.0, 0.1, 0.25, 0.4, 0.6, 0.9, 1.0)
UNSEEN = {"act": Level.ACT, "warn": Level.WARN, "ignore": Level.NONE}


def a_track(
    cells: list[tuple[str, float]],
    gaps: list[int] | None = None,
    *,
    rate: float = RATE,
    horizon: int | None = 4,
) -> Track:
    """One cell a tick: what happens there (as in written_runs, ``u`` out_of_model), and the risk.

    ``s`` is out_of_model too, and scores tell the risk; ``W`` violates and leaves nothing; ``h``
    holds.
    """
    facts = "".join(fact for fact, _ in cells)
    risk = np.array([math.nan if f in "-un" else 1.0 if f in "VvW" else r for f, r in cells])
    kinds = {
        "V": PropertyStatus.VIOLATED,
        "W": PropertyStatus.VIOLATED,
        "v": PropertyStatus.VIOLATED,
        "-": PropertyStatus.INACTIVE,
        "E": PropertyStatus.ENDED,
    }
    steps = np.array(gaps if gaps is not None else [1] * len(cells), dtype=np.int64)
    return Track(
        name="rule",
        rate=rate,
        horizon=horizon,
        ticks=100 + np.cumsum(steps),
        state=np.array([-1 if f in "-n" else 0 for f in facts], dtype=np.int32),
        status=np.array(
            [kinds.get(f, PropertyStatus.SATISFIED_SO_FAR) for f in facts], dtype=np.int8
        ),
        violation=np.array([f in "VW" for f in facts], dtype=bool),
        possible=np.zeros(len(cells), dtype=bool),
        **breaches(facts.replace("W", "T"), clear=2),
        figure=risk,
        out_of_model=np.array([f in "us" for f in facts], dtype=bool),
        held=np.array([f == "h" for f in facts], dtype=bool),
        probability=risk,
        lower=np.where(np.isnan(risk), np.array([math.nan if f == "-" else 0 for f in facts]), 0),
        upper=np.where(np.isnan(risk), 1, np.minimum(1, risk + 0.1)),
        in_model=np.array([f not in "us" for f in facts], dtype=bool),
        terminal=np.array([f == "E" for f in facts], dtype=bool),
        ambiguous=np.zeros(len(cells), dtype=bool),
        level=np.zeros(len(cells), dtype=np.int8),
        automaton=np.zeros(len(cells), dtype=np.int32),
    )


def walked(track: Track, threshold: float, rule: AlertRule) -> Track:
    """Return the track with the levels that the policy gives, one decision after the other."""
    chosen = threshold if rule.release is None else rule.release
    release = min(threshold, chosen(threshold) if callable(chosen) else chosen)
    rules = Rules(
        warn=threshold / 2,
        act=threshold,
        release=release,
        enter=rule.enter,
        exit=rule.exit,
        hold=math.ceil(rule.hold * track.rate - 1e-9),
        out_of_model=UNSEEN[rule.out_of_model],
        out_of_model_timeout=math.floor(rule.out_of_model_timeout * track.rate + 1e-9),
    )
    state, levels = RESTING, []
    for row, tick in enumerate(track.ticks.tolist()):
        if track.status[row] == PropertyStatus.INACTIVE:
            state = RESTING
        else:
            state = decide(
                rules,
                state,
                tick,
                float(track.figure[row]),
                out_of_model=bool(track.out_of_model[row]),
                held=bool(track.held[row]),
                broken=Broken(track.broken[row]),
            )
        levels.append(int(state.level))
    return replace(track, level=np.array(levels, dtype=np.int8))


def alerts_at(trace: ScoredRun, threshold: float, **options: Any) -> np.ndarray:
    """Return for every tick whether the policy is at ACT."""
    on = np.zeros(len(trace.ticks), dtype=bool)
    found = find_episodes([trace], np.array([threshold]), AlertRule(**options))
    for start, end in zip(found.start, found.end, strict=True):
        on[start:end] = True
    return on


def a_trace(
    values: list[float], violations: tuple[int, ...] = (), horizon: int | None = 3
) -> ScoredRun:
    n = len(values)
    happened = np.isin(np.arange(n), violations)
    status = np.where(happened, PropertyStatus.VIOLATED, PropertyStatus.SATISFIED_SO_FAR).astype(
        np.int8
    )
    return ScoredRun(
        RATE, horizon, np.arange(n), np.array(values, dtype=np.float64), happened, status
    )


THRESHOLDS = (0.5, 0.25, 0.9)
RELEASES = (None, 0.05, 0.3, -1.0, lambda threshold: 0.4 * threshold)
PHASES = (
    "." * 8,
    "." * 8,
    ".......V",
    "...VvV.V",
    "V..V....",
    "u",
    "u",
    "...-",
    "-",
    "...E",
    "..n",
    "..W...h",
)


def drawn(count: int) -> Iterator[tuple[list[Track], AlertRule]]:
    """Draw rules, and runs of phases with a danger of their own, for which alerts come and go."""
    generator = np.random.default_rng(11)
    for case in range(count):
        rate, horizon = ((10.0, 4), (4.0, None), (20.0, 1))[case % 3]
        tracks = []
        for _ in range(1 + case % 3):
            cells = []
            for _ in range(int(generator.integers(0, 14))):
                facts = PHASES[generator.integers(len(PHASES))]
                times, danger = generator.integers(1, 12 // len(facts) + 2), generator.random()
                risks = (danger * generator.random(len(facts) * times)).round(2).tolist()
                cells += list(zip(facts * int(times), risks, strict=True))
            gaps = np.where(generator.random(len(cells)) < 0.05, 6, 1).tolist()
            tracks.append(a_track(cells, gaps, rate=rate, horizon=horizon))
        hold, limit = generator.choice([0.0, 0.3, 0.5, 1.25], 2)
        rule = AlertRule(
            release=RELEASES[case % 5],
            enter=int(generator.integers(1, 4)),
            exit=int(generator.integers(1, 6)),
            hold=float(hold),
            out_of_model=("act", "warn", "ignore")[case % 7 % 3],
            out_of_model_timeout=float(limit),
        )
        yield tracks, rule


cells = st.lists(
    st.tuples(st.sampled_from("........VvWhhuuussnE-"), st.sampled_from(LEVELS)), max_size=60
)
rules = st.builds(
    AlertRule,
    release=st.sampled_from([None, 0.05, 0.3, lambda threshold: 0.4 * threshold]),
    enter=st.integers(1, 3),
    exit=st.integers(1, 5),
    hold=st.sampled_from([0.0, 0.3, 1.0]),
    out_of_model=st.sampled_from(["act", "warn", "ignore"]),
    out_of_model_timeout=st.sampled_from([0.0, 0.2, 3.0]),
)
