"""The rules of a kind of robot that signals of a recording can be watched with."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.cli.init.catalogue import Role
from forewarn.cli.init.draft import Draft, DraftSignal
from forewarn.cli.init.examples import MOST_BROKEN, Example, Rule, often, shares_of
from forewarn.cli.init.naming import is_time_to, words
from forewarn.cli.init.trial import Trial
from forewarn.config.fields import Rate
from forewarn.config.includes import RULES, WORD
from forewarn.config.yaml_text import load_document

LIMIT = re.compile(r"(abs\()?(\w+)\)? ([<>]) (-?[\d.]+)\Z")
BOUND = re.compile(r"\[0:([\d.]+)\]")
WINDOW = re.compile(r", (0\.\d+)\)")
MOST_SCALE = 10.0
"""A limit that is usually exceeded by as much is in another unit, or about something else."""
SELDOM_SHARE = 0.99
PHASES = ("moving", "told_to_move", "arm_moves", "told_to_turn", "flying")
"""Predicates that say what a robot is about, and limit nothing."""
ACTIVE = 3
"""Rules that a file begins with: each has predicates, which multiply the states."""
BEFORE = "so it is before violations, and seldom otherwise"
CRUISE_MARGIN = 1.2
_CALLED: Mapping[str, tuple[frozenset[str], ...]] = {
    "time_to_collision": (),
    "commanded_speed": (frozenset(["cmd", "commanded", "target"]), frozenset(["speed", "vel"])),
    "yaw_rate": (frozenset(["yaw", "ang", "angular", "turn"]), frozenset(["rate", "vel", "speed"])),
    "steering": (frozenset(["steer", "steering"]),),
    "battery": (frozenset(["battery", "charge", "soc"]),),
    "altitude": (frozenset(["altitude", "height"]),),
    "tilt": (frozenset(["tilt"]),),
    "gap": (frozenset(["gap", "headway"]),),
    "lane_offset": (frozenset(["lane"]), frozenset(["offset", "deviation", "lateral"])),
    "stop_line_distance": (
        frozenset(["stopline", "stop"]),
        frozenset(["ahead", "distance", "line"]),
    ),
    "acceleration": (frozenset(["acceleration", "accel"]),),
    "force": (frozenset(["force"]),),
    "torque": (frozenset(["torque"]),),
    "red_light": (frozenset(["red"]),),
}
"""What signals are called that rules name otherwise: one word of each set."""
_CARS = ("autoware", "apollo", "ackermann", "steering", "steer", "lane", "chasis", "chassis")
_DRONES = ("mavros", "px4", "altitude", "ardupilot", "thrust")
_ARMS = ("joint", "wrench", "gripper")


class Candidate(NamedTuple):
    """A rule that can be watched.

    Attributes
    ----------
    section : dict
        Its property, as in the file of its kind, with the names that signals have here.
    signals : dict of str to dict
        Derived signals that it asks for.
    predicates : dict of str to str
        Those that its formula names.
    bins : dict of str to list of float
        Cuts on the way to a violation.
    remarks : dict of str to str
        Where a threshold comes from, by predicate.
    """

    name: str
    section: Mapping[str, Any]
    signals: Mapping[str, Mapping[str, Any]]
    predicates: Mapping[str, str]
    bins: Mapping[str, Sequence[float]]
    remarks: Mapping[str, str] = {}

    @property
    def formula(self) -> str:
        """What it says."""
        return str(self.section["formula"])


def kind_of(draft: Draft) -> str:
    """Return the kind of robot that a recording is of, by its topics, types and names."""
    if draft.calls:
        return "agent"
    told = " ".join(f"{s.name} {s.topic} {s.msgtype}" for s in draft.signals)
    told += " " + " ".join(f"{t.info.name} {t.info.msgtype}" for t in draft.topics)
    told = told.lower()
    for kind, marks in (("drone", _DRONES), ("car", _CARS), ("arm", _ARMS)):
        if any(mark in told for mark in marks) and not (kind == "arm" and _has_wheels(draft)):
            return kind
    times_to = any(is_time_to(signal.name) for signal in draft.signals)
    return "car" if times_to else "mobile_base"


def _has_wheels(draft: Draft) -> bool:
    return any(signal.proposal.role is Role.SPEED for signal in draft.signals)


def candidates_of(kind: str, draft: Draft) -> list[Candidate]:
    """Return the rules of a kind whose signals are all there, by the names that these have."""
    data = load_document(RULES / f"{kind}.yaml").data
    called = _canonical(draft, data["signals"])
    return [
        for_clock
        for name, section in data["properties"].items()
        if (found := _candidate(name, section, data, called)) is not None
        and (for_clock := _for_clock(found, draft.rate)) is not None
    ]


def _for_clock(candidate: Candidate, rate: Rate) -> Candidate | None:
    """Return a rule whose durations are whole ticks, or steps; None if it means nothing then."""
    if rate == "steps":
        if any("rate(" in each["value"] for each in candidate.signals.values()):
            return None
        section = {**candidate.section, "horizon": math.ceil(candidate.section["horizon"])}
        whole = BOUND.sub(lambda m: f"[0:{math.ceil(float(m[1]))}]", candidate.formula)
        return candidate._replace(section={**section, "formula": whole})
    least = 1 / float(rate)
    signals = {
        name: {
            **each,
            "value": WINDOW.sub(lambda m: f", {max(float(m[1]), least):g})", each["value"]),
        }
        for name, each in candidate.signals.items()
    }
    return candidate._replace(signals=signals)


def _candidate(
    name: str, section: Mapping[str, Any], data: Mapping[str, Any], called: Mapping[str, str]
) -> Candidate | None:
    predicates = _named(section["formula"], data["predicates"])
    asked = dict.fromkeys(word for text in predicates.values() for word in WORD.findall(text))
    derived: dict[str, Mapping[str, Any]] = {}
    for word in asked:
        if "value" in data["signals"].get(word, {}):
            derived[word] = data["signals"][word]
    needed = {w for d in derived.values() for w in WORD.findall(d["value"])} | asked.keys()
    if any(w in data["signals"] and w not in derived and w not in called for w in needed):
        return None
    renamed = {name: called.get(name, name) for name in data["signals"]}
    bins = {renamed[s]: cuts for s, cuts in data.get("bins", {}).items() if s in asked}
    return Candidate(
        name,
        section,
        {k: {**v, "value": _renamed(v["value"], renamed)} for k, v in derived.items()},
        {k: _renamed(v, renamed) for k, v in predicates.items()},
        bins,
    )


def _named(formula: str, predicates: Mapping[str, str]) -> dict[str, str]:
    return {w: predicates[w] for w in WORD.findall(formula) if w in predicates}


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return WORD.sub(lambda word: names.get(word[0], word[0]), text)


def _canonical(draft: Draft, names: Collection[str]) -> dict[str, str]:
    """Return by the names of rules the signals that are meant; each is meant once."""
    found: dict[str, str] = {}
    usable = [s for s in draft.signals if not s.closing and (draft.calls or _measured(s))]
    for signal in usable:
        for name in _meanings(signal):
            if name in names and name not in found and signal.name not in found.values():
                found[name] = signal.name
    return found


def _measured(signal: DraftSignal) -> bool:
    """Tell whether a signal has numbers that change, or a truth value."""
    return signal.proposal.role is Role.FLAG or len(np.unique(signal.numbers)) > 1


def _meanings(signal: DraftSignal) -> Iterator[str]:
    yield signal.proposal.name
    yield signal.name
    if is_time_to(signal.name):
        yield "time_to_collision"
    called = set(words(signal.name))
    for name, sets in _CALLED.items():
        if sets and all(called & one for one in sets):
            yield name
    if signal.proposal.role is Role.SPEED:
        yield "speed"
    if signal.proposal.role is Role.DISTANCE and not is_time_to(signal.name):
        yield "nearest"


def chosen(candidates: Sequence[Candidate], trials: Mapping[str, Trial], change: float) -> Example:
    """Return the example of a file: the rules that these recordings say most about.

    Those come first that are broken and foreseen, then those that are broken; `ACTIVE` of them are
    properties, the others comments.

    Parameters
    ----------
    trials : dict of str to Trial
        What came of each rule.
    change : float
        Seconds, or steps, over which signals change.
    """

    def rank(candidate: Candidate) -> tuple[bool, bool, bool]:
        trial = trials[candidate.name]
        return trial.broken > MOST_BROKEN, not trial.precursors.found, not trial.violations

    ordered = sorted(candidates, key=rank)
    active = [c for c in ordered[:ACTIVE] if trials[c.name].broken <= MOST_BROKEN]
    example = example_with(active, trials)
    before = dict(_before(active, trials, change))
    derived = {name: each for candidate in candidates for name, each in candidate.signals.items()}
    asked = {word for text in before.values() for word in WORD.findall(text)}
    signals = {**example.signals, **{k: v for k, v in derived.items() if k in asked}}
    others = ((_rule(c, trials), c.predicates) for c in ordered if c not in active)
    return example._replace(
        predicates=(*example.predicates, *((k, v, BEFORE) for k, v in before.items())),
        others=tuple(others),
        signals=signals,
    )


def example_with(candidates: Sequence[Candidate], trials: Mapping[str, Trial]) -> Example:
    """Return an example with all of the rules as properties."""
    predicates: dict[str, tuple[str, str]] = {}
    bins: dict[str, tuple[float, ...]] = {}
    signals: dict[str, Mapping[str, Any]] = {}
    remarks = {k: v for candidate in candidates for k, v in candidate.remarks.items()}
    for candidate in candidates:
        told = ((k, (v, candidate.remarks.get(k, ""))) for k, v in candidate.predicates.items())
        predicates.update(told)
        bins.update((k, tuple(v)) for k, v in candidate.bins.items())
        signals.update(candidate.signals)
    return Example(
        tuple((name, text, remark) for name, (text, remark) in predicates.items()),
        tuple((name, cuts, remarks.get(name, "")) for name, cuts in bins.items()),
        tuple(_rule(candidate, trials) for candidate in candidates),
        signals,
    )


def _before(
    active: Sequence[Candidate], trials: Mapping[str, Trial], change: float
) -> Iterator[tuple[str, str]]:
    """Yield what comes before violations as predicates, where no bin cuts it."""
    cut = {name for candidate in active for name in candidate.bins}
    for candidate in active:
        sign = trials[candidate.name].precursors
        if sign.found and not (sign.of_value and sign.signal in cut):
            yield f"before_{candidate.name}", sign.condition(change)


def _rule(candidate: Candidate, trials: Mapping[str, Trial]) -> Rule:
    section, trial = candidate.section, trials.get(candidate.name)
    return Rule(
        candidate.name,
        candidate.formula,
        "" if trial is None else trial.told(),
        0.0 if trial is None else trial.broken,
        section["horizon"],
        section["intervention"],
        section.get("speed_limit"),
    )


def fitted(
    candidate: Candidate, series: Mapping[str, NDArray[np.float64]], *, usual: bool
) -> Candidate | None:
    """Return a rule whose limits are beyond what a robot does all the time; None if none fits.

    Parameters
    ----------
    series : dict of str to ndarray, shape (n,)
        Signals at each tick, derived ones too; NaN where unknown.
    usual : bool
        The rule is broken all the time.
    """
    predicates, bins, remarks = dict(candidate.predicates), dict(candidate.bins), {}
    for name, text in candidate.predicates.items():
        match = LIMIT.match(text)
        if match is None or match[2] not in series or not float(match[4]):
            continue
        values = series[match[2]]
        values = np.abs(values) if match[1] else values
        values = values[~np.isnan(values)]
        before = float(match[4])
        limit, told = before, ""
        if name == "too_fast" and (cruise := cruise_of(values)):
            limit, told = _beyond(CRUISE_MARGIN * cruise, ">"), f"it cruises at {cruise:.3g}"
        elif usual and name not in PHASES:
            limit, told = _unusual(match[3], before, values)
        if not 1 / MOST_SCALE <= limit / before <= MOST_SCALE:
            return None
        predicates[name] = f"{text[: match.start(4)]}{limit:g}"
        true = values > limit if match[3] == ">" else values < limit
        remarks[name] = "; ".join(filter(None, (told, often(true))))
        if limit != before and match[2] in bins:
            scaled = sorted({_rounded(cut * limit / before) for cut in bins[match[2]]})
            bins[match[2]] = [cut for cut in scaled if cut != limit]
    for name, cuts in bins.items():
        if name in series:
            remarks[name] = shares_of(series[name][~np.isnan(series[name])], cuts)
    return candidate._replace(predicates=predicates, bins=bins, remarks=remarks)


def _unusual(sign: str, limit: float, values: NDArray[np.float64]) -> tuple[float, str]:
    """Return a limit that values seldom pass, and where it comes from."""
    finite = values[np.isfinite(values)]
    passed = finite > limit if sign == ">" else finite < limit
    if not len(finite) or passed.mean() <= 1 - SELDOM_SHARE:
        return limit, ""
    share = SELDOM_SHARE if sign == ">" else 1 - SELDOM_SHARE
    return _beyond(float(np.quantile(finite, share)), sign), f"{limit:g} is passed all the time"


def cruise_of(speeds: NDArray[np.float64]) -> float:
    """Return the fastest speed that is kept for long, its highest mode; 0 if there is none.

    Parameters
    ----------
    speeds : ndarray, shape (n,)
        Speeds, of either sign.
    """
    fast = np.abs(speeds[np.isfinite(speeds)])
    fast = fast[fast > 0.05]
    if len(fast) < 20:
        return 0.0
    counts, edges = np.histogram(fast, bins=40, range=(0, float(fast.max()) * 1.0001))
    often = np.flatnonzero(counts >= max(0.05 * len(fast), 0.3 * counts.max()))
    if not len(often):
        return 0.0
    inside = fast[(fast >= edges[often[-1]]) & (fast <= edges[often[-1] + 1])]
    return float(np.median(inside))


def _beyond(value: float, sign: str) -> float:
    """Return a plain number at or beyond a value, two digits."""
    if value == 0 or not math.isfinite(value):
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    whole = math.ceil(value / step - 1e-9) if sign == ">" else math.floor(value / step + 1e-9)
    return round(whole * step, 12)


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")
