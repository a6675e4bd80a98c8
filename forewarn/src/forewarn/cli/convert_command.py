"""``forewarn convert``: any recording as MCAP, for Foxglove and ROS 2's tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from forewarn.cli.common import recording_path
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import PartOptions, Readers
from forewarn.errors import InputError, RecordingError, plural
from forewarn.files.outputs import check_output
from forewarn.files.remote import RemotePath
from forewarn.messages.foreign import ForeignType
from forewarn.recordings.interface import Recording, TopicInfo
from forewarn.recordings.parts import file_of
from forewarn.recordings.registry import open_recording
from forewarn.recordings.rosbag2 import SUFFIXES
from forewarn.recordings.writing import PROFILE, RecordingWriter

DESCRIPTION = """\
Write recordings as MCAP, with the definitions of messages: Apollo's records keep their protobuf
messages, ROS 1 messages become those of ROS 2. Topics that cannot be decoded are left out and
named."""

EPILOG = """\
exit codes: 0 all was converted, 1 something was left out, 2 wrong usage or input.

examples: forewarn convert drive.record.00000 -o drive.mcap
          forewarn convert 's3://bucket/old/*.bag' -o s3://bucket/new
          forewarn convert run.mcap -o small.mcap --topic /odom --topic /scan"""

FLUSH_PERIOD = 1e9  # seconds: chunks are closed by their size alone
CHUNK_SIZE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Options(PartOptions):
    """The arguments of ``convert``."""

    output: Path = option(
        "the MCAP file to write, or a folder or URL for one file each",
        "FILE",
        "-o",
        of=recording_path,
        required=True,
    )
    topics: list[str] = option(
        "only this topic or channel (may be repeated)", "TOPIC", "-t", "--topic"
    )


def run(options: Options, output: Output) -> int:
    """Convert the recordings."""
    recordings = options.existing()
    several = len(recordings) > 1 or options.output.is_dir()
    if not several:
        check_output(options.output)
    _check_names(recordings, options.output if several else None)
    readers = Readers(options, recordings, output)
    work = (options.output, several, tuple(options.topics))
    found = dict(readers.read(recordings, converted, *work, verb="converting"))
    for path, one in found.items():
        for text in one.warnings:
            output.warn(f"{path}: {text}")
        for name, reason in one.left_out.items():
            output.say(f"left out: {name}: {reason}")
        counted = f"{plural(sum(one.counts.values()), 'message')} on "
        output.say(f"{counted}{plural(len(one.counts), 'topic')} -> {one.file}")
    readers.warn()
    records = [
        {
            "file": one.file,
            "messages": dict(one.counts),
            "left_out": one.left_out,
            "notes": one.warnings,
        }
        for one in found.values()
    ]
    output.emit({"files": records, "left_out": readers.record()} if several else records[0])
    return 1 if any(one.left_out for one in found.values()) else 0


def target_of(path: Path, folder: Path) -> Path:
    """Return the file in a folder that a recording becomes."""
    name = file_of(path).name
    for suffix in (*SUFFIXES, ".bag"):
        name = name.removesuffix(suffix)
    return folder / f"{name}.mcap"


def _check_names(recordings: Sequence[Path], folder: Path | None) -> None:
    """Refuse what would make two files of one name, or has no folder; raises InputError."""
    if folder is None:
        return
    if not isinstance(folder, RemotePath) and not folder.is_dir():
        raise InputError(
            f"{len(recordings)} recordings for one file",
            key="--output",
            file=folder,
            accepted="a folder that exists, or a URL",
        )
    names: dict[Path, Path] = {}
    for path in recordings:
        target = target_of(path, folder)
        if not isinstance(target, RemotePath) and target.exists():
            raise InputError(
                "exists already, and recordings are never overwritten",
                file=target,
                accepted="a folder without a file of that name",
            )
        other = names.setdefault(target, path)
        if other != path:
            raise InputError(
                f"would have the name of {other} in {folder}",
                file=path,
                accepted="recordings with names of their own, or one command for each of the two",
            )


class Converted(NamedTuple):
    """What became of a recording.

    Attributes
    ----------
    file : Path
        The MCAP file.
    counts : dict
        Messages of each topic.
    left_out : dict
        Topics that cannot be decoded, with the reasons.
    """

    file: Path
    counts: dict[str, int]
    left_out: dict[str, str | None]
    warnings: tuple[str, ...]


def converted(
    path: Path,
    target: Path,
    several: bool,
    topics: Sequence[str],
    progress: Callable[[float], None] | None = None,
) -> Converted:
    """Convert one recording to a file, or into a folder if there are several; it may be a URL."""
    target = target_of(path, target) if several else target
    remote = isinstance(target, RemotePath)
    # What a killed worker leaves is not in the way of the next one.
    beside = target.parent if several and not remote else None
    with open_recording(path) as recording, TemporaryDirectory(dir=beside) as folder:
        chosen = _choose(topics, recording)
        left_out = {
            name: recording.topics[name].error
            for name in topics or recording.topics
            if name not in chosen
        }
        file = Path(folder) / target.name if several or remote else target
        counts = _convert(recording, chosen, file, progress)
        try:
            if isinstance(target, RemotePath):
                target.copy_from(file)
            elif file != target:
                file.replace(target)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", file=target) from error
        return Converted(target, dict(counts), left_out, tuple(recording.warnings))


def _choose(topics: Sequence[str], recording: Recording) -> Mapping[str, TopicInfo]:
    if not recording.topics:
        raise RecordingError(
            "; ".join(("has no messages to convert", *recording.warnings)),
            file=recording.path,
            accepted="a bag or record; traces hold values, not messages",
        )
    for name in topics:
        if name not in recording.topics:
            raise RecordingError(
                f"there is no topic {name}",
                file=recording.path,
                accepted=", ".join(recording.topics),
            )
    return {
        name: info
        for name, info in recording.topics.items()
        if info.message_type is not None and (not topics or name in topics)
    }


def _convert(
    recording: Recording,
    chosen: Mapping[str, TopicInfo],
    path: Path,
    progress: Callable[[float], None] | None,
) -> Counter[str]:
    counts: Counter[str] = Counter()
    span = max(recording.end_ns - recording.start_ns, 1)
    forms = {name: _form(info) for name, info in chosen.items()}
    foreign = any(isinstance(info.message_type, ForeignType) for info in chosen.values())
    with RecordingWriter(
        path,
        flush_period=FLUSH_PERIOD,
        chunk_size=CHUNK_SIZE,
        profile="" if foreign else PROFILE,
    ) as writer:
        for number, sample in enumerate(recording.read(chosen.keys())):
            definition, encoding, serialization = forms[sample.topic]
            assert isinstance(sample.data, bytes | memoryview)
            writer.write(
                sample.topic,
                chosen[sample.topic].msgtype,
                definition,
                sample.time_ns,
                sample.data,
                encoding=encoding,
                serialization=serialization,
            )
            counts[sample.topic] += 1
            if progress is not None and number % 512 == 0:
                progress((sample.time_ns - recording.start_ns) / span)
    return counts


def _form(info: TopicInfo) -> tuple[str | bytes, str, str]:
    """Return definition, its language, and the serialization of a topic's messages."""
    mtype = info.message_type
    assert mtype is not None
    if isinstance(mtype, ForeignType):
        return mtype.definition, mtype.encoding, mtype.encoding
    definition, _ = mtype.typestore.generate_msgdef(mtype.name, ros_version=2)
    return definition, "ros2msg", "cdr"
