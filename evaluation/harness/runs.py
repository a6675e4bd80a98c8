"""Recordings through a monitor: one pass gives all that needs no model, any model's risk follows.

Two thirds of the time of `learn` and `replay` goes into signals and predicates, and a study asks
several models about the same runs. What a pass over a trace found is kept beside it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.history import UNKNOWN_STATE, History, Track
from forewarn.assessment.outcome_counts import LAGGED, LAGS, outcomes_of, watch_for
from forewarn.assessment.replay import Replaying, replay
from forewarn.assessment.signal_values import SignalLog
from forewarn.learning.counting import TransitionCounter
from forewarn.learning.observing import wanted_types
from forewarn.learning.pipeline import assemble
from forewarn.learning.recording_report import RecordingReport, Watched
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel, Provenance
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.estimated import judged_property
from forewarn.monitoring.property_risk import UNSEEN, Risk, by_scores, scored_risk
from forewarn.monitoring.scored import Scored
from forewarn.monitoring.session import Session, run
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.recordings import Recording, Sample, find_recordings, open_recording

TRACK_ARRAYS = tuple(
    field.name
    for field in dataclasses.fields(Track)
    # `prevented` is what people say of incidents, and nobody says so of a recording.
    if field.name not in ("name", "rate", "horizon", "clear", "prevented")
)


def recordings_in(data: Path, run_key: str | None = None) -> list[Path]:
    """Return the recordings of a file or folder, as `find_recordings` does.

    Raises
    ------
    FileNotFoundError
        If there is nothing of that name.
    RecordingError
        If a folder holds no recording.
    """
    if not data.exists():
        raise FileNotFoundError(f"{data} does not exist")
    return find_recordings(data, run_key)


@dataclass(frozen=True, eq=False)
class Pass:
    """What one run says without a model.

    Attributes
    ----------
    path : Path
        The recording.
    tracks : tuple of Track
        The properties; without probabilities until `with_risk`.
    codes : ndarray of int64, shape (states,)
        State codes that `Track.state` points to.
    signals : dict of str to ndarray, shape (n,)
        All signals that are no lists.
    """

    path: Path
    tracks: tuple[Track, ...]
    codes: NDArray[np.int64]
    signals: dict[str, NDArray[np.float64]]


class Fold(NamedTuple):
    """Runs that a model has not seen: those to choose its threshold on, and those to judge by."""

    tuning: Sequence[Pass]
    judged: Sequence[Pass]


def pass_over(compiled: CompiledSpec, path: Path) -> Pass:
    """Run one recording through signals, predicates and automata.

    What a file gave before is kept beside it, and read as long as its content is the same.
    """
    if not path.is_file():
        with open_recording(path) as recording:
            return watch(compiled, recording)
    key = key_of(compiled)
    kept = path.with_name(f"{path.name.split('.')[0]}.{key[:8]}.npz")
    key += hashlib.sha256(path.read_bytes()).hexdigest()
    found = _read(compiled, path, kept, key) if kept.exists() else None
    if found is None:
        with open_recording(path) as recording:
            found = watch(compiled, recording)
        _write(found, kept, key)
    return found


def watch(compiled: CompiledSpec, recording: Recording) -> Pass:
    """Run one recording through signals, predicates and automata; keep nothing."""
    monitor = build_monitor(compiled, None)
    log = SignalLog(monitor.abstraction.signals)
    types = wanted_types(compiled.spec, recording) if recording.topics else {}
    session, history = Session(monitor, types), History(monitor)
    samples = map(_with_arrays, recording.read(types.keys() if recording.topics else None))
    for verdict in run(session, samples, recording.start_ns, recording.end_ns):
        history.add(verdict)
        log.add(verdict.values)
    signals = {item.name: item.values for item in log.series() if item.kind != "array"}
    codes = np.array(history.known_states, dtype=np.int64)
    return Pass(recording.path, history.tracks(), codes, signals)


def _with_arrays(sample: Sample) -> Sample:
    """Return a line of a trace with arrays for its lists, as topics give them: they are quicker."""
    if not isinstance(sample.data, dict):
        return sample
    arrays = {
        name: np.asarray(value, dtype=np.float64) if isinstance(value, list) else value
        for name, value in sample.data.items()
    }
    return sample._replace(data=arrays)


def key_of(compiled: CompiledSpec) -> str:
    """Return what a pass depends on: its columns, and the monitor file with all it includes."""
    text = " ".join(TRACK_ARRAYS) + compiled.spec.model_dump_json()
    return hashlib.sha256(text.encode()).hexdigest()


def _write(found: Pass, path: Path, key: str) -> None:
    tracks = {f"{t.name}.{name}": getattr(t, name) for t in found.tracks for name in TRACK_ARRAYS}
    signals = {f"signal.{name}": values for name, values in found.signals.items()}
    np.savez_compressed(path, key=key, codes=found.codes, **tracks, **signals)


def _read(compiled: CompiledSpec, recording: Path, path: Path, key: str) -> Pass | None:
    with np.load(path) as kept:
        if str(kept["key"]) != key:
            return None
        tracks = tuple(
            dataclasses.replace(blank, **{n: kept[f"{blank.name}.{n}"] for n in TRACK_ARRAYS})
            for blank in History(build_monitor(compiled, None)).tracks()
        )
        signals = {n.removeprefix("signal."): kept[n] for n in kept if n.startswith("signal.")}
        return Pass(recording, tracks, kept["codes"], signals)


def learn_from(compiled: CompiledSpec, passes: Iterable[Pass]) -> CountModel:
    """Count the transitions of runs, as `learn` does."""
    validity = compiled.abstraction.validity(compiled.spec)
    reports = []
    for found in passes:
        track = found.tracks[0]
        counter = TransitionCounter(
            compiled.abstraction.vocabulary, compiled.spec.learning.end, validity.allows
        )
        codes = [*found.codes.tolist(), None]  # the last one, at -1, is the unknown state
        for tick, state in zip(track.ticks.tolist(), track.state.tolist(), strict=True):
            counter.add(tick, codes[state])
        counter.end_recording()
        counts, duration = counter.result, len(track.ticks) / track.rate
        transitions = sum(counts.transitions.values())
        provenance = Provenance(found.path.name, "", duration, counts.ticks, transitions)
        reports.append(RecordingReport(provenance, counts, watched=_watched(compiled, found)))
    return assemble(reports, compiled.spec, compiled.abstraction, validity).model


def _watched(compiled: CompiledSpec, found: Pass) -> Watched | None:
    """Return what followed the moments of a run, where an estimator wants it."""
    if watch_for(compiled) is None:
        return None
    spec, outcomes = compiled.spec, {}
    for name, automaton, track in zip(
        spec.properties, compiled.automata, found.tracks, strict=True
    ):
        estimator = spec.properties[name].estimator
        if estimator != "chain":
            scores = [found.signals[signal] for signal in spec.scores_of(name)]
            never = np.zeros(len(track.ticks), dtype=bool)
            lags = LAGS if estimator in LAGGED else ()
            judged = judged_property(spec, name, automaton)
            outcomes[judged] = outcomes_of(track, never, scores, lags)
    return Watched(found.codes.tolist(), outcomes)


def with_risk(compiled: CompiledSpec, model: CountModel, passes: Iterable[Pass]) -> list[Pass]:
    """Return runs with the probabilities that a monitor with this model gives."""
    monitor = build_monitor(compiled, model)
    found = []
    for one_pass in passes:
        if any(_uncertain(track).any() for track in one_pass.tracks):
            # What is known in part has the worst risk of all that agrees with it: ask the monitor.
            with open_recording(one_pass.path) as recording:
                tracks = replay(Replaying(monitor), recording).tracks
        else:
            tracks = _looked_up(monitor, one_pass)
        found.append(dataclasses.replace(one_pass, tracks=tracks))
    return found


def _uncertain(track: Track) -> NDArray[np.bool_]:
    return (track.state == UNKNOWN_STATE) | track.ambiguous


def _looked_up(monitor: Monitor, one_pass: Pass) -> tuple[Track, ...]:
    assert monitor.model is not None
    known = monitor.model.index
    rows = np.array([known.get(code, -1) for code in one_pass.codes.tolist()])
    tracks = []
    for track, solved in zip(one_pass.tracks, monitor.properties, strict=True):
        assert solved.table is not None
        row = rows[track.state]
        risk = np.where(row >= 0, solved.table.values[row, track.automaton], np.nan)
        in_model = ~np.isnan(risk)
        if solved.scored is not None:
            signals = monitor.abstraction.signals
            columns = {slot: one_pass.signals[signals[slot]] for slot in solved.scored.slots}
            told = [
                _scored(solved.scored, at, q, {slot: c[i] for slot, c in columns.items()}, before)
                for i, (at, q, before) in enumerate(zip(row, track.automaton, risk, strict=True))
            ]
            risk = np.array([one.probability for one in told])
            in_model = np.array([one.in_model for one in told], dtype=bool)
        violated = track.status == PropertyStatus.VIOLATED
        risk = np.where(violated, 1.0, risk)
        in_model = violated | in_model
        tracks.append(
            dataclasses.replace(
                track, probability=risk, in_model=in_model, figure=risk, unseen=~in_model
            )
        )
    return tuple(tracks)


def _scored(
    scored: Scored, row: int, automaton: int, values: Mapping[int, Any], before: float
) -> Risk:
    odds = scored.odds(values)
    if odds is None:
        return Risk(before, np.nan, np.nan, not np.isnan(before))
    found = UNSEEN if row < 0 else scored_risk(scored, row, automaton, odds)
    return by_scores(scored, values) if found is UNSEEN else found


def predict(compiled: CompiledSpec, training: Iterable[Pass], judged: Iterable[Pass]) -> list[Pass]:
    """Return runs with the risks of a model that was learned from others."""
    return with_risk(compiled, learn_from(compiled, training), judged)


def halves(compiled: CompiledSpec, training: Sequence[Pass]) -> list[Pass]:
    """Return runs, each predicted by a model of the other half.

    The risks that a model gives to its own runs would flatter it, and its threshold with it.
    """
    one, other = training[::2], training[1::2]
    return predict(compiled, one, other) + predict(compiled, other, one)


def two_halves(compiled: CompiledSpec, training: Iterable[Path], judged: Iterable[Path]) -> Fold:
    """Return the runs for tuning, each half predicted by the other, and those for judging."""
    learning, unseen = ([pass_over(compiled, p) for p in paths] for paths in (training, judged))
    return Fold(halves(compiled, learning), predict(compiled, learning, unseen))


def leave_one_out(compiled: CompiledSpec, groups: Mapping[str, Iterable[Path]]) -> list[Fold]:
    """Predict every group of recordings with a model of the others.

    Thresholds are chosen in the same way within those others, each predicted by the rest of them.
    """
    passes = {name: [pass_over(compiled, p) for p in paths] for name, paths in groups.items()}

    def others(*left_out: str) -> list[Pass]:
        return [item for name in passes if name not in left_out for item in passes[name]]

    tuning: dict[str, list[Pass]] = {name: [] for name in passes}
    for a, b in combinations(passes, 2):
        runs = predict(compiled, others(a, b), [*passes[a], *passes[b]])
        tuning[a] += runs[len(passes[a]) :]
        tuning[b] += runs[: len(passes[a])]
    return [
        Fold(tuning[name], predict(compiled, others(name), judged))
        for name, judged in passes.items()
    ]
