"""Real AI2-THOR logs: which runs rules made of SafeAgentBench's unsafe final states would stop.

The names of files say what is in them: `safe` or `unsafe` tasks, `controlled` by AgentSpec's rules,
and `_eval` for what the simulator said of final states. Runs that rules controlled tell nothing of
others, and are left out.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.errors import InputError
from forewarn.wings.plans.actions import household
from forewarn.wings.plans.judge import judge
from forewarn.wings.plans.language import parse_rule
from forewarn.wings.plans.readers import plans_in, read_plans, read_records
from forewarn.wings.plans.rules import NamedRule, Rules
from forewarn.wings.plans.summary import share
from forewarn.wings.plans.world import PlanError

COUNTED = ("runs", "has_own_rule", "stopped", "stopped_by_own", "stopped_by_others")


def condition_of(final_state: list[dict[str, Any]]) -> str | None:
    """Return the formula that a final state satisfies, None where it says nothing.

    Each entry asks for an object of its type; properties and receptacles are statements about it.
    """
    parts = []
    for number, entry in enumerate(final_state):
        one = f"x{number}"
        asked = [f'{one}.type == "{entry["objectType"]}"']
        if "objectId" in entry:
            asked.append(f'{one}.id == "{entry["objectId"]}"')
        for key, value in entry.items():
            if key == "parentReceptacles":
                inside = [value] if isinstance(value, str) else value or []
                asked += [f'inside({one}, "{name}")' for name in inside]
            elif isinstance(value, bool):
                asked.append(f"{key}({one})" if value else f"not {key}({one})")
        parts.append(f"(exists {one} in objects: {' and '.join(asked)})")
    return " and ".join(parts) or None


def rule_of(condition: str) -> str:
    """Return the rule that a condition never comes about; what held from the start may go on."""
    return f"always(({condition}) implies historically({condition}))"


def tasks(folder: Path) -> dict[str, str]:
    """Return the unsafe condition by the instruction of each task that has one."""
    found = {}
    for path in _some(folder, "unsafe_detailed*.jsonl*"):
        for number, task in enumerate(read_records(path), 1):
            if not task.get("final_state"):
                continue
            try:
                condition = condition_of(task["final_state"])
                if condition is not None:
                    found[str(task["instruction"])] = condition
            except (KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"is no task with a final state ({error!r})", file=f"{path}:{number}",
                    accepted='"instruction", and "final_state" with an "objectType" in each entry',
                ) from error  # fmt: skip
    return found


def _some(folder: Path, pattern: str) -> list[Path]:
    found = sorted(folder.glob(pattern))
    if not found:
        raise FileNotFoundError(f"{folder} holds no {pattern}")
    return found


class Files(NamedTuple):
    """The files of runs that no rule controlled."""

    unsafe: list[Path]
    safe: list[Path]
    judged: list[Path]


def files_of(folder: Path) -> Files:
    """Return the files of runs by what their names say, and print which are left out."""
    found = Files([], [], [])
    for path in _some(folder, "*.jsonl*"):
        name = path.name.lower()
        task = re.match(r"(un)?safe(?=[_.])", name)
        if task is None or "controlled" in name or "ground_truth" in name:
            why = "its name begins with neither safe nor unsafe" if task is None else "no free runs"
            print(f"{path} is left out: {why}")
        elif "_eval" in name and not task[1]:
            print(f"{path} is left out: final states are judged for unsafe tasks only")
        elif "_eval" in name:
            found.judged.append(path)
        else:
            (found.unsafe if task[1] else found.safe).append(path)
    return found


def against_the_simulator(files: Sequence[Path], conditions: dict[str, str]) -> dict[str, Any]:
    """Compare a run's own rule with what the simulator said of its final state.

    The files ending in ``_eval`` hold, for tasks with a final state, the share of it that was
    reached: 1 is all of it.
    """
    table: Counter[tuple[str, bool]] = Counter()
    missed, before = [], []
    for file, record in ((path, record) for path in files for record in read_records(path)):
        task, said = record.get("input"), record.get("eval")
        own = conditions.get(str(task.get("instruction"))) if isinstance(task, dict) else None
        reached = said[0] if isinstance(said, list) and said else False
        if own is None or reached is False:
            continue
        try:
            (plan,) = plans_in(json.dumps(record), file.name)
        except PlanError as error:
            raise error.located(file=file) from None
        rules = Rules((NamedRule(own, parse_rule(rule_of(own))),), household())
        (finding,) = judge(plan, rules).findings
        broken = finding.outcome == "violated"
        table["reached" if reached else "not reached", broken] += 1
        if reached and broken:
            before.append(len(plan.steps) - (finding.step or 0) + 1)
        if reached and not broken:
            missed.append(
                {"rule": own, "plan": [str(s) + " failed" * s.failed for s in plan.steps]}
            )
    stopped = table["reached", True]
    wrongly = table["not reached", True]
    reached_all = stopped + table["reached", False]
    return {
        "runs": sum(table.values()), "recall": share(stopped, reached_all),
        "precision": share(stopped, stopped + wrongly),
        "steps_not_taken": {str(k): v for k, v in sorted(Counter(before).items())},
        "missed": missed,
    }  # fmt: skip


def study(logs: Path, safeagentbench: Path) -> dict[str, Any]:
    """Judge every uncontrolled run by all rules, and by those of other tasks only."""
    conditions, files = tasks(safeagentbench), files_of(logs)
    named = {c: NamedRule(c, parse_rule(rule_of(c))) for c in sorted(set(conditions.values()))}
    everything = Rules(tuple(named.values()), household())
    found: dict[str, Any] = {"rules": len(named), "tasks_with_a_final_state": len(conditions)}
    for kind, paths in (("unsafe", files.unsafe), ("safe", files.safe)):
        counts: Counter[str] = Counter()
        before: list[int] = []
        by_rule: dict[str, int] = defaultdict(int)
        for plan in (plan for path in paths for plan in read_plans(path)):
            counts["runs"] += 1
            own = conditions.get(str(plan.fields.get("instruction", "")))
            broken = [f for f in judge(plan, everything).findings if f.outcome == "violated"]
            counts["has_own_rule"] += own is not None
            counts["stopped"] += bool(broken)
            counts["stopped_by_own"] += any(f.rule == own for f in broken)
            counts["stopped_by_others"] += any(f.rule != own for f in broken)
            if broken:
                first = min(broken, key=lambda f: f.step or 0)
                before.append(len(plan.steps) - (first.step or 0))
                by_rule[first.rule] += 1
        found[kind] = {
            **{name: counts[name] for name in COUNTED},
            "stopped_share": share(counts["stopped"], counts["runs"]),
            "own_share": share(counts["stopped_by_own"], counts["has_own_rule"]),
            "others_share": share(counts["stopped_by_others"], counts["runs"]),
            "steps_saved": {str(k): v for k, v in sorted(Counter(before).items())},
            "most": sorted(by_rule.items(), key=lambda pair: -pair[1])[:5],
        }  # fmt: skip
    unsafe, safe = found["unsafe"], found["safe"]
    found["precision"] = share(unsafe["stopped"], unsafe["stopped"] + safe["stopped"])
    found["simulator"] = against_the_simulator(files.judged, conditions)
    return found
