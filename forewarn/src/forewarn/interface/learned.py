"""Learning a model from recordings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from forewarn.assessment.modelling import learn_model
from forewarn.assessment.sufficiency import estimators, never_led_to
from forewarn.errors import InputError
from forewarn.files.remote import address
from forewarn.learning.executors import local
from forewarn.models.counts import CountModel
from forewarn.models.file import save_model
from forewarn.monitoring.loading import load_bare
from forewarn.recordings.parts import ACCEPTED, Part, moment
from forewarn.recordings.registry import existing_recordings

Recordings = Path | str | Iterable[Path | str]


@dataclass(frozen=True, repr=False)
class Learned:
    """A model that was learned from recordings. `learn` returns it, `load_monitor` accepts it.

    Attributes
    ----------
    model : CountModel
        The counts of transitions. This attribute is internal.
    remarks : tuple of str
        What was left out of the counts, and which properties have no risk.
    """

    model: CountModel
    remarks: tuple[str, ...]

    def __repr__(self) -> str:
        """Return the size of the model."""
        return f"Learned({self.states} states, {self.transitions} transitions)"

    @property
    def states(self) -> int:
        """Number of states of the model."""
        return self.model.size

    @property
    def transitions(self) -> int:
        """Number of transitions that were counted."""
        return int(self.model.counts.sum())

    def save(self, path: Path | str) -> None:
        """Write the model file.

        Raises
        ------
        ForewarnError
            If the file cannot be written.
        """
        save_model(self.model, Path(path))


def learn(
    config: Path | str,
    recordings: Recordings,
    *,
    begin: str | float | None = None,
    end: str | float | None = None,
    jobs: int = 1,
    allow_missing: bool = False,
) -> Learned:
    """Learn a model from recordings, as the command ``forewarn learn`` does.

    Parameters
    ----------
    config : path
        The monitor file.
    recordings : path or iterable of paths
        Recordings, or folders of recordings.
    begin, end : float or str, optional
        Only what was recorded between these moments, as ``--from`` and ``--to``: seconds since the
        recording began, or times such as ``2026-03-01T10:15:00Z``.
    jobs : int
        Number of processes. 0 starts one for each core.
    allow_missing : bool
        Accept recordings that lack a topic. The signals of that topic are then unknown.

    Returns
    -------
    Learned
        The model, and what was left out.

    Raises
    ------
    ForewarnError
        If the monitor file is wrong, a recording cannot be read, or nothing can be learned.
    """
    compiled = load_bare(Path(config))
    found = learn_model(
        compiled,
        existing_recordings(paths_of(recordings), compiled.spec, part_of(begin, end)),
        executor=local(jobs) if jobs else None,
        allow_missing=allow_missing,
        normal=True,
    )
    never = never_led_to(estimators(found.compiled, found.model))
    return Learned(found.model, (*found.notes, *found.warnings, *filter(None, [never])))


def paths_of(recordings: Recordings) -> list[Path]:
    """Return the paths that were given, one or many."""
    given = [recordings] if isinstance(recordings, (str, Path)) else recordings
    return [address(path) for path in given]


def part_of(begin: str | float | None, end: str | float | None) -> Part:
    """Return the part of recordings between two moments.

    Raises
    ------
    ForewarnError
        If one of them is no moment.
    """
    try:
        return Part(*(None if each is None else moment(str(each)) for each in (begin, end)))
    except ValueError as error:
        raise InputError(f"{error} is no moment", key="begin, end", accepted=ACCEPTED) from error
