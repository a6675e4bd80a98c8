"""Recordings of Cyber RT (``.record`` files) for Forewarn's commands.

Apollo cuts its recordings into segments, ``drive.record.00000`` and so on, of 60 s each. A folder
with the segments of one recording, or the name without the number, stands for them all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

from apollo_bridge.layouts import own_class
from apollo_bridge.messages import DAMAGE, Pool, SchemaError
from apollo_bridge.sections import ChannelInfo, RecordFile, begins_record
from apollo_bridge.transport import Offer
from forewarn.errors import RecordingError
from forewarn.recordings.interface import Recording, Sample, TopicInfo, digest_files, make_sample
from forewarn.recordings.registry import RecordingFormat

_SEGMENT = re.compile(r"(?P<base>.+\.record)\.(?P<number>\d+)\Z")


class CyberRecording(Recording):
    """The segments of a recording; see `forewarn.recordings.Recording` for the members."""

    kind = "Apollo record"

    def __init__(self, path: Path, files: Sequence[Path]) -> None:
        self.path = path
        self.warnings: list[str] = []
        segments = self._open_segments(files)
        self._segments = sorted(segments, key=lambda file: (file.start_ns, file.path.name))
        self._collect_warnings()
        filled = [segment for segment in self._segments if segment.count]
        self.start_ns = min((segment.start_ns for segment in filled), default=0)
        self.end_ns = max((segment.end_ns for segment in filled), default=0)
        self.count = sum(segment.count for segment in self._segments)
        self.size = sum(segment.size for segment in self._segments)
        if not self.count:
            self._warn("the recording holds no messages")
        self._warn_of_gaps()

    def _open_segments(self, files: Sequence[Path]) -> list[RecordFile]:
        """Open what can be opened: the last segment of a killed recorder may be empty."""
        segments, failed = [], []
        for file in files:
            try:
                segments.append(RecordFile(file))
            except RecordingError as error:
                failed.append(error)
                self._warn(f"a segment is left out: {error}")
        if not segments:
            raise failed[0]
        return segments

    @cached_property  # an attribute elsewhere: here it is put together when it is asked for
    def topics(self) -> Mapping[str, TopicInfo]:  # type: ignore[override]
        """All channels, in the order of the file."""
        counts: Counter[str] = sum((segment.counts for segment in self._segments), Counter())
        channels: dict[str, list[ChannelInfo]] = {}
        for segment in self._segments:
            for name, info in segment.channels.items():
                channels.setdefault(name, []).append(info)
        for name, infos in channels.items():
            types = list(dict.fromkeys(info.message for info in infos if info.message))
            if len(types) > 1:
                listed = " and as ".join(types)
                self._warn(f"{name} is declared as {listed} by its segments; the first is taken")
        for name in counts.keys() - channels.keys():
            channels[name] = [ChannelInfo(name, "", b"")]
        return {name: _topic(infos, counts[name]) for name, infos in channels.items()}

    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield samples in log-time order; see `forewarn.recordings.Recording.read`."""
        chosen = self._choose(topics)
        return self._samples(chosen)

    def _choose(self, topics: Collection[str] | None) -> list[str]:
        chosen = []
        for topic in self.topics if topics is None else topics:
            info = self.topics.get(topic)
            if info is None:
                known = ", ".join(self.topics) or "none"
                self._warn(f"channel {topic} is not in the recording (its channels: {known})")
            elif info.error is None:
                chosen.append(topic)
            elif topics is None:
                self._warn(f"channel {topic} is left out: {info.error}")
            else:
                raise RecordingError(info.error, file=self.path, key=f"channel {topic}")
        return chosen

    def _samples(self, topics: list[str]) -> Iterator[Sample]:
        # Segments follow each other, but the last messages of one may be younger than the first
        # of the next: a stretch is sorted only where they overlap.
        for group in _overlapping(self._segments):
            streams = [segment.read(topics) for segment in group]
            rows: Any = streams[0] if len(streams) == 1 else sorted(chain(*streams), key=_time)
            yield from map(make_sample, rows)
        self._collect_warnings()

    def digest(self) -> str:
        """Return the SHA-256 of the contents of all segments in reading order, in hex."""
        return digest_files([segment.path for segment in self._segments])

    def close(self) -> None:
        """Do nothing: files are open only while they are read."""

    def _collect_warnings(self) -> None:
        for segment in self._segments:
            where = f"{segment.path.name}: " if len(self._segments) > 1 else ""
            for warning in segment.warnings:
                self._warn(f"{where}{warning}")

    def _warn_of_gaps(self) -> None:
        numbers = [int(m["number"]) for s in self._segments if (m := _SEGMENT.match(s.path.name))]
        missing = (
            sorted(set(range(min(numbers), max(numbers) + 1)) - set(numbers)) if numbers else []
        )
        if missing:
            listed = ", ".join(f"{number:05d}" for number in missing[:8])
            self._warn(f"segments are missing: {listed}")


