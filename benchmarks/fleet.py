"""What an hour of recordings costs a fleet: bytes, processor time and shards, and their sum.

The sample recordings are learned from with `evaluation/sumo/predicates.yaml` into a store; then the
shards are read from it, and as many shards as asked for are added up.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._harness import Table, resident, run, take_turns
from benchmarks.core import RECORDINGS, ROOT
from forewarn.assessment.outcome_counts import watch_for
from forewarn.learning.pipeline import assemble, learn
from forewarn.learning.recording_report import RecordingReport
from forewarn.learning.shard_store import ShardStore
from forewarn.monitoring.loading import load_bare

CONFIG = ROOT / "evaluation" / "sumo" / "predicates.yaml"


def renamed(report: RecordingReport, number: int) -> RecordingReport:
    """Return a shard as another recording would have it."""
    source = replace(report.provenance, digest=f"{number:064x}", recording=f"{number}.mcap")
    return replace(report, provenance=source)


def measure(shards: int = 10_000, turns: int = 3) -> list[Table]:
    """Measure learning, reading of shards, and the sum of so many."""
    compiled = load_bare(CONFIG)
    bags = sorted(path for path in RECORDINGS.iterdir() if path.is_dir())
    size = sum(file.stat().st_size for bag in bags for file in bag.glob("*.mcap"))
    spec, abstraction, watch = compiled.spec, compiled.abstraction, watch_for(compiled)
    validity = abstraction.validity(spec)
    with TemporaryDirectory() as folder:
        store = ShardStore(Path(folder))
        found = learn(bags, spec, abstraction, watch=watch, store=store)
        kept = sum(file.stat().st_size for file in Path(folder).rglob("*.shard"))
        computed, read = take_turns(
            lambda: learn(bags, spec, abstraction, watch=watch),
            lambda: learn(bags, spec, abstraction, watch=watch, store=store),
            turns=turns,
        )
    hours = sum(report.provenance.duration for report in found.reports) / 3600
    before = resident()
    many = [renamed(found.reports[i % len(bags)], i) for i in range(shards)]
    (added,) = take_turns(lambda: assemble(many, spec, abstraction, validity), turns=1)
    rows = [
        ("a recording, in MCAP", "MB an hour", size / 1e6 / hours, None),
        ("learning from it", "s an hour", computed.seconds / hours, None),
        ("its shard", "kB an hour", kept / 1e3 / hours, None),
        ("a shard", "kB", kept / 1e3 / len(bags), None),
        ("taking a shard from the store", "ms", 1e3 * read.seconds / len(bags), None),
        (f"adding up {shards:,} shards: each", "us", 1e6 * added.seconds / shards, None),
        (f"adding up {shards:,} shards: memory", "MB", resident() - before, None),
    ]
    return [Table(("What", "Unit", "Figure", "Target"), rows)]


if __name__ == "__main__":
    sys.exit(run(measure))
