"""What a node offers to an actuator, without middleware: each message arrives while it is sent.

The message classes have the names and fields of `tests/interfaces`. That the same goes over real
topics is for tests/actuators.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from builtin_interfaces.msg import Time
from rclpy.qos import DurabilityPolicy
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


def _is_latched(qos: Any) -> bool:
    return getattr(qos, "durability", None) == DurabilityPolicy.TRANSIENT_LOCAL


class Switchboard:
    """The topics and services of one domain; stands for the node of an actuator as well.

    Who subscribes late gets what publishers keep for it, with `deliver`. A service that returns
    None does not answer.
    """

    def __init__(self) -> None:
        self.hearers: dict[str, list[Callable[[Any], None]]] = {}
        self.speakers: dict[str, list[Any]] = {}
        self.services: dict[str, Callable[[Any], Any]] = {}
        self._late: list[tuple[str, Callable[[Any], None], Any]] = []

    def create_publisher(self, kind: Any, topic: str, qos: Any) -> Any:
        kept: deque[Any] = deque(maxlen=qos.depth if _is_latched(qos) else 0)

        def publish(message: Any) -> None:
            kept.append(message)
            self.publish(topic, message)

        publisher = SimpleNamespace(
            topic=topic,
            kept=kept,
            publish=publish,
            get_subscription_count=lambda: len(self.hearers.get(topic, [])),
        )
        self.speakers.setdefault(topic, []).append(publisher)
        return publisher

    def create_subscription(
        self, kind: Any, topic: str, hear: Callable[[Any], None], qos: Any, **_: Any
    ) -> Any:
        self.hearers.setdefault(topic, []).append(hear)
        if _is_latched(qos):
            kept = (publisher.kept for publisher in self.speakers.get(topic, []))
            self._late += [(topic, hear, message) for said in kept for message in said]
        return SimpleNamespace(
            topic=topic, hear=hear, get_publisher_count=lambda: len(self.speakers.get(topic, []))
        )

    def create_client(self, kind: Any, name: str) -> Any:
        def call(request: Any) -> Future[Any]:
            answer: Future[Any] = Future()
            if (said := self.services[name](request)) is not None:
                answer.set_result(said)
            return answer

        return SimpleNamespace(
            service_is_ready=lambda: name in self.services,
            call_async=call,
            remove_pending_request=lambda answer: None,
        )

    def destroy_publisher(self, publisher: Any) -> None:
        self.speakers[publisher.topic].remove(publisher)

    def destroy_subscription(self, subscription: Any) -> None:
        self.hearers[subscription.topic].remove(subscription.hear)

    def destroy_client(self, client: Any) -> None:
        pass

    def get_clock(self) -> Any:
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=Time))

    def deliver(self) -> None:
        """Let those that subscribed late hear what was kept for them."""
        late, self._late = self._late, []
        for topic, hear, message in late:
            if hear in self.hearers.get(topic, []):
                hear(message)

    def publish(self, topic: str, message: Any) -> None:
        for hear in list(self.hearers.get(topic, [])):
            hear(message)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the message types of the planners be found."""
    for name, module in modules():
        monkeypatch.setitem(sys.modules, name, module)
