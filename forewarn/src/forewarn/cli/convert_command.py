"""``forewarn convert``: any recording as one MCAP file, for Foxglove and ROS 2's tools."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.common import RECORDINGS_HELP, add_output, add_part
from forewarn.cli.output import Output
from forewarn.errors import InputError, plural
from forewarn.files.outputs import check_output
from forewarn.messages import ForeignType
from forewarn.recordings import Recording, RecordingWriter, open_recording
from forewarn.recordings.interface import TopicInfo
from forewarn.recordings.parts import Part
from forewarn.recordings.writing import PROFILE

DESCRIPTION = """\
Write a recording as MCAP, with the definitions of its messages: Apollo's records keep their
protobuf messages, ROS 1 messages become those of ROS 2. Topics that cannot be decoded are left out
and named."""

EPILOG = """\
exit codes: 0 all was converted, 1 something was left out, 2 wrong usage or input.

example: forewarn convert drive.record.00000 -o drive.mcap"""

FLUSH_PERIOD = 1e9  # seconds: chunks are closed by their size alone
CHUNK_SIZE = 1 << 20


@dataclass(frozen=True)
class Options:
    """The arguments of ``convert``."""

    recording: Path
    begin: str | None
    end: str | None
    output: Path
    topics: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("recording", type=Path, metavar="BAG", help=RECORDINGS_HELP)
    add_part(parser)
    add_output(parser, "MCAP")
    parser.add_argument(
        "-t",
        "--topic",
        dest="topics",
        action="append",
        default=[],
        metavar="TOPIC",
        help="only this topic or channel (may be repeated)",
    )


def run(options: Options, output: Output) -> int:
    """Convert the recording."""
    check_output(options.output)
    part = Part(options.begin, options.end)
    with (
        open_recording(part.of(options.recording)) as recording,
        output.progress(f"converting {options.recording.name}") as tell,
    ):
        if not recording.topics:
            for text in recording.warnings:
                output.warn(f"{options.recording}: {text}")
            raise InputError(
                "has no messages to convert",
                file=options.recording,
                accepted="a bag or record; traces hold values, not messages",
            )
        chosen = _choose(options, recording)
        left_out = {
            name: recording.topics[name].error
            for name in options.topics or recording.topics
            if name not in chosen
        }
        counts = _convert(recording, chosen, options.output, tell)
        warnings = list(recording.warnings)
    for text in warnings:
        output.warn(f"{options.recording}: {text}")
    for name, reason in left_out.items():
        output.say(f"left out: {name}: {reason}")
    total = sum(counts.values())
    output.say(f"{plural(total, 'message')} on {plural(len(counts), 'topic')} -> {options.output}")
    output.emit(
        {"file": options.output, "messages": dict(counts), "left_out": left_out, "notes": warnings}
    )
    return 1 if left_out else 0


def _choose(options: Options, recording: Recording) -> Mapping[str, TopicInfo]:
    for name in options.topics:
        if name not in recording.topics:
            raise InputError(
                f"there is no topic {name}",
                file=options.recording,
                accepted=", ".join(recording.topics),
            )
    return {
        name: info
        for name, info in recording.topics.items()
        if info.message_type is not None and (not options.topics or name in options.topics)
    }


def _convert(
    recording: Recording,
    chosen: Mapping[str, TopicInfo],
    path: Path,
    tell: Callable[[float, float], None],
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
            if number % 512 == 0:
                tell((sample.time_ns - recording.start_ns) / span, 1.0)
    return counts


def _form(info: TopicInfo) -> tuple[str | bytes, str, str]:
    """Return definition, its language, and the serialization of a topic's messages."""
    mtype = info.message_type
    assert mtype is not None
    if isinstance(mtype, ForeignType):
        return mtype.definition, mtype.encoding, mtype.encoding
    definition, _ = mtype.typestore.generate_msgdef(mtype.name, ros_version=2)
    return definition, "ros2msg", "cdr"
