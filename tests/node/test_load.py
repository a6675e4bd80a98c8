"""The soak test of `make soak`, for seconds instead of minutes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from evaluation.soak.soak import PUNCTUAL, soak

pytestmark = [pytest.mark.ros, pytest.mark.slow, pytest.mark.long]


def test_under_load_no_tick_is_left_out_or_lacks_the_newest_sample(domain: int) -> None:
    found = soak("single", domain, minutes=0.1, rate=1000, warm_up=1)
    assert found["messages sent"] > 1000
    assert found["ticks"] >= 20
    assert (found["ticks left out"], found[PUNCTUAL]) == (0, 0)
