"""Changing values of a YAML file and nothing else: comments, order, spacing and quotes stay.

Parsing and printing a file loses how it was laid out, aligned columns above all. So the text
is cut at the places the parser reports, and what comes out is parsed again and has to differ in
the values that were asked for, and in nothing more.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from forewarn.cli.output import Output
from forewarn.config.yaml_text import parse_document
from forewarn.errors import ConfigError
from forewarn.files.outputs import write_output

KeyPath = tuple[str, ...]
_DIGESTS = re.compile(r'(?:^[-+ ]    (?:"[0-9a-f]{12}",? ?)+\n)+', re.MULTILINE)
_WEIGHTS = re.compile(r"\[[^][]{200,}\]")
_CONDITION = re.compile(r"^[-+ ] +if: .*$", re.MULTILINE)


def edited(path: Path, values: Mapping[KeyPath, float | int]) -> tuple[str, str]:
    """Return the text of a file before and after some numbers in it were set.

    Parameters
    ----------
    path : Path
        A YAML file whose top level is a mapping.
    values : mapping
        From key paths to numbers. Keys that are missing are added, in the style of what is there.

    Raises
    ------
    ConfigError
        If the file cannot be read, or a value cannot be set without changing another: because it is
        shared by an anchor, say.
    """
    before = text_of(path)
    if not values:
        return before, before
    wanted, after = _unshared(parse_document(before, path).data), before
    for keys, value in values.items():
        after = _with_value(after, keys, value, path)
        _set(wanted, keys, value)
    if parse_document(after, path).data != wanted:
        raise _shared(path, next(iter(values)))
    return before, after


def text_of(path: Path) -> str:
    """Return the text of a monitor file that was read before, with its line ends as they are."""
    return path.read_bytes().decode("utf-8")


def difference(path: Path, before: str, after: str) -> str:
    """Return a unified diff, empty if nothing differs."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{path} (before)", str(path), n=1, lineterm=""
    )
    return "\n".join(lines)


def put(path: Path, before: str, after: str, output: Output, *, write: bool) -> str:
    """Write what a file becomes, or only show how it would differ; return the difference."""
    change = difference(path, before, after)
    if write:
        write_output(path, after)
        output.say(f"written: {path}")
    else:
        output.say(_readable(change))
        output.say("not written: --write does it")
    return change


def _readable(change: str) -> str:
    """Return a difference without what tells a person nothing: digests, and weights of texts."""

    def without(found: re.Match[str]) -> str:
        signs = dict.fromkeys(line[0] for line in found[0].splitlines())
        return "".join(f"{sign}    ...\n" for sign in signs)

    return _CONDITION.sub(lambda found: shortened(found[0]), _DIGESTS.sub(without, change))


def _with_value(text: str, keys: KeyPath, value: float | int, path: Path) -> str:
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    for depth, key in enumerate(keys):
        assert isinstance(node, yaml.MappingNode)
        found = next(((k, v) for k, v in node.value if k.value == key), None)
        if found is None:
            return _insert(text, node, _flow(keys[depth:], value), path, keys)
        name, child = found
        if child.start_mark.index < name.end_mark.index:  # an alias: its value is elsewhere
            raise _shared(path, keys)
        if isinstance(child, yaml.SequenceNode):
            raise _misplaced(path, keys[: depth + 1], "a list")
        if not isinstance(child, yaml.MappingNode):
            return _replace(text, child, keys[depth + 1 :], value)
        node = child
    raise _misplaced(path, keys, "a mapping")


def _misplaced(path: Path, keys: KeyPath, what: str) -> ConfigError:
    return ConfigError(f"is {what}", file=path, key=".".join(keys), accepted="a number")


def _replace(text: str, node: yaml.Node, rest: KeyPath, value: float | int) -> str:
    """Put a number, or a mapping down to it, in the place of a scalar."""
    old = node.value if isinstance(node, yaml.ScalarNode) else ""
    start, end = node.start_mark.index, node.end_mark.index
    if not rest and node.tag.endswith((":float", ":int")) and yaml.safe_load(old) == value:
        return text
    new = f"{{{_flow(rest, value)}}}" if rest else _number(value)
    gap = " " if start == end and text[start - 1] == ":" else ""
    return text[:start] + gap + new + text[end:]


def _insert(text: str, node: yaml.MappingNode, entry: str, path: Path, keys: KeyPath) -> str:
    """Add an entry at the end of a mapping."""
    if not node.value:
        at = node.start_mark.index + 1
        return text[:at] + entry + text[at:]
    first, last = node.value[0][0], node.value[-1]
    end = _end(last[1])
    if end < last[0].end_mark.index:
        raise _shared(path, keys)
    if node.flow_style:
        return f"{text[:end]}, {entry}{text[end:]}"
    line_end = text.find("\n", end)
    if end and text[end - 1] == "\n":  # a block of text ends where the next line begins
        line_end = end - 1
    newline = "\r\n" if text[:line_end].endswith("\r") else "\n"
    line = " " * int(first.start_mark.column) + entry + newline
    if line_end < 0:
        return f"{text}\n{line}"
    return text[: line_end + 1] + line + text[line_end + 1 :]


