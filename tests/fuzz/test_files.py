"""Monitor files and model files: whatever is in them, a ForewarnError or something that works."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from mutations import changed_bytes, changed_document, changed_text, soup
from scipy import sparse

from forewarn.config.file import load_spec
from forewarn.errors import ForewarnError, ModelError
from forewarn.models.counts import CountModel, Provenance, Smoothing
from forewarn.models.estimation import estimate_chain
from forewarn.models.file import _checksum, load_model, merge_models, save_model
from forewarn.monitoring.build import compile_spec
from forewarn.states.vocabulary import Vocabulary

MONITOR = """\
version: 1
rate: 10
timestamp_source: arrival
startup_grace: 1.0
signals:
  speed: {topic: /odom, type: nav_msgs/msg/Odometry, value: twist.twist.linear.x, timeout: 0.5}
  xs: {topic: /scan, type: sensor_msgs/msg/LaserScan, value: "[r for r in ranges]", timeout: 0.5}
  ttc: {value: "min(xs, default=inf) / max(speed, 0.1)"}
predicates:
  moving: speed > 0.5
  close: {enter: min(xs) < 1, exit: min(xs) > 2}
  slow: not moving and speed < 0.2
bins:
  ttc: [1, 2]
terminal: {collision: min(xs) <= 0.1}
constraints: [{exclusive: [slow, moving]}, {implies: [slow, close]}]
active_when: speed >= 0
properties:
  brake:
    formula: always(close implies eventually[0:1](not moving))
    horizon: 2.0
    thresholds: {warn: 0.2, act: 0.4, release: 0.15}
    enter: 1
    exit: 2
    hold: 0.2
    intervention: COMFORTABLE_STOP
    escalation: [{after: 1.0, action: EMERGENCY_STOP}]
learning: {alpha: sparse, candidates: observed, recording_end: drop}
mode: observe
"""
WORDS = (
    "&a ", "*a ", "<<: *a", "!!python/object:os.system ", "!!binary x", "? ", "- ", "{", "}", "[",
    "]", ": ", "\n", "\n  ", "\n    ", "|", ">", "%YAML 1.1", "---", "...", "null", "~", ".inf",
    ".nan",
    "-1", "0", "1e400", "0x7fffffffffffffffffff", "1:30", "2001-01-01", "yes", "'", '"', "\t", "#",
    "unbounded", "true", "rate: 1e-9", "rate: 1e12", "horizon: 1e300", "hold: -1",
    "\u2028", "\ud7ff",
)  # fmt: skip
MONITORS = st.one_of(
    changed_text([MONITOR], WORDS).map(lambda text: text.encode("utf-8", "surrogatepass")),
    changed_bytes([MONITOR.encode()]),
    soup((*WORDS, "signals", "rate", "properties")).map(str.encode),
)


def small_model() -> CountModel:
    forbidden = np.zeros((3, 3), dtype=bool)
    forbidden[1, 2] = True
    return CountModel(
        Vocabulary(("moving", "near"), ("collision",)),
        10.0,
        "abc",
        (0, 2, -1),
        sparse.csr_matrix(np.array([[5, 1, 1], [0, 2, 0], [0, 0, 0]], dtype=np.int64)),
        np.array([2, 0, 0]),
        Smoothing(0.5, "admissible"),
        sparse.csr_matrix(forbidden),
        (Provenance("run.mcap", "d1", 12.5, 125, 9),),
        3,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def test_monitor_files(fuzz, folder):
    path = folder / "monitor.yaml"

    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            compiled = compile_spec(load_spec(path))
        except ForewarnError as error:
            assert str(error)
            return
        assert compiled.abstraction.digest

    fuzz(MONITORS, check)


def test_structure_of_monitor_files(fuzz, folder):
    import yaml

    path = folder / "structure.yaml"

    def check(document: Any) -> None:
        path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
        try:
            compile_spec(load_spec(path))
        except ForewarnError as error:
            assert str(path) in str(error)

    fuzz(changed_document(yaml.safe_load(MONITOR)), check)


def test_model_files(fuzz, folder):
    path = folder / "model.json"
    save_model(small_model(), path)
    content = path.read_bytes()
    document = json.loads(content)
    del document["checksum"]

    def signed(changed: Any) -> bytes:
        """Make the checksum fit, so that the changes get past it."""
        changed = copy.deepcopy(changed)
        if isinstance(changed, dict):
            changed["checksum"] = _checksum({k: v for k, v in changed.items() if k != "checksum"})
        return json.dumps(changed).encode()

    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            model = load_model(path)
        except ModelError as error:
            assert str(path) in str(error)
            return
        try:
            chain = estimate_chain(model)
            rows = chain.to_csr().sum(axis=1)
            assert np.all((rows < 1 + 1e-9) & (rows >= 0))
        except ForewarnError as error:
            assert str(error)
        save_model(merge_models([model]), path)
        assert load_model(path).states == model.states

    fuzz(st.one_of(changed_bytes([content]), changed_document(document).map(signed)), check)
