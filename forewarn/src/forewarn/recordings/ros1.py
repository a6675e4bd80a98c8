"""Convert ROS 1 messages to CDR, so that one decoding path serves all recordings."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from rosbags.serde import SerdeError
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore

_HEAD = 4
_HEADER = "std_msgs/msg/Header"
_TEXT_CONSTANT = re.compile(r"\s*string\s+\w+\s*=")

Converter = Callable[[bytes], memoryview]


class Ros1Type(NamedTuple):
    """How the messages of a ROS 1 type become CDR."""

    convert: Converter  # from ROS 1's serialization to CDR; raises ConversionError
    definition: str  # the definition of the result, in ``ros2msg``


class ConversionError(Exception):
    """A ROS 1 message or definition is not what it should be."""


@lru_cache(maxsize=256)
def ros1_type(msgtype: str, definition: str) -> Ros1Type:
    """Return the conversion of type `msgtype` (ROS 2's form) with the bag's `definition`.

    `rosbags` drops the four bytes of ``Header.seq`` while it converts, since ROS 2's Header has
    no such field, and expects a type store whose Header lacks it too. The definition in a bag
    has it, and would shift every later field by four bytes: it is taken out first.

    Raises ConversionError if the definition cannot be parsed.
    """
    store = get_typestore(Stores.EMPTY)
    try:
        types = get_types_from_msg(_plain(definition), msgtype)
        if _HEADER in types:
            constants, fields = types[_HEADER]
            if not fields or fields[0][0] != "seq":
                raise ConversionError("its Header does not begin with seq, as ROS 1's does")
            types[_HEADER] = (constants, fields[1:])
        store.register(types)
        text, _ = store.generate_msgdef(msgtype, ros_version=2)
        copy = store.get_msgdef(msgtype).ros1_to_cdr
    except ConversionError:
        raise
    except TypesysError as error:
        raise ConversionError(_first_line(error)) from error
    except Exception as error:  # the parser meets a damaged definition with errors of all kinds
        raise ConversionError(f"{type(error).__name__}: {_first_line(error)}") from error

    def convert(data: bytes) -> memoryview:
        # rosbags converts twice, the first time to learn the size. Padding rarely doubles a
        # message: where twice the space is enough, once will do.
        space = bytearray(_HEAD + 2 * len(data) + 64)
        space[1] = 1
        view = memoryview(space)
        try:
            read, written = copy(data, 0, view[_HEAD:], 0, store)
        except (SerdeError, struct.error, ValueError, IndexError):
            read = -1
        if read == len(data):
            return view[: _HEAD + written].toreadonly()
        try:
            return store.ros1_to_cdr(data, msgtype)
        except SerdeError as error:
            raise ConversionError(_first_line(error)) from error
        except (struct.error, ValueError, IndexError, AssertionError, MemoryError) as error:
            raise ConversionError(f"the layout is not that of {msgtype} ({error})") from error

    return Ros1Type(convert, text)


def _plain(definition: str) -> str:
    """Return a definition with the line ends of Unix, and without constants of texts.

    All that follows the ``=`` of such a constant is its value, a ``#`` as well, which the parser
    takes for a comment. No message holds a constant.
    """
    lines = definition.splitlines()
    return "".join(f"{line}\n" for line in lines if not _TEXT_CONSTANT.match(line))


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
