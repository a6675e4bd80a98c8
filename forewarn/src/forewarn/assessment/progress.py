"""How far a long work is, for those who show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol


class Bar(Protocol):
    """Called with how far the work is."""

    def __call__(
        self, done: float | None = None, total: float | None = None, label: str | None = None
    ) -> None:
        """Show that `done` of `total` is done, with this label; what is not given stays."""


Bars = Callable[[str], AbstractContextManager[Bar]]
"""Opens a bar with a label for the time that a work lasts."""


@contextmanager
def unseen(label: str) -> Iterator[Bar]:
    """Yield a progress bar that shows nothing."""
    del label
    yield lambda done=None, total=None, label=None: None


def overall(
    paths: Sequence[Path], tell: Callable[[float, float], None]
) -> Callable[[Path, float], None]:
    """Return a progress callback per recording that moves one bar over all of them.

    A recording has ended when its share is 1.0, once.
    """
    begun: dict[Path, float] = {}
    ended = 0

    def update(path: Path, fraction: float) -> None:
        nonlocal ended
        begun[path] = max(begun.get(path, 0.0), fraction)
        if fraction >= 1.0:
            del begun[path]  # so that nothing is kept of each
            ended += 1
        tell(ended + sum(begun.values()), len(paths))

    return update
