"""YAML files read strictly: bounded in size and depth, no duplicate keys, lines remembered."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from forewarn.errors import ConfigError
from forewarn.files.inputs import open_plain

MAX_BYTES = 1 << 20
MAX_NODES = 20_000
MAX_DEPTH = 40
MAX_DIGITS = 100
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
# Without a fraction and with an exponent, YAML 1.1 sees text and pydantic a number.
NUMBER = re.compile(r"[-+]?(\d+(_\d+)*\.?\d*|\.\d+)([eE][-+]?\d+)?\Z")
# YAML 1.1 reads 010 as 8, 1:30 as 90 and 0b11 as 3: who writes them rarely knows.
OTHER_BASE = re.compile(r"[-+]?(0[0-9_]*[0-9]|0b[01_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)\Z")


@dataclass(frozen=True)
class Document:
    """The data of one YAML file and the line of every key.

    Attributes
    ----------
    data : object
        Plain Python values.
    lines : dict
        Line number (from 1) for each key path, as a tuple of keys and indices.
    parts : tuple of Document
        Fragments that were merged into `data`.
    """

    file: Path | None
    data: Any
    lines: dict[tuple[object, ...], int]
    parts: tuple[Document, ...] = ()

    def locate(self, path: tuple[object, ...]) -> str:
        """Return ``line 7: `` for the nearest known part of `path`, or nothing."""
        known = self._known(path)
        return f"line {self.lines[path[:known]]}: " if known else ""

    def origin(self, path: tuple[object, ...]) -> Document:
        """Return the document that says most about `path`: this one, or a fragment of it."""
        return max((self, *self.parts), key=lambda document: document._known(path))

    def _known(self, path: tuple[object, ...]) -> int:
        return next((n for n in range(len(path), 0, -1) if path[:n] in self.lines), 0)


def load_document(path: Path) -> Document:
    """Read a YAML file; raises ConfigError naming file and position."""
    try:
        with open_plain(path) as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot be read: {error.strerror}", file=path, accepted="a YAML file"
        ) from None
    except ValueError as error:  # a NUL in the name
        raise ConfigError(f"cannot be read: {error}", file=path, accepted="a YAML file") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError("the file is too large", file=path, accepted=f"{MAX_BYTES} bytes")
    try:
        return parse_document(raw.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"byte {error.start} is not UTF-8", file=path, accepted="a UTF-8 text file"
        ) from None


def parse_document(text: str, file: Path | None = None) -> Document:
    """Parse YAML text; raises ConfigError naming file and position."""
    try:
        loader = _Loader(text, file)
        node = loader.get_single_node()
        if node is None:
            raise ConfigError("the file is empty", file=file, accepted="a YAML mapping")
        lines: dict[tuple[object, ...], int] = {}
        budget = iter(range(MAX_NODES))
        _walk(node, (), lines, budget, file)
        return Document(file, loader.construct_document(node), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        position = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        is_tab = "'\\t'" in (error.problem or "")
        problem, accepted = ("a tab", "spaces") if is_tab else (error.problem, "")
        raise ConfigError(
            f"no valid YAML: {problem}", file=file, key=position, accepted=accepted
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"no valid YAML: {error}", file=file) from None
    except (RecursionError, ValueError, OverflowError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(f"no valid YAML: {problem}", file=file) from None


class _Loader(yaml.SafeLoader):
    """Counts while it reads, so that a hostile file is refused before all of it is parsed."""

    def __init__(self, text: str, file: Path | None) -> None:
        super().__init__(text)
        self._file = file
        self._entries = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._entries += 1
        if self._entries > 2 * MAX_NODES or self._depth > MAX_DEPTH:
            raise _too_large(self.get_mark().line, self._file)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _too_large(line: int, file: Path | None) -> ConfigError:
    return ConfigError(
        "the document is too large",
        file=file,
        key=f"line {line + 1}",
        accepted=f"{MAX_NODES} entries after aliases are followed, {MAX_DEPTH} levels",
    )


def _overflows(node: yaml.ScalarNode) -> bool:
    """Tell whether a number, also one that YAML takes for text (1e400), would become infinite."""
    if node.style is not None or not NUMBER.match(node.value):
        return False
    return math.isinf(float(node.value))


def _walk(
    node: yaml.Node,
    path: tuple[object, ...],
    lines: dict[tuple[object, ...], int],
    budget: Iterator[int],
    file: Path | None,
) -> None:
    """Note the line of every key; refuse duplicates, other keys than text, and sizes."""
    if next(budget, None) is None or len(path) > MAX_DEPTH:
        raise _too_large(node.start_mark.line, file)
    if node.tag == "tag:yaml.org,2002:int" and len(node.value) > MAX_DIGITS:
        raise ConfigError(
            f"the whole number {node.value[:20]}... has {len(node.value)} characters",
            file=file,
            key=f"line {node.start_mark.line + 1}",
            accepted=f"at most {MAX_DIGITS}",
        )
    if isinstance(node, yaml.ScalarNode) and _overflows(node):
        raise ConfigError(
            f"the number {node.value[:20]} is too large",
            file=file,
            key=f"line {node.start_mark.line + 1}",
            accepted="below 1.8e308, or .inf where a number may be infinite",
        )
    if node.tag in NUMBERS and OTHER_BASE.match(node.value):
        raise ConfigError(
            f"YAML reads {node.value[:20]} in another base than ten",
            file=file,
            key=f"line {node.start_mark.line + 1}",
            accepted="a number in base ten without zeros before it, or a text in quotes",
        )
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            here = (*path, index)
            lines[here] = child.start_mark.line + 1
            _walk(child, here, lines, budget, file)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, child in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or (
                key.tag != "tag:yaml.org,2002:str" and key.tag != "tag:yaml.org,2002:merge"
            ):
                shown = key.value if isinstance(key, yaml.ScalarNode) else "a list or mapping"
                raise ConfigError(
                    f"the key {shown!r} is not text",
                    file=file,
                    key=f"line {line}",
                    accepted="a name; put on, off, yes, no and numbers in quotes",
                )
            if key.value in seen:
                raise ConfigError(
                    f"the key {key.value!r} is there twice", file=file, key=f"line {line}"
                )
            seen.add(key.value)
            here = (*path, key.value)
            lines[here] = line
            _walk(child, here, lines, budget, file)
