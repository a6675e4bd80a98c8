"""What every reader of recordings offers, whatever the file format behind it.

Times are integer nanoseconds, as in the files. Messages leave a reader as CDR, so that one
decoding path serves ROS 1, ROS 2 and live data; a trace of named values has nothing to decode
and leaves as a mapping.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from forewarn.files.remote import RemotePath

if TYPE_CHECKING:
    from forewarn.messages.definitions import MessageType

TIME_LIMIT_NS = 1 << 63
"""Log times from here on do not fit the signed 64 bits that all tools share."""


class Sample(NamedTuple):
    """One recorded message, or one line of a trace.

    Attributes
    ----------
    time_ns : int
        Log time: when the recorder received it.
    topic : str
        Topic name; empty for a trace.
    data : bytes or memoryview or Mapping
        The message in CDR, or the named values of a trace line.
    """

    time_ns: int
    topic: str
    data: bytes | memoryview | Mapping[str, Any]


Row = tuple[int, str, bytes]
"""What a `Sample` is before it has its type: readers build thousands of them at a time."""

make_sample = partial(tuple.__new__, Sample)
"""Turn a `Row` into a `Sample` at a third of the cost of calling the class."""


class TopicInfo(NamedTuple):
    """One topic of a recording.

    Attributes
    ----------
    name, msgtype : str
        Topic name and type name in ROS 2's form (``nav_msgs/msg/Odometry``).
    count : int
        Number of messages.
    message_type : MessageType or None
        What decodes its messages; None when `error` says why there is none.
    error : str or None
        Why the messages cannot be decoded. The other topics stay readable.
    """

    name: str
    msgtype: str
    count: int  # type: ignore[assignment]  # hides tuple.count, as the shared name demands
    message_type: MessageType | None
    error: str | None


class Channel(NamedTuple):
    """One stream of messages as a file declares it; a topic has at least one.

    Attributes
    ----------
    serialization : str
        ``cdr`` or ``ros1``, or whatever else the file says.
    definition, encoding : str
        The message definition and its language (``ros2msg``, ``ros2idl``, ``ros1msg``); both
        empty where the file holds none.
    file : str
        Name of the file, where a recording has several.
    """

    topic: str
    msgtype: str
    serialization: str
    definition: str
    encoding: str
    count: int  # type: ignore[assignment]
    file: str = ""


class Readable(ABC):
    """What holds messages, or named values, in log-time order.

    Attributes
    ----------
    path : Path
        What was opened: a file or a folder.
    start_ns, end_ns : int
        Log times of the first and the last message; both 0 if there is none.
    count : int
        Number of messages; what an index promises, where there is one.
    warnings : list of str
        All that is wrong with it and was worked around. Reading may add to it.
    """

    path: Path
    start_ns: int
    end_ns: int
    count: int
    warnings: list[str]

    def metadata(self) -> Mapping[str, Mapping[str, str]]:
        """Return the named tables of text that it holds beside its messages, if it can."""
        return {}

    def attachments(self) -> Mapping[str, bytes]:
        """Return the named files that travel inside it, if any can."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Release all files."""

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)


class Storage(Readable):
    """One file of a bag, opened."""

    channels: list[Channel]

    @abstractmethod
    def read(self, topics: Collection[str]) -> Iterator[Sample]:
        """Yield the messages of `topics` as they are stored, in log-time order."""


class Recording(Readable):
    """A recording; leaving its ``with`` block closes it.

    Attributes
    ----------
    kind : str
        The format, for people.
    topics : Mapping of str to TopicInfo
        All topics, in the order of the file; a definition is parsed when its entry is read.
    size : int
        Bytes on disk.
    timed : bool
        Its messages have times; the lines of a trace of steps may have none.
    """

    kind: str
    topics: Mapping[str, TopicInfo]
    size: int
    timed: bool = True

    @property
    def duration(self) -> float:
        """Seconds between the first and the last message."""
        return (self.end_ns - self.start_ns) / 1e9

    @abstractmethod
    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield samples in log-time order; simultaneous ones in the order of the file.

        Parameters
        ----------
        topics : collection of str, optional
            Topics to read; others cost next to nothing. All that can be read if left out. A
            trace has no topics and yields every line.

        Raises
        ------
        RecordingError
            If a topic that was asked for by name cannot be read, or the file is damaged in a
            way that was not seen when it was opened.
        """

    @abstractmethod
    def digest(self) -> str:
        """Return the SHA-256 of the contents of all data files in reading order, in hex.

        File names and ``metadata.yaml`` do not enter: a renamed or re-indexed recording keeps
        its digest.
        """

    def __enter__(self: Opened) -> Opened:
        """Return the recording."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the recording."""
        self.close()


class WrappedRecording(Recording):
    """A recording that is read through another one, which it closes; as that one says."""

    def __init__(self, path: Path, whole: Recording) -> None:
        self._whole = whole
        self.path = path
        self.kind, self.topics, self.size = whole.kind, whole.topics, whole.size
        self.start_ns, self.end_ns, self.count = whole.start_ns, whole.end_ns, whole.count
        self.warnings, self.timed = whole.warnings, whole.timed

    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield its samples."""
        return self._whole.read(topics)

    def digest(self) -> str:
        """Return its digest."""
        return self._whole.digest()

    def metadata(self) -> Mapping[str, Mapping[str, str]]:
        """Return its tables."""
        return self._whole.metadata()

    def attachments(self) -> Mapping[str, bytes]:
        """Return its files."""
        return self._whole.attachments()

    def close(self) -> None:
        """Close it."""
        self._whole.close()


Opened = TypeVar("Opened", bound=Recording)


def digest_files(paths: Sequence[Path]) -> str:
    """Return the SHA-256 of the concatenated contents of `paths`, in hex.

    In the place of the contents of a remote file stands what its store knows it by.
    """
    digest = hashlib.sha256()
    for path in paths:
        if isinstance(path, RemotePath):  # to read it would cost more than all else
            digest.update(path.identity().encode())
            continue
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
