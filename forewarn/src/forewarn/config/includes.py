"""Monitor files that include fragments: rules and traffic laws that ship, or parts of one's own.

A fragment has the sections of a monitor file. What the including file does not use of it is left
out, for every predicate multiplies the states. Where both speak of the same signal or property,
the including file wins, key by key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from forewarn.config.yaml_text import Document, load_document
from forewarn.errors import ConfigError

SECTIONS = ("signals", "predicates", "bins", "terminal", "properties")
MERGED_BY_KEY = ("signals", "properties")
WORD = re.compile(r"[A-Za-z_]\w*")
ACCEPTED = "a file name, or {file: NAME, properties: [NAME, ...]}"
SHIPPED = "rules:"
"""How names of files begin that ship with the library: ``rules:mobile_base``."""
RULES = Path(__file__).with_name("rules")
KINDS = ("mobile_base", "arm", "drone", "car", "agent")
"""Kinds of robots that rules ship for."""
SHIPPED_RULES = (*KINDS, "health")


def with_fragments(document: Document) -> Document:
    """Return a document in which every entry of `include` has been merged.

    Raises
    ------
    ConfigError
        If a fragment cannot be read, has other sections, lacks a property that was asked for, or
        two fragments define one name differently and the including file does not.
    """
    if not isinstance(document.data, dict) or "include" not in document.data:
        return document
    entries = document.data["include"]
    if not isinstance(entries, list):
        raise _error(document, ("include",), f"{entries!r} is no list", f"a list of {ACCEPTED}")
    own = {key: value for key, value in document.data.items() if key != "include"}
    merged: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    fragments = []
    for index, entry in enumerate(entries):
        fragment = _fragment(document, index, entry)
        fragments.append(fragment)
        for section in SECTIONS:
            for name, value in fragment.data.get(section, {}).items():
                _add(merged, section, name, value, own, fragment)
    data: dict[str, Any] = {**own}
    used = _used(merged, own)
    for section, found in merged.items():
        mine = own.get(section) or {}
        kept = {name: value for name, value in found.items() if name in used[section]}
        if not kept and section not in own:
            continue
        if not isinstance(mine, dict):
            continue  # the check of the whole file says what is wrong with it
        data[section] = {**kept, **_overridden(section, kept, mine)}
    return replace(document, data=data, parts=tuple(fragments))


def _fragment(document: Document, index: int, entry: object) -> Document:
    here = ("include", index)
    chosen: object = None
    name = entry
    if isinstance(entry, dict) and set(entry) <= {"file", "properties"}:
        name, chosen = entry.get("file"), entry.get("properties")
    if not isinstance(name, str):
        raise _error(document, here, f"{entry!r} names no file", ACCEPTED)
    fragment = load_document(_path(document, here, name))
    data = fragment.data
    if not isinstance(data, dict):
        raise ConfigError("a fragment is a mapping", file=fragment.file, accepted=_sections())
    for section, content in data.items():
        if section not in SECTIONS or not isinstance(content, dict):
            raise _error(fragment, (section,), "no section of a fragment", _sections())
    if chosen is None:
        return fragment
    properties = data.get("properties", {})
    if not isinstance(chosen, list):
        raise _error(document, here, f"{chosen!r} is no list of properties", ACCEPTED)
    for wanted in chosen:
        if wanted not in properties:
            raise _error(
                document, here, f"{wanted!r} is no property of {name}", ", ".join(properties)
            )
    selected = {wanted: properties[wanted] for wanted in chosen}
    return replace(fragment, data={**data, "properties": selected})


def _path(document: Document, here: tuple[object, ...], name: str) -> Path:
    if not name.startswith(SHIPPED):
        base = document.file.parent if document.file else Path()
        return base / Path(name).expanduser()
    kind = name.removeprefix(SHIPPED)
    if kind not in SHIPPED_RULES:
        raise _error(
            document,
            here,
            f"no rules for {kind!r} ship",
            ", ".join(SHIPPED + k for k in SHIPPED_RULES),
        )
    return RULES / f"{kind}.yaml"


def _sections() -> str:
    return "mappings named " + ", ".join(SECTIONS)


def _error(
    document: Document, path: tuple[object, ...], problem: str, accepted: str
) -> ConfigError:
    key = str(path[0]) + "".join(f"[{part}]" for part in path[1:])
    return ConfigError(
        problem, file=document.file, key=document.locate(path) + key, accepted=accepted
    )


def _add(
    merged: dict[str, dict[str, Any]],
    section: str,
    name: str,
    value: Any,
    own: Mapping[str, Any],
    fragment: Document,
) -> None:
    before = merged[section].setdefault(name, value)
    mine = own.get(section)
    if section == "signals":
        return  # fragments only say what they need; the including file gives the source
    if before != value and not (isinstance(mine, dict) and name in mine):
        raise _error(
            fragment,
            (section, name),
            f"{section}.{name} is {value!r} here and {before!r} in a fragment before",
            "equal definitions, or one of your own in the including file",
        )


def _overridden(section: str, kept: Mapping[str, Any], mine: Mapping[str, Any]) -> dict[str, Any]:
    if section not in MERGED_BY_KEY:
        return dict(mine)
    return {
        name: {**kept[name], **value}
        if isinstance(value, dict) and isinstance(kept.get(name), dict)
        else value
        for name, value in mine.items()
    }


def _used(merged: Mapping[str, Mapping[str, Any]], own: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return the names of each section that properties or the including file refer to."""
    words = set(_words(own.values())) | set(_words(merged["properties"].values()))
    found: dict[str, set[str]] = {section: set() for section in SECTIONS}
    found["properties"] = set(merged["properties"])
    grown = True
    while grown:
        grown = False
        for section in ("predicates", "terminal", "bins", "signals"):
            for name, value in merged[section].items():
                if name in words and name not in found[section]:
                    found[section].add(name)
                    words |= set(_words([value]))
                    grown = True
    return found


def _words(values: Iterable[Any]) -> Iterable[str]:
    """Yield every word in the expressions of nested values, and every key."""
    for value in values:
        if isinstance(value, str):
            yield from WORD.findall(value)
        elif isinstance(value, Mapping):
            yield from (key for key in value if isinstance(key, str))
            texts = {k: v for k, v in value.items() if k not in ("description", "source", "unit")}
            yield from _words(texts.values())
        elif isinstance(value, list | tuple):
            yield from _words(value)
