"""What a node offers to an actuator, without middleware: each message arrives while it is sent.

The message classes have the names and fields of `tests/interfaces`. That the same goes over real
topics is for tests/actuators.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from builtin_interfaces.msg import Time
from std_msgs.msg import Header

INTERFACES = Path(__file__).with_name("interfaces")
DEFAULTS: dict[str, Callable[[], Any]] = {
    "bool": bool,
    "string": str,
    "float32": float,
    "float64": float,
    "uint16": int,
    "builtin_interfaces/Time": Time,
    "std_msgs/Header": Header,
}


class Message:
    """A message: fields by name; whoever writes one that does not exist gets an error."""

    fields: dict[str, Callable[[], Any]]

    def __init__(self, **given: Any) -> None:
        for name, default in self.fields.items():
            super().__setattr__(name, default())
        for name, value in given.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        assert name in self.fields, f"{type(self).__name__} has no field {name}"
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self)})"


def message_class(name: str, text: str) -> type[Message]:
    """Return the class of a definition."""
    fields: dict[str, Callable[[], Any]] = {}
    constants: dict[str, int] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        kind, field, *rest = line.split()
        if rest[:1] == ["="]:
            constants[field] = int(rest[1])
        else:
            fields[field] = DEFAULTS.get(kind) or known(*kind.split("/"))
    return type(name, (Message,), {"fields": fields, **constants})


def known(package: str, name: str) -> type[Message]:
    """Return the class of a message in `tests/interfaces`, always the same."""
    if (package, name) not in _CLASSES:
        text = (INTERFACES / package / "msg" / f"{name}.msg").read_text()
        _CLASSES[package, name] = message_class(name, text)
    return _CLASSES[package, name]


_CLASSES: dict[tuple[str, str], type[Message]] = {}


def _service(package: str, path: Path) -> Any:
    request, response = path.read_text().split("---")
    return SimpleNamespace(
        Request=message_class("Request", request), Response=message_class("Response", response)
    )


def modules() -> Iterator[tuple[str, ModuleType]]:
    """Yield the modules of the packages in `tests/interfaces`, as if they were installed."""
    for folder in sorted(INTERFACES.glob("*/*")):
        if folder.name in ("msg", "srv"):
            package = folder.parent.name
            found = ModuleType(f"{package}.{folder.name}")
            for path in folder.iterdir():
                made = _service(package, path) if folder.name == "srv" else None
                setattr(found, path.stem, made or known(package, path.stem))
            yield found.__name__, found


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the message types of the planners be found."""
    for name, module in modules():
        monkeypatch.setitem(sys.modules, name, module)
