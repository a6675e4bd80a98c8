"""A shard as bytes: what a recording gave, with a checksum, in the same bits after reading.

The first line names the format and the SHA-256 of what follows: JSON, packed by zstd. Tables are
in the order in which they were counted, for sums of floating point numbers go over some of them.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from operator import itemgetter
from typing import Any

import zstandard

from forewarn.errors import ModelError
from forewarn.learning.counting import Counts
from forewarn.learning.recording_report import ObservedOutcomes, RecordingReport
from forewarn.models.checked_json import Reader, most_unpacked, parse_json
from forewarn.models.file import parse_provenance
from forewarn.models.process import Step
from forewarn.models.run_ends import dump_ends, parse_ends
from forewarn.models.shards import MAX_COUNT, MAX_ROWS, dump, dump_judged, of_outcomes, parse
from forewarn.recordings.zstd import CutError, unpacked

MAGIC = b"forewarn shard 1 "
ACCEPTED = "a shard as `forewarn learn --store` writes it"


def pack(report: RecordingReport) -> bytes:
    """Return a shard as bytes; the same shard always gives the same."""
    text = json.dumps(_dumped(report), separators=(",", ":"), ensure_ascii=False)
    packed = zstandard.ZstdCompressor(level=9).compress(text.encode())
    return MAGIC + hashlib.sha256(packed).hexdigest().encode() + b"\n" + packed


def unpack(data: bytes) -> RecordingReport:
    """Return the shard that `pack` made bytes of; raises ModelError if they are not sound."""
    head, _, packed = data.partition(b"\n")
    if not head.startswith(MAGIC):
        raise ModelError(f"is no shard, it begins with {data[:16]!r}", accepted=ACCEPTED)
    if hashlib.sha256(packed).hexdigest().encode() != head[len(MAGIC) :]:
        raise ModelError("its checksum is wrong", accepted=ACCEPTED)
    try:
        # In pieces: as a whole, it would take as much memory as it claims to need.
        text = b"".join(unpacked(io.BytesIO(packed), most_unpacked(len(packed))))
    except CutError as error:
        raise ModelError(f"cannot be unpacked ({error})", accepted=ACCEPTED) from error
    return _parsed(Reader(parse_json(text), ""))


def _dumped(report: RecordingReport) -> dict[str, Any]:
    counts, watched = report.counts, report.watched
    return {
        "provenance": asdict(report.provenance),
        "transitions": [[*pair, n] for pair, n in counts.transitions.items()],
        "triples": [[*triple, n] for triple, n in counts.triples.items()],
        "starts": [[state, n] for state, n in counts.starts.items()],
        "refused": [[*pair, n] for pair, n in counts.refused.items()],
        "steps": [[*step, n] for step, n in counts.steps.items()],
        "ticks": counts.ticks,
        "unknown": counts.unknown,
        "intervened": counts.intervened,
        "gaps": counts.gaps,
        "inactive": report.inactive,
        "invalid": report.invalid,
        "stale": report.stale,
        "failures": report.failures,
        "warnings": report.warnings,
        "watched": None if watched is None else _dumped_outcomes(watched),
    }


def _dumped_outcomes(watched: ObservedOutcomes) -> dict[str, Any]:
    judged = list(watched.outcomes)
    return {
        "codes": list(watched.codes),
        "properties": dump_judged(judged),
        "shard": dump(of_outcomes(watched.outcomes), judged),
        "ends": {name: dump_ends(runs) for name, runs in watched.ends.items()},
    }


def _parsed(reader: Reader) -> RecordingReport:
    provenance, most = parse_provenance(reader.child("provenance")), MAX_COUNT
    counts = Counts(
        transitions=_counter(reader, "transitions", 2, tuple),
        triples=_counter(reader, "triples", 3, tuple),
        starts=_counter(reader, "starts", 1, itemgetter(0)),
        ticks=reader.integer("ticks", 0, most),
        unknown=reader.integer("unknown", 0, most),
        intervened=reader.integer("intervened", 0, most),
        gaps=reader.integer("gaps", 0, most),
        refused=_counter(reader, "refused", 2, tuple),
        steps=_counter(reader, "steps", 4, Step._make),
    )
    watched = reader.get("watched", "an object, or null")
    return RecordingReport(
        provenance,
        counts,
        reader.integer("inactive", 0, most),
        reader.integer("invalid", 0, most),
        _named(reader.child("stale")),
        _named(reader.child("failures")),
        reader.texts("warnings", MAX_ROWS),
        None if watched is None else _parsed_outcomes(reader.child("watched")),
    )


def _parsed_outcomes(reader: Reader) -> ObservedOutcomes:
    codes = [_code("codes", code) for code in reader.items("codes", MAX_ROWS)]
    (shard,) = parse([reader.child("shard")], reader.children("properties"), len(codes))
    ends = reader.child("ends")
    found = {name: parse_ends(ends, name) for name in ends.value}
    return ObservedOutcomes(tuple(codes), dict(shard.outcomes), found)


def _named(reader: Reader) -> Counter[str]:
    return Counter({name: reader.integer(name, 0, MAX_COUNT) for name in reader.value})


def _counter(
    reader: Reader, key: str, width: int, named: Callable[[list[Any]], Any]
) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in reader.items(key, MAX_ROWS):
        if not isinstance(row, list) or len(row) != width + 1:
            raise ModelError(
                f"{row!r} is not accepted", key=key, accepted=f"{width + 1} entries in each row"
            )
        for entry in row[:width]:
            if not isinstance(entry, str):  # the name of an action
                _code(key, entry)
        found[named(row[:width])] = reader.whole(key, row[-1], 0, MAX_COUNT)
    return found


def _code(key: str, value: Any) -> int:
    """Return a state code, which may have more bits than a word, or a truth value, if it is one."""
    if not isinstance(value, int):
        raise ModelError(f"{value!r} is not accepted", key=key, accepted="whole numbers")
    return value
