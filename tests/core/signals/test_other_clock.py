"""A clock that Forewarn does not know learns, replays and runs live; steps agree with ticks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forewarn.assessment.replay import Replaying, replay
from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ModelError
from forewarn.learning.pipeline import learn
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.models.file import dump_model, merge_models, parse_model
from forewarn.monitoring.build import build_monitor
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.verdict import Verdict
from forewarn.recordings.registry import open_recording
from forewarn.signals.clock_kinds import StepMoments, Steps

TEXT = """
version: 1
{clock}
startup_grace: 0
signals: {{x: {{timeout: 2}}}}
predicates: {{low: x < 1, high: x >= 2}}
properties:
  calm: {{formula: "always(high implies eventually[0:2](low))", horizon: 4, hold: 1,
    thresholds: {{warn: 0.1, act: 0.3, release: 0.05}}}}
"""


def compiled_by(clock: str) -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(TEXT.format(clock=clock))))


TICKS, STEPS = compiled_by("rate: 1"), compiled_by("clock: steps")


class OnlyHalves(StepMoments):
    """Moments of `Alternate`."""

    def arrival(self, topic: str, time_ns: int, payload: Any) -> int:
        if isinstance(payload, dict) and payload.get("half"):
            return super().arrival(topic, time_ns, payload)
        return self.following(time_ns) * 1_000_000_000


@dataclass(frozen=True)
class Alternate(Steps):
    """A clock for these tests: only lines that say so are moments, and it calls them beats."""

    noun: ClassVar[str] = "beat"
    unit: ClassVar[str] = "beats"

    def moments(self, settle_ns: int = 0) -> StepMoments:
        return OnlyHalves(self)


def written(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_clock_of_our_own_learns_replays_and_runs_live(tmp_path: Path) -> None:
    abstraction = replace(STEPS.abstraction, clock=Alternate())
    compiled = replace(STEPS, abstraction=abstraction)
    xs = [0.5, 1.5, 2.5, 2.5, 0.5, 1.5] * 12
    path = written(tmp_path / "t.jsonl", [{"x": x, "half": i % 2} for i, x in enumerate(xs)])
    learned = learn([path], compiled.spec, abstraction)
    assert learned.reports[0].counts.ticks == len(xs) // 2
    monitor = build_monitor(compiled, learned.model)
    said: list[Verdict] = []
    with open_recording(path) as recording:
        run = replay(Replaying(monitor), recording, on_verdict=said.append)
        samples = list(recording.read())
    assert len(run.history) == len(xs) // 2
    watch = LiveSession(compiled, learned.model, {})
    moments = watch.feed.moments
    live = []
    for sample in samples:
        due = moments.last_due(0)
        watch.accept(sample.topic, sample.time_ns, sample.data)
        live += [watch.tick(beat).verdict for beat in range(due + 1, moments.last_due(0) + 1)]
    assert [repr(verdict) for verdict in live] == [repr(verdict) for verdict in said]


values = st.lists(st.sampled_from([0.5, 1.5, 2.5, None]), min_size=3, max_size=40)


def verdicts(compiled: CompiledSpec, path: Path, learned_from: Path) -> Iterator[Verdict]:
    model = learn([learned_from], compiled.spec, compiled.abstraction).model
    if not model.observed.any():
        model = None  # type: ignore[assignment]
    found: list[Verdict] = []
    with open_recording(path) as recording:
        replay(Replaying(build_monitor(compiled, model)), recording, on_verdict=found.append)
    return iter(found)


@settings(max_examples=examples(25), deadline=None)
@given(xs=values, known=values, missing=st.sets(st.integers(1, 38)))
def test_steps_at_the_times_of_ticks_say_what_ticks_say(
    tmp_path_factory: pytest.TempPathFactory,
    xs: list[float | None],
    known: list[float | None],
    missing: set[int],
) -> None:
    """The same chain, the same verdicts to the last bit, a value that is not said included."""
    folder = tmp_path_factory.mktemp("law")

    def lines(each: list[float | None]) -> list[dict[str, Any]]:
        return [{"t": t} if t in missing else {"t": t, "x": x} for t, x in enumerate(each)]

    path, other = written(folder / "a.jsonl", lines(xs)), written(folder / "b.jsonl", lines(known))
    pairs = zip(verdicts(TICKS, path, other), verdicts(STEPS, path, other), strict=True)
    for by_tick, by_step in pairs:
        # Sampling is seeded by the model, and the model knows its clock: bounds may differ.
        for one, two in zip(by_tick.properties, by_step.properties, strict=True):
            assert repr(one._replace(lower=0, upper=0)) == repr(two._replace(lower=0, upper=0))
        assert by_tick[:3] == by_step[:3]
        assert by_tick.stale == by_step.stale


def model_of(compiled: CompiledSpec, path: Path) -> Any:
    return learn([path], compiled.spec, compiled.abstraction).model


def test_models_of_other_clocks_are_refused(tmp_path: Path) -> None:
    lines = [{"t": t, "x": x} for t, x in enumerate([0.5, 1.5, 2.5] * 4)]
    path = written(tmp_path / "t.jsonl", lines)
    ticks, steps = model_of(TICKS, path), model_of(STEPS, path)
    assert parse_model(dump_model(steps).encode()).rate == "steps"
    assert (ticks.counts != steps.counts).nnz == 0
    with pytest.raises(ModelError, match="learned at 1 Hz, the monitor file runs by steps"):
        build_monitor(STEPS, ticks)
    with pytest.raises(ModelError, match="learned by steps, the monitor file runs at 1 Hz"):
        build_monitor(TICKS, steps)
    with pytest.raises(ModelError, match="different rate"):
        merge_models([ticks, steps])


def test_a_mute_lasts_for_seconds_however_many_steps_they_hold() -> None:
    watch = LiveSession(STEPS, None, {})
    second = 1_000_000_000
    moments = watch.feed.moments

    def step(time_ns: int) -> bool:
        watch.accept("", time_ns, {"x": 0.5})
        return watch.tick(moments.last_due(time_ns)).rows[0].muted

    assert not step(0)
    watch.mute(["calm"], 2.0)
    assert [step(t) for t in (1, 2, 3, second, 2 * second - 1, 2 * second)] == [True] * 5 + [False]
    [left] = [*watch.memory.mutes.ends.values()] or [0.0]
    assert np.isclose(left, 0.0)
