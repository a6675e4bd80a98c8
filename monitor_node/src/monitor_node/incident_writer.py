"""Writes incidents in a thread of its own: ticks put messages into a queue and go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from forewarn.config.fields import size_text
from forewarn.errors import ForewarnError
from forewarn.wings.black_box.box import Kept, LogEntry
from forewarn.wings.black_box.incident_file import IncidentFile, IncidentFolder

CHECKED = 1 << 24
"""Bytes of messages after which the quota is looked at; less where it is small."""


class IncidentWriter:
    """The sink of a black box. All methods but `run` belong to the thread of the ticks.

    `most`: bytes that may wait to be written; what comes beyond them is left out, and counted.
    `say`, `warn`: log a line; called in the thread.
    """

    def __init__(
        self,
        folder: IncidentFolder,
        most: int,
        about: Callable[[], Mapping[str, str]],
        files: Mapping[str, bytes],
        say: Callable[[str], object],
        warn: Callable[[str], object],
    ) -> None:
        self.folder = folder
        self.problem = ""  # Why the newest incident could not be written; empty if it was
        self.newest = ""
        self.path = ""  # What the file that was begun last will be called
        self.lost = 0
        self._most = most
        self._about = about
        self._files = files
        self._step = min(CHECKED, folder.most // 8)
        self._say, self._warn = say, warn
        self._put = self._done = self._unchecked = 0
        self._left_out = 0
        self._given: set[Path] = set()  # names of files that the thread may not have opened yet
        self._file: IncidentFile | None = None
        self._ended = ""
        self._number = 0  # of the file that was begun last; of the thread's; of one that has ended
        self._begun, self._over = 0, -1
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="incidents", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Bytes that wait to be written."""
        return self._put - self._done

    @property
    def over(self) -> bool:
        """Tell whether the file that was begun last takes nothing more."""
        return self._over == self._number

    # What the thread of the ticks calls

    def begin(self, first: LogEntry, kept: Sequence[Kept], *, continued: bool) -> None:
        """Begin an incident with what was kept."""
        path = self.folder.path_at(first.time_ns, self._given)
        self._given.add(path)
        self.path, self._left_out = str(path), 0
        self._number += 1
        about = {**self._about(), "continued": "yes" if continued else "no"}
        self._queue.put(partial(self._begin, self._number, path, first, about))
        for one in kept:
            self.write(one)

    def write(self, kept: Kept) -> None:
        """Append a message."""
        if self.waiting + kept.size > self._most:
            self._left_out += 1
            self.lost += 1
            return
        self._put += kept.size
        self._queue.put(partial(self._write, kept))

    def end(self) -> None:
        """End the incident."""
        self._queue.put(partial(self._end, self._left_out))

    def close(self, seconds: float) -> bool:
        """Write what is left, for so long at the most; tell whether all was written."""
        self._queue.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # What the thread does

    def _run(self) -> None:
        while (command := self._queue.get()) is not None:
            try:
                command()
            except (ForewarnError, OSError) as error:
                self._fail(error)
            except Exception as error:  # whatever it is, the next incident may succeed
                self._fail(error)

    def _begin(self, number: int, path: Path, first: LogEntry, about: Mapping[str, str]) -> None:
        self._ended, self._begun = "", number
        try:
            self._prune(coming=self._step, files=1)
            self._file = IncidentFile(path, first, about, self._files)
        finally:
            self._given.discard(path)
        self._say(f"black box: {first.text}: writing {path}")

    def _write(self, kept: Kept) -> None:
        self._done += kept.size
        if self._file is None:
            return
        self._file.write(kept)
        self._unchecked += kept.size
        if self._unchecked > self._step:
            self._unchecked = 0
            self._file.flush()
            size = self._file.size
            self._prune(coming=size + self._step, files=1)
            if size > self.folder.most - 2 * self._step:  # what comes until the next look has room
                self._ended = f"it ends at half of the quota of {size_text(self.folder.quota)}"
                self._finish({})

    def _end(self, left_out: int) -> None:
        remarks = {}
        if left_out:
            remarks["left out"] = (
                f"{left_out} messages for which there was no room in memory: the disk is too slow"
            )
        if self._file is not None:
            self._finish(remarks)

    def _finish(self, remarks: Mapping[str, str]) -> None:
        file = self._file
        assert file is not None
        remarks = {**remarks, **({"ended": self._ended} if self._ended else {})}
        self.newest = str(file.close(remarks))
        self._file, self.problem, self._over = None, "", self._begun
        said_of = "; ".join((*remarks.values(), *file.left_out.values()))
        text = f"black box: {self.newest}: {file.messages} messages"
        if said_of:
            self._warn(f"{text}; {said_of}")
        else:
            self._say(text)
        self._prune()

    def _prune(self, coming: int = 0, files: int = 0) -> None:
        for path in self.folder.prune(coming, files=files):
            self._say(f"black box: {path} was the oldest, and is deleted: keep and quota")

    def _fail(self, error: Exception) -> None:
        file, self._file = self._file, None
        self._over = self._begun
        left = None if file is None else file.abandon()
        self.problem = f"an incident could not be written: {error}"
        if left is not None:
            self.newest = str(left)
            self.problem += f"; its part is in {left}"
        self._warn(f"black box: {self.problem}")
