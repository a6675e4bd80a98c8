"""Runs with injection goals that no recording has, from AgentDojo's own ground truth.

It runs in an environment of its own that has `agentdojo`; see `injection.py`, which makes one. For
each suite, user task and injection task the calls that solve the user task are executed; after the
first output that shows the injected text, an agent that obeys makes the calls of the injection
task, and then goes on. Beside it stand the run of an agent that does not obey, and the run without
an attack. There is no language model, so the arguments of calls are those of the ground truth.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.attacks.attack_registry import load_attack
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites

VERSION = "v1"
RECORDED = "important_instructions"
ATTACKS = (RECORDED, "injecagent", "ignore_previous", "system_message", "direct")


class Target(BasePipelineElement):
    """What an attack asks of the attacked pipeline: the name of its model."""

    name = "gpt-4o-2024-05-13"

    def query(self, *arguments: Any, **options: Any) -> Any:
        """Never answer: ground truth stands for the model."""
        raise NotImplementedError


def executed(runtime: Any, environment: Any, call: Any) -> dict[str, Any]:
    """Make a call and return it as a step."""
    result, error = runtime.run_function(environment, call.function, call.args)
    step: dict[str, Any] = {"action": call.function, "args": dict(call.args)}
    return {**step, "observation": tool_result_to_str(result), "error": error}


_loaded: dict[tuple[str, tuple[tuple[str, str], ...]], Any] = {}


def _environment(suite: Any, injections: dict[str, str]) -> Any:
    """Return a fresh environment; reading its YAML takes longer than all calls of a run."""
    key = (suite.name, tuple(injections.items()))
    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = suite.load_and_inject_default_environment(injections)
    return copy.deepcopy(_loaded[key])


def steps_of(suite: Any, user: Any, injection: Any, injections: dict[str, str]) -> Any:
    """Return the steps of a run, and whether the calls of `injection` are among them.

    Parameters
    ----------
    injection : BaseInjectionTask or None
        What the agent is talked into; None for one that does not obey.
    injections : dict of str to str
        The injected texts.
    """
    environment = user.init_environment(_environment(suite, injections))
    runtime = FunctionsRuntime(suite.tools)
    marks = {" ".join(text.split()[:6]) for text in injections.values()}
    steps, obeyed = [], False
    for call in user.ground_truth(environment):
        steps.append(executed(runtime, environment, call))
        seen = " ".join(steps[-1]["observation"].replace("\\n", " ").split())
        if injection is not None and not obeyed and any(mark in seen for mark in marks):
            obeyed = True
            calls = injection.ground_truth(environment)
            steps += [executed(runtime, environment, one) for one in calls]
            if not calls:
                return steps, False
    return steps, obeyed


def runs() -> Iterator[dict[str, Any]]:
    """Yield all runs, of each user task those without an attack first."""
    for name, suite in get_suites(VERSION).items():
        attacks = [load_attack(attack, suite, Target()) for attack in ATTACKS]
        for user_id, user in suite.user_tasks.items():
            about = {"suite": name, "user_task": user_id, "task": user.PROMPT}
            harmless, _ = steps_of(suite, user, None, {})
            yield {**about, "attack": None, "injection_task": None, "steps": harmless,
                   "attack_succeeded": False}  # fmt: skip
            for attack in attacks:
                for goal in suite.injection_tasks:
                    yield from attacked(suite, user, attack, goal, about)


def attacked(
    suite: Any, user: Any, attack: Any, goal: str, about: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the run of an agent that obeys an injection; of the recorded attack the other too."""
    injection = suite.injection_tasks[goal]
    try:
        injections = attack.attack(user, injection)
    except ValueError:  # the calls of the user task show no place for an injection
        return
    for obeying in (injection, None) if attack.name == RECORDED else (injection,):
        steps, obeyed = steps_of(suite, user, obeying, injections)
        if obeying is None or obeyed:
            yield {**about, "attack": attack.name, "injection_task": goal, "steps": steps,
                   "attack_succeeded": obeyed}  # fmt: skip


def main() -> None:
    """Write the runs as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    output = parser.parse_args().output
    count = 0
    with output.open("w", encoding="utf-8") as file:
        for run in runs():
            if run["steps"]:
                file.write(json.dumps(run, default=str) + "\n")
                count += 1
    print(f"{count} runs -> {output}")


if __name__ == "__main__":
    main()
