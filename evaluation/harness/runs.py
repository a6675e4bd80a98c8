"""Recordings through a monitor file: one pass gives all that needs no model.

A study asks several rivals about the same runs. What a pass over a trace found is kept beside it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forewarn.assessment.episodes import ScoredRun, scored_run
from forewarn.assessment.history import History, Track
from forewarn.assessment.signal_values import SignalLog
from forewarn.cli.main import main as forewarn_main
from forewarn.errors import ForewarnError
from forewarn.learning.observing import wanted_types
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.session import Session, run
from forewarn.recordings.interface import Recording, Sample
from forewarn.recordings.registry import find_recordings, open_recording

TRACK_ARRAYS = tuple(
    field.name
    for field in dataclasses.fields(Track)
    # `prevented` is what people say of incidents, and nobody says so of a recording.
    if field.name not in ("name", "rate", "horizon", "prevented")
)


def recordings_in(data: Path, run_key: str | None = None) -> list[Path]:
    """Return the recordings of a file or folder, as `find_recordings` does."""
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
        The properties, without probabilities.
    codes : ndarray of int64, shape (states,)
        State codes that `Track.state` points to.
    signals : dict of str to ndarray, shape (n,)
        All signals that are no lists.
    """

    path: Path
    tracks: tuple[Track, ...]
    codes: NDArray[np.int64]
    signals: dict[str, NDArray[np.float64]]


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
        name: np.asarray(value, dtype=np.float64) if _of_numbers(value) else value
        for name, value in sample.data.items()
    }
    return sample._replace(data=arrays)


def _of_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, int | float) for one in value)


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


def risk_traces(runs: Iterable[Pass], name: str) -> list[ScoredRun]:
    """Return what is judged of a property in each run."""
    return [scored_run(track) for run in runs for track in run.tracks if track.name == name]


def forewarn(*arguments: object, codes: Sequence[int] = (0, 1)) -> dict[str, Any]:
    """Run a command of the tool; return what it says as JSON, or raise ForewarnError."""
    said, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
        code = forewarn_main([*map(str, arguments), "--json", "--quiet"])
    if code not in codes:
        raise ForewarnError(f"forewarn {' '.join(map(str, arguments))}: {wrong.getvalue()}")
    found: dict[str, Any] = json.loads(said.getvalue())
    return found
