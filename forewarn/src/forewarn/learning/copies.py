"""Recordings that hold the same data: counting them twice would look more certain than it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from forewarn.errors import ModelError, RecordingError, plural
from forewarn.files.remote import RemotePath
from forewarn.models.counts import Provenance
from forewarn.recordings.parts import trace_of

LISTED = 3


class Copies:
    """Tells which recordings hold the same data as one before.

    `allowed`: leave out runs of a trace that are in another trace, too: agents that are asked the
        same often do the same. A trace of which nothing is left, or any other recording, was given
        twice by mistake; without `allowed`, a run was, too.
    `counted`: recordings that count already, in a model that others are added to.

    `left_out` (list of (Path, Path)): runs that are left out, each with the one that stays.
    `alike` (list of (Path, Path)): recordings of which one is remote, and known by what its store
        says of it: they give the same counts, and may be copies in two places.
    """

    def __init__(self, *, allowed: bool, counted: Iterable[Provenance] = ()) -> None:
        self.left_out: list[tuple[Path, Path]] = []
        self.alike: list[tuple[Path, Path]] = []
        self._allowed = allowed
        self._known = {one.digest: Path(one.recording) for one in counted if one.digest}
        self._seen: dict[str, Path] = {}
        self._counted: dict[str, Path] = {}
        self._traces: set[Path] = set()

    def is_new(self, path: Path, digest: str, counts: str = "") -> bool:
        """Tell whether a recording counts; raise RecordingError if it must not be there.

        `counts`: a digest of what it gives, if that is known.
        """
        known = self._known.get(digest)
        first = known or self._seen.setdefault(digest, path)
        trace = trace_of(path)
        if known is None and first == path:
            self._traces.add(path if trace is None else trace)
            other = self._counted.setdefault(counts, path) if counts else path
            if other != path and any(isinstance(one, RemotePath) for one in (path, other)):
                self.alike.append((path, other))
            return True
        if trace is None or not self._allowed:
            raise _twice(path, first, "" if known is None else ", which the model has already")
        if (path, first) not in self.left_out:  # each is named once, however often it is read
            self.left_out.append((path, first))
        return False

    def remark(self) -> str:
        """Return what was left out, empty if nothing was; the recordings have all been seen.

        Raises RecordingError if all runs of a trace are copies.
        """
        for path, first in self.left_out:
            if trace_of(path) not in self._traces:
                raise _twice(path, first)
        return "; ".join(filter(None, (self._told_alike(), self._told_left_out())))

    def _told_alike(self) -> str:
        if not self.alike:
            return ""
        path, first = self.alike[0]
        more = f", and {len(self.alike) - 1} more pairs like them" if self.alike[1:] else ""
        return (
            f"{path} and {first} give the same counts to the last one{more}: they may be one "
            "recording in two places, which would count twice; give it from "
            "one place only"
        )

    def _told_left_out(self) -> str:
        if not self.left_out:
            return ""
        path, first = self.left_out[0]
        number = len(self.left_out)
        return (
            f"{plural(number, 'run')} left out, because another trace holds the "
            f"same data: {path.name} is {first.name}{', and so on' if number > 1 else ''}"
        )


def refuse_counted_twice(origins: Sequence[Provenance]) -> None:
    """Raise ModelError if several models that are merged have counted the same recording."""
    times = Counter(one.digest for one in origins if one.digest)
    names = {one.digest: one.recording for one in origins if times[one.digest] > 1}
    if not names:
        return
    listed = ", ".join([*names.values()][:LISTED])
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    raise ModelError(
        f"{plural(len(names), 'recording')} in several of the models: {listed}{more}",
        accepted="models of different recordings: none may count twice",
    )


def _twice(path: Path, first: Path, where: str = "") -> RecordingError:
    return RecordingError(
        f"holds the same data as {first}{where}",
        file=path,
        accepted="each recording once",
    )