def _end(node: yaml.Node) -> int:
    """Return where a value ends: a block mapping reaches up to what follows it, comments too."""
    if isinstance(node, (yaml.MappingNode, yaml.SequenceNode)) and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _flow(keys: KeyPath, value: float | int) -> str:
    text = f"{keys[-1]}: {_number(value)}"
    for key in reversed(keys[:-1]):
        text = f"{key}: {{{text}}}"
    return text


def _number(value: float | int) -> str:
    # YAML 1.1 reads 1e-05 as text.
    return format(Decimal(repr(value)), "f")


def _unshared(data: Any) -> Any:
    """Copy data in which anchors made parts the same object."""
    if isinstance(data, dict):
        return {key: _unshared(value) for key, value in data.items()}
    return [_unshared(element) for element in data] if isinstance(data, list) else data


def _set(data: Any, keys: KeyPath, value: float | int) -> None:
    for key in keys[:-1]:
        if not isinstance(data.get(key), dict):
            data[key] = {}
        data = data[key]
    data[keys[-1]] = value


def _shared(path: Path, keys: KeyPath) -> ConfigError:
    return ConfigError(
        "cannot be changed alone: an anchor shares it, or what is around it, with other keys",
        file=path,
        key=".".join(keys),
        accepted="values written out, or a change by hand",
    )


def with_section(path: Path, before: str, key: str, block: str) -> str:
    """Return the text of a file after a section of its top level was replaced.

    Parameters
    ----------
    path : Path
        A YAML file whose top level is a mapping.
    before : str
        Its text.
    key : str
        Name of the section; it is added at the end if it is missing.
    block : str
        The whole section, its key and a last line end included.

    Raises
    ------
    ConfigError
        If something else would change.
    """
    data = _unshared(parse_document(before, path).data)
    node = yaml.compose(before, Loader=yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)
    found = next(((k, v) for k, v in node.value if k.value == key), None)
    if node.flow_style or (found is not None and _end(found[1]) < found[0].end_mark.index):
        raise _shared(path, (key,))
    if found is None:
        after = f"{before}{'' if before.endswith(chr(10)) else chr(10)}{block}"
    else:
        start, end = found[0].start_mark.index, _end(found[1])
        line_end = before.find("\n", max(end - 1, start))
        rest = "" if line_end < 0 else before[line_end + 1 :]
        after = before[:start] + block + rest
    data[key] = parse_document(block, path).data[key]
    if parse_document(after, path).data != data:
        raise _shared(path, (key,))
    return after


def with_predicate(path: Path, before: str, name: str, expression: str, remark: str) -> str:
    """Return the text of a monitor file after a predicate was added or replaced.

    Parameters
    ----------
    path : Path
        The monitor file.
    before : str
        Its text.
    name, expression : str
        The predicate.
    remark : str
        A comment behind it, where the section is no flow mapping.

    Raises
    ------
    ConfigError
        If something else would change.
    """
    data = _unshared(parse_document(before, path).data)
    root = yaml.compose(before, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    section = next((v for k, v in root.value if k.value == "predicates"), None)
    quoted = json.dumps(expression, ensure_ascii=False)
    entry, comment = f"{name}: {quoted}", f"  # {remark}"
    if section is None:
        gap = "" if before.endswith("\n") else "\n"
        after = f"{before}{gap}predicates:\n  {entry}{comment}\n"
    elif not isinstance(section, yaml.MappingNode):
        raise _misplaced(path, ("predicates",), "no mapping")
    else:
        comment = "" if section.flow_style else comment
        old = next((v for k, v in section.value if k.value == name), None)
        if old is None:
            after = _insert(before, section, entry + comment, path, ("predicates", name))
        else:
            line_end = before.find("\n", old.end_mark.index)
            line_end = len(before) if line_end < 0 else line_end
            rest = before[old.end_mark.index : line_end]
            tail = comment if rest.lstrip().startswith("#") or not rest.strip() else rest
            after = before[: old.start_mark.index] + quoted + tail + before[line_end:]
    data.setdefault("predicates", {})[name] = expression
    if parse_document(after, path).data != data:
        raise _shared(path, ("predicates", name))
    return after


def shortened(condition: str) -> str:
    """Return a condition for a table: a long list of weights by their number."""
    return _WEIGHTS.sub(lambda found: f"[{found[0].count(',') + 1} weights]", condition)
