"""A condition that lets something move rests on what arrived just now, or the file is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError
from forewarn.logic.specification import CompiledSpec, compile_spec
from forewarn.states.condition import Condition, clear_ways

SIGNALS = """\
  behind: {timeout: 0.5}
  beside: {timeout: 1.0}
  both: {value: "min(behind, beside)"}
"""
TEXT = """\
rate: 10
signals:
  speed: {timeout: 0.5}
%s
predicates: {moving: speed > 0.5}
properties: {stop: {formula: always(not moving), horizon: 1.0}}
actuators:
  twist:
    {input: /a, output: /b, max_speed: 1, max_turn: 1, escape: {%s: {when: "%s", speed: 0.3}}}
"""


def compiled(when: str, signals: str = SIGNALS, way: str = "turn") -> CompiledSpec:
    return compile_spec(parse_spec(parse_document(TEXT % (signals, way, when), Path("m.yaml"))))


def condition(when: str) -> Condition:
    found = compiled(when)
    clear = clear_ways(found.spec, found.abstraction)
    assert [*clear] == ["turn"]
    return clear["turn"]


@pytest.mark.parametrize(
    ("when", "signals", "expected"),
    [
        ("behind >", SIGNALS, ["behind >"]),
        ("1 > 0", SIGNALS, ["reads no signal", "no sensor would have a say"]),
        ("behnd > 0.5", SIGNALS, ["no signal 'behnd'", "behind"]),
        ("moving", SIGNALS, ["no signal 'moving'"]),
        ("behind.x > 0.5", SIGNALS, [".x reads a field"]),
        ("mean_over(behind, 1.0) > 0.5", SIGNALS, ["remembers"]),
        ("behind > 0.5", "  behind: {timeout: never}", ["behind, whose timeout is never", "1 s"]),
        ("behind > 0.5", "  behind: {timeout: 1.5}", ["behind, whose timeout is 1.5"]),
        ("behind > 0.5", "  behind: {timeout: 1, default: 9}", ["behind, which has the default 9"]),
        ("behind > 0.5", "  behind: {timeout: 1, stale: hold}", ["behind", "hold"]),
        (
            "far > 0.5",
            "  behind: {timeout: 5}\n  near: {value: behind}\n  far: {value: 2 * near}",
            ["rests on behind, whose timeout is 5"],
        ),
        (
            "was > 0.5",
            "  behind: {timeout: 0.5}\n  was: {value: 'mean_over(behind, 1.0)'}",
            ["remembers", "the present moment only"],
        ),
    ],
)
def test_what_may_be_old_is_refused(when: str, signals: str, expected: list[str]) -> None:
    for way in ("reverse", "turn"):
        with pytest.raises(ConfigError) as caught:
            compiled(when, signals, way)
        for part in ["m.yaml", f"actuators.twist.escape.{way}.when", *expected]:
            assert part in str(caught.value)


@pytest.mark.parametrize("when", ["true", "True"])
def test_a_round_robot_may_always_turn_and_never_back_away_unseen(when: str) -> None:
    always = condition(when)
    assert (always.denial([None] * 4), always.text, always.names) == ("", "true", ())
    with pytest.raises(ConfigError, match=r"escape.reverse.when: '[Tt]rue' reads no signal"):
        compiled(when, way="reverse")


def test_all_that_is_wrong_is_said_at_once() -> None:
    signals = "  behind: {timeout: never, default: 1, stale: hold}"
    with pytest.raises(ConfigError) as caught:
        compiled("behind > 0.5", signals)
    assert str(caught.value).count("rests on behind") == 3


@given(
    st.none() | st.floats(0, 1),
    st.none() | st.floats(0, 1),
    st.sampled_from(["behind > 0.5 or beside > 0.5", "not (behind < 0.5 and beside < 0.5)"]),
)
def test_it_holds_only_if_all_that_it_reads_is_known(
    behind: float | None, beside: float | None, when: str
) -> None:
    """Where Kleene's logic would find it true whatever the other is, it is not known."""
    denial = condition(when).denial([0.0, behind, beside, None])
    if behind is None or beside is None:
        assert denial.endswith("is unknown")
    elif (behind > 0.5 or beside > 0.5) and 0.5 not in (behind, beside):
        assert denial == ""
    elif behind < 0.5 and beside < 0.5:
        assert denial == f"{when} is false"


@pytest.mark.parametrize(
    ("when", "value", "expected"),
    [
        ("behind", 1.0, "no truth value"),
        ("behind", True, ""),
        ("sqrt(behind) > 0.5", -1.0, "is unknown"),
        ("both > 0.5", None, "both is unknown"),
    ],
)
def test_what_is_no_truth_does_not_hold(when: str, value: Any, expected: str) -> None:
    denial = condition(when).denial([0.0, value, 1.0, value])
    assert expected in denial
    assert bool(denial) == bool(expected)


def test_it_knows_whether_another_processor_may_find_otherwise() -> None:
    assert not condition("behind > 0.5").by_platform
    assert condition("sin(behind) > 0.5").by_platform


def test_without_the_section_there_is_none() -> None:
    text = (TEXT % (SIGNALS, "turn", "behind > 0.5")).replace(", escape: {turn: ", "} # ")
    spec = parse_spec(parse_document(text))
    assert clear_ways(spec, compile_spec(spec).abstraction) == {}
