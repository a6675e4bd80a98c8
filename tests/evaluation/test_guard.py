"""The rules by hand of the guard's study."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_guard import Guard, GuardedRun

HERE = Path(__file__).parents[2] / "evaluation" / "guard"


@pytest.mark.parametrize(("payee", "made"), [("DE77", True), ("AC1234", True), ("XX99", False)])
def test_what_nobody_has_named_is_not_sent_anywhere(payee: str, made: bool) -> None:
    run = GuardedRun(Guard.open(HERE / "invented.yaml"), "r", "Pay 20 to DE77")
    run.before("read_file", {"path": "Pay"})
    run.after("to AC1234")
    assert (run.before("send_money", {"to": payee}).call is not None) is made


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"payee": {"account": "DE77"}, "amounts": [20]}, True),
        ({"payee": {"account": "AC1234", "words": "Pay"}}, True),
        ({"payee": {"account": "DE77", "copy": "XX99"}}, False),
        ({"payee": '{"account": "XX99"}'}, False),
        ({"payee": {}, "to": "DE77"}, True),
    ],
)
def test_an_object_is_judged_by_the_values_in_it(given: dict[str, object], made: bool) -> None:
    """Its JSON is a text that nobody has named, and stopped every call with an object."""
    run = GuardedRun(Guard.open(HERE / "invented.yaml"), "r", "Pay 20 to DE77")
    run.before("read_file", {"path": "Pay"})
    run.after("to AC1234")
    assert (run.before("send_money", given).call is not None) is made
