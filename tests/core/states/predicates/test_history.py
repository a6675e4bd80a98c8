from __future__ import annotations

from forewarn.config.file import parse_spec
from forewarn.config.yaml_text import parse_document
from forewarn.signals.snapshots import Snapshot
from forewarn.states.predicates.compile import build_abstraction
from forewarn.states.vocabulary import Observation

TEXT = """
rate: 10
history: {history}
signals: {{x: {{timeout: 1}}, end: {{timeout: 1}}}}
predicates: {{a: x > 1, b: x > 2}}
terminal: {{over: end}}
properties: {{p: {{formula: always(a)}}}}
"""


def observations(values: list[tuple[float | None, float | None]], history: int = 2):
    abstraction = build_abstraction(parse_spec(parse_document(TEXT.format(history=history))))
    previous, found = None, []
    for tick, row in enumerate(values):
        seen = abstraction.observe(Snapshot(tick, row), previous)
        found.append(seen.observation)
        previous = seen.past
    return found


def test_a_state_holds_the_present_below_the_past() -> None:
    found = observations([(1.5, 0.0), (3.0, 0.0), (0.0, 0.0)])
    assert [o.state for o in found] == [0b0101, 0b0111, 0b1100]


def test_the_first_tick_of_an_episode_stands_in_for_its_past() -> None:
    found = observations([(3.0, 0.0), (3.0, 1.0), (1.5, 0.0)])
    assert [o.state for o in found] == [0b1111, -1, 0b0101]


def test_an_unknown_past_leaves_the_state_unknown_and_the_present_known() -> None:
    found = observations([(3.0, 0.0), (None, 0.0), (1.5, 0.0), (1.5, 0.0)])
    assert [o.state for o in found] == [0b1111, None, None, 0b0101]
    assert found[1] == Observation(None, 0b1100, 0b1100, 0, True, False)
    assert found[2] == Observation(None, 0b0011, 0b0001, 0, True, False)


def test_a_past_that_may_have_been_terminal_is_unknown() -> None:
    found = observations([(3.0, None), (1.5, 0.0)])
    assert found[1] == Observation(None, 0b0011, 0b0001, 0, True, False)


def test_without_history_nothing_changes() -> None:
    assert [o.state for o in observations([(1.5, 0.0), (3.0, 0.0)], 1)] == [0b01, 0b11]
