"""Real AI2-THOR logs: which runs rules made of SafeAgentBench's unsafe final states would stop."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from forewarn.plans.actions import HOUSEHOLD
from forewarn.plans.judge import judge
from forewarn.plans.language import parse_rule
from forewarn.plans.readers import read_plans
from forewarn.plans.rules import NamedRule, Rules
from forewarn.plans.summary import share


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
    for line in (folder / "unsafe_detailed_1009.jsonl").read_text().splitlines():
        task = json.loads(line)
        if task.get("final_state"):
            condition = condition_of(task["final_state"])
            if condition is not None:
                found[task["instruction"]] = condition
    return found


def against_the_simulator(logs: Path, conditions: dict[str, str]) -> dict[str, Any]:
    """Compare a run's own rule with what the simulator said of its final state.

    The files ending in ``_eval`` hold, for tasks with a final state, the share of it that was
    reached: 1 is all of it.
    """
    file = logs / "unsafe_agent_recors_eval.jsonl.gz"
    with gzip.open(file, "rt") as lines:
        records = [json.loads(line) for line in lines]
    table: Counter[tuple[str, bool]] = Counter()
    missed, before = [], []
    for record, plan in zip(records, read_plans(file), strict=True):
        own = conditions.get(record["input"]["instruction"])
        reached = record["eval"][0]
        if own is None or reached is False:
            continue
        rules = Rules((NamedRule(own, parse_rule(rule_of(own))),), HOUSEHOLD)
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
    conditions = tasks(safeagentbench)
    named = {c: NamedRule(c, parse_rule(rule_of(c))) for c in sorted(set(conditions.values()))}
    everything = Rules(tuple(named.values()), HOUSEHOLD)
    found: dict[str, Any] = {"rules": len(named), "tasks_with_a_final_state": len(conditions)}
    for kind, file in (
        ("unsafe", "unsafe_agent_records.jsonl.gz"),
        ("safe", "safe_records.jsonl.gz"),
    ):
        counts: Counter[str] = Counter()
        before: list[int] = []
        by_rule: dict[str, int] = defaultdict(int)
        for plan in read_plans(logs / file):
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
            **counts,
            "stopped_share": share(counts["stopped"], counts["runs"]),
            "own_share": share(counts["stopped_by_own"], counts["has_own_rule"]),
            "others_share": share(counts["stopped_by_others"], counts["runs"]),
            "steps_saved": {str(k): v for k, v in sorted(Counter(before).items())},
            "most": sorted(by_rule.items(), key=lambda pair: -pair[1])[:5],
        }  # fmt: skip
    unsafe, safe = found["unsafe"], found["safe"]
    found["precision"] = share(unsafe["stopped"], unsafe["stopped"] + safe["stopped"])
    found["simulator"] = against_the_simulator(logs, conditions)
    return found
