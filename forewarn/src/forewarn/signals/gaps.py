"""Times at which nothing arrives, in recordings."""

from __future__ import annotations

from collections.abc import Iterator

from forewarn.signals.clock import NANOSECONDS, Payload, Samples

LONG_GAP_NS = 600 * NANOSECONDS
"""The shortest time without any message that is reported."""


def telling_gaps(samples: Samples, notes: list[str]) -> Iterator[tuple[int, str, Payload]]:
    """Yield the samples, and note at their end how long nothing arrived, if it was long."""
    newest: int | None = None
    gaps = []
    for sample in samples:
        if newest is not None and sample[0] - newest >= LONG_GAP_NS:
            gaps.append(sample[0] - newest)
        newest = sample[0] if newest is None else max(newest, sample[0])
        yield sample
    if gaps:
        more = f" at the longest, in {len(gaps)} gaps" if len(gaps) > 1 else ""
        notes.append(
            f"nothing arrives for {max(gaps) / NANOSECONDS:,.0f} s{more}: the ticks in "
            "between are unknown; cut the recording where it pauses"
        )
