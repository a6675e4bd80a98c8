"""Every section of a wing keeps to one contract."""

from __future__ import annotations

from typing import ClassVar

from forewarn.registry import wing_keys
from forewarn.testing.sections import SectionContract

PLAIN = """
rate: 10
signals: {gap: {timeout: 1}}
predicates: {near: gap < 2}
properties: {apart: {formula: always(not near), horizon: 1}}
"""


class TestLearnedScore(SectionContract):
    key = "learned_score"
    file = f"{PLAIN}learned_score: {{ahead: {{for: apart, from: [gap], history: 0.5}}}}\n"
    wrong: ClassVar[dict[str, tuple[str, str]]] = {
        "from: [gap]": ("from: [gpa]", "learned_score.ahead.from[0]"),
        "for: apart": ("for: together", "learned_score.ahead.for"),
        "history: 0.5": ("past: 0.5", "learned_score.ahead.past"),
    }


class TestShield(SectionContract):
    key = "shield"
    file = f"{PLAIN}shield: {{failure: near, success: '!near', horizon: 5}}\n"
    wrong: ClassVar[dict[str, tuple[str, str]]] = {"horizon: 5": ("horizon: soon", "horizon")}


class TestAnomaly(SectionContract):
    key = "anomaly"
    file = f"{PLAIN}anomaly: {{file: normal.json, alpha: 0.1}}\n"
    wrong: ClassVar[dict[str, tuple[str, str]]] = {"alpha: 0.1": ("alpha: 2", "anomaly.alpha")}


class TestGuards(SectionContract):
    key = "guards"
    file = f"{PLAIN}guards: {{go: {{action: /go, server: /far, type: nav2_msgs/action/Go}}}}\n"
    wrong: ClassVar[dict[str, tuple[str, str]]] = {"server: /far": ("server: /go", "guards.go")}


class TestBlackBox(SectionContract):
    key = "black_box"
    file = f"{PLAIN}black_box: {{folder: incidents, keep: 3}}\n"
    wrong: ClassVar[dict[str, tuple[str, str]]] = {"keep: 3": ("keep: 0", "black_box.keep")}


def test_each_is_here() -> None:
    assert {one.key for one in SectionContract.__subclasses__()} >= {*wing_keys()}
