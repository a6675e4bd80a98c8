"""Values are set, and nothing else in the file changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forewarn.cli.editing import difference, edited
from forewarn.config.file import load_spec
from forewarn.errors import ConfigError


def edit(tmp_path: Path, text: str, values: dict[tuple[str, ...], float]) -> str:
    path = tmp_path / "monitor.yaml"
    path.write_bytes(text.encode())
    before, after = edited(path, values)
    assert before == text
    return after


def rule(**values: float) -> dict[tuple[str, ...], float]:
    return {("properties", "rule", "thresholds", key): value for key, value in values.items()}


def test_a_number_is_replaced_and_all_else_stays(tmp_path: Path) -> None:
    text = (
        "properties:\n  rule:   # why\n"
        "    thresholds:   {warn: 0.25,  act: 0.5, release: 0.2}  # so\n"
        "    horizon:  3.0\n  other: {thresholds: {act: 0.5}}\n"
    )
    assert edit(tmp_path, text, rule(act=0.35, warn=0.25)) == text.replace(
        "act: 0.5, release", "act: 0.35, release"
    )
    assert edit(tmp_path, text, rule(act=0.5, warn=0.25, release=0.2)) == text


def test_what_is_missing_is_added_in_the_style_of_what_is_there(tmp_path: Path) -> None:
    flow = "properties: {rule: {formula: p, thresholds: {act: 0.5}}}\n"
    assert edit(tmp_path, flow, rule(act=0.4, release=0.1)) == (
        "properties: {rule: {formula: p, thresholds: {act: 0.4, release: 0.1}}}\n"
    )
    block = "properties:\n  rule:\n    thresholds:\n      act: 0.5  # high\n\n# end\n"
    assert edit(tmp_path, block, rule(release=0.1)) == (
        "properties:\n  rule:\n    thresholds:\n      act: 0.5  # high\n      release: 0.1\n"
        "\n# end\n"
    )
    without = "properties:\n  rule:\n    formula: p   # the rule\n\n# end\nmode: observe\n"
    assert edit(tmp_path, without, rule(warn=0.1, act=0.4)) == (
        "properties:\n  rule:\n    formula: p   # the rule\n    thresholds: {warn: 0.1, act: 0.4}\n"
        "\n# end\nmode: observe\n"
    )


def test_a_property_of_a_fragment_is_overridden_in_the_file_itself(tmp_path: Path) -> None:
    text = "include: [laws.yaml]\nproperties:\n  own: {formula: p}\nmode: observe\n"
    assert edit(tmp_path, text, rule(act=0.4)) == (
        "include: [laws.yaml]\nproperties:\n  own: {formula: p}\n"
        "  rule: {thresholds: {act: 0.4}}\nmode: observe\n"
    )
    assert edit(tmp_path, "include: [laws.yaml]", rule(act=0.4)) == (
        "include: [laws.yaml]\nproperties: {rule: {thresholds: {act: 0.4}}}\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("properties:\n  rule:\n", "properties:\n  rule: {thresholds: {act: 0.4}}\n"),
        ("properties: {}\n", "properties: {rule: {thresholds: {act: 0.4}}}\n"),
        (
            "properties: {rule: {thresholds: {act: null}}}",
            "properties: {rule: {thresholds: {act: 0.4}}}",
        ),
        (
            "properties:\n  rule:\n    description: |\n      text\n      more\nmode: observe\n",
            "properties:\n  rule:\n    description: |\n      text\n      more\n"
            "    thresholds: {act: 0.4}\nmode: observe\n",
        ),
        (
            "properties:\r\n  rule:\r\n    formula: p\r\nmode: observe\r\n",
            "properties:\r\n  rule:\r\n    formula: p\r\n    thresholds: {act: 0.4}\r\n"
            "mode: observe\r\n",
        ),
        (
            "properties:\n  rule:\n    escalation:\n    - {after: 2}\n    - after: 3 # s\n"
            "  b: {}\n",
            "properties:\n  rule:\n    escalation:\n    - {after: 2}\n    - after: 3 # s\n"
            "    thresholds: {act: 0.4}\n  b: {}\n",
        ),
        (
            'properties: {rule: {formula: "ü🚗", thresholds: {act: 0.5}}} # ü',
            'properties: {rule: {formula: "ü🚗", thresholds: {act: 0.4}}} # ü',
        ),
    ],
)  # fmt: skip
def test_odd_files(tmp_path: Path, text: str, expected: str) -> None:
    assert edit(tmp_path, text, rule(act=0.4)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a: &t {act: 0.5}\nproperties: {rule: {thresholds: *t}}\n",
        "properties:\n  rule: {thresholds: &t {act: 0.5}}\n  b: {thresholds: *t}\n",
        "properties:\n  b: &b {thresholds: {act: 0.5}}\n  rule: *b\n",
    ],
)
def test_what_is_shared_is_not_changed(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"rule\.thresholds\.act: cannot be changed alone"):
        edit(tmp_path, text, rule(act=0.4))


def test_merged_keys_are_overridden(tmp_path: Path) -> None:
    text = "b: &b {thresholds: {act: 0.5}}\nproperties:\n  rule:\n    <<: *b\n    formula: p\n"
    after = edit(tmp_path, text, rule(act=0.4))
    assert after == text + "    thresholds: {act: 0.4}\n"


def test_what_is_no_number_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a mapping"):
        edit(tmp_path, "properties: {rule: {thresholds: {act: {}}}}", rule(act=0.4))
    with pytest.raises(ConfigError, match=r"properties\.rule: is a list \(accepted: a number\)"):
        edit(tmp_path, "properties:\n  rule:\n  - {thresholds: {act: 0.3}}\n", rule(act=0.4))


def test_small_numbers_stay_numbers(tmp_path: Path) -> None:
    after = edit(tmp_path, "properties: {rule: {thresholds: {act: 0.5}}}", rule(act=1e-05))
    assert "act: 0.00001}" in after


@pytest.mark.parametrize(
    ("name", "chosen"),
    [("demo.yaml", "collision"), ("autoware.yaml", "slow_for_people")],
)
def test_shipped_files_change_in_the_thresholds_only(
    repository: Path, tmp_path: Path, name: str, chosen: str
) -> None:
    path = repository / "config" / name
    values = {
        ("properties", chosen, "thresholds", key): value
        for key, value in {"warn": 0.123, "act": 0.321, "release": 0.0123}.items()
    }
    before, after = edited(path, {**values, ("properties", chosen, "enter"): 7})
    changed = difference(path, before, after).splitlines()[2:]
    assert [line[:1] for line in changed if line[:1] in "+-"] == ["-", "-", "+", "+"]
    copied = tmp_path / name
    copied.write_text(after)
    section = load_spec(copied).properties[chosen]
    assert (section.thresholds.act, section.thresholds.release, section.enter) == (0.321, 0.0123, 7)
    assert edited(copied, values)[1] == after


def test_thresholds_of_a_fragment_are_overridden_where_it_is_included(tmp_path: Path) -> None:
    fragment = tmp_path / "laws.yaml"
    fragment.write_text(
        "properties:\n  rule:\n    formula: always(not close)\n    horizon: 4.0\n"
        "    thresholds: {warn: 0.3, act: 0.6, release: 0.2}\n"
    )
    top = tmp_path / "monitor.yaml"
    top.write_text(
        "version: 1\nrate: 10\ninclude: [laws.yaml]  # the law\nsignals:\n  gap: {timeout: 1.0}\n"
        "predicates:\n  close: gap < 1\n"
    )
    before = fragment.read_text()
    _, after = edited(top, rule(warn=0.2, act=0.4, release=0.1))
    top.write_text(after)
    assert fragment.read_text() == before
    section = load_spec(top).properties["rule"]
    assert (section.formula, section.horizon) == ("always(not close)", 4.0)
    assert section.thresholds.model_dump(exclude_none=True) == {
        "warn": 0.2, "act": 0.4, "release": 0.1,
    }  # fmt: skip


names = st.sampled_from(["rule", "other", "thresholds", "act", "warn", "formula"])
scalars = st.sampled_from([0.5, 1, "text", "a: b", None, True, "line\nline\n", [1, {"act": 2}], []])
trees: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=12
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(names, trees, min_size=1),
    st.lists(names, min_size=1, max_size=4),
    st.sampled_from([0.25, 3, 0.00001]),
    st.sampled_from([True, False, None]),
    st.sampled_from([2, 4]),
)
def test_any_file_differs_in_the_value_alone(
    tmp_path: Path, data: dict[str, Any], keys: list[str], value: float, flow: bool, indent: int
) -> None:
    text = yaml.safe_dump(data, default_flow_style=flow, indent=indent, sort_keys=False)
    place: Any = data
    listed = False
    for key in keys:
        place = place.get(key) if isinstance(place, dict) else None
        listed |= isinstance(place, list)
    if isinstance(place, dict) or listed:
        return  # refused, see above
    if "&id" in text:
        return
    after = edit(tmp_path, text, {tuple(keys): value})
    found: Any = yaml.safe_load(after)
    for key in keys:
        found = found[key]
    assert found == value
