"""What followed each visit of a state in recordings that the model has not seen.

    python -m evaluation.branching.visits --folder /tmp/branches --recordings /tmp/runs/town_02??

A moment's futures tell chance from ignorance; the mean over moments is told better by many
recordings, in which every tick has one future. Recordings that are done are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.closed_loop.arms import CONFIG, load_acting
from evaluation.harness.command import command
from evaluation.harness.runs import Pass, pass_over
from forewarn.assessment.history import UNKNOWN_STATE, Track
from forewarn.assessment.reliability import outcomes
from forewarn.models import CountModel
from forewarn.monitoring.verdict import PropertyStatus

Visits = dict[str, dict[str, tuple[int, int]]]


def visits_of(run: Pass, model: CountModel) -> Visits:
    """Return for each property and state the ticks whose outcome is known, and the violations."""
    return {
        track.name: {
            key: (int(here.sum()), int((here & followed).sum()))
            for key, here, followed in states_of(track, run.codes, model)
        }
        for track in run.tracks
    }


def states_of(
    track: Track, codes: Sequence[int] | NDArray[np.int64], model: CountModel
) -> Iterator[tuple[str, NDArray[np.bool_], NDArray[np.bool_]]]:
    """Yield for each state its key, its ticks whose outcome is known, and what was followed.

    `codes` are what `Track.state` points to.
    """
    followed, known = outcomes(track)
    judged = (
        known & (track.state != UNKNOWN_STATE) & (track.status == PropertyStatus.SATISFIED_SO_FAR)
    )
    for position in np.unique(track.state[judged]):
        key = model.vocabulary.key(int(codes[position]))
        yield key, judged & (track.state == position), followed


def load_visits(folder: Path, model: CountModel) -> list[Mapping[str, Any]]:
    """Return the visits of all recordings that were looked at with this model."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("visits_*.json"))]
    return [item["visits"] for item in found if item["model"] == model.fingerprint]


def main(recordings: Sequence[Path], folder: Path, config: Path = CONFIG) -> None:
    """Count the visits in the recordings that are missing."""
    compiled, model = load_acting(config)
    folder.mkdir(parents=True, exist_ok=True)
    for path in recordings:
        target = folder / f"visits_{path.name}.json"
        kept = json.loads(target.read_text(encoding="utf-8")) if target.exists() else {}
        if path.is_dir() and kept.get("model") != model.fingerprint:
            told = {
                "model": model.fingerprint,
                "visits": visits_of(pass_over(compiled, path), model),
            }
            target.write_text(json.dumps(told), encoding="utf-8")
            print(path.name, flush=True)


if __name__ == "__main__":
    command(main)
