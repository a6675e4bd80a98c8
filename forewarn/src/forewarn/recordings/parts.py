"""Parts of a file that are recordings of their own: some time of it, one robot's topics, or a run.

The address of a part is ``run.mcap::10..60``: the recording, and the moments between which its
messages count, both included, as if the recorder had run only then. A moment is in seconds since
the first message, or a time such as ``2026-03-01T10:15:00Z``; one of them may be left out.

The address of what one robot published is ``run.mcap::namespace=robot1``: topics below ``/robot1``
have their names without it, as the robot's own node would hear them by relative names.

The address of a run within a trace is ``trace.jsonl::run=a17``: the file, the key of its lines, the
value. Runs may be interleaved, as those of agents at work side by side are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from forewarn.errors import RecordingError
from forewarn.recordings.interface import Recording, Sample, WrappedRecording
from forewarn.recordings.traces import JsonTrace

MARK = "::"
NAMESPACE = f"{MARK}namespace="
STATIC = "tf_static"
"""Topics of transforms that a late recorder hears as well: their publishers keep them."""
SECONDS = re.compile(r"\d{1,12}(\.\d*)?\Z")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?([zZ]|[-+]\d\d:\d\d)?\Z")
ACCEPTED = "seconds since the recording began, or a time such as 2026-03-01T10:15:00Z"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Part(NamedTuple):
    """From when to when; None for a side without a limit.

    `begin`, `end`: moments as `moment` gives them.
    """

    begin: str | None
    end: str | None

    def of(self, path: Path) -> Path:
        """Return the address of this part of a recording; the recording if nothing is left out."""
        if self == (None, None):
            return path
        path = path if path.name not in ("", "..") else path.resolve()
        return path.with_name(f"{path.name}{MARK}{self.begin or ''}..{self.end or ''}")


def moment(text: str) -> str:
    """Return a moment as addresses have it.

    `text`: seconds, or a time in ISO 8601; without a zone it is local time.
    Raises ValueError if it is neither.
    """
    if SECONDS.match(text):
        return text
    if not TIME.match(text):
        raise ValueError(text)
    # Python 3.10 reads three or six digits of a fraction, and no Z.
    text = re.sub(r"\.(\d+)", lambda found: f".{found[1]:0<6}"[:7], text)
    try:
        time = datetime.fromisoformat(re.sub(r"[zZ]\Z", "+00:00", text)).astimezone(timezone.utc)
    except OverflowError:
        raise ValueError(text) from None
    return time.replace(tzinfo=None).isoformat() + "Z"


def divided(path: Path) -> tuple[Path, Part] | None:
    """Return the recording and the part that a path addresses; None if it addresses none."""
    name, mark, rest = path.name.rpartition(MARK)
    begin, dots, end = rest.partition("..")
    if not mark or not dots or not name or path.exists():
        return None
    try:
        part = Part(moment(begin) if begin else None, moment(end) if end else None)
    except ValueError:
        raise RecordingError(
            f"{rest!r} is no part of a recording", file=path, accepted=f"FROM..TO, each {ACCEPTED}"
        ) from None
    return path.with_name(name), part


def file_of(path: Path) -> Path:
    """Return the recording that a path is the address of a part of, or the path."""
    while (found := divided(path) or namespaced(path)) is not None:
        path = found[0]
    return path


class PartRecording(WrappedRecording):
    """A part of a recording; see `Recording` for the members.

    `count` is that of the whole recording.
    """

    def __init__(self, path: Path, whole: Recording, part: Part) -> None:
        super().__init__(path, whole)
        self.kind = f"part of a {whole.kind}"
        begin = 0 if part.begin is None else _time_ns(part.begin, whole.start_ns)
        end = whole.end_ns if part.end is None else _time_ns(part.end, whole.start_ns)
        self.start_ns, self.end_ns = max(begin, whole.start_ns), min(end, whole.end_ns)
        if self.start_ns > self.end_ns:
            first, last = (_shown(time_ns) for time_ns in (whole.start_ns, whole.end_ns))
            raise RecordingError(
                "nothing was recorded then",
                file=path,
                accepted=f"a part of its {whole.duration:.1f} s, from {first} to {last}",
            )

    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield the samples of the part."""
        for sample in self._whole.read(topics):
            if sample.time_ns > self.end_ns:
                return
            if sample.time_ns >= self.start_ns:
                yield sample
            elif sample.topic.endswith(STATIC):
                yield sample._replace(time_ns=self.start_ns)

    def digest(self) -> str:
        """Return the SHA-256 of the whole recording's digest and of the limits, in hex."""
        text = f"{self._whole.digest()} {self.start_ns} {self.end_ns}"
        return hashlib.sha256(text.encode()).hexdigest()


def namespaced(path: Path) -> tuple[Path, str] | None:
    """Return the recording and the namespace that a path addresses; None if it addresses none."""
    name, mark, namespace = path.name.rpartition(NAMESPACE)
    if not mark or not name or path.exists():
        return None
    return path.with_name(name), "/" + unquote(namespace).strip("/")


