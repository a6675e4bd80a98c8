"""What followed each visit of a state in recordings that the model has not seen.

    python -m evaluation.branching.visits /tmp/sumo-test/town_02?? --folder /tmp/branches

A moment's futures tell chance from ignorance; the mean over moments is told better by many
recordings, in which every tick has one future. Recordings that are done are kept.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.closed_loop.loading import CONFIG, load_monitor
from forewarn.assessment.history import UNKNOWN_STATE
from forewarn.assessment.reliability import outcomes
from forewarn.assessment.replay import RecordedRun, replay
from forewarn.models import CountModel
from forewarn.monitoring.step import Monitor
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.recordings import open_recording

Visits = dict[str, dict[str, tuple[int, int]]]


def visits_of(run: RecordedRun, model: CountModel) -> Visits:
    """Return for each property and state the ticks whose outcome is known, and the violations."""
    codes = np.array(run.history.known_states, dtype=np.int64)
    found: Visits = {}
    for track in run.tracks:
        followed, known = outcomes(track)
        judged = (
            known
            & (track.state != UNKNOWN_STATE)
            & (track.status == PropertyStatus.SATISFIED_SO_FAR)
        )
        rows: dict[str, tuple[int, int]] = {}
        for position in np.unique(track.state[judged]):
            here = judged & (track.state == position)
            key = model.vocabulary.key(int(codes[position]))
            rows[key] = int(here.sum()), int((here & followed).sum())
        found[track.name] = rows
    return found


def load_visits(folder: Path, model: CountModel) -> list[Mapping[str, Any]]:
    """Return the visits of all recordings that were replayed with this model."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("visits_*.json"))]
    return [item["visits"] for item in found if item["model"] == model.fingerprint]


def replay_all(paths: Iterable[Path], monitor: Monitor, model: CountModel, folder: Path) -> None:
    """Replay the recordings that are missing."""
    for path in paths:
        target = folder / f"visits_{path.name}.json"
        if target.exists():
            kept = json.loads(target.read_text(encoding="utf-8"))
            if kept["model"] == model.fingerprint:
                continue
        with open_recording(path) as recording:
            run = replay(monitor, recording)
        told = {"model": model.fingerprint, "visits": visits_of(run, model)}
        target.write_text(json.dumps(told), encoding="utf-8")
        print(f"{path.name}: {len(run.history)} ticks", flush=True)


def main() -> None:
    """Replay and count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("recordings", type=Path, nargs="+", help="bags that the model has not seen")
    parser.add_argument("--folder", type=Path, required=True, help="that of the study")
    parser.add_argument("--config", type=Path, default=CONFIG, help="monitor file")
    arguments = parser.parse_args()
    monitor, model = load_monitor(arguments.config)
    if model is None:
        parser.error(f"{arguments.config} names no model")
    bags = [path for path in arguments.recordings if path.is_dir()]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    replay_all(bags, monitor, model, arguments.folder)


if __name__ == "__main__":
    main()
