"""Every kind of states keeps to one contract."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import zones

from forewarn.errors import ConfigError
from forewarn.states.kinds import KINDS
from forewarn.testing.state_spaces import StateSpaceContract, compiled_from

assert zones.Zones.kind in KINDS


class TestPredicates(StateSpaceContract):
    text = """
rate: 10
signals: {x: {timeout: 0.05}, y: {timeout: 0.05}, hit: {timeout: 0.05}, there: {timeout: 0.05}}
predicates: {fast: y > 1}
bins: {x: [1, 2]}
terminal: {collision: hit, arrived: there}
constraints: [{forbid: {from: fast, to: not fast and x < 1}}]
properties:
  safe: {formula: always(not collision), horizon: 0.5}
  calm: {formula: 'always(fast implies eventually[0:0.2](not fast))', horizon: 0.5}
"""
    values: ClassVar[dict[str, list[Any]]] = {
        "x": [0.5, 1.5, 2.5],
        "y": [0.0, 2.0],
        "hit": [0.0, 1.0],
        "there": [0.0, 1.0],
    }
    keys: ClassVar[list[str]] = ["000", "100", "001", "101", "011", "111"]
    same: ClassVar[dict[str, str]] = {
        "y > 1": "(y) > 1",
        "horizon: 0.5": "horizon: 1",
        "always(not collision)": "always(not arrived)",
        "rate: 10": "mode: act\nrate: 10",
    }
    other: ClassVar[dict[str, str]] = {
        "y > 1": "y > 2",
        "[1, 2]": "[1, 3]",
        "collision: hit": "collision: not hit",
        "x: {timeout: 0.05}": "x: {timeout: 0.06}",
        "rate: 10": "rate: 20",
        "not fast and x < 1": "not fast and x < 2",
        "always(not collision)": "always(not (x < 3))",
        "predicates:": "active_when: y < 9\npredicates:",
    }


class TestPredicatesWithHistory(StateSpaceContract):
    text = """
rate: 10
history: 2
signals: {x: {timeout: 0.05}, over: {timeout: 0.05}, out: {timeout: 0.05}}
predicates: {near: x < 1, close: x < 2}
terminal: {collision: over, left: out}
properties: {calm: {formula: always(not near), horizon: 0.5}}
"""
    values: ClassVar[dict[str, list[Any]]] = {
        "x": [0.5, 1.5, 2.5],
        "over": [0.0, 1.0],
        "out": [0.0, 1.0],
    }
    keys: ClassVar[list[str]] = [
        f"{now}{past}" for past in ("00", "01", "11") for now in ("00", "01", "11")
    ]
    same: ClassVar[dict[str, str]] = {"horizon: 0.5": "horizon: 1"}
    other: ClassVar[dict[str, str]] = {"history: 2": "history: 1", "x < 2": "x < 3"}


class TestZones(StateSpaceContract):
    text = """
rate: 10
states: {kind: zones, limits: [1, 2]}
signals: {x: {timeout: 0.05}}
properties: {calm: {formula: always(not high), horizon: 0.5}}
"""
    values: ClassVar[dict[str, list[Any]]] = {"x": [0.5, 1.5, 2.5]}
    keys: ClassVar[list[str]] = ["low", "middle", "high"]
    same: ClassVar[dict[str, str]] = {"horizon: 0.5": "horizon: 1"}
    other: ClassVar[dict[str, str]] = {
        "limits: [1, 2]": "limits: [1, 3]",
        "timeout: 0.05": "timeout: 0.06",
    }


class TestTree(StateSpaceContract):
    text = """
rate: 10
states:
  kind: tree
  tree: {if: x > 2, then: far, else: {if: y > 0, then: up, else: down}}
signals: {x: {timeout: 0.05}, y: {timeout: 0.05}, hit: {timeout: 0.05}, there: {timeout: 0.05}}
predicates: {near: x < 1}
terminal: {collision: hit, arrived: there}
constraints: [{forbid: {from: near, to: not near}}]
properties: {safe: {formula: always(not collision), horizon: 0.5}}
"""
    values: ClassVar[dict[str, list[Any]]] = {
        "x": [0.5, 1.5, 2.5],
        "y": [-1.0, 1.0],
        "hit": [0.0, 1.0],
        "there": [0.0, 1.0],
    }
    keys: ClassVar[list[str]] = ["far:0", "up:0", "up:1", "down:0", "down:1"]
    same: ClassVar[dict[str, str]] = {
        "if: x > 2": "if: (x > 2)",
        "horizon: 0.5": "horizon: 1",
        "always(not collision)": "always(not arrived)",
    }
    other: ClassVar[dict[str, str]] = {
        "x > 2": "x > 2.5",
        "then: up": "then: over",
        "then: up, else: down": "then: down, else: up",
        "near: x < 1": "near: x < 1.1",
        "y: {timeout: 0.05}": "y: {timeout: 0.06}",
        "to: not near": "to: not near and collision",
    }

    def test_a_formula_over_another_name_is_an_error_that_says_so(self) -> None:
        with pytest.raises(ConfigError) as error:
            compiled_from(self.text.replace("always(not collision)", "always(x < 9)"))
        assert "unknown name 'x < 9' (accepted: near, collision, arrived)" in str(error.value)