def _time(row: Any) -> int:
    return int(row[0])


def _overlapping(segments: Sequence[RecordFile]) -> Iterator[list[RecordFile]]:
    """Yield runs of segments (sorted by start) that overlap in time."""
    group: list[RecordFile] = []
    end = 0
    for segment in (segment for segment in segments if segment.count):
        if group and segment.start_ns > end:
            yield group
            group = []
        end = max(end, segment.end_ns) if group else segment.end_ns
        group.append(segment)
    if group:
        yield group


def _topic(infos: Sequence[ChannelInfo], count: int) -> TopicInfo:
    """Describe a channel from its declarations in all segments; the first usable one counts."""
    error = "the record holds no descriptor for it"
    for info in infos:
        if not info.descriptors:
            continue
        try:
            mtype = pool_of(info.descriptors).message_type(info.message)
        except SchemaError as problem:
            error = str(problem)
        else:
            return TopicInfo(info.name, info.message, count, mtype, None)
    return TopicInfo(infos[0].name, infos[0].message, count, None, error)


def pool_of(descriptors: bytes) -> Pool:
    """Return the pool of a serialized ProtoDesc, as channels carry it; raises SchemaError."""
    files: dict[str, descriptor_pb2.FileDescriptorProto] = {}
    try:
        waiting = [own_class("apollo.cyber.proto.ProtoDesc").FromString(descriptors)]
        while waiting:
            current = waiting.pop()
            file = descriptor_pb2.FileDescriptorProto.FromString(current.desc)
            files.setdefault(file.name, file)
            waiting += current.dependencies
    except DAMAGE as error:
        raise SchemaError(f"the descriptor is damaged: {error}") from error
    return Pool(files.values())


def segments_of(path: Path) -> list[Path]:
    """Return the segments that a folder, or a name without number, stands for; maybe none.

    A folder stands for them only if it holds those of a single recording.
    """
    if path.is_dir():
        names = [m for entry in path.iterdir() if (m := _SEGMENT.match(entry.name))]
        if len({m["base"] for m in names}) != 1:
            return []
        return sorted(path / m.string for m in names)
    if path.exists() or not path.name.endswith(".record"):
        return []
    return sorted(
        entry
        for entry in path.parent.glob(f"{path.name}.*")
        if _SEGMENT.match(entry.name) and entry.is_file()
    )


def gather(paths: Sequence[Path]) -> list[Path]:
    """Return the recordings among the files of a folder: segments under their common name."""

    def key(path: Path) -> Path:
        match = _SEGMENT.match(path.name)
        return path if match is None else path.with_name(match["base"])

    found = []
    for base, group in groupby(sorted(paths), key):
        members = list(group)
        found.append(base if len(members) > 1 and not base.exists() else members[0])
    return found


def _open(path: Path) -> CyberRecording:
    return CyberRecording(path, segments_of(path) or [path])


def _matches(path: Path, head: bytes) -> bool:
    return begins_record(head) if head else bool(segments_of(path))


FORMAT = RecordingFormat(
    "Apollo record",
    ".record files of Cyber RT, or a folder of their segments",
    _matches,
    _open,
    gather,
)


def layouts_in(path: Path) -> list[Offer]:
    """Return the layouts of all channels of a record; raises RecordingError."""
    return [
        Offer(info.name, info.message, info.descriptors)
        for segment in segments_of(path) or [path]
        for info in RecordFile(segment).channels.values()
        if info.descriptors
    ]
