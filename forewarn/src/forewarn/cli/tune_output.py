"""What tuning found, in words and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from forewarn.assessment.guarantee import miss_bound
from forewarn.assessment.tuning import FEW_VIOLATIONS, Candidate, Tuning
from forewarn.cli.common import lasting, share
from forewarn.cli.output import Output
from forewarn.errors import plural

ROWS = 14
COLUMNS = (
    ">act",
    ">enter",
    ">foreseen",
    ">missed",
    "?>miss bound",
    ">median lead",
    "?>mean lead",
    ">false",
    ">false/h",
    "?>bound",
    ">in alert",
    "?>precision",
    "",
)


def print_tuning(tuning: Tuning, output: Output) -> None:
    """Print the trade-off of a property and what was chosen, or why nothing was."""
    found = tuning.support
    output.say(
        f"{tuning.name}: {plural(found.violations, 'violation')} in {found.runs_with_violation} of "
        f"{plural(found.runs, _unit(tuning))}, "
        f"{tuning.goal.clock.span(found.hours * 3600)} watched"
    )
    output.table(_columns(tuning), [_cells(candidate, tuning) for candidate in listed(tuning)])
    for line in warnings(tuning):
        output.warn(f"{tuning.name}: {line}")
    for line in (*conclusions(tuning), ""):
        output.say(line)


def _columns(tuning: Tuning) -> tuple[str, ...]:
    clock = tuning.goal.clock
    if clock.timed:
        return COLUMNS
    return tuple(f">false {clock.hour}" if name == ">false/h" else name for name in COLUMNS)


def _unit(tuning: Tuning) -> str:
    if tuning.goal.clusters:
        return "group"
    return "run" if tuning.goal.block is None else "block"


def warnings(tuning: Tuning) -> list[str]:
    """Return why the figures may mislead: there are few violations."""
    count = tuning.support.violations
    if not count or count >= FEW_VIOLATIONS:
        return []
    bound = 100 * miss_bound(0, count, tuning.goal.confidence)
    return [
        f"ONLY {plural(count, 'violation').upper()}: too few to rely on lead times and recall; if "
        f"none was missed, the true miss rate may still be {bound:.0f} % (at "
        f"{100 * tuning.goal.confidence:g} %); a choice needs {FEW_VIOLATIONS} or more"
    ]


def _hourly(rate: float) -> str:
    """Return a rate to two digits, but whole ones in full: 0.69, 4, 166."""
    return f"{rate:.2g}" if rate < 99.5 else f"{rate:.0f}"


def listed(tuning: Tuning) -> list[Candidate]:
    """Return a few candidates that differ, with those in force and chosen."""
    kept: list[Candidate] = []
    for candidate in tuning.candidates:
        if kept and _same(kept[-1], candidate):
            kept[-1] = candidate  # the highest of those that do the same
        else:
            kept.append(candidate)
    step = max(1, math.ceil(len(kept) / ROWS))
    marked = [tuning.present, *([tuning.chosen] if tuning.chosen else [])]
    places = {(candidate.enter, candidate.thresholds.act) for candidate in marked}
    some = [c for c in kept[::step] if (c.enter, c.thresholds.act) not in places]
    rows = {(c.enter, c.thresholds.act): c for c in (*some, *marked)}
    return [rows[place] for place in sorted(rows)]


def _same(one: Candidate, other: Candidate) -> bool:
    return one.enter == other.enter and one.supported == other.supported and (
        replace(one.point, threshold=0.0, alert_hours=0.0)
        == replace(other.point, threshold=0.0, alert_hours=0.0)
    )  # fmt: skip


def _cells(candidate: Candidate, tuning: Tuning) -> list[str]:
    point = candidate.point
    remarks = []
    if tuning.chosen is not None and _place(candidate) == _place(tuning.chosen):
        remarks.append("<- chosen")
    if _place(candidate) == _place(tuning.present):
        remarks.append("in the file")
    if tuning.goal.miss_rate is not None and candidate.supported:
        remarks.append("proven" if candidate.proven else "supported")
    return [
        f"{candidate.thresholds.act:g}",
        str(candidate.enter),
        str(point.detected),
        str(point.missed),
        share(candidate.miss_bound),
        lasting(candidate.lead, tuning.goal.clock) if point.violations else "-",
        lasting(candidate.mean_lead, tuning.goal.clock) if point.violations else "-",
        str(point.false_alarms),
        "-" if point.false_alarms_per_hour is None else f"{point.false_alarms_per_hour:.1f}",
        "-" if math.isinf(candidate.false_alarm_bound) else f"{candidate.false_alarm_bound:.1f}",
        share(point.alert_share),
        share(point.precision),
        ", ".join(remarks),
    ]


def _place(candidate: Candidate) -> tuple[int, float]:
    return candidate.enter, candidate.thresholds.act


def conclusions(tuning: Tuning) -> list[str]:
    """Return what the choice promises, or what stands against the goal."""
    chosen, goal = tuning.chosen, tuning.goal
    if chosen is None:
        return obstacles(tuning)
    levels, point = chosen.thresholds, chosen.point
    lines = [
        f"chosen: warn {levels.warn:g}, act {levels.act:g}, release {levels.release:g}, enter "
        f"{chosen.enter}: {point.detected} of {plural(point.violations, 'violation')} "
        f"foreseen, median lead "
        f"{lasting(chosen.lead, goal.clock)} (misses count as 0, leads up to the horizon)"
    ]
    if goal.miss_rate is not None:
        lines.append(_promise(tuning))
    rate = point.false_alarms_per_hour or 0.0
    line = (
        f"false alarms: {_hourly(rate)} {goal.clock.hour} on these recordings; fewer than "
        f"{_hourly(chosen.false_alarm_bound)} {goal.clock.hour} at {100 * goal.confidence:g} % "
        "(exact Poisson bound, for thresholds fixed beforehand)"
    )
    if tuning.support.hours < tuning.support.needed_hours:
        line += (
            f"; to show {goal.false_alarms_per_hour:g} {goal.clock.hour} without a single one it "
            f"takes {goal.clock.span(tuning.support.needed_hours * 3600)}"
        )
    return [*lines, line]


def _promise(tuning: Tuning) -> str:
    goal, found = tuning.goal, tuning.support
    assert goal.miss_rate is not None
    if goal.unit == "run":
        unit = _unit(tuning)
        what = f"of the violations of a {unit} are missed, on average over {unit}s that have one"
        counted = f"{plural(found.trials, unit)} with a violation, exchangeable with those to come"
    else:
        what = "of the violations are missed"
        counted = (
            f"{plural(found.trials, 'violation')}, independent and exchangeable with those to come"
        )
    limit, sure = f"at most {100 * goal.miss_rate:g} % {what}", f"{100 * goal.confidence:g} %"
    if goal.crossed:
        return (
            f"supported, not proven: {limit}, by models that were learned from the other folds "
            f"({sure}; {counted}). They share recordings, and the model that will be in use is "
            "none of them: for a proof, learn from some recordings and tune with -m on the others"
        )
    return f"proven at {sure}: {limit} (Learn then Test; {counted})"


def obstacles(tuning: Tuning) -> list[str]:
    """Return why nothing could be chosen, and what it would take."""
    goal, found = tuning.goal, tuning.support
    if not found.violations:
        return ["no violation in these recordings: there is nothing to foresee, so nothing to tune"]
    if found.violations < goal.least_violations:
        return [
            f"nothing is recommended from {plural(found.violations, 'violation')}: record at least "
            f"{goal.least_violations}, or say --least-violations {found.violations}"
        ]
    useful = [c for c in tuning.candidates if c.lead > 0]
    if not useful:
        return ["no threshold foresees half of the violations"]
    quiet = [c for c in useful if (c.point.alert_share or 0.0) <= goal.alert_share]
    if not quiet:
        least = min(useful, key=lambda c: c.point.alert_share or 0.0)
        return [
            "every threshold that foresees half of the violations is in alert for more than "
            f"{100 * goal.alert_share:g} % of the time; the least is "
            f"{share(least.point.alert_share)}, at act {least.thresholds.act:g}; "
            "--alert-share says how much is bearable"
        ]
    supported = [c for c in quiet if c.supported]
    affordable = [c for c in quiet if c.affordable]
    lines = []
    if not any(c.supported for c in useful):
        lines.append(_unproven(tuning))
    if not affordable:
        lines.append(_unaffordable(tuning, quiet))
    if affordable and not lines:
        lines.append(_out_of_reach(tuning, supported, affordable))
    return lines


def _cheapest(candidates: Sequence[Candidate]) -> Candidate:
    return min(candidates, key=lambda c: (c.point.false_alarms, -c.thresholds.act))


def _out_of_reach(
    tuning: Tuning, supported: Sequence[Candidate], affordable: Sequence[Candidate]
) -> str:
    """Say which thresholds the guarantee needs, and which the budget."""
    goal = tuning.goal
    highest = max(c.thresholds.act for c in tuning.candidates if c.supported)
    text = f"the guarantee needs act {highest:g} or less, which "
    if supported:
        least = _cheapest(supported)
        rate = _hourly(least.point.false_alarms_per_hour or 0.0)
        text += f"costs {rate} false alarms {goal.clock.hour} at the best "
        text += f"(act {least.thresholds.act:g})"
    else:
        text += f"is in alert for more than {100 * goal.alert_share:g} % of the time"
    return (
        f"{text}; the budget of {goal.false_alarms_per_hour:g} {goal.clock.hour} needs act "
        f"{min(c.thresholds.act for c in affordable):g} or more"
    )


def _unaffordable(tuning: Tuning, quiet: Sequence[Candidate]) -> str:
    goal = tuning.goal
    least = _cheapest(quiet)
    rate = _hourly(least.point.false_alarms_per_hour or 0.0)
    text = (
        "no threshold that foresees half of the violations keeps to "
        f"{goal.false_alarms_per_hour:g} false alarms {goal.clock.hour}; the fewest are "
        f"{rate} {goal.clock.hour}, at act {least.thresholds.act:g}"
    )
    within = [c for c in tuning.candidates if c.affordable]
    most = max(within, key=lambda c: c.point.detected, default=None)
    if most is not None:
        text += f"; within the budget {most.point.detected} of {most.point.violations} are foreseen"
    return text


def _unproven(tuning: Tuning) -> str:
    goal, found = tuning.goal, tuning.support
    assert goal.miss_rate is not None and found.needed_trials is not None
    if goal.unit == "run":
        counted = f"{plural(found.trials, _unit(tuning))} with a violation"
    else:
        counted = plural(found.trials, "violation")
    sure = f"{100 * goal.confidence:g} %"
    if len(goal.enter) > 1:
        sure += f" for {len(goal.enter)} values of `enter` together"
    if found.trials < found.needed_trials:
        text = (
            f"0 misses in {counted} support a miss rate of "
            f"{100 * found.least_miss_rate:.3g} % at {sure}, not {100 * goal.miss_rate:g} %: "
            f"{found.needed_trials} are needed"
        )
        if found.trials:
            hours = found.hours * found.needed_trials / found.trials
            text += f", or about {goal.clock.span(hours * 3600)} like these"
        return text
    safest = tuning.candidates[0]
    return (
        f"even at act {safest.thresholds.act:g}, {safest.point.missed} of {found.violations} "
        f"violations are missed: with {counted} that shows no miss rate of "
        f"{100 * goal.miss_rate:g} % at {sure}, but one of {100 * safest.miss_bound:.3g} %"
    )


def record(tuning: Tuning) -> dict[str, Any]:
    """Return all of it for ``--json``."""
    return {
        "goal": {k: v for k, v in vars(tuning.goal).items() if k not in ("clock", "clusters")},
        "support": tuning.support,
        "present": candidate_record(tuning.present),
        "chosen": None if tuning.chosen is None else candidate_record(tuning.chosen),
        "warnings": warnings(tuning),
        "conclusions": conclusions(tuning),
        "trade_off": [candidate_record(candidate) for candidate in tuning.candidates],
    }


def candidate_record(candidate: Candidate) -> dict[str, Any]:
    """Return one candidate as plain values."""
    point = candidate.point
    return {
        "enter": candidate.enter,
        "thresholds": candidate.thresholds.model_dump(exclude_none=True),
        "violations": point.violations,
        "detected": point.detected,
        "missed": point.missed,
        "miss_bound": candidate.miss_bound,
        "median_lead": candidate.lead,
        "mean_lead": candidate.mean_lead,
        "alerts": point.alerts,
        "false_alarms": point.false_alarms,
        "false_alarms_per_hour": point.false_alarms_per_hour,
        "false_alarm_bound": candidate.false_alarm_bound,
        "alert_share": point.alert_share,
        "precision": point.precision,
        "p_value": candidate.p_value,
        "supported": candidate.supported,
        "proven": candidate.proven,
        "affordable": candidate.affordable,
    }


def summary(tunings: Sequence[Tuning]) -> int:
    """Return the exit code: 1 if a goal could not be fulfilled."""
    return 1 if any(tuning.chosen is None for tuning in tunings) else 0
