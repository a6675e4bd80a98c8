"""Moments of normal runs in a model file: plain data, checked as a whole before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from forewarn.models.sections import ModelSection
from forewarn.wings.anomalies.normal_moments import MOST_MOMENTS, MOST_RUNS, NormalMoments

if TYPE_CHECKING:
    from forewarn.models.checked_json import Reader

MOST_SIGNALS = 1 << 12
MOST_RECORDINGS = 1 << 20
MOST_LENGTH = 1 << 40


def dump_normal(found: Sequence[NormalMoments]) -> list[dict[str, Any]]:
    """Return what JSON can hold."""
    return [
        {
            "signals": list(one.signals),
            "centre": one.centre.tolist(),
            "scale": one.scale.tolist(),
            "moments": one.moments.ravel().tolist(),
            "greatest": list(one.greatest),
            "longest": one.longest,
            "recordings": list(one.recordings),
            "left_out": dict(one.left_out),
        }
        for one in found
    ]


def parse_normal(readers: Sequence[Reader]) -> tuple[NormalMoments, ...]:
    """Return what the JSON of a model file holds.

    Raises ModelError naming key path, value and what is accepted.
    """
    return tuple(map(read_normal, readers))


def read_normal(reader: Reader) -> NormalMoments:
    """Return moments of normal runs from JSON; raises ModelError."""
    signals = reader.names("signals")
    size = len(signals)
    if not size:
        raise reader.wrong("signals", [], "one name or more")
    centre, scale = reader.numbers("centre", size), reader.numbers("scale", size)
    for key, numbers in (("centre", centre), ("scale", scale)):
        if len(numbers) != size or (key == "scale" and min(numbers) <= 0):
            raise reader.wrong(key, list(numbers), f"{size} numbers, scales above 0")
    moments = reader.numbers("moments", (MOST_MOMENTS + MOST_RUNS) * size)
    if not moments or len(moments) % size:
        raise reader.wrong("moments", len(moments), f"rows of {size} numbers")
    greatest = reader.numbers("greatest", MOST_RUNS, 0.0)
    if not greatest or list(greatest) != sorted(greatest):
        raise reader.wrong("greatest", list(greatest), "rising numbers")
    left_out = reader.child("left_out")
    return NormalMoments(
        signals,
        np.array(centre),
        np.array(scale),
        np.array(moments).reshape(-1, size),
        greatest,
        reader.integer("longest", 1, MOST_LENGTH),
        reader.texts("recordings", MOST_RECORDINGS),
        {name: left_out.text(name) for name in left_out.value},
    )


def most_recordings(kept: Sequence[tuple[NormalMoments, ...]]) -> tuple[NormalMoments, ...]:
    """Return the moments that come from the most recordings; of equals the first.

    Moments of two models are not joined: runs of one were never compared with those of the other,
    and no limit could be promised for both. What is kept keeps its promise.
    """
    return max(kept, key=lambda some: sum(len(one.recordings) for one in some))


def in_words(kept: Sequence[NormalMoments]) -> str:
    """Say what is kept of normal runs, and what is promised."""
    return "\n".join(one.in_words for one in kept)


def facts(kept: Sequence[NormalMoments]) -> list[dict[str, Any]]:
    """Return the figures of what is kept of normal runs."""
    return [one.facts for one in kept]


SECTION = ModelSection(dump_normal, parse_normal, most_recordings, in_words, facts)
