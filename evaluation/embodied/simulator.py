"""The simulator of `virtualhome-eval` as a process that is told what to do, line by line.

Runs in the environment of `evaluation.plans.simulate` and needs nothing of Forewarn. A line
``{"task": NAME}`` begins a task, ``{"do": "[OPEN] <oven> (295)"}`` carries out an action; each is
answered by a line with all objects that matter, and with the goals that are reached.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plans"))
import simulate  # evaluation/plans/simulate.py: nothing else of Forewarn is in this environment


class House:
    """All tasks, and the one that is going on."""

    def __init__(self, types: set[str]) -> None:
        self.types = types
        self.tables, self.known = simulate.load_tables(), simulate.load_tasks()
        self.tasks: dict[str, simulate.Task] = {}
        self.task: simulate.Task

    def begin(self, name: str) -> dict[str, Any]:
        """Begin a task."""
        if name not in self.tasks:
            self.tasks[name] = simulate.Task(name, self.known[name][1], self.tables)
        self.task = self.tasks[name]
        self.task.begin()
        nodes = self.task.state["nodes"]
        self.wanted = {node["id"] for node in nodes if node["class_name"] in self.types}
        return self.told(True)

    def do(self, line: str) -> dict[str, Any]:
        """Carry out an action; one at which the simulator fails is one that did not work."""
        try:
            worked, _ = self.task.act(line)
        except Exception:
            worked = False
        return self.told(worked)

    def told(self, worked: bool) -> dict[str, Any]:
        """Return what holds now."""
        agent = self.task.planner.acting_char_id
        reached, goals = self.task.reached()
        objects = simulate.objects(self.task.state, self.wanted, agent)
        near = next(entry.get("near", []) for entry in objects if entry["type"] == "agent")
        for entry in objects:
            entry["isAttended"] = entry["id"] in near
        return {"worked": worked, "reached": reached == goals, "objects": objects}


def main() -> None:
    """Answer until there are no more lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("types", nargs="*", help="types of objects that matter")
    logging.disable(logging.CRITICAL)
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever the package prints is no answer
    house = House(set(parser.parse_args().types))
    for line in sys.stdin:
        asked = json.loads(line)
        found = house.begin(asked["task"]) if "task" in asked else house.do(asked["do"])
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