class NamespaceRecording(WrappedRecording):
    """What was published in a ROS namespace, by names without it; see `Recording`.

    Topics outside of it keep their names, but for those that one inside takes. `count` is that of
    the whole recording.
    """

    def __init__(self, path: Path, whole: Recording, namespace: str) -> None:
        super().__init__(path, whole)
        inside = [topic for topic in whole.topics if topic.startswith(f"{namespace}/")]
        if not inside:
            found = {topic[: topic.index("/", 1)] for topic in whole.topics if "/" in topic[1:]}
            raise RecordingError(
                f"no topic is in the namespace {namespace}",
                file=path,
                accepted=", ".join(sorted(found)) or "a recording with topics in a namespace",
            )
        self.kind = f"{whole.kind}, topics of {namespace}"
        self._namespace = namespace
        self._named = {topic.removeprefix(namespace): topic for topic in inside}
        self._named = {topic: topic for topic in whole.topics if topic not in inside} | self._named
        self.topics = {name: whole.topics[topic] for name, topic in self._named.items()}

    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield the samples of these topics, with the names that they have here."""
        wanted = self._named if topics is None else [t for t in topics if t in self._named]
        names = {self._named[name]: name for name in wanted}
        for sample in self._whole.read(names.keys()):
            yield sample._replace(topic=names[sample.topic])

    def digest(self) -> str:
        """Return the SHA-256 of the whole recording's digest and of the namespace, in hex."""
        return hashlib.sha256(f"{self._whole.digest()} {self._namespace}".encode()).hexdigest()


def _time_ns(text: str, start_ns: int) -> int:
    if SECONDS.match(text):
        whole, _, rest = text.partition(".")
        return start_ns + int(whole) * 10**9 + int(f"{rest:0<9}"[:9])
    since = datetime.fromisoformat(text.replace("Z", "+00:00")) - EPOCH
    return ((since.days * 86_400 + since.seconds) * 10**6 + since.microseconds) * 1000


def _shown(time_ns: int) -> str:
    return f"{datetime.fromtimestamp(time_ns // 10**9, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


Opener = Callable[[Path], JsonTrace]
"""Opens a file whose lines may be of several runs."""


class _Run:
    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.digest = hashlib.sha256()

    def add(self, sample: Sample) -> None:
        self.samples.append(sample)
        self.digest.update(repr(sample).encode())


class TraceRun(JsonTrace):
    """One run of a trace; see `Recording` for the members."""

    def __init__(self, path: Path, file: Path, key: str, run: str, opener: Opener) -> None:
        stat = file.stat()
        trace, runs = _runs(file, key, opener, stat.st_mtime_ns, stat.st_size)
        if run not in runs:
            shown = ", ".join(list(runs)[:5]) or f"none: no line has the key {key}"
            raise RecordingError(f"there is no run {run!r}", file=path, accepted=shown)
        self.path = path
        self.kind = "run of a trace"
        self.warnings = list(trace.warnings)
        self.size = trace.size
        self.signals = trace.signals
        self.topics = {}
        self.timed = trace.timed
        self._run = runs[run]
        self.count = len(self._run.samples)
        self.start_ns, self.end_ns = self._run.samples[0].time_ns, self._run.samples[-1].time_ns

    def read(self, topics: Collection[str] | None = None) -> Iterator[Sample]:
        """Yield one sample for each line, in the order of time; topics do not matter."""
        del topics
        return iter(self._run.samples)

    def digest(self) -> str:
        """Return the SHA-256 of the values of the run's lines, in hex."""
        return self._run.digest.hexdigest()


def open_run(path: Path, opener: Opener) -> TraceRun | None:
    """Open the run that a path addresses; None if it addresses none."""
    name, mark, rest = path.name.partition(MARK)
    key, equals, run = rest.partition("=")
    if not mark or not equals or path.exists():
        return None
    return TraceRun(path, path.with_name(name), key, unquote(run), opener)


def trace_of(path: Path) -> Path | None:
    """Return the trace that a run is in; None if the path is no address of a run."""
    name, mark, _ = path.name.partition(MARK)
    return path.with_name(name) if mark and not path.exists() else None


def find_runs(path: Path, key: str, opener: Opener) -> list[Path]:
    """Return the addresses of the runs of a trace in order of appearance, or the trace itself.

    Raises RecordingError if some lines name a run and others none, or one names it by something
    else than a text or a whole number.
    """
    stat = path.stat()
    _, runs = _runs(path, key, opener, stat.st_mtime_ns, stat.st_size)
    return [path.with_name(f"{path.name}{MARK}{key}={quote(run, safe='')}") for run in runs] or [
        path
    ]


@lru_cache(maxsize=2)
def _runs(
    path: Path, key: str, opener: Opener, changed_ns: int, size: int
) -> tuple[JsonTrace, dict[str, _Run]]:
    """Return a trace and its runs, read once for all of them; key: what changes with the file."""
    del changed_ns, size
    trace = opener(path)
    runs: dict[str, _Run] = {}
    without = 0
    for sample in trace.read():
        assert isinstance(sample.data, dict)
        name = _name(sample.data.get(key), key, path)
        if name is None:
            without += 1
        else:
            runs.setdefault(name, _Run()).add(sample)
    if runs and without:
        raise RecordingError(
            f"{without} lines do not say by {key!r} which run they belong to, and others do",
            file=path,
            accepted="the key on every line, or on none (`episode:` names another key)",
        )
    return trace, runs


def _name(value: Any, key: str, path: Path) -> str | None:
    if value is None or value != value:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordingError(
            f"{key}: {value!r} is no name of a run", file=path, accepted="a text or a whole number"
        )
    return str(value)
