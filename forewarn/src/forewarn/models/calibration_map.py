"""A monotone map from the chain's risk of a property to the frequency that was observed.

A chain that is not quite Markov, or too coarse, can rank states well and yet give probabilities
that are too high or too low. What held-out runs showed mends that without touching the counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from forewarn.errors import ModelError

if TYPE_CHECKING:
    from forewarn.models.checked_json import Reader

Floats = NDArray[np.float64]
Method = Literal["isotonic", "platt"]

METHODS: tuple[Method, ...] = ("isotonic", "platt")
MAX_KNOTS = 10_000
MAX_TICKS = 1 << 40
MAX_RECORDINGS = 1 << 20


@dataclass(frozen=True)
class Recalibration:
    """The map of one property, as kept in a model file.

    `name`, `formula`: the property; a map says nothing about another formula.
    `horizon`: seconds that its risk looks ahead; infinite for an unbounded horizon.
    `method`: isotonic: linear between `knots` (Zadrozny and Elkan, 2002). Platt: a logistic curve
        over the log-odds, ``slope * logit(risk) + intercept`` (Platt, 1999).
    `knots` (tuple of (risk, frequency)): of an isotonic map; risks rising within (0, 1),
        frequencies not falling within [0, 1].
    `slope`, `intercept`: of Platt's; the slope above 0.
    `recordings`: digests of the recordings they are from; figures on these flatter.
    `groups`: names of the groups of these recordings; none where each is by itself.
    """

    name: str
    formula: str
    horizon: float
    method: Method
    knots: tuple[tuple[float, float], ...] = ()
    slope: float = 1.0
    intercept: float = 0.0
    ticks: int = 0
    recordings: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key, value, good, accepted in self._checks():
            if not good:
                raise ModelError(f"{value!r} is not accepted", key=key, accepted=accepted)

    def _checks(self) -> list[tuple[str, object, bool, str]]:
        risks = [risk for risk, _ in self.knots]
        shares = [share for _, share in self.knots]
        rising = all(a < b for a, b in pairwise(risks))
        growing = all(a <= b for a, b in pairwise(shares))
        return [
            ("method", self.method, self.method in METHODS, " or ".join(map(repr, METHODS))),
            ("horizon", self.horizon, self.horizon > 0, "seconds above 0, or inf"),
            (
                "knots",
                self.knots,
                rising and all(0 < risk < 1 for risk in risks),
                "rising risks in (0, 1)",
            ),
            (
                "knots",
                self.knots,
                growing and all(0 <= share <= 1 for share in shares),
                "frequencies in [0, 1] that do not fall",
            ),
            ("slope", self.slope, 0 < self.slope < math.inf, "a finite number above 0"),
            ("intercept", self.intercept, math.isfinite(self.intercept), "a finite number"),
        ]

    def __call__(self, risk: Floats) -> Floats:
        """Return calibrated risks of any shape; NaN stays, and so do 0 and 1, which are certain.

        The map never falls, so bounds of a risk become bounds of the calibrated one: they hold for
        what the chain leaves open, not for what the map does.
        """
        inner = (risk > 0) & (risk < 1)
        found = np.array(risk, dtype=np.float64)
        change = self._interpolated if self.method == "isotonic" else self._logistic
        found[inner] = change(found[inner])
        return found

    def at(self, risk: float) -> float:
        """Return one calibrated risk."""
        return float(self(np.array([risk]))[0])

    def _interpolated(self, risk: Floats) -> Floats:
        x = np.array([0.0, *(risk for risk, _ in self.knots), 1.0])
        y = np.array([0.0, *(share for _, share in self.knots), 1.0])
        right = np.searchsorted(x, risk, side="right")
        left = right - 1
        share = (risk - x[left]) / (x[right] - x[left])
        # Rounding must not lift a value above the next knot's, or the map would fall there.
        return np.asarray(np.clip(y[left] + (y[right] - y[left]) * share, y[left], y[right]))

    def _logistic(self, risk: Floats) -> Floats:
        odds = self.slope * (np.log(risk) - np.log1p(-risk)) + self.intercept
        return np.asarray(1 / (1 + np.exp(-np.clip(odds, -700, 700))), dtype=np.float64)

    def fits(self, formula: str, horizon: float) -> bool:
        """Tell whether the map was fitted for this formula and horizon."""
        return (self.formula.split(), self.horizon) == (formula.split(), horizon)


def dump(maps: Sequence[Recalibration]) -> list[dict[str, Any]]:
    """Return maps as JSON can hold them."""
    records = []
    for calibration_map in maps:
        record = asdict(calibration_map)
        record["horizon"] = None if math.isinf(calibration_map.horizon) else calibration_map.horizon
        unused = ["slope", "intercept"] if calibration_map.method == "isotonic" else ["knots"]
        if not calibration_map.groups:  # an older file has none, and keeps its fingerprint
            unused.append("groups")
        records.append({key: value for key, value in record.items() if key not in unused})
    return records


def parse(readers: Sequence[Reader]) -> tuple[Recalibration, ...]:
    """Return maps from JSON; raises ModelError naming key path, value and what is accepted."""
    found: list[Recalibration] = []
    for reader in readers:
        method = reader.choice("method", METHODS)
        groups = reader.texts("groups", MAX_RECORDINGS) if "groups" in reader.value else ()
        fitted: dict[str, Any] = (
            {"knots": tuple(_knot(pair, reader) for pair in reader.items("knots", MAX_KNOTS))}
            if method == "isotonic"
            else {"slope": reader.number("slope"), "intercept": reader.number("intercept")}
        )
        try:
            found.append(
                Recalibration(
                    name=reader.text("name"),
                    formula=reader.text("formula"),
                    horizon=reader.horizon(),
                    method=method,
                    ticks=reader.integer("ticks", 0, MAX_TICKS),
                    recordings=reader.texts("recordings", MAX_RECORDINGS),
                    groups=groups,
                    **fitted,
                )
            )
        except ModelError as error:
            inside = (
                error.key if error.key.startswith(reader.path) else f"{reader.path}.{error.key}"
            )
            raise ModelError(error.problem, key=inside, accepted=error.accepted) from error
    names = [knot.name for knot in found]
    if len(set(names)) != len(names):
        raise ModelError(
            f"{names!r} names a property twice", key="recalibration", accepted="one map for each"
        )
    return tuple(found)


def _knot(pair: Any, reader: Reader) -> tuple[float, float]:
    good = (
        isinstance(pair, list)
        and len(pair) == 2
        and all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in pair)
    )
    if not good:
        raise reader.wrong("knots", pair, "[risk, frequency]")
    return float(pair[0]), float(pair[1])
