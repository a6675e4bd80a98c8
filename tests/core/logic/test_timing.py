"""Bounds in seconds become steps by the rule of the design, guarded against rounding."""

from __future__ import annotations

import pytest

from forewarn.errors import FormulaError
from forewarn.logic.compilation import compile_formula
from forewarn.logic.parser import parse_formula
from forewarn.logic.syntax import Bound, Interval, in_steps
from forewarn.signals.clock_kinds import clock_of


def steps(bounds: str, rate: float) -> tuple[int, int | None]:
    """Return the steps of the interval written `bounds`."""
    return tuple(in_steps(parse_formula(f"once{bounds}(a)").interval, clock_of(rate)))


@pytest.mark.parametrize(
    ("bounds", "rate", "expected"),
    [
        ("", 10, (0, None)),
        ("[0:2]", 10, (0, 20)),
        ("[0:0.29]", 100, (0, 29)),  # 0.29 * 100 is 28.999999999999996
        ("[0.07:1]", 100, (7, 100)),  # 0.07 * 100 is 7.000000000000001
        ("[0.3:0.7]", 10, (3, 7)),
        ("[0.25:0.35]", 10, (3, 3)),
        ("[0:0.29]", 10, (0, 2)),
        ("[0.11:1]", 10, (2, 10)),
        ("[0:1]", 30, (0, 30)),
        ("[0:100ms]", 50, (0, 5)),
        ("[20ms:1s]", 50, (1, 50)),
        ("[3:7 steps]", 50, (3, 7)),
        ("[1:inf]", 10, (10, None)),
    ],
)
def test_seconds_become_steps(bounds, rate, expected):
    assert steps(bounds, rate) == expected


def test_an_interval_without_a_tick_is_refused():
    with pytest.raises(FormulaError, match=r"no tick at 10 Hz lies in \[0.21:0.29\]") as caught:
        steps("[0.21:0.29]", 10)
    assert "a multiple of 0.1 s" in caught.value.accepted


@pytest.mark.parametrize(
    ("lower", "upper", "rate", "written"),
    [
        (Bound(5, "steps"), Bound(2, "steps"), "steps", "[5:2 steps]"),
        (Bound(2, "s"), Bound(1, "s"), 10, "[2:1]"),
        (Bound(5, "steps"), Bound(0.4, "s"), 10, "[5 steps:0.4 s]"),
    ],
)
def test_an_interval_that_ends_before_it_begins_is_refused(lower, upper, rate, written):
    with pytest.raises(FormulaError) as caught:
        in_steps(Interval(lower, upper), clock_of(rate))
    told = f"the interval {written} ends before it begins (accepted: the smaller bound first)"
    assert str(caught.value) == told


def test_a_bound_of_too_many_steps_is_refused_in_the_words_of_its_clock():
    with pytest.raises(FormulaError, match=r"^a bound of 20000000 steps \(accepted: at most "):
        steps("[0:20000000 steps]", "steps")
    with pytest.raises(FormulaError, match=r"^a bound of 2000000 s is 20000000 steps at 10 Hz \("):
        steps("[0:2000000]", 10)


def test_steps_are_whole():
    with pytest.raises(FormulaError, match=r"1\.5 steps"):
        steps("[0:1.5 steps]", 10)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_the_rate_is_positive(rate):
    with pytest.raises(FormulaError, match="rate"):
        compile_formula(parse_formula("always(a)"), rate)
