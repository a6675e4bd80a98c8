"""Learning a model from recordings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from forewarn.assessment.modelling import learn_model
from forewarn.assessment.sufficiency import Requirement, dependence, estimators, verdict
from forewarn.files.remote import address
from forewarn.learning.executors import local
from forewarn.models import CountModel, save_model
from forewarn.monitoring.loading import load_bare
from forewarn.recordings.given import existing_recordings

Recordings = Path | str | Iterable[Path | str]


@dataclass(frozen=True)
class Learned:
    """A model that was learned from recordings; `learn` makes it, `load_monitor` takes it.

    Attributes
    ----------
    model : CountModel
        For Forewarn itself.
    verdict : str
        What the recordings are good for, in one line.
    remarks : tuple of str
        What was left out or worked around.
    """

    model: CountModel
    verdict: str
    remarks: tuple[str, ...]

    @property
    def states(self) -> int:
        """How many states were seen."""
        return self.model.size

    @property
    def transitions(self) -> int:
        """How many transitions were counted."""
        return int(self.model.counts.sum())

    def save(self, path: Path | str) -> None:
        """Write the model file; raises ForewarnError if that is not possible."""
        save_model(self.model, Path(path))


def learn(
    config: Path | str, recordings: Recordings, *, jobs: int = 1, allow_missing: bool = False
) -> Learned:
    """Learn a model from recordings, as the command ``forewarn learn`` does.

    Parameters
    ----------
    config : path
        The monitor file.
    recordings : path or iterable of paths
        Recordings, or folders of them.
    jobs : int
        Processes to use; 0 for one per core.
    allow_missing : bool
        Go on without topics that a recording lacks: their signals are unknown.

    Raises
    ------
    ForewarnError
        If the monitor file is wrong, a recording cannot be read, or nothing can be learned.
    """
    compiled = load_bare(Path(config))
    found = learn_model(
        compiled,
        existing_recordings(paths_of(recordings), compiled.spec),
        executor=local(jobs) if jobs else None,
        allow_missing=allow_missing,
    )
    told = verdict(
        found.model,
        Requirement.of(None, None, found.compiled, False).judge(found.model),
        dependence(found.counted.triples),
        estimators(found.compiled, found.model),
    )
    return Learned(found.model, told, (*found.notes, *found.warnings))


def paths_of(recordings: Recordings) -> list[Path]:
    """Return the paths that were given, one or many."""
    given = [recordings] if isinstance(recordings, (str, Path)) else recordings
    return [address(path) for path in given]
