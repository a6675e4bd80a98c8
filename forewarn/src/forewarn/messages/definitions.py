"""Where message definitions come from: installed packages, and recordings that embed them."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from forewarn.errors import located, suggestion
from forewarn.messages.schema import DefinitionError, Struct, build_struct

Types = dict[str, Any]

_SEPARATOR = "=" * 80
_NAME = re.compile(r"^[A-Za-z]\w*(/(msg|srv|action))?/[A-Za-z]\w*$")


@dataclass(frozen=True)
class MessageType:
    """A message type with all the types that it uses.

    `types`: the definitions in the form of ``rosbags.typesys``.
    """

    name: str  # full name, such as ``nav_msgs/msg/Odometry``
    types: Types = field(repr=False, compare=False)

    @cached_property
    def struct(self) -> Struct:
        """The layout."""
        return build_struct(self.name, self.types)

    @cached_property
    def typestore(self) -> Typestore:
        """A ``rosbags`` type store that knows this type, for what this package does not do."""
        store = get_typestore(Stores.EMPTY)
        store.register(self.types)
        return store


def normal_type_name(name: str) -> str:
    """Return ``package/msg/Name`` for ``package/Name``; other names are returned as they are."""
    parts = name.split("/")
    return f"{parts[0]}/msg/{parts[1]}" if len(parts) == 2 else name


def message_type(name: str, definition: str, encoding: str) -> MessageType:
    """Build a message type from a definition that a recording embeds.

    `definition`: the text, followed by those of the types that it uses as rosbag2 and MCAP write
    them, each under a line of 80 ``=`` and a line ``MSG: package/Name`` or ``IDL:
    package/msg/Name``.
    `encoding`: ``ros2msg``, ``ros1msg``, ``ros2idl`` or ``omgidl``.
    Raises DefinitionError if the text cannot be parsed, or does not define all types that are used.
    """
    if not _NAME.match(name):
        raise DefinitionError(f"{name!r} is not a message type", accepted="package/msg/Name")
    name = normal_type_name(name)
    if encoding not in ("ros2msg", "ros1msg", "ros2idl", "omgidl"):
        raise DefinitionError(
            f"the definition of {name} is written in {encoding!r}",
            accepted="ros2msg, ros1msg, ros2idl, omgidl",
        )
    types: Types = {}
    language = "MSG" if encoding.endswith("msg") else "IDL"
    for title, part, text in _sections(name, definition, language):
        types.update(_parse(title, part, text) if part in ("MSG", "IDL") else _whole(title, text))
    if name not in types and name in (made := _made_of_parts(name, types)):
        types.update(made)
        types.update({one: _own_types()[one] for one in _MADE_FROM if one not in types})
    result = MessageType(name, types)
    _ = result.struct
    return result


def _sections(name: str, definition: str, language: str) -> list[tuple[str, str, str]]:
    """Split a bundle into (type name, language, text)."""
    parts = re.split(rf"^{_SEPARATOR}\s*\n", definition.replace("\r\n", "\n"), flags=re.MULTILINE)
    found = [(name, language, parts[0])] if parts[0].strip() or len(parts) == 1 else []
    for part in parts[1:]:
        header, _, text = part.partition("\n")
        kind, _, title = header.strip().partition(": ")
        if kind not in ("MSG", "IDL", "SRV", "ACTION"):
            raise DefinitionError(
                f"the definition of {name} has the line {header!r} after a separator",
                accepted="MSG: package/Name, IDL: package/msg/Name, SRV: package/srv/Name or "
                "ACTION: package/action/Name",
            )
        found.append((normal_type_name(title.strip()), kind, text))
    return found


@lru_cache(maxsize=1024)  # most types use the same few, and most recordings embed the same ones
def _parse(name: str, language: str, text: str) -> Types:
    """Return what a text defines, which is shared: do not change it."""
    try:
        if language == "IDL":
            return dict(get_types_from_idl(text))
        package, _, base = name.split("/")
        types = get_types_from_msg(_plain_strings(text), f"{package}/msg/{base}")
    except Exception as error:  # rosbags raises IndexError, AssertionError and others on odd texts
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise DefinitionError(
            f"the definition of {name} cannot be parsed: {first[:200]}",
            accepted=f"valid {language}",
        ) from error
    constants, fields = next(iter(types.values()))
    return {name: (constants, [(field, _mended(desc)) for field, desc in fields])}


# rosbags' .msg grammar has no wstring; under this name it passes as a type of the same package.
_WIDE = "ForewarnWstring"


def _plain_strings(text: str) -> str:
    return re.sub(r"^(\s*)wstring(<=\d+)?(?=[\s\[])", rf"\1{_WIDE}", text, flags=re.MULTILINE)


def _mended(desc: Any) -> Any:
    """Undo what ``rosbags`` makes of wide strings and of the types of services."""
    node, detail = desc
    if isinstance(detail, str):
        if detail.endswith(f"/{_WIDE}"):
            return Nodetype.BASE, ("wstring", 0)
        return node, re.sub("/(srv|action)/msg/", r"/\1/", detail)
    if isinstance(detail[0], tuple):
        return node, (_mended(detail[0]), detail[1])
    return desc


@lru_cache(maxsize=1)
def _own_types() -> Types:
    """Return the standard types that ``rosbags`` carries along."""
    return dict(get_typestore(Stores.LATEST).fielddefs)


def installed_message_type(name: str) -> MessageType:
    """Build a message type from the files of the installed package that defines it.

    Packages are looked for below ``share`` in each folder of ``AMENT_PREFIX_PATH``, then below the
    prefix of this interpreter. Standard types that are not installed come from ``rosbags``.

    `name`: ``nav_msgs/msg/Odometry``, or ``nav_msgs/Odometry``. Types that belong to a service or
    an action are named as in recordings: ``std_srvs/srv/SetBool_Request``,
    ``nav2_msgs/action/NavigateToPose_FeedbackMessage``.
    Raises DefinitionError if no such type is installed, or its definition cannot be parsed.
    """
    if not isinstance(name, str) or not _NAME.match(name):
        raise DefinitionError(f"{name!r} is not a message type", accepted="package/msg/Name")
    name = normal_type_name(name)
    types: Types = {}
    missing = [name]
    while missing:
        wanted = missing.pop()
        found = _installed(wanted) or (
            {wanted: _own_types()[wanted]} if wanted in _own_types() else None
        )
        if found is None:
            raise _not_installed(wanted, name)
        types.update(found)
        missing += [needed for needed in _used(found) if needed not in types]
    result = MessageType(name, types)
    _ = result.struct
    return result


def prefixes() -> list[Path]:
    """Return the folders in whose ``share`` packages are looked for."""
    listed = [
        Path(part) for part in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if part
    ]
    return list(dict.fromkeys([*listed, Path(sys.prefix)]))


def _used(types: Types) -> list[str]:
    """Return the names of the types that the fields of `types` have."""
    names = []
    for _, fields in types.values():
        for _, (_, detail) in fields:
            inner = (
                detail[0][1]
                if isinstance(detail, tuple) and isinstance(detail[0], tuple)
                else detail
            )
            if isinstance(inner, str):
                names.append(inner)
    return names


def _installed(name: str) -> Types | None:
    package, folder, base = name.split("/")
    for prefix in prefixes():
        share = prefix / "share" / package / folder
        for suffix, language in ((".msg", "MSG"), (".idl", "IDL")):
            file = share / f"{base}{suffix}"
            if file.is_file():
                return _select(name, _parse_file(name, language, file))
        whole = _from_parts(name, share, base)
        if whole is not None:
            return whole
    return None


def _parse_file(name: str, language: str, file: Path) -> Types:
    with located(DefinitionError, file=file):
        return _parse(name, language, file.read_text(encoding="utf-8", errors="replace"))


def _select(name: str, types: Types) -> Types:
    return types if name in types else {name: next(iter(types.values()))} if types else {}


_PARTS = (
    ("not a service definition", ".srv", ("Request", "Response"), "two"),
    ("not an action definition", ".action", ("Goal", "Result", "Feedback"), "three"),
)


def _from_parts(name: str, share: Path, base: str) -> Types | None:
    """Find a part of a service or of an action in its .srv or .action file."""
    stem, _, part = base.rpartition("_")
    for problem, suffix, parts, count in _PARTS:
        file = share / f"{stem}{suffix}"
        if part in parts and file.is_file():
            text = file.read_text(encoding="utf-8", errors="replace")
            texts = re.split(r"^---\s*$", text, flags=re.M)
            if len(texts) != len(parts):
                raise DefinitionError(problem, file=file, accepted=f"{count} parts and '---'")
            return _parse(name, "MSG", texts[parts.index(part)])
    return _generated(name, share, base)


# What the generators of ROS 2 make of each action and service, beside its own parts.
_GENERATED = {
    "_FeedbackMessage": "unique_identifier_msgs/UUID goal_id\n{stem}_Feedback feedback",
    "_SendGoal_Request": "unique_identifier_msgs/UUID goal_id\n{stem}_Goal goal",
    "_SendGoal_Response": "bool accepted\nbuiltin_interfaces/Time stamp",
    "_GetResult_Request": "unique_identifier_msgs/UUID goal_id",
    "_GetResult_Response": "int8 status\n{stem}_Result result",
    "_Event": "service_msgs/ServiceEventInfo info\n"
    "{stem}_Request[<=1] request\n{stem}_Response[<=1] response",
}


_MADE_FROM = (
    "builtin_interfaces/msg/Time",
    "service_msgs/msg/ServiceEventInfo",
    "unique_identifier_msgs/msg/UUID",
)


def _whole(title: str, text: str) -> Types:
    """Return the parts of a service or of an action that a recording embeds as a whole."""
    suffix = ".action" if "/action/" in title else ".srv"
    (parts,) = (parts for _, of, parts, _ in _PARTS if of == suffix)
    texts = re.split(r"^---\s*$", text, flags=re.M)
    if len(texts) != len(parts):
        raise DefinitionError(
            f"the definition of {title} has {len(texts)} parts", accepted=f"{len(parts)} and '---'"
        )
    types: Types = {}
    for part, own in zip(parts, texts, strict=True):
        types.update(_parse(f"{title}_{part}", "MSG", own))
    return types


def _made_of_parts(name: str, types: Types) -> Types:
    """Return what the generators make of the parts that are known; nothing if it is not that."""
    made: Types = {}
    for part in [name, *(f"{name.removesuffix('_Event')}_{part}" for part in _PARTS[0][2])]:
        for ending, text in _GENERATED.items():
            stem = part.removesuffix(ending)
            if stem != part and part not in types:
                made.update(_parse(part, "MSG", text.format(stem=stem) + "\n"))
    return made


def _generated(name: str, share: Path, base: str) -> Types | None:
    """Return a message that ROS 2 generates for an action or service that is installed."""
    for ending, text in _GENERATED.items():
        stem = base.removesuffix(ending)
        own = stem.removesuffix("_SendGoal").removesuffix("_GetResult")
        made_for = [
            share / f"{own}.action",
            *([share / f"{stem}.srv"] if ending == "_Event" else []),
        ]
        if stem != base and any(file.is_file() for file in made_for):
            return _parse(name, "MSG", text.format(stem=f"{name.removesuffix(base)}{stem}") + "\n")
    return None


def _not_installed(wanted: str, name: str) -> DefinitionError:
    package = wanted.split("/")[0]
    known = {own_type for own_type in _own_types() if own_type.startswith(f"{package}/")}
    for prefix in prefixes():
        known.update(
            f"{package}/msg/{file.stem}"
            for file in (prefix / "share" / package / "msg").glob("*.msg")
        )
    use = f" (used by {name})" if wanted != name else ""
    return DefinitionError(
        f"the message type {wanted}{use} is not installed{suggestion(wanted, sorted(known))}",
        accepted="a type whose package is in AMENT_PREFIX_PATH, or a recording that embeds it",
    )
