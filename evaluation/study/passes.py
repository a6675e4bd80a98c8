"""One pass over a run gives all that needs no model; risks of any model are looked up afterwards.

Two thirds of the time of `learn` and `replay` goes into signals and predicates, and a study asks
several models about the same runs. What a pass found is kept beside the run.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.history import UNKNOWN_STATE, History, Track
from forewarn.assessment.signal_values import SignalLog
from forewarn.learning.counting import TransitionCounter
from forewarn.learning.pipeline import RecordingReport, assemble, wanted_types
from forewarn.logic.specification import CompiledSpec
from forewarn.models import CountModel, Provenance
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.session import Session, run
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.recordings import Recording, Sample, open_recording
from forewarn.states.predicates.validity import build_validity

TRACK_ARRAYS = tuple(
    field.name
    for field in dataclasses.fields(Track)
    if field.name not in ("name", "rate", "horizon", "clear")
)


@dataclass(frozen=True, eq=False)
class Pass:
    """What one run says without a model.

    Attributes
    ----------
    name : str
        The recording.
    tracks : tuple of Track
        The one property; without probabilities.
    codes : ndarray of int64, shape (states,)
        State codes that `Track.state` points to.
    signals : dict of str to ndarray, shape (n,)
        All signals that are no lists.
    """

    name: str
    tracks: tuple[Track, ...]
    codes: NDArray[np.int64]
    signals: dict[str, NDArray[np.float64]]


def pass_over(compiled: CompiledSpec, path: Path) -> Pass:
    """Run one recording through signals, predicates and automaton, or read what it gave before."""
    key = key_of(compiled)
    kept = path.with_name(f"{path.name.split('.')[0]}.{key[:8]}.npz")
    if path.is_file() and kept.exists():
        found = _read(compiled, kept, key)
        if found is not None:
            return found
    with open_recording(path) as recording:
        found = _watch(compiled, recording)
    if path.is_file():
        _write(found, kept, key)
    return found


def _watch(compiled: CompiledSpec, recording: Recording) -> Pass:
    monitor = build_monitor(compiled, None)
    log = SignalLog(monitor.abstraction.signals)
    types = wanted_types(compiled.spec, recording) if recording.topics else {}
    session, history = Session(monitor, types), History(monitor)
    samples = map(_with_arrays, recording.read(types.keys() if recording.topics else None))
    for verdict in run(session, samples, recording.start_ns, recording.end_ns):
        history.add(verdict)
        log.add(verdict.values)
    return Pass(
        recording.path.name,
        history.tracks(),
        np.array(history.known_states, dtype=np.int64),
        {
            one_series.name: one_series.values
            for one_series in log.series()
            if one_series.kind != "array"
        },
    )


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
    (track,) = found.tracks
    arrays = {f"track.{name}": getattr(track, name) for name in TRACK_ARRAYS}
    signals = {f"signal.{name}": values for name, values in found.signals.items()}
    np.savez_compressed(path, key=key, name=found.name, codes=found.codes, **arrays, **signals)


def _read(compiled: CompiledSpec, path: Path, key: str) -> Pass | None:
    with np.load(path) as kept:
        if str(kept["key"]) != key:
            return None
        (blank,) = History(build_monitor(compiled, None)).tracks()
        track = dataclasses.replace(blank, **{n: kept[f"track.{n}"] for n in TRACK_ARRAYS})
        signals = {n.removeprefix("signal."): kept[n] for n in kept if n.startswith("signal.")}
        return Pass(str(kept["name"]), (track,), kept["codes"], signals)


def learn_from(compiled: CompiledSpec, passes: Iterable[Pass]) -> CountModel:
    """Count the transitions of runs, as `learn` does."""
    validity = build_validity(compiled.spec, compiled.abstraction)
    reports = []
    for found in passes:
        (track,) = found.tracks
        counter = TransitionCounter(
            compiled.abstraction.vocabulary, compiled.spec.learning.end, validity.allows
        )
        codes = [*found.codes.tolist(), None]  # the last one, at -1, is the unknown state
        for tick, state in zip(track.ticks.tolist(), track.state.tolist(), strict=True):
            counter.add(tick, codes[state])
        counter.end_recording()
        counts = counter.result
        provenance = Provenance(
            recording=found.name,
            digest="",
            duration=len(track.ticks) / track.rate,
            ticks=counts.ticks,
            transitions=sum(counts.transitions.values()),
        )
        reports.append(RecordingReport(provenance, counts))
    return assemble(reports, compiled.spec, compiled.abstraction, validity).model


def with_risk(compiled: CompiledSpec, model: CountModel, passes: Iterable[Pass]) -> list[Pass]:
    """Return runs with the probabilities that a monitor with this model gives."""
    monitor = build_monitor(compiled, model)
    (solved,) = monitor.properties
    assert monitor.model is not None and solved.table is not None
    values = solved.table.values
    found = []
    for one_pass in passes:
        (track,) = one_pass.tracks
        rows = np.array(
            [monitor.model.rows.get(code, -1) for code in one_pass.codes.tolist()] + [-1]
        )
        row = rows[track.state]
        risk = np.where(row >= 0, values[row, track.automaton], np.nan)
        violated = track.status == PropertyStatus.VIOLATED
        risk = np.where(violated, 1.0, risk)
        unseen = np.isnan(risk) & (track.state != UNKNOWN_STATE)
        scored = dataclasses.replace(track, probability=risk, in_model=~unseen)
        found.append(dataclasses.replace(one_pass, tracks=(scored,)))
    return found
