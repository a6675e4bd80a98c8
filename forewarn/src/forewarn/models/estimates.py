"""What the risk of a property is made of, where it is not the chain's alone.

Only what was chosen is kept: weights and settings. The tables follow from the counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.errors import ModelError
from forewarn.models.shards import PropertyKey, Shard, dump_judged, read_property
from forewarn.registry import ESTIMATORS, extensions

if TYPE_CHECKING:
    from forewarn.models.checked_json import Reader

BASES = ("chain", "frequency", "bayes", "logistic", "multi_step")
MAX_NUMBERS = 16
MAX_COUNT = 1 << 40


class Part(NamedTuple):
    """One estimate in a mixture.

    `base`: one of `BASES`.
    `setting`: what was chosen for it (`learning.estimates`).
    `weight`: of its logit, 0 or more.
    """

    base: str
    setting: tuple[float, ...]
    weight: float


class Mixture(NamedTuple):
    """A risk whose logit is a weighted sum.

    `intercept`: what is added to the sum.
    `parts`: estimates from counts.
    `scores`: weights of the logits of the property's scores.
    """

    intercept: float
    parts: tuple[Part, ...]
    scores: tuple[float, ...] = ()


class Loss(NamedTuple):
    """How well an estimate predicts recordings that it was not made from.

    `log_loss`, `brier`: means over all moments whose outcome is known.
    """

    name: str
    log_loss: float
    brier: float


class Line(NamedTuple):
    """A line over log-odds that calibrates a risk, as Platt's does."""

    slope: float
    intercept: float


PLAIN = Line(1.0, 0.0)


@dataclass(frozen=True)
class Estimate:
    """What was chosen for one property.

    `asked`, `chosen`: the estimator that the monitor file names, and what came of it: a base, or
        ``ensemble``, the sum of ``ensemble``.
    `reason`: why, in words.
    `plain`: the risk by state and automaton.
    `scored`: the risk where all scores are known; None without any.
    `losses`: of everything that was tried, cross-fitted by recording.
    `calibration`, `scored_calibration`: what calibrates the two; `PLAIN` where that does not help.
    `recordings`, `with_violations`, `moments`: what it was chosen from.
    `source`: digest of the names of those recordings (`source_of`).
    """

    judged: PropertyKey
    asked: str
    chosen: str
    reason: str
    plain: Mixture
    scored: Mixture | None = None
    losses: tuple[Loss, ...] = ()
    calibration: Line = PLAIN
    scored_calibration: Line = PLAIN
    recordings: int = 0
    with_violations: int = 0
    moments: int = 0
    source: str = ""

    @property
    def is_chain(self) -> bool:
        """Tell whether it is the chain's risk as it is."""
        return self.chosen == "chain" and self.scored is None and self.calibration == PLAIN


def source_of(shards: Iterable[Shard]) -> str:
    """Return the SHA-256 of the names of recordings and of their groups, in whatever order."""
    names = "\n".join(sorted(f"{shard.recording} {shard.group}".rstrip() for shard in shards))
    return hashlib.sha256(names.encode()).hexdigest()


def dump(found: Sequence[Estimate]) -> list[dict[str, Any]]:
    """Return estimates as JSON can hold them."""
    return [
        {
            **asdict(one),
            "judged": dump_judged([one.judged])[0],
            "plain": _mixture(one.plain),
            "scored": None if one.scored is None else _mixture(one.scored),
            "losses": [loss._asdict() for loss in one.losses],
            "calibration": list(one.calibration),
            "scored_calibration": list(one.scored_calibration),
        }
        for one in found
    ]


def _mixture(found: Mixture) -> dict[str, Any]:
    return {**found._asdict(), "parts": [part._asdict() for part in found.parts]}


def parse(readers: Sequence[Reader]) -> tuple[Estimate, ...]:
    """Return estimates from JSON; raises ModelError naming key path, value and what is accepted."""
    found = [_parse(reader) for reader in readers]
    names = [one.judged for one in found]
    if len(set(names)) != len(names):
        raise ModelError(
            "a property occurs twice", key="estimates", accepted="one estimate for each property"
        )
    return tuple(found)


def _parse(reader: Reader) -> Estimate:
    judged = PropertyKey(**read_property(reader.child("judged")))
    scored = reader.get("scored", "an object, or null")
    return Estimate(
        judged=judged,
        asked=_estimator(reader, "asked", "ensemble"),
        chosen=_estimator(reader, "chosen", "ensemble"),
        reason=reader.text("reason"),
        plain=_read_mixture(reader.child("plain"), 0),
        scored=None
        if scored is None
        else _read_mixture(reader.child("scored"), len(judged.scores)),
        losses=tuple(
            Loss(loss.text("name"), loss.number("log_loss"), loss.number("brier"))
            for loss in reader.children("losses")
        ),
        calibration=_read_line(reader, "calibration"),
        scored_calibration=_read_line(reader, "scored_calibration"),
        recordings=reader.integer("recordings", 0, MAX_COUNT),
        with_violations=reader.integer("with_violations", 0, MAX_COUNT),
        moments=reader.integer("moments", 0, MAX_COUNT),
        source=reader.text("source"),
    )


def _estimator(reader: Reader, key: str, *more: str) -> str:
    name, own = reader.text(key), (*BASES, *more)
    return name if name not in own and name in extensions(ESTIMATORS) else reader.choice(key, own)


def _read_mixture(reader: Reader, scores: int) -> Mixture:
    parts = tuple(
        Part(
            _estimator(part, "base"),
            part.numbers("setting", MAX_NUMBERS),
            _weight(part),
        )
        for part in reader.children("parts")
    )
    if len({part.base for part in parts}) != len(parts) or not parts:
        bases = [part.base for part in parts]
        raise reader.wrong("parts", bases, "each base at most once, and one at least")
    weights = reader.numbers("scores", MAX_NUMBERS, 0.0)
    if len(weights) != scores:
        raise ModelError(
            f"{len(weights)} weights of scores",
            key=f"{reader.path}.scores",
            accepted=f"{scores}, one for each score",
        )
    return Mixture(reader.number("intercept"), parts, weights)


def _weight(reader: Reader) -> float:
    value = reader.number("weight")
    if value < 0:
        raise reader.wrong("weight", value, "0 or more")
    return value


def _read_line(reader: Reader, key: str) -> Line:
    found = reader.numbers(key, MAX_NUMBERS)
    if len(found) != 2 or not found[0] > 0:
        raise reader.wrong(key, found, "[slope above 0, intercept]")
    return Line(*found)
