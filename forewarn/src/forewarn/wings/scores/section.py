"""What ``learned_score:`` of a monitor file says: signals that are learned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from forewarn.config.fields import Duration, Misfit, Path, Section

if TYPE_CHECKING:
    from forewarn.config.file import MonitorSpec

Direction = Literal["rising", "falling"]


class LearnedScoreSpec(Section):
    """A learned score: a learned signal between 0 and 1.

    Attributes
    ----------
    property : str
        The property whose violation is foreseen. Neither its formula nor a terminal label,
        `active_when` or `intervened_when` may depend on a learned score.
    signals : tuple of str or None
        The signals that it is computed from, numbers or Booleans that depend on no learned score.
        Where not given: all of them.
    history : float
        Seconds (steps) of the past that it also looks at, at most 200 moments: how each signal has
        changed since a quarter, a half and the whole of it before.
    directions : dict of str to str
        By signal: the score never falls as the signal rises, or as it falls. With few violations
        such signals count more.
    """

    property: Annotated[str, Field(alias="for", min_length=1)]
    signals: Annotated[tuple[str, ...] | None, Field(alias="from", min_length=1)] = None
    history: Duration = 0.0
    directions: dict[str, Direction] = {}  # noqa: RUF012 (pydantic copies defaults)

    @classmethod
    def misfits(cls, spec: MonitorSpec) -> Iterator[Misfit]:
        """Yield all in which learned scores do not fit the rest of a monitor file."""
        for name, section in spec.learned_score.items():
            at = ("learned_score", name)
            if section.property not in spec.properties:
                listed = ", ".join(spec.properties)
                yield Misfit((*at, "for"), f"no such property: {section.property!r}", listed)
            chosen = tuple(spec.signals) if section.signals is None else section.signals
            for index, signal in enumerate(section.signals or ()):
                where = (*at, "from", index)
                if signal in spec.learned_score:
                    problem = f"{signal!r} is a learned score itself"
                    yield Misfit(where, problem, "signals that are not learned")
                elif signal not in spec.signals:
                    yield Misfit(where, f"no such signal: {signal!r}", ", ".join(spec.signals))
                elif signal in chosen[:index]:
                    yield Misfit(where, f"{signal!r} stands there twice", "each signal once")
            for signal in section.directions.keys() - {*chosen}:
                yield Misfit(
                    (*at, "directions", signal), "it is not among `from`", ", ".join(chosen)
                )

    @classmethod
    def durations(cls, spec: MonitorSpec) -> Iterator[tuple[Path, float]]:
        """Yield how far each score looks back."""
        for name, score in spec.learned_score.items():
            yield ("learned_score", name, "history"), score.history
