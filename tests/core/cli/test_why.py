from __future__ import annotations

import json
from pathlib import Path

import pytest


def test_inspect_says_why_the_riskiest_states_are_risky(forewarn, repository: Path) -> None:
    model, config = repository / "config/demo.model.json", repository / "config/demo.yaml"
    result = forewarn("inspect", model, "-c", config, "--why", "--top", 2, "--json")
    assert result.code == 0
    document = json.loads(result.out)
    for name, riskiest in document["riskiest"].items():
        reasons = document["reasons"][name]
        assert [each["state"] for each in riskiest] == list(reasons)
        for each in riskiest:
            why = reasons[each["state"]]
            assert why["risk"] == each["risk"]
            shares = [way["share"] for way in why["ways"]]
            assert shares == sorted(shares, reverse=True)
            assert 0 < sum(shares) <= 1 + 1e-9
            assert all(way["states"][0] == each["name"] for way in why["ways"])
            risks = [change["risk"] for change in why["changes"]]
            assert risks == sorted(risks)
    collision = document["reasons"]["collision"]
    ends = {way["states"][-1] for why in collision.values() for way in why["ways"]}
    assert ends == {"collision"}


def test_without_a_monitor_file_there_is_nothing_to_explain(forewarn, repository: Path) -> None:
    result = forewarn("inspect", repository / "config/demo.model.json", "--why", "--json")
    assert result.code == 0
    assert json.loads(result.out)["reasons"] == {}


@pytest.mark.parametrize("number", ["-1", "x"])
def test_a_wrong_number_is_a_usage_error(forewarn, repository: Path, number: str) -> None:
    assert forewarn("inspect", repository / "config/demo.model.json", "--top", number).code == 2
