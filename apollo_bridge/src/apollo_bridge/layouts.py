"""The layouts of Apollo's messages as far as Forewarn itself reads or writes them.

The files in ``protos/`` hold the fields that are the same in Apollo 7 to 11; protobuf skips what
they leave out. `make layouts` compiles them into ``layouts.binpb``. They serve where no descriptors
come with the data: the sections of a record, a map, the commands to planning, and a transport that
does not tell. Everything else decodes with the descriptors of the file or the running Apollo.
"""

from __future__ import annotations

import importlib.resources
from functools import lru_cache
from typing import Any

from google.protobuf import descriptor_pb2

from apollo_bridge.messages import Pool, SchemaError, described
from forewarn.messages.foreign import ForeignType


@lru_cache(maxsize=1)
def own_pool() -> Pool:
    """Return the pool of the layouts in ``protos/``."""
    compiled = importlib.resources.files("apollo_bridge") / "layouts.binpb"
    return Pool(descriptor_pb2.FileDescriptorSet.FromString(compiled.read_bytes()).file)


def own_class(name: str) -> Any:
    """Return the class of a message that the layouts describe, by its full name."""
    return own_pool().message_class(name)


def own_files(name: str) -> list[bytes]:
    """Return the serialized files that define a message, dependencies first."""
    pool = own_pool()
    return [bytes(pool.files[file].SerializeToString()) for file in pool.needed(name)]


def own_type(name: str, schema: bytes = b"") -> ForeignType | None:
    """Return the type of a message that the layouts, or a schema, describe; None for others."""
    if schema:
        return Pool(described(schema)).message_type(name)
    try:
        return own_pool().message_type(name)
    except SchemaError:
        return None
