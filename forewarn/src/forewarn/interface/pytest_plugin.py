"""The plug-in for pytest: recordings as regression tests of robots.

::

    def test_corridor(forewarn_replay):
        run = forewarn_replay("bags/corridor.mcap", "monitor.yaml", "model.json")
        run.expect("keeps_distance", violations=0, false_alarms_per_hour=20)

A path that is not in the present folder starts at the folder of the test. What was replayed once is
kept for the tests that come after.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from forewarn.interface.replayed import Replay

_KEPT = pytest.StashKey[dict[tuple[Any, ...], Any]]()


@pytest.fixture
def forewarn_replay(request: pytest.FixtureRequest) -> Callable[..., Replay]:
    """Return a function that replays recordings: `bag`, `monitor`, and `model` if it has one.

    `bag` is a recording, a folder of them, or a list; further arguments are those of
    `forewarn.replay`. It returns a `Replay`, whose `expect` asserts.
    """
    kept = request.config.stash.setdefault(_KEPT, {})

    def found(path: Path | str) -> str:
        near = request.path.parent / path
        return str(near.resolve() if not Path(path).exists() and near.exists() else path)

    def replayed(
        bag: Path | str | list[Path | str],
        monitor: Path | str,
        model: Path | str | None = None,
        **how: Any,
    ) -> Replay:
        from forewarn import load_monitor, replay

        bags = [found(each) for each in (bag if isinstance(bag, list) else [bag])]
        key = (*bags, found(monitor), None if model is None else found(model), str(how))
        if key not in kept:
            loaded = load_monitor(found(monitor), None if model is None else found(model))
            kept[key] = replay(loaded, bags, **how)
        result: Replay = kept[key]
        return result

    return replayed
