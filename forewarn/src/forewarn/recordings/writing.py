"""Write recordings: MCAP files that survive the end of their writer.

A node that is killed loses what it has not handed to the operating system. The writer therefore
closes a chunk as soon as it spans `flush_period` seconds of log time, so that no more than this
is lost to ``kill -9``; `open_recording` reads such a file and says that it was not closed.
`rosbags`' own writer keeps up to a megabyte in memory and hands over the rest when Python's
buffer is full: the file of a killed process may end anywhere. So the `mcap` package is used here.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcap.writer import CompressionType, Writer

from forewarn.errors import RecordingError
from forewarn.files.chain import ChainedFile
from forewarn.files.outputs import create_output
from forewarn.recordings.interface import TIME_LIMIT_NS

if TYPE_CHECKING:
    from forewarn.messages.definitions import MessageType

PROFILE = "ros2"
LIBRARY = "forewarn"

_IDL_MARK = "=" * 80 + "\nIDL: "
_STRING = "std_msgs/msg/String"
_STRING_DEFINITION = "string data\n"


class RecordingWriter(AbstractContextManager["RecordingWriter"]):
    """Write messages in CDR, tables of text and whole files to an MCAP file.

    ROS 2's own tools read the result. Not safe for use from several threads at once.

    `path`: the file to write; it must not exist, unless it is a device, a FIFO or a descriptor such
    as ``/dev/stdout``.
    `flush_period`: log time, in seconds, after which a chunk is closed and handed to the operating
    system.
    `chunk_size`: bytes after which a chunk is closed in any case.
    `profile`: MCAP's word for what to expect: ``ros2``, or empty for messages of another kind.
    `chained`: write a chain of hashes beside a plain file.
    `key`: what the chain is keyed with.
    Raises RecordingError if the file exists or cannot be written.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        flush_period: float = 1.0,
        chunk_size: int = 1 << 19,
        profile: str = PROFILE,
        chained: bool = False,
        key: bytes | None = None,
    ) -> None:
        self.path = Path(path)
        self._period_ns = round(flush_period * 1e9)
        self._schemas: dict[tuple[str, str | bytes, str], int] = {}
        self._channels: dict[tuple[str, str, str | bytes, str], int] = {}
        self._sequences: dict[int, int] = {}
        self._definitions: dict[str, str] = {}
        self._chunk_start_ns: int | None = None
        self._closed = False
        try:
            new = chained and not self.path.exists()  # what is there may be a pipe
            raw = ChainedFile(self.path, key, new=True) if new else create_output(self.path)
            self._file = _Counting(raw)
        except FileExistsError as error:
            raise RecordingError(
                "exists already, and recordings are never overwritten",
                accepted="a new file name",
                file=self.path,
            ) from error
        except OSError as error:
            raise RecordingError(f"cannot be written ({error.strerror})", file=path) from error
        self._writer = Writer(self._file, chunk_size=chunk_size, compression=CompressionType.ZSTD)
        self._writer.start(profile=profile, library=LIBRARY)
        try:
            self.flush()
        except RecordingError:
            with suppress(OSError):
                self._file.close()
            raise

    def write(
        self,
        topic: str,
        msgtype: str,
        definition: str | bytes,
        time_ns: int,
        data: bytes | memoryview,
        *,
        encoding: str = "",
        serialization: str = "cdr",
    ) -> None:
        """Append one message.

        `topic`, `msgtype`: topic name, and type name as in ``nav_msgs/msg/Odometry``.
        `definition`: complete message definition, those of nested types included. Bytes where the
        language is not textual: a FileDescriptorSet for ``protobuf``.
        `time_ns`: log time.
        `data`: the serialized message.
        `encoding`: language of the definition; for text, ``ros2msg`` or ``ros2idl`` if left out.
        `serialization`: how `data` is serialized.
        Raises RecordingError if the time does not fit, the writer is closed or the disk is full.
        """
        if not 0 <= time_ns < TIME_LIMIT_NS:
            raise RecordingError(
                f"log time {time_ns} ns of a message on {topic}",
                accepted="0 up to the year 2262",
                file=self.path,
            )
        self._check_open()
        key = (topic, msgtype, definition, serialization)
        channel = self._channels.get(key)
        try:
            if channel is None:
                channel = self._channels[key] = self._register(key, encoding)
            if self._chunk_start_ns is None or time_ns < self._chunk_start_ns:
                self._chunk_start_ns = time_ns
            elif time_ns - self._chunk_start_ns >= self._period_ns:
                self._writer.flush()  # type: ignore[no-untyped-call]
                self._chunk_start_ns = time_ns
            sequence = self._sequences[channel]
            self._sequences[channel] = sequence + 1
            self._writer.add_message(channel, time_ns, bytes(data), time_ns, sequence & 0xFFFFFFFF)
        except OSError as error:
            raise self._failed(error) from error

    def write_typed(self, topic: str, mtype: MessageType, time_ns: int, data: bytes) -> None:
        """Append one message of a type whose definition is known; see `write`."""
        definition = self._definitions.get(topic)
        if definition is None:
            definition, _ = mtype.typestore.generate_msgdef(mtype.name, ros_version=2)
            self._definitions[topic] = definition
        self.write(topic, mtype.name, definition, time_ns, data)

    def write_text(self, topic: str, time_ns: int, text: str) -> None:
        """Append a text as a std_msgs/msg/String message; see `write`."""
        self.write(topic, _STRING, _STRING_DEFINITION, time_ns, string_cdr(text))

    def write_metadata(self, name: str, table: dict[str, str]) -> None:
        """Append a named table of text, at once and outside all topics; see `metadata` of readers.

        Raises RecordingError if the writer is closed or the disk is full.
        """
        with self._errors_named():
            self._writer.add_metadata(name, dict(table))
        self.flush()

    def attach(self, name: str, data: bytes, media_type: str = "text/plain") -> None:
        """Append a whole file under a name, at once; see `attachments` of readers.

        Raises RecordingError if the writer is closed or the disk is full.
        """
        with self._errors_named():
            self._writer.add_attachment(0, 0, name, media_type, data)
        self.flush()

    def flush(self) -> None:
        """Hand all that was written to the operating system, where it outlives the process."""
        with self._errors_named():
            self._writer.flush()  # type: ignore[no-untyped-call]
        self._chunk_start_ns = None

    def close(self) -> None:
        """Write the index and close the file; does nothing the second time."""
        if self._closed:
            return
        self._closed = True
        try:
            try:
                self._writer.finish()  # type: ignore[no-untyped-call]
            finally:
                self._file.close()
        except OSError as error:
            raise self._failed(error) from error

    def _register(self, key: tuple[str, str, str | bytes, str], encoding: str) -> int:
        topic, msgtype, definition, serialization = key
        data = definition if isinstance(definition, bytes) else definition.encode()
        if not encoding:
            encoding = "ros2idl" if data.startswith(_IDL_MARK.encode()) else "ros2msg"
        schema_key = (msgtype, definition, encoding)
        schema = self._schemas.get(schema_key)
        if schema is None:
            schema = self._writer.register_schema(msgtype, encoding, data)
            self._schemas[schema_key] = schema
        channel = self._writer.register_channel(topic, serialization, schema)
        self._sequences[channel] = 0
        return channel

    def _check_open(self) -> None:
        if self._closed:
            raise RecordingError("is closed and takes no more messages", file=self.path)

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        self._check_open()
        try:
            yield
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> RecordingError:
        return RecordingError(f"cannot be written ({error.strerror or error})", file=self.path)

    def __exit__(self, *raised: object) -> None:
        """Close the file."""
        self.close()


class _Counting(io.BufferedWriter):
    """A stream that knows how much it took: MCAP's index needs that, and a pipe cannot tell."""

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__(raw)
        self._taken = 0

    def write(self, data: Any) -> int:
        taken = super().write(data)
        self._taken += taken
        return taken

    def tell(self) -> int:
        return self._taken


def string_cdr(text: str) -> bytes:
    """Return a std_msgs/msg/String with `text` in little-endian CDR."""
    data = text.encode() + b"\0"
    return b"\0\1\0\0" + len(data).to_bytes(4, "little") + data
