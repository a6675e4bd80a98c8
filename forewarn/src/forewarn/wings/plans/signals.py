"""Signals whose values are plans: each is judged when it arrives, before anything moves.

What comes of it is a text, so that predicates, properties, policy and record treat a plan as they
treat every other signal. A plan that cannot be read is no safe plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from forewarn.config.file import MonitorSpec
from forewarn.errors import ConfigError, ConfigErrors, InputError
from forewarn.states.inputs import SAFE, Value

if TYPE_CHECKING:
    from forewarn.wings.plans.judge import Finding, Judgement
    from forewarn.wings.plans.rules import Rules
    from forewarn.wings.plans.world import Plan

MOST_CHARACTERS = 200_000
MOST_STEPS = 2_000
MOST_WAYS = 100
LONGEST = 300
KEPT = 16


def plan_readers(spec: MonitorSpec) -> dict[str, Callable[[Value], str]]:
    """Return what says of the plans in signals what their rules have against them.

    Raises ConfigErrors with each file of rules that cannot be used.
    """
    found: dict[str, Callable[[Value], str]] = {}
    errors: list[InputError] = []
    for name, signal in spec.signals.items():
        if signal.rules is None:
            continue
        from forewarn.wings.plans.rules import load_rules  # most monitor files have no plans

        try:
            found[name] = problem_by(load_rules(spec.beside(signal.rules)))
        except InputError as error:
            errors.append(
                ConfigError(
                    f"{signal.rules!r}: {error}",
                    file=spec.file,
                    key=f"signals.{name}.rules",
                    accepted="a file of rules about plans, as `forewarn plan check` takes",
                )
            )
    if errors:
        raise ConfigErrors(errors)
    return found


def packed_rules(spec: MonitorSpec) -> dict[str, bytes]:
    """Return the files of rules that a monitor file names, for `unpacked_readers`."""
    return {
        _packed_name(name, signal.rules): spec.beside(signal.rules).read_bytes()
        for name, signal in spec.signals.items()
        if signal.rules is not None
    }


def unpacked_readers(
    spec: MonitorSpec, files: Mapping[str, bytes]
) -> dict[str, Callable[[Value], str]]:
    """Return what `plan_readers` does, by files that travel with a record, not by those here."""
    signals = dict(spec.signals)
    with TemporaryDirectory() as folder:
        for name, signal in spec.signals.items():
            packed = "" if signal.rules is None else _packed_name(name, signal.rules)
            if packed in files:
                path = Path(folder) / packed
                path.write_bytes(files[packed])
                signals[name] = signal.model_copy(update={"rules": str(path)})
        return plan_readers(spec.model_copy(update={"signals": signals}))


def _packed_name(name: str, rules: str) -> str:
    return f"rules-{name}{''.join(Path(rules).suffixes)}"


def problem_by(rules: Rules) -> Callable[[Value], str]:
    """Return a function from a plan to what the rules have against it, in words.

    The plan is a text in any format of files of plans, or a list of steps. The function returns
    `SAFE`, or why the plan is not known to be safe: that it cannot be read is a reason, too.
    """

    @lru_cache(maxsize=KEPT)
    def judged(content: str | tuple[object, ...]) -> str:
        from forewarn.wings.plans.judge import judge

        try:
            plans = list(_plans(content, described=rules.actions is not None))
            for at, plan in enumerate(plans):
                judgement = judge(plan, rules)
                if judgement.verdict != "safe":
                    way = f"way {at + 1} of {len(plans)}: " if len(plans) > 1 else ""
                    return (way + in_words(judgement))[:LONGEST]
        except InputError as error:
            return f"the plan cannot be judged: {' '.join(str(error).split())}"[:LONGEST]
        except (ValueError, OverflowError, RecursionError) as error:
            return f"the plan cannot be judged: {type(error).__name__}"
        return SAFE

    def problem(value: Value) -> str:
        if isinstance(value, list):  # what is no text is no step, and its text tells so
            return judged(tuple(one if isinstance(one, str) else repr(one) for one in value))
        return judged(str(value))

    return problem


def _plans(content: str | tuple[object, ...], *, described: bool) -> Iterator[Plan]:
    from forewarn.wings.plans.readers import check_unambiguous, plans_in
    from forewarn.wings.plans.steps import step_of
    from forewarn.wings.plans.world import Plan, PlanError

    if isinstance(content, tuple):
        plans = [Plan("plan", tuple(map(step_of, content[: MOST_STEPS + 1])))]
    elif len(content) > MOST_CHARACTERS:
        raise PlanError(f"has {len(content)} characters", accepted=f"at most {MOST_CHARACTERS}")
    else:
        check_unambiguous(content)
        plans = plans_in(content, "plan")
    if len(plans) > MOST_WAYS:
        raise PlanError(f"has {len(plans)} ways", accepted=f"at most {MOST_WAYS}")
    for plan in plans:
        if len(plan.steps) > MOST_STEPS:
            raise PlanError(f"has {len(plan.steps)} steps", accepted=f"at most {MOST_STEPS}")
        for number, step in enumerate(plan.steps, 1):
            if step.failed or (described and step.state is not None):
                what = "that it failed" if step.failed else "what holds after it"
                raise PlanError(
                    f"step {number}, {step}, says {what}, and nothing has been carried out yet",
                    accepted="steps without results",
                )
        yield plan


def in_words(judgement: Judgement) -> str:
    """Return in one line why a plan is not known to be safe: what comes first in it."""
    first = judgement.first
    return SAFE if first is None else _finding(first)


def _finding(finding: Finding) -> str:
    by = "".join(f", {variable} = {one}" for variable, one in finding.objects)
    if finding.outcome == "violated":
        where = f"step {finding.step}, {finding.action}" if finding.step else finding.action
        return f"{finding.rule}: broken at {where}{by}"
    if finding.outcome == "pending":
        return f"{finding.rule}: still unmet when the plan is over{by}"
    return f"{finding.rule}: unknown, for {finding.reason}{by}"
