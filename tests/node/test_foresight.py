"""A learned score, an estimate that is not the chain's and a belief, live: the bits of replay."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from live_ros import stepped
from small_world import DISTANCE, MONITOR, ODOMETRY, TYPES, serialized, write_bag

from forewarn.assessment.outcome_counts import watch_for
from forewarn.config.file import load_spec
from forewarn.learning.pipeline import learn
from forewarn.messages.definitions import installed_message_type
from forewarn.models.counts import CountModel
from forewarn.models.file import load_model, save_model
from forewarn.monitoring.build import compile_for, compile_spec, with_estimates
from forewarn.monitoring.live_session import LiveSession
from forewarn.wings.scores.fit import Ensemble, LearnedScoreFit, lags_of

pytestmark = pytest.mark.ros
FIELDS = (
    "probability", "lower", "upper", "bounds_confidence",
    "expected", "expected_left_out", "expected_restarted",
)  # fmt: skip
NAMES = {ODOMETRY: "speed", DISTANCE: "distance"}
BEFORE = "  brake:\n"
AFTER = f"{BEFORE}    risk_measure: expected\n    estimator: bayes\n"
TEXT = f"""{MONITOR.replace(BEFORE, AFTER)}
learned_score: {{nearing: {{for: brake, from: [speed, distance], history: 0.4}}}}
observation_error: {{close: 0.05}}
bounds: {{samples: 40}}
"""


def fit() -> LearnedScoreFit:
    """Return a score that asks whether the distance is below 8 m, and fell by 1 m in 0.4 s."""
    ensemble = Ensemble(
        base=-1.0,
        roots=(0, 3),
        feature=(4, -1, -1, 7, -1, -1),
        threshold=(8.0, 0.0, 0.0, -1.0, 0.0, 0.0),
        left=(1, -1, -1, 4, -1, -1),
        right=(2, -1, -1, 5, -1, -1),
        missing_left=(1, 0, 0, 1, 0, 0),
        value=(0.0, 1.5, -1.5, 0.0, 1.0, -1.0),
        needed=(0,) * 8,
    )
    return LearnedScoreFit(
        name="nearing",
        foresees="brake",
        formula="always(close implies eventually[0:1](not moving))",
        horizon=2.0,
        signals=("speed", "distance"),
        moments=4,
        lags=lags_of(4),
        directions=(0, 0),
        ensemble=ensemble,
        weights=(0.0, 1.0),
        recordings=("ab" * 32,),
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CountModel]:
    """Return the monitor file and its model."""
    folder = tmp_path_factory.mktemp("foresight")
    config = folder / "monitor.yaml"
    config.write_text(TEXT)
    spec = load_spec(config)
    compiled = compile_spec(spec, [fit()])
    bags = [write_bag(folder / f"learn{seed}.mcap", seed, 30.0) for seed in (1, 2, 3, 4)]
    counted = learn(bags, spec, compiled.abstraction, watch=watch_for(compiled)).model
    save_model(with_estimates(compiled, counted), folder / "model.json")
    return config, load_model(folder / "model.json")


def test_what_is_published_is_what_is_computed_offline(model: tuple[Path, CountModel]) -> None:
    config, counts = model
    (estimate,) = counts.estimates
    assert estimate.chosen == "bayes", estimate.reason
    compiled = compile_for(load_spec(config), counts)
    kinds = {topic: installed_message_type(kind) for topic, kind in TYPES.items()}
    watch = LiveSession(compiled, counts, kinds)
    slot = watch.monitor.abstraction.signals.index("nearing")
    changes = {"config": str(config), "model": str(config.parent / "model.json")}
    scores, risks = set(), []
    with stepped(config.parent, **changes) as (_, _, stepper):
        stepper.begin()
        for number in range(30):
            values = {ODOMETRY: 3.0}
            if not 10 <= number < 18:  # after 0.5 s it is unknown
                values[DISTANCE] = 12.0 - 0.4 * number
            now = stepper.grid.time_ns(stepper.tick)
            for topic, value in values.items():
                watch.accept(topic, now, serialized(topic, value))
            result = watch.tick(stepper.tick)
            scores.add(result.verdict.values[slot])
            message = stepper.step(**{NAMES[topic]: value for topic, value in values.items()})
            risks += [bits(risk) for risk in message.risks]
            assert [bits(risk) for risk in message.risks] == [bits(row) for row in result.rows]
            brake = message.risks[0]
            more = brake.details
            given = (more.bounds_kind, more.risk_measure)
            assert given == (more.BOUNDS_CLUSTERED, more.MEASURE_EXPECTED)
            assert 0 <= more.expected <= 1 and more.lower <= brake.probability <= more.upper
    assert len(scores) > 2 and len({*risks}) > 10


def bits(risk: Any) -> tuple[bytes, ...]:
    """Return the fields to the last bit, of a message or of a row."""
    holders = [risk if hasattr(risk, field) else risk.details for field in FIELDS]
    return tuple(
        struct.pack("<d", getattr(one, field)) for one, field in zip(holders, FIELDS, strict=True)
    )
