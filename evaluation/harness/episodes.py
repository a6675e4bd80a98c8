"""The same episodes with and without interventions: what each arm did on each seed, kept."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Episode = dict[str, Any]
Pairs = Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
"""An episode of an arm, and the first arm's (nobody's) on the same seed."""


class Episodes:
    """Episodes in a folder, one file each; what is there is not driven again.

    `keys` has the arms, nobody first, and what the episodes of each depend on.
    """

    def __init__(self, folder: Path, keys: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self.keys = folder, keys

    def chosen(self, beginnings: Sequence[str]) -> list[str]:
        """Return the arms whose names begin so; what is a whole name means that arm alone."""
        return [
            arm
            for arm in self.keys
            if any(
                arm == text if text in self.keys else arm.startswith(text) for text in beginnings
            )
        ]

    def path(self, seed: int, arm: str) -> Path:
        """Return where an episode lies."""
        name = re.sub("[^a-z0-9.]+", "-", arm.lower()).strip("-")
        return self._folder / f"{seed:04d}_{name}.json"

    def load(self, seed: int, arm: str) -> Episode | None:
        """Return an episode that was driven with what its key stands for."""
        path = self.path(seed, arm)
        found: Episode | None = json.loads(path.read_text("utf-8")) if path.exists() else None
        return found if found and found["key"] == self.keys[arm] else None

    def drive(self, seed: int, arms: Iterable[str], run: Callable[[str], Episode]) -> None:
        """Drive the episodes of a seed that are missing."""
        for arm in arms:
            if self.load(seed, arm) is None:
                found = {"seed": seed, "arm": arm, "key": self.keys[arm], **run(arm)}
                self.path(seed, arm).write_text(json.dumps(found), encoding="utf-8")
                print(json.dumps(found), flush=True)

    def by_arm(self, seeds: Iterable[int]) -> dict[str, Pairs]:
        """Return the episodes of each arm, each with the first arm's on the same seed."""
        seeds = list(seeds)
        found = [self.load(seed, arm) for seed in seeds for arm in self.keys]
        return paired([item for item in found if item], list(self.keys))


def paired(episodes: Iterable[Episode], arms: list[str]) -> dict[str, Pairs]:
    """Return the episodes of each arm, each with the first arm's on the same seed."""
    driven: dict[str, dict[int, Episode]] = {arm: {} for arm in arms}
    for episode in episodes:
        if "failed" not in episode:
            driven[episode["arm"]][episode["seed"]] = episode
    reference = driven[arms[0]]
    return {
        arm: [(members[seed], reference[seed]) for seed in seeds]
        for arm, members in driven.items()
        if (seeds := sorted(members.keys() & reference.keys()))
    }


def read_lines(path: Path) -> list[Any]:
    """Return what `write_lines` wrote; nothing if it wrote nothing yet."""
    if not path.exists():
        return []
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write values as lines of compressed JSON; the same values are the same file."""
    text = "".join(f"{json.dumps(value)}\n" for value in values)
    partial = path.with_suffix(".partial")
    # Without the time of writing.
    with partial.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        file.write(text.encode())
    partial.rename(path)
