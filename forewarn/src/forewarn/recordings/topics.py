"""From the channels of a bag to its topics, and to what decodes their messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from forewarn.errors import ForewarnError, plural
from forewarn.messages.definitions import (
    MessageType,
    installed_message_type,
    message_type,
    normal_type_name,
)
from forewarn.messages.foreign import foreign_type, json_type
from forewarn.messages.schema import ArrayOf, FieldType, Primitive, Struct
from forewarn.recordings.interface import Channel, TopicInfo
from forewarn.recordings.ros1 import ConversionError, Ros1Type, ros1_type

SERIALIZATIONS = ("cdr", "ros1", "json", "protobuf")


class UnusableTopicError(Exception):
    """A topic cannot be decoded; the text says why."""


class Topics(Mapping[str, TopicInfo]):
    """The topics of a bag; each is looked into when it is first asked for.

    A definition takes milliseconds to parse, a bag may have hundreds, and a monitor reads few.

    `channels`: all channels of all files.
    `warn`: called with what was worked around.
    """

    def __init__(self, channels: Sequence[Channel], warn: Callable[[str], None]) -> None:
        self._channels: dict[str, list[Channel]] = {}
        for channel in channels:
            self._channels.setdefault(channel.topic, []).append(channel)
        self._known: dict[str, TopicInfo] = {}
        self._warn = warn

    def __getitem__(self, topic: str) -> TopicInfo:
        """Return what is known of `topic`."""
        if topic not in self._known:
            self._known[topic] = self._describe(topic)
        return self._known[topic]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the topic names in the order of the file."""
        return iter(self._channels)

    def __len__(self) -> int:
        """Return the number of topics."""
        return len(self._channels)

    def __contains__(self, topic: object) -> bool:
        """Tell whether there is such a topic, without looking into it."""
        return topic in self._channels

    def usable(self, topic: str) -> str | None:
        """Return why the messages of `topic` cannot be read, or None if they can."""
        try:
            channel = _the_channel(self._channels[topic])
            if channel.serialization == "ros1":
                _ros1(channel)
        except UnusableTopicError as error:
            return str(error)
        return None

    def converter(self, topic: str) -> Ros1Type | None:
        """Return the conversion from ROS 1, if `topic` needs one; it has to be usable."""
        channel = _the_channel(self._channels[topic])
        return _ros1(channel) if channel.serialization == "ros1" else None

    def _describe(self, topic: str) -> TopicInfo:
        channels = self._channels[topic]
        used = [channel for channel in channels if channel.count] or channels
        name = max(used, key=lambda channel: channel.count).msgtype
        count = sum(channel.count for channel in channels)
        try:
            decoder = self._decoder(topic, _the_channel(channels))
        except UnusableTopicError as error:
            return TopicInfo(topic, normal_type_name(name), count, None, str(error))
        return TopicInfo(topic, normal_type_name(name), count, decoder, None)

    def _decoder(self, topic: str, channel: Channel) -> MessageType:
        name = normal_type_name(channel.msgtype)
        if channel.serialization != "cdr" or channel.definition.strip():
            return _defined(channel)
        try:
            decoder = installed_message_type(name)
        except ForewarnError as error:
            raise UnusableTopicError(
                f"the recording holds no definition of {name or 'its type'}, and {error}"
            ) from error
        self._warn(
            f"topic {topic}: the recording holds no definition of {name}; the installed one is used"
        )
        return decoder


def _the_channel(channels: Sequence[Channel]) -> Channel:
    """Return one channel that stands for all of a topic, or say why none can."""
    used = [channel for channel in channels if channel.count] or list(channels)
    types: dict[str, int] = {}
    for channel in used:
        types[channel.msgtype] = types.get(channel.msgtype, 0) + channel.count
    if len(types) > 1:
        found = ", ".join(f"{name} ({plural(count, 'message')})" for name, count in types.items())
        raise UnusableTopicError(
            f"it is recorded with {len(types)} types: {found} (accepted: one type for each topic)"
        )
    serializations = {channel.serialization for channel in used}
    if len(serializations) > 1 or not serializations <= set(SERIALIZATIONS):
        found = ", ".join(repr(serialization) for serialization in sorted(serializations))
        raise UnusableTopicError(
            f"its messages are serialized as {found} (accepted: {' or '.join(SERIALIZATIONS)})"
        )
    defined = [channel for channel in used if channel.definition.strip()]
    for other in defined[1:]:
        if not _same_layout(defined[0], other):
            raise UnusableTopicError(_two_definitions(defined[0], other))
    return defined[0] if defined else used[0]


def _same_layout(one: Channel, other: Channel) -> bool:
    """Tell whether two definitions say the same, be it in other words."""
    if (one.definition, one.encoding) == (other.definition, other.encoding):
        return True
    try:
        return _layout(_defined(one).struct) == _layout(_defined(other).struct)
    except UnusableTopicError:
        return False


def _layout(part: FieldType) -> object:
    """Return what decoding and constants depend on, for comparison."""
    if isinstance(part, Struct):
        fields = [(name, _layout(member)) for name, member in part.fields.items()]
        return part.name, fields, sorted(part.constants.items())
    if isinstance(part, Primitive):
        return part.name
    size = part.length if isinstance(part, ArrayOf) else -1
    return size, _layout(part.element)


def _two_definitions(one: Channel, other: Channel) -> str:
    where = f", in {one.file} and in {other.file}" if one.file != other.file else ""
    accepted = "one definition"
    if where:
        accepted += ": read the files one by one"
    return f"it is recorded with two definitions of {one.msgtype}{where} (accepted: {accepted})"


def _defined(channel: Channel) -> MessageType:
    """Return the type as the recording defines it."""
    name = normal_type_name(channel.msgtype)
    if channel.serialization == "ros1":
        return _parsed(name, _ros1(channel).definition, "ros2msg")
    if channel.serialization == "cdr":
        return _parsed(name, channel.definition, channel.encoding)
    found = _foreign(name, channel.serialization, channel.definition)
    if isinstance(found, str):
        raise UnusableTopicError(found)
    return found


@lru_cache(maxsize=512)
def _foreign(name: str, serialization: str, definition: str) -> MessageType | str:
    """Return a type of JSON or protobuf; a text says why there is none."""
    if not definition.strip():
        return f"the recording holds no schema of {name or 'its messages'}"
    try:
        if serialization == "json":
            return json_type(name, definition)
        found = foreign_type(name, definition.encode("latin-1"))
    except ValueError as error:
        return f"the schema of {name} in the recording cannot be used: {error}"
    if found is None:
        return "nothing here reads protobuf (accepted: the package apollo_bridge, which does)"
    return found


def _ros1(channel: Channel) -> Ros1Type:
    try:
        return ros1_type(normal_type_name(channel.msgtype), channel.definition)
    except ConversionError as error:
        raise UnusableTopicError(
            f"the definition of {channel.msgtype} in the recording cannot be parsed: {error}"
        ) from error


def _parsed(name: str, definition: str, encoding: str) -> MessageType:
    decoder = _message_type(name, definition, encoding)
    if isinstance(decoder, str):
        raise UnusableTopicError(decoder)
    return decoder


@lru_cache(maxsize=512)
def _message_type(name: str, definition: str, encoding: str) -> MessageType | str:
    """Parse a definition once for all recordings that share it; a text says why it failed."""
    what = f"the definition of {name} in the recording cannot be parsed"
    try:
        return message_type(name, definition, encoding)
    except ForewarnError as error:
        return f"{what}: {error}"
    except Exception as error:  # the parser meets a damaged definition with errors of all kinds
        return f"{what}: {type(error).__name__}: {error}"
