"""Every key of the monitor file stands in a shipped file, and every shipped file is valid."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from forewarn.config.fields import Section
from forewarn.config.file import MonitorSpec, load_spec
from forewarn.logic.specification import compile_spec
from forewarn.wings.trees.abstraction import TreeSection

CONFIG = Path(__file__).parents[3] / "config"
#: Rules about objects and parameters of nodes; fragments are in folders of their own.
NO_MONITOR_FILES = ("monitor.params.yaml", "kitchen_rules.yaml")
FILES = sorted(
    path
    for path in CONFIG.rglob("*.yaml")
    if path.parent.name not in ("laws", "guard") and path.name not in NO_MONITOR_FILES
)
#: What `parse_spec` adds, and sections of other packages.
WITHOUT = {"MonitorSpec.file", "ActuatorsSpec.others", "MonitorSpec.others"}


def keys_of(kind: Any, known: set[type]) -> Iterator[str]:
    """Yield all keys of a section and of the sections within it."""
    if isinstance(kind, type) and issubclass(kind, Section):
        if kind not in known:
            known.add(kind)
            for name, field in kind.model_fields.items():
                yield f"{kind.__name__}.{name}"
                yield from keys_of(field.annotation, known)
        return
    for part in get_args(kind):
        yield from keys_of(part, known)


def given_in(value: Any) -> Iterator[str]:
    """Yield the keys that a section, and those within it, were given."""
    if isinstance(value, Section):
        for name in value.model_fields_set:
            yield f"{type(value).__name__}.{name}"
            yield from given_in(getattr(value, name))
    elif isinstance(value, dict | tuple | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from given_in(part)


@cache
def spec_of(path: Path) -> MonitorSpec:
    return load_spec(path)


#: What needs a map of Apollo's is compiled in `tests/bridge`.
@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name != "apollo.yaml"], ids=lambda path: path.name
)
def test_a_shipped_monitor_file_is_valid(path: Path) -> None:
    assert compile_spec(spec_of(path)).spec.properties


def test_every_key_stands_in_a_shipped_file() -> None:
    given = {key for path in FILES for key in given_in(spec_of(path))}
    trees = (spec_of(path) for path in FILES if spec_of(path).states.kind == "tree")
    given |= {key for spec in trees for key in given_in(spec.states_section(TreeSection))}
    known: set[type] = set()
    wanted = {*keys_of(MonitorSpec, known), *keys_of(TreeSection, known)} - WITHOUT
    assert sorted(wanted - given) == []
