"""Protobuf messages as Forewarn's expressions see them.

Presence follows what Apollo's own C++ modules read, but for one thing: an unset scalar gives its
declared default, else zero; an unset message has no values at all (C++ would read zeros). Whether
a field is set is asked with ``has(field)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from forewarn.expressions.values import Record, vector
from forewarn.messages.foreign import Absent, ForeignType
from forewarn.messages.schema import PRESENCE, FieldType, Primitive, SequenceOf, Struct

ENCODING = "protobuf"
# Where protobuf has no compiled part, damaged text raises Python's own error.
DAMAGE = (DecodeError, UnicodeDecodeError)
_NAMES = {
    FieldDescriptor.CPPTYPE_INT32: "int32",
    FieldDescriptor.CPPTYPE_INT64: "int64",
    FieldDescriptor.CPPTYPE_UINT32: "uint32",
    FieldDescriptor.CPPTYPE_UINT64: "uint64",
    FieldDescriptor.CPPTYPE_DOUBLE: "float64",
    FieldDescriptor.CPPTYPE_FLOAT: "float32",
    FieldDescriptor.CPPTYPE_BOOL: "bool",
    FieldDescriptor.CPPTYPE_ENUM: "int32",
    FieldDescriptor.CPPTYPE_STRING: "string",
}


def text(value: str | bytes) -> str:
    """Return a field of text, which protobuf gives as bytes where it is not valid UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


class SchemaError(ValueError):
    """Descriptors are damaged, incomplete or contradict each other."""


def described(schema: bytes) -> list[descriptor_pb2.FileDescriptorProto]:
    """Return the files of a FileDescriptorSet, as MCAP keeps it; raises SchemaError."""
    try:
        return list(descriptor_pb2.FileDescriptorSet.FromString(schema).file)
    except DAMAGE as error:
        raise SchemaError(f"the schema is no FileDescriptorSet: {error}") from error


class Pool:
    """The descriptors of one source: a channel of a file, or of a running Apollo.

    Versions of Apollo give one file name different contents, so that no two sources may share a
    pool.

    `files`: in any order; dependencies must be among them.
    """

    def __init__(self, files: Iterable[descriptor_pb2.FileDescriptorProto]) -> None:
        self.files = {file.name: file for file in files}
        self._pool = descriptor_pool.DescriptorPool()
        self._added: set[str] = set()
        for name in self.files:
            self._add(name, ())

    def _add(self, name: str, above: tuple[str, ...]) -> None:
        if name in self._added:
            return
        if name not in self.files:
            raise SchemaError(f"the descriptor of {name}, which {above[-1]} imports, is missing")
        if name in above:
            raise SchemaError(f"{name} imports itself")
        for dependency in self.files[name].dependency:
            self._add(dependency, (*above, name))
        try:
            self._pool.Add(self.files[name])
            self._pool.FindFileByName(name)
        except (TypeError, KeyError) as error:
            raise SchemaError(f"the descriptor of {name} is not valid: {error}") from error
        self._added.add(name)

    def descriptor(self, name: str) -> Descriptor:
        """Return the descriptor of a message; raises SchemaError if there is none."""
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError as error:
            raise SchemaError(f"the descriptors do not define {name}") from error

    def message_class(self, name: str) -> Any:
        """Return the class of a message; raises SchemaError if there is none."""
        descriptor = self.descriptor(name)
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        return message_factory.MessageFactory(self._pool).GetPrototype(descriptor)

    def message_type(self, name: str) -> ForeignType:
        """Return what Forewarn needs to know of a message; raises SchemaError."""
        message_class = self.message_class(name)

        def open_message(data: bytes | memoryview) -> Record:
            try:
                return Message(message_class.FromString(bytes(data)))
            except DAMAGE as error:
                raise ValueError(str(error)) from error

        return ForeignType(
            name=name,
            types={},
            layout=struct_of(message_class.DESCRIPTOR),
            open=open_message,
            encoding=ENCODING,
            definition=self.definition(),
        )

    def definition(self) -> bytes:
        """Return all files as a FileDescriptorSet, dependencies first."""
        ordered = [self.files[name] for name in self._in_order(self.files)]
        whole = descriptor_pb2.FileDescriptorSet(file=ordered)
        return bytes(whole.SerializeToString(deterministic=True))

    def needed(self, message: str) -> list[str]:
        """Return the names of the files that define a message, dependencies first."""
        return list(self._in_order([self.descriptor(message).file.name]))

    def _in_order(self, roots: Iterable[str]) -> Iterator[str]:
        done: set[str] = set()

        def visit(name: str) -> Iterator[str]:
            if name not in done:
                done.add(name)
                for dependency in self.files[name].dependency:
                    yield from visit(dependency)
                yield name

        for name in roots:
            yield from visit(name)


