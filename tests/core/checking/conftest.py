"""Models and automata that several tests of the checkers use."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import small_chains

from forewarn.logic.automaton import Automaton
from forewarn.models.chain import Chain


@pytest.fixture
def response() -> Callable[[int], Automaton]:
    """Return the maker of ``always(a implies eventually[0:bound](b))``; class 1 is a alone."""
    return small_chains.bounded_response


@pytest.fixture
def random_chain() -> Callable[..., Chain]:
    """Return the maker of random sparse chains whose last states are terminal."""
    return small_chains.random_chain
