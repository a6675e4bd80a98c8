"""Writes the pages of docs/reference from the code: what can be read from it is written once.

`make docs` runs it. The command line comes from its parsers, the tables of the monitor file from
the sections that check it, topics, services and parameters from the node.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo
from reference_node import page as node_page

import forewarn.wings.trees.abstraction  # noqa: F401 (it brings its section along)
from forewarn.cli.reference import reference as command_line
from forewarn.config.fields import LARGEST, Section, WingSection, byte_count, size_text
from forewarn.config.signals import _expression
from forewarn.registry import WINGS, section_of_wing

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
TABLE = re.compile(r"(?P<begin><!-- keys of (?P<name>\w+) -->\n).*?(?=<!-- end -->)", re.S)
ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*) : .*\n(?P<text>(?:(?: {4}.*)?\n)+)", re.M)
MORE = {
    "MonitorSpec.clock": "../howto/steps.md",
    "MonitorSpec.states": "#states",
    "MonitorSpec.trajectories": "#trajectories",
    "MonitorSpec.signals": "#signals",
    "MonitorSpec.shapes": "#shapes",
    "MonitorSpec.predicates": "../expressions.md",
    "MonitorSpec.learned_score": "#learned_score",
    "MonitorSpec.observation_error": "#observation_error",
    "MonitorSpec.constraints": "#constraints",
    "MonitorSpec.properties": "#properties",
    "MonitorSpec.learning": "#learning",
    "MonitorSpec.bounds": "#bounds",
    "MonitorSpec.shield": "#shield",
    "MonitorSpec.anomaly": "#anomaly",
    "MonitorSpec.guards": "#guards",
    "MonitorSpec.black_box": "#black_box",
    "MonitorSpec.actuators": "#actuators",
    "SignalSpec.topic": "#guards",
    "SignalSpec.frame": "#poses-of-frames",
    "SignalSpec.value": "../expressions.md",
    "SignalSpec.where": "#topics-with-several-publishers",
    "SignalSpec.within": "#events-shorter-than-a-tick",
    "SignalSpec.timeout": "../design/clock.md#ages",
    "SignalSpec.rules": "../howto/plans.md#what-a-rule-may-say",
    "PropertySpec.formula": "../properties.md",
    "PropertySpec.risk_measure": "#observation_error",
    "PropertySpec.estimator": "../howto/tuning.md#which-estimate-of-the-risk",
    "PropertySpec.scores": "#learned_score",
    "PropertySpec.hold_while": "../howto/interventions.md#a-stop-that-changes-its-own-risk",
    "PropertySpec.intervention": "../howto/guard.md",
    "LearningSpec.regrow": "#a-tree-that-is-grown-again",
    "LearningSpec.calibration": "../howto/tuning.md",
    "AnomalySpec.file": "cli.md#anomalies",
    "BoundsSpec.kind": "../design/bounds.md",
    "TwistSpec.escape": "../howto/interventions.md#a-way-out-of-a-stop",
}
"""Where a page says more about a key."""


def main() -> int:
    """Write what has changed, and say which pages that were."""
    for path, text in written().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"written from the code: {path.relative_to(ROOT)}")
    return 0


def written() -> dict[Path, str]:
    """Return each page and what it should say."""
    monitor_file = PAGES / "monitor-file.md"
    return {
        PAGES / "cli.md": command_line(),
        monitor_file: with_tables(monitor_file.read_text(encoding="utf-8")),
        PAGES / "node.md": node_page(),
    }


def sections() -> dict[str, type[BaseModel]]:
    """Return the sections of a monitor file by the names of their classes."""
    for wing in WINGS.values():
        for key in wing.sections:
            section_of_wing(key)  # its module is imported
    found = [Section]
    for section in found:
        found += section.__subclasses__()
    return {section.__name__: section for section in found}


def with_tables(text: str) -> str:
    """Return a page with each table of keys written anew."""
    known = sections()
    return TABLE.sub(lambda found: found["begin"] + table(known[found["name"]]), text)


def table(section: type[BaseModel]) -> str:
    """Return the keys of a section as a list: default, what is accepted, and what it means."""
    rows = [""]
    for names, text in attributes(section):
        fields = [section.model_fields[name] for name in names]
        keys = [f"`{field.alias or name}`" for name, field in zip(names, fields, strict=True)]
        defaults = once([default(field) for field in fields])
        kinds = once([accepted(field.annotation, field.metadata) for field in fields])
        more = MORE.get(f"{section.__name__}.{names[0]}")
        text += f" [More]({more})." if more else ""
        given = "; ".join(part for part in (kinds, said_default(defaults)) if part)
        rows.append(f"- **{', '.join(keys)}** ({given}): {text}")
    return "\n".join([*rows, "", ""])


def attributes(section: type[BaseModel]) -> Iterator[tuple[list[str], str]]:
    """Yield what the docstring of a section says about its keys: all of them, or it is an error."""
    _, _, described = (inspect.getdoc(section) or "").partition("Attributes\n----------\n")
    left = set(section.model_fields) - {"file"}
    for entry in ENTRY.finditer(described + "\n"):
        names = entry["names"].split(", ")
        left -= set(names)
        if names == ["others"]:  # no key of its own: what other packages name
            continue
        yield names, markdown(" ".join(entry["text"].split()))
    if left:
        raise SystemExit(f"{section.__name__}: its docstring does not tell of {sorted(left)}")


def markdown(text: str) -> str:
    """Return a text of a docstring as Markdown."""
    return text.replace("``", "`")


def once(cells: list[str]) -> str:
    """Return the cells of several keys, or one if they are the same."""
    return cells[0] if len(set(cells)) == 1 else ", ".join(cells)


def said_default(value: str) -> str:
    """Return the words about a default, none if there is nothing to say."""
    if value == "none" or value.startswith("its"):
        return ""
    return value if value == "required" else f"default {value}"


def default(field: FieldInfo) -> str:
    """Return the value that a key has where it is not given, as a monitor file would say it."""
    value = field.default
    if field.is_required():
        return "required"
    if value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, BaseModel):
        given = [f"{key}: {plain(one)}" for key, one in value if one not in (None, {})]
        return f"`{{{', '.join(given)}}}`" if 0 < len(given) <= 2 else "its defaults"
    checks = validators(field.metadata)
    if value == math.inf:
        return f"`{next(check.word for check in checks if hasattr(check, 'word'))}`"
    return f"`{size_text(value) if byte_count in checks else plain(value)}`"


def plain(value: Any) -> str:
    """Return a value in YAML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(plain, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def accepted(kind: Any, metadata: Sequence[Any] = ()) -> str:
    """Return in words what a type of Python, with what is checked besides, accepts."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return accepted(parts[0], [*parts[1:], *metadata])
    if origin in (Union, UnionType):
        kinds = [accepted(part, metadata) for part in parts if part is not type(None)]
        return " or ".join(dict.fromkeys(kinds))
    if origin is Literal:
        return ", ".join(f"`{plain(part)}`" for part in parts)
    if origin in (tuple, list):
        inner = accepted(parts[0])
        return f"list of {inner}" if origin is list or Ellipsis in parts else f"pair of {inner}"
    if origin is dict:
        return f"names, each with {accepted(parts[1])}"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "mapping"
    return simple(kind, metadata)


def simple(kind: Any, metadata: Sequence[Any]) -> str:
    """Return the same for what has no parts."""
    checks = validators(metadata)
    words = [f"`{check.word}`" for check in checks if hasattr(check, "word")]
    if any(isinstance(check, WingSection) for check in checks):
        return "mapping"
    if byte_count in checks:
        return "a size: `500 MB`, `10 GB`"
    if kind is str:
        return "expression" if _expression in checks else "text"
    if kind in (int, float):
        number = "whole number" if kind is int else "number"
        return " or ".join([number + span(metadata), *words])
    return "`true`, `false`" if kind is bool else "any"


def validators(metadata: Sequence[Any]) -> list[Any]:
    """Return the functions that check a value before its type does."""
    return [one.func for one in metadata if isinstance(one, BeforeValidator)]


def span(metadata: Sequence[Any]) -> str:
    """Return the range of a number; what only keeps 64 bits from overflowing is none."""
    low, high = "", ""
    for one in metadata:
        for bound in one.metadata if isinstance(one, FieldInfo) else [one]:
            if isinstance(bound, Ge | Gt):
                low = f"{bound.ge:.10g}" if isinstance(bound, Ge) else f"above {bound.gt:.10g}"
            elif isinstance(bound, Le) and bound.le < LARGEST:
                high = f"{bound.le:.10g}"
            elif isinstance(bound, Lt):
                high = f"below {bound.lt:.10g}"
    if low and high:
        return f", {low} to {high}"
    return f" {'' if low.startswith('above') else 'from '}{low}" if low else high and f" to {high}"


if __name__ == "__main__":
    sys.exit(main())
