"""A bag of any kind: one or more files of messages, read as one recording."""

from __future__ import annotations

import heapq
import io
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from pathlib import Path

import zstandard

from forewarn.errors import RecordingError, plural
from forewarn.recordings.interface import (
    Recording,
    Sample,
    Storage,
    TopicInfo,
    digest_files,
    make_sample,
)
from forewarn.recordings.ros1 import ConversionError
from forewarn.recordings.topics import Topics
from forewarn.recordings.zstd import CutError, unpacked

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_MESSAGE_LIMIT = 1 << 30


class BagRecording(Recording):
    """Files of messages as one recording; see `Recording` for the members.

    `storages`: the opened files, in recording order.
    `warnings`: what was already found wrong.
    `cleanup`: called when the recording is closed.
    `custom`: texts that the recorder has written beside the files (rosbag2's ``custom_data``).
    `copies`: copies on this machine of remote files, which tell their digests.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        storages: Sequence[Storage],
        *,
        warnings: Sequence[str] = (),
        cleanup: Callable[[], None] | None = None,
        custom: Mapping[str, str] | None = None,
        copies: Mapping[Path, Path] | None = None,
    ) -> None:
        self.path = path
        self.kind = kind
        self.warnings: list[str] = list(warnings)
        self._storages = storages
        self._files = [storage.path for storage in storages]
        self._cleanup = cleanup
        self._custom = dict(custom or {})
        self._copies = dict(copies or {})
        self._collect_warnings()
        filled = [storage for storage in storages if storage.count]
        self.start_ns = min((segment.start_ns for segment in filled), default=0)
        self.end_ns = max((segment.end_ns for segment in filled), default=0)
        self.count = sum(storage.count for storage in storages)
        self.size = sum(file.stat().st_size for file in self._files)
        channels = [
            channel._replace(file=storage.path.name)
            for storage in storages
            for channel in storage.channels
        ]
        self._topics = Topics(channels, self._warn)
        self.topics: Mapping[str, TopicInfo] = self._topics
        if not self.count:
            self._warn("the recording holds no messages")

    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield samples in log-time order; see `Recording.read`."""
        return self._samples(self._choose(topics))

    def _choose(self, topics: Collection[str] | None) -> list[str]:
        """Return the topics to read, or say why one that was named cannot be."""
        if topics is None:
            problems = {topic: self._topics.usable(topic) for topic in self._topics}
            for topic, problem in problems.items():
                if problem is not None:
                    self._warn(f"topic {topic} is left out: {problem}")
            return [topic for topic, problem in problems.items() if problem is None]
        chosen = []
        for topic in topics:
            if topic not in self._topics:
                known = ", ".join(self._topics) or "none"
                self._warn(f"topic {topic} is not in the recording (its topics: {known})")
                continue
            if (problem := self._topics.usable(topic)) is not None:
                raise RecordingError(problem, file=self.path, key=f"topic {topic}")
            chosen.append(topic)
        return chosen

    def _samples(self, topics: list[str]) -> Iterator[Sample]:
        filled = sorted(
            (storage for storage in self._storages if storage.count), key=attrgetter("start_ns")
        )
        streams = [self._unpacked(segment.read(topics)) for segment in filled]
        disjoint = all(one.end_ns <= other.start_ns for one, other in pairwise(filled))
        merged: Iterator[Sample] = (
            chain.from_iterable(streams) if disjoint else heapq.merge(*streams, key=itemgetter(0))
        )
        converters = {
            topic: kind.convert
            for topic in topics
            if (kind := self._topics.converter(topic)) is not None
        }
        if converters:
            merged = self._converted(merged, converters)
        return chain.from_iterable(self._and_then_collect(merged))

    def _and_then_collect(self, samples: Iterator[Sample]) -> Iterator[Iterator[Sample]]:
        """Hand `samples` on; when they are through, fetch what the files found wrong."""
        yield samples
        self._collect_warnings()

    def _unpacked(self, samples: Iterator[Sample]) -> Iterator[Sample]:
        """Undo rosbag2's compression of single messages, which the first message gives away.

        CDR begins with a zero byte, a zstd frame never does.
        """
        first = next(samples, None)
        if first is None:
            return iter(())
        samples = chain((first,), samples)
        if bytes(first.data[:4]) != _ZSTD_MAGIC:  # type: ignore[index]
            return samples
        return self._converted(samples, dict.fromkeys(self._topics, _decompressor()))

    def _converted(
        self, samples: Iterator[Sample], converters: Mapping[str, Callable[[bytes], object]]
    ) -> Iterator[Sample]:
        """Apply a conversion to each message; those that it cannot be applied to are counted."""
        failed: Counter[str] = Counter()
        reasons: dict[str, str] = {}
        for sample in samples:
            convert = converters.get(sample[1])
            if convert is None:
                yield sample
                continue
            try:
                data = convert(sample[2])  # type: ignore[arg-type]
            except ConversionError as error:
                failed[sample[1]] += 1
                reasons.setdefault(sample[1], str(error))
            else:
                yield make_sample((sample[0], sample[1], data))
        for topic, number in failed.items():
            self._warn(
                f"topic {topic}: {plural(number, 'message')} could not be converted and "
                f"{'is' if number == 1 else 'are'} left out: {reasons[topic]}"
            )

    def digest(self) -> str:
        """See `Recording.digest`."""
        return digest_files([self._copies.get(file, file) for file in self._files])

    def metadata(self) -> Mapping[str, Mapping[str, str]]:
        """Return the named tables of text that the files hold beside their messages."""
        tables = {"custom_data": dict(self._custom)} if self._custom else {}
        for storage in self._storages:
            for name, table in storage.metadata().items():
                tables.setdefault(name, {}).update(table)
        self._collect_warnings()
        return tables

    def attachments(self) -> Mapping[str, bytes]:
        """Return the named files that travel inside the files."""
        files: dict[str, bytes] = {}
        for storage in self._storages:
            files.update(storage.attachments())
        self._collect_warnings()
        return files

    def _collect_warnings(self) -> None:
        several = len(self._storages) > 1
        for storage in self._storages:
            for text in storage.warnings:
                self._warn(f"{storage.path.name}: {text}" if several else text)

    def close(self) -> None:
        """Release all files."""
        for storage in self._storages:
            storage.close()
        if self._cleanup is not None:
            self._cleanup()


def _decompressor() -> Callable[[bytes], bytes]:
    """Return what unpacks single messages; one for each reader, since zstd keeps a state."""
    unpacker = zstandard.ZstdDecompressor()

    def decompress(data: bytes) -> bytes:
        try:
            size = zstandard.frame_content_size(data)
            if size > _MESSAGE_LIMIT:
                raise ConversionError(f"it claims to unpack to {size} bytes")
            if size < 0:
                return b"".join(unpacked(io.BytesIO(data), _MESSAGE_LIMIT))
            return unpacker.decompress(data)
        except (CutError, zstandard.ZstdError, MemoryError) as error:
            raise ConversionError(f"it cannot be unpacked ({error})") from error

    return decompress
