"""Forewarn: how likely a robot is to break a safety rule, seconds before it does.

The names in ``__all__`` are the public interface for Python programs. All other names may change
in any version. A name is imported when it is first used, so that ``import forewarn`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forewarn.errors import ForewarnError
    from forewarn.interface.judged import Answer, check, compare
    from forewarn.interface.learned import Learned, learn
    from forewarn.interface.monitors import Monitor, Run, Step, load_monitor
    from forewarn.interface.replayed import Replay, replay

    __version__: str

__all__ = [
    "Answer",
    "ForewarnError",
    "Learned",
    "Monitor",
    "Replay",
    "Run",
    "Step",
    "__version__",
    "check",
    "compare",
    "learn",
    "load_monitor",
    "replay",
]

_PLACES = {
    "Answer": "interface.judged",
    "ForewarnError": "errors",
    "Learned": "interface.learned",
    "Monitor": "interface.monitors",
    "Replay": "interface.replayed",
    "Run": "interface.monitors",
    "Step": "interface.monitors",
    "check": "interface.judged",
    "compare": "interface.judged",
    "learn": "interface.learned",
    "load_monitor": "interface.monitors",
    "replay": "interface.replayed",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
