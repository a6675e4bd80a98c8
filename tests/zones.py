"""A kind of states that is no vector of predicates: in which zone a signal lies. For tests."""

from __future__ import annotations

import hashlib
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from forewarn.config.fields import Section
from forewarn.config.file import MonitorSpec
from forewarn.errors import ModelError
from forewarn.states.abstraction import Abstraction
from forewarn.states.interface import Admission, StateSpace
from forewarn.states.kinds import KINDS, Kind
from forewarn.states.predicates.compile import build_abstraction
from forewarn.wings.scores.fit import LearnedScoreFit

NAMES = ("low", "middle", "high")


class Zone(NamedTuple):
    """What is known of a tick: the zones that it may be in."""

    may: tuple[int, ...]
    active: bool | None = True
    intervened: bool | None = False
    ended: bool = False

    @property
    def state(self) -> int | None:
        return self.may[0] if len(self.may) == 1 else None


@dataclass(frozen=True)
class Zones(StateSpace, Admission):
    """The code of a state is the number of its zone; nothing jumps over the middle one."""

    kind = "zones"
    predicates: tuple[str, ...] = NAMES
    terminals: tuple[str, ...] = ()
    cardinality = 3
    nothing_known = Zone((0, 1, 2))

    def name(self, state: int) -> str:
        return NAMES[state] if state >= 0 else self.terminals[-state - 1]

    def key(self, state: int) -> str:
        return self.name(state) if state >= 0 else f"!{self.name(state)}"

    def parse_key(self, key: str) -> int:
        codes = {self.key(code): code for code in range(-len(self.terminals), 3)}
        if key not in codes:
            raise ModelError(f"{key!r} is no zone", accepted=", ".join(codes))
        return codes[key]

    def holds(self, atom: str, state: int) -> bool:
        return self.name(state) == atom

    def candidates(self, observation: Zone) -> Iterator[int]:
        return iter(observation.may)

    def terminal_candidates(self, observation: Zone) -> tuple[int, ...]:
        return ()

    def parse_observation(self, values: Sequence[Any]) -> Zone:
        return Zone(tuple(values[0]), *values[1:])

    def admits(self, state: int) -> bool:
        return state < 3

    def allows(self, source: int, target: int) -> bool:
        return source == target if source < 0 else target < 0 or abs(source - target) < 2

    def states(self) -> list[int]:
        return [0, 1, 2]


class Limits(Section):
    """What the monitor file says beside ``kind: zones``."""

    limits: tuple[float, float]


@dataclass(frozen=True)
class ZoneAbstraction(Abstraction):
    """A missing value leaves the neighbours of the zones before."""

    def validity(self, spec: MonitorSpec) -> Admission:
        assert isinstance(self.vocabulary, Zones)
        return self.vocabulary

    def joined(self, previous: Zone | None, current: Zone) -> Zone:
        if previous is None or current.state is not None:
            return current
        return Zone(tuple(z for z in current.may if any(abs(z - b) < 2 for b in previous.may)))


def _zone_of(limits: Sequence[float], slot: int) -> Callable[[Sequence[Any]], Zone]:
    def zone(values: Sequence[Any]) -> Zone:
        x = values[slot]
        return Zones.nothing_known if x is None else Zone((bisect(limits, x),))

    return zone


def build(
    spec: MonitorSpec, inline: Iterable[str], fitted: Sequence[LearnedScoreFit]
) -> ZoneAbstraction:
    limits = spec.states_section(Limits).limits
    cuts = {f"states.limits[{i}]": f"x < {limit!r}" for i, limit in enumerate(limits)}
    signals = build_abstraction(spec, further=cuts, fitted=fitted)
    return ZoneAbstraction(
        vocabulary=Zones(),
        sources=signals.sources,
        derived=signals.derived,
        clock=signals.clock,
        digest=hashlib.sha256(f"zones {signals.digest}".encode()).hexdigest(),
        evaluate=_zone_of(limits, signals.signals.index("x")),
        remembers=True,
    )


def parse(names: tuple[str, ...], terminals: tuple[str, ...], content: Mapping[str, Any]) -> Zones:
    if names != NAMES or content:
        raise ModelError(f"{names} are no zones", key="predicates", accepted=", ".join(NAMES))
    return Zones(names, terminals)


KIND = Kind(build, parse)
KINDS["zones"] = KIND
