from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest


def test_inspect_says_why_the_riskiest_states_are_risky(
    forewarn, corridor_run: Any, corridor_model: Path
) -> None:
    arguments = ["inspect", corridor_model, "-c", corridor_run.config]
    result = forewarn(*arguments, "--why", "--top", 2, "--json")
    assert result.code == 0
    document = json.loads(result.out)
    for name, riskiest in document["riskiest"].items():
        reasons = document["reasons"][name]
        assert [state["state"] for state in riskiest] == list(reasons)
        for state in riskiest:
            why = reasons[state["state"]]
            assert why["risk"] == state["risk"]
            shares = [way["share"] for way in why["ways"]]
            assert shares == sorted(shares, reverse=True)
            assert 0 < sum(shares) <= 1 + 1e-9
            assert all(way["states"][0] == state["name"] for way in why["ways"])
            risks = [change["risk"] for change in why["changes"]]
            assert risks == sorted(risks)
    contact = document["reasons"]["no_contact"]
    ends = {way["states"][-1] for why in contact.values() for way in why["ways"]}
    assert ends == {"contact"}


def test_a_way_that_is_taken_now_and_then_is_not_0_percent(
    forewarn, corridor_run: Any, corridor_model: Path
) -> None:
    arguments = ["inspect", corridor_model, "-c", corridor_run.config, "--why", "--top", 9]
    document = json.loads(forewarn(*arguments, "--json").out)
    ways = [
        way["share"]
        for states in document["reasons"].values()
        for why in states.values()
        for way in why["ways"]
    ]
    told = re.findall(r"^ +(<1|>99|\d+) %  ", forewarn(*arguments).out, re.MULTILINE)
    assert len(told) == len(ways) and any(share < 0.005 for share in ways)
    for text, share in zip(told, ways, strict=True):
        wrong = {"<1": not 0 < share < 0.005, ">99": not 0.995 < share < 1}
        assert not wrong.get(text, text in ("0", "100") and share not in (0, 1)), share


def test_without_a_monitor_file_there_is_nothing_to_explain(forewarn, corridor_model: Path) -> None:
    result = forewarn("inspect", corridor_model, "--why", "--json")
    assert result.code == 0
    assert json.loads(result.out)["reasons"] == {}


@pytest.mark.parametrize("number", ["-1", "x"])
def test_a_wrong_number_is_a_usage_error(forewarn, number: str) -> None:
    assert forewarn("inspect", "m.json", "--top", number).code == 2
