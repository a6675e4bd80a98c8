from __future__ import annotations

import pytest

from forewarn.errors import ModelError
from forewarn.states.vocabulary import Vocabulary

WORDS = Vocabulary(("moving", "ttc<1", "ttc<2", "ttc<10", "gap<-1e-05", "gap<3"), ("over", "hit"))


@pytest.mark.parametrize("key", ["", "0", "01100x", "0110000", "!gone", "!"])
def test_other_keys_are_refused(key: str) -> None:
    with pytest.raises(ModelError):
        WORDS.parse_key(key)


def test_names_hold_the_lowest_threshold_only() -> None:
    assert WORDS.name(0b001101) == "moving & ttc<2"
    assert WORDS.name(0b001000) == "ttc<10"
    assert WORDS.name(0b110000) == "gap<-1e-05"
    assert WORDS.name(0) == "(none)"
    assert WORDS.name(-1) == "over"


def test_a_terminal_state_holds_its_own_name_only() -> None:
    assert WORDS.holds("hit", -2)
    assert not WORDS.holds("over", -2)
    assert not WORDS.holds("moving", -2)
    assert WORDS.holds("moving", 1)
    assert not WORDS.holds("hit", 1)
    assert not WORDS.holds("nonsense", 1)