class Message(Record):
    """A protobuf message inside an evaluation."""

    __slots__ = ("message",)

    def __init__(self, message: Any) -> None:
        self.message = message

    def field(self, name: str) -> Any:
        """Return a field; `Absent` for a message that is not set."""
        if name.startswith(PRESENCE):
            return self._has(name[len(PRESENCE) :])
        value = getattr(self.message, name)
        kind = type(value)
        if kind is float or kind is int or kind is bool or kind is str:
            return value
        if kind is bytes:
            return text(value)
        field = self.message.DESCRIPTOR.fields_by_name[name]
        if _is_list(field):
            if field.message_type is not None:
                if field.message_type.GetOptions().map_entry:
                    return [Entry(key, value[key]) for key in sorted(value)]
                return [Message(element) for element in value]
            return vector(
                [text(element) if type(element) is bytes else element for element in value]
            )
        return Message(value) if self.message.HasField(name) else Missing(field.message_type)

    def _has(self, name: str) -> bool:
        field = self.message.DESCRIPTOR.fields_by_name[name]
        if _is_list(field):
            return len(getattr(self.message, name)) > 0
        try:
            return bool(self.message.HasField(name))
        except ValueError:  # proto3: a scalar that is its default was not sent
            return bool(getattr(self.message, name) != field.default_value)


class Entry(Record):
    """An entry of a map field, in the order of the keys."""

    __slots__ = ("key", "value")

    def __init__(self, key: Any, value: Any) -> None:
        self.key = key
        self.value = value

    def field(self, name: str) -> Any:
        """Return key or value; both are always set."""
        if name.startswith(PRESENCE):
            return True
        if name == "key":
            return self.key
        return Message(self.value) if hasattr(self.value, "DESCRIPTOR") else self.value


class Missing(Absent):
    """A protobuf message that is not set, and with it all that would be in it."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor

    def field(self, name: str) -> Any:
        """Return unknown, a missing message, or False for the presence of a field."""
        field = self.descriptor.fields_by_name.get(name)
        if field is not None and field.message_type is not None and not _is_list(field):
            return Missing(field.message_type)
        return super().field(name)


def _is_list(field: FieldDescriptor) -> bool:
    # `label` goes away in protobuf 7, `is_repeated` is not there before 5.
    repeated = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if repeated is None else bool(repeated)


class _Fields(Mapping[str, FieldType]):
    """Fields of a message; their layouts are built when they are looked at, for types may nest."""

    def __init__(self, descriptor: Descriptor, structs: dict[str, Struct]) -> None:
        self._fields = {f.name: f for f in descriptor.fields if f.type != f.TYPE_BYTES}
        self._structs = structs

    def __getitem__(self, name: str) -> FieldType:
        field = self._fields[name]
        inner: FieldType
        if field.message_type is not None:
            inner = _struct(field.message_type, self._structs)
        else:
            inner = Primitive(_NAMES[field.cpp_type])
        return SequenceOf(inner, 0) if _is_list(field) else inner

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __contains__(self, name: object) -> bool:
        return name in self._fields


def struct_of(descriptor: Descriptor) -> Struct:
    """Return the layout of a message.

    The constants of the message itself are the values of all enumerations that can be reached
    from it; names that stand for different numbers are left out, and read as constants of the
    message whose field has the enumeration (``obstacle.VEHICLE``).
    """
    structs: dict[str, Struct] = {}
    root = _struct(descriptor, structs)
    return Struct(root.name, root.fields, {**_reachable(descriptor), **root.constants}, True)


def _struct(descriptor: Descriptor, structs: dict[str, Struct]) -> Struct:
    name = descriptor.full_name
    if name not in structs:
        own = [*descriptor.enum_types, *(f.enum_type for f in descriptor.fields if f.enum_type)]
        fields = _Fields(descriptor, structs)
        structs[name] = Struct(name, fields, _unambiguous(own), optional=True)
    return structs[name]


def _unambiguous(enums: Iterable[EnumDescriptor]) -> dict[str, int]:
    values: dict[str, float] = {}
    for enum in enums:
        for value in enum.values:
            known = values.setdefault(value.name, value.number)
            values[value.name] = value.number if known == value.number else math.nan
    return {name: int(number) for name, number in values.items() if number == number}


def _reachable(descriptor: Descriptor) -> dict[str, int]:
    seen: dict[str, Descriptor] = {}
    waiting = [descriptor]
    while waiting:
        current = waiting.pop()
        if current.full_name not in seen:
            seen[current.full_name] = current
            waiting += [f.message_type for f in current.fields if f.message_type is not None]
    enums = {
        enum.full_name: enum
        for descriptor in seen.values()
        for enum in (
            *descriptor.enum_types,
            *(f.enum_type for f in descriptor.fields if f.enum_type),
        )
    }
    return _unambiguous(enums.values())
