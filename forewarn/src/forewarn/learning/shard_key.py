"""What a shard depends on: the address under which a store keeps it.

The recording, by its content; the abstraction, with what is fitted; for outcome counts the
properties with their horizons; the code. Where something else is asked, or other code asks, the
address is another one: shards never go out of date, they are no longer asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

import forewarn
from forewarn.config.file import MonitorSpec
from forewarn.learning.recording_report import OutcomeObservers
from forewarn.recordings.groups import Grouping
from forewarn.registry import STATE_KINDS
from forewarn.states.abstraction import Abstraction
from forewarn.states.interface import Admission

Keep = Callable[[int], bool]

APART = frozenset({"cli", "reports"})
"""Parts of the library on which no shard depends."""
READERS = ("forewarn.recordings", "forewarn.maps", STATE_KINDS)


@dataclass(frozen=True)
class ShardQuery:
    """What is asked of each recording; see `pipeline.learn`. It travels between processes."""

    spec: MonitorSpec
    abstraction: Abstraction
    allow_missing: bool = False
    keep: Keep | None = None
    watch: OutcomeObservers | None = None
    grouping: Grouping | None = None

    @cached_property
    def validity(self) -> Admission:
        """Which states and transitions are valid."""
        return self.abstraction.validity(self.spec)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave what was computed behind: rules cannot travel."""
        content = (self.spec, self.abstraction, self.allow_missing, self.keep, self.watch)
        return ShardQuery, (*content, self.grouping)


def question_digest(question: ShardQuery) -> str:
    """Return the SHA-256 of all that a shard depends on but the recording, in hex."""
    spec, abstraction, watch = question.spec, question.abstraction, question.watch
    content = {
        "code": code_version(),
        "abstraction": abstraction.digest,
        "fitted": [[fit.digest, len(fit.unseeing)] for fit in abstraction.fitted],
        "files": {str(path): _file_digest(path) for path in files_beside(spec)},
        "end": spec.learning.recording_end,
        "properties": list(spec.properties),
        "allow_missing": question.allow_missing,
        "keep": None if question.keep is None else repr(question.keep),
        "watch": None if watch is None else watch.key,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def shard_key(recording: str, question: str) -> str:
    """Return the address of a shard, from the digests of recording and question."""
    return hashlib.sha256(f"{recording} {question}".encode()).hexdigest()


def files_beside(spec: MonitorSpec) -> list[Path]:
    """Return the maps and rules that the signals of a monitor file are computed with."""
    maps = (section.file for section in spec.shapes.values() if section.file is not None)
    rules = (signal.rules for signal in spec.signals.values() if signal.rules is not None)
    named = {*map(os.path.expandvars, maps), *rules}
    return sorted(spec.beside(name) for name in named)


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@lru_cache(maxsize=1)
def code_version() -> str:
    """Return which Forewarn this is: its version, its sources, numpy, and readers of others."""
    root = Path(forewarn.__file__).parent
    sources = sorted(
        path.relative_to(root)
        for kind in ("*.py", "*.c")
        for path in root.rglob(kind)
        if path.relative_to(root).parts[0] not in APART
    )
    digest = hashlib.sha256()
    for source in sources:
        digest.update(f"{source.as_posix()}\0".encode() + (root / source).read_bytes())
    readers = {
        f"{point.dist.name} {point.dist.version}"
        for group in READERS
        for point in entry_points(group=group)
        if point.dist is not None
    }
    parts = [
        f"forewarn {forewarn.__version__} ({digest.hexdigest()[:12]})",
        f"numpy {np.__version__}",
        *sorted(readers),
    ]
    return ", ".join(parts)
