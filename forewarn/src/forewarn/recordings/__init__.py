"""Recordings: read them whatever their format, and write MCAP."""

from forewarn.recordings.interface import Recording, Sample, TopicInfo
from forewarn.recordings.registry import RecordingFormat, find_recordings, open_recording
from forewarn.recordings.traces import JsonTrace
from forewarn.recordings.writing import RecordingWriter

__all__ = [
    "JsonTrace",
    "Recording",
    "RecordingFormat",
    "RecordingWriter",
    "Sample",
    "TopicInfo",
    "find_recordings",
    "open_recording",
]
