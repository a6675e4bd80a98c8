"""The layouts of Apollo's messages as far as Forewarn itself reads or writes them.

The files in ``protos/`` hold the fields that are the same in Apollo 7 to 11; protobuf skips what
they leave out. They serve where no descriptors come with the data: the sections of a record, a map,
the commands to planning, and a transport that does not tell. Everything else decodes with the
descriptors of the file or the running Apollo.
"""

from __future__ import annotations

import importlib.resources
import re
from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2

from apollo_bridge.messages import Pool, SchemaError
from forewarn.messages import ForeignType

FieldProto = descriptor_pb2.FieldDescriptorProto
_TOKEN = re.compile(r'"[^"]*"|[\w.-]+|[{}=;\[\]]')
_SCALARS = {
    name: getattr(FieldProto, f"TYPE_{name.upper()}")
    for name in ("double", "float", "int32", "int64", "uint32", "uint64", "bool", "string", "bytes")
}


@lru_cache(maxsize=1)
def own_pool() -> Pool:
    """Return the pool of the layouts in ``protos/``."""
    folder = importlib.resources.files("apollo_bridge") / "protos"
    paths = sorted((p for p in folder.iterdir() if p.name.endswith(".proto")), key=lambda p: p.name)
    return Pool(_Parser(path.name, path.read_text(encoding="utf-8")).file() for path in paths)


def own_class(name: str) -> Any:
    """Return the class of a message that the layouts describe, by its full name."""
    return own_pool().message_class(name)


def own_type(name: str) -> ForeignType | None:
    """Return the type of a message that the layouts describe; None for others."""
    try:
        return own_pool().message_type(name)
    except SchemaError:
        return None


class _Parser:
    """Reads the part of the proto2 language that the files in ``protos/`` use."""

    def __init__(self, name: str, text: str) -> None:
        self.result = descriptor_pb2.FileDescriptorProto(name=f"forewarn/{name}", syntax="proto2")
        self.tokens = _TOKEN.findall(re.sub(r"//[^\n]*", "", text))
        self.at = 0

    def take(self, *expected: str) -> str:
        token = self.tokens[self.at]
        if expected and token not in expected:
            raise ValueError(f"{self.result.name}: {token!r} where {expected} is wanted")
        self.at += 1
        return token

    def file(self) -> descriptor_pb2.FileDescriptorProto:
        while self.at < len(self.tokens):
            word = self.take("syntax", "package", "import", "message", "enum")
            if word == "message":
                self.message(self.result.message_type.add())
            elif word == "enum":
                self.enum(self.result.enum_type.add())
            else:
                self.statement(word)
        return self.result

    def statement(self, word: str) -> None:
        value = self.take()
        if word == "syntax":
            self.take()
        elif word == "package":
            self.result.package = value
        else:
            self.result.dependency.append("forewarn/" + value.strip('"'))
        self.take(";")

    def message(self, message: descriptor_pb2.DescriptorProto) -> None:
        message.name = self.take()
        self.take("{")
        while (word := self.take("enum", "message", "optional", "repeated", "}")) != "}":
            if word == "enum":
                self.enum(message.enum_type.add())
            elif word == "message":
                self.message(message.nested_type.add())
            else:
                self.field(message.field.add(), word)

    def enum(self, enum: descriptor_pb2.EnumDescriptorProto) -> None:
        enum.name = self.take()
        self.take("{")
        while (name := self.take()) != "}":
            self.take("=")
            enum.value.add(name=name, number=int(self.take()))
            self.take(";")

    def field(self, field: descriptor_pb2.FieldDescriptorProto, label: str) -> None:
        field.label = getattr(FieldProto, f"LABEL_{label.upper()}")
        kind, field.name = self.take(), self.take()
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type_name = kind
        self.take("=")
        field.number = int(self.take())
        if self.take("[", ";") == "[":
            self.take("default")
            self.take("=")
            field.default_value = self.take()
            self.take("]")
            self.take(";")
