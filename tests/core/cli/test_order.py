"""Whatever judges recordings says the same of them in whatever order they are given."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from walks import FORBIDS_A_CRASH, walk

TEXT = f"{FORBIDS_A_CRASH}properties: {{p: {{formula: always(not crash), horizon: 5}}}}\n"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a monitor file with 20 traces beside it."""
    folder = tmp_path_factory.mktemp("order")
    for seed in range(20):
        rows = [{"t": float(t), "x": x} for t, x in enumerate(walk(seed))]
        (folder / f"{seed:02}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    path = folder / "monitor.yaml"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("compare", ("--folds", 3, "--resamples", 10, "--rival", "near_by=-x")),
        ("compare", ("--folds", 3, "--resamples", 2, "-e", "chain,frequency")),
        ("tune", ("--folds", 3, "--false-alarms-per-hour", 500)),
        ("tune", ("--folds", 2, "--blocks", 5, "--false-alarms-per-hour", 500)),
        ("tune", ("-m", "{model}", "--false-alarms-per-hour", 500, "--miss-rate", 0.5)),
        ("learn", ("--calibrate",)),
        ("refine", ("--query", "Pmax(crash) <= 0.01")),
        ("learn-states", ("--class", "violation:p:5")),
    ],
)
def test_the_order_in_which_recordings_are_given_decides_nothing(
    forewarn: Callable[..., Any],
    config: Path,
    tmp_path: Path,
    command: str,
    options: tuple[Any, ...],
) -> None:
    traces, model = sorted(config.parent.glob("*.jsonl")), config.with_name("first.json")
    first, others = traces[:6], traces[6:]
    if not model.exists():
        assert forewarn("learn", *first, "-c", config, "-o", model).code == 0
    files = [config] if command == "compare" else ["-c", config]
    more = [str(model) if one == "{model}" else one for one in options]

    def told(paths: Sequence[Path]) -> Any:
        if command == "learn":
            named = (*first, *files, "-o", tmp_path / "model.json", *more, *paths)
        else:
            named = (*files, *paths, *more)
        result = forewarn(command, *named, "--json", "-q")
        assert result.code in (0, 1), result.err
        document = json.loads(result.out)
        return [document.pop("recordings", None), document][command != "compare" :]

    shuffled = random.Random(command).sample(others, len(others))
    assert told(shuffled) == told(others)
