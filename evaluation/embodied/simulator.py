"""The simulator of `virtualhome-eval` as a process that is told what to do, line by line.

Runs in the environment of `evaluation.plans.simulate` and needs nothing of Forewarn. A line
``{"task": NAME, "lines": ["[WALK] <oven> (295)", ...]}`` says all that has been done since the task
began; it is answered by a line with all objects that matter, whether the last action worked, and
whether the goals are reached.
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


class Seen(simulate.Task):
    """A task of which only some objects, and those of its goals, are looked at."""

    def __init__(self, name: str, entry: dict[str, Any], tables: Any, types: set[str]) -> None:
        super().__init__(name, entry, tables)
        nodes = self.planner.init_state.to_dict()["nodes"]
        self.wanted = {node["id"] for node in nodes if node["class_name"] in types}
        goals = {goal["id"] for goal in self.nodes} | {goal["from_id"] for goal in self.edges}
        self.looked_at = self.wanted | goals | {self.planner.acting_char_id}
        self.begin()
        self.known = {(): (self.planner.env_state, list(self.done), True)}

    def read(self) -> dict[str, Any]:
        """Return what is looked at."""
        return simulate.nodes_of(self.planner.env_state, self.looked_at)

    def after(self, lines: tuple[str, ...]) -> bool:
        """Go where some actions lead; return whether the last one worked."""
        if lines not in self.known:
            self.after(lines[:-1])
            try:
                worked, _ = self.act(lines[-1])
            except Exception:  # the simulator asserts on some states
                worked = False
            self.known[lines] = (self.planner.env_state, list(self.done), worked)
        self.planner.env_state, done, worked = self.known[lines]
        self.done, self.history, self.state = list(done), [], self.read()
        return worked

    def told(self, worked: bool) -> dict[str, Any]:
        """Return what holds now."""
        agent = self.planner.acting_char_id
        reached, goals = self.reached()
        objects = simulate.objects(self.state, self.wanted, agent)
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
    types = set(parser.parse_args().types)
    tables, entries = simulate.load_tables(), simulate.load_tasks()
    task: Seen | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if task is None or task.name != asked["task"]:
            task = Seen(asked["task"], entries[asked["task"]][1], tables, types)
        print(json.dumps(task.told(task.after(tuple(asked["lines"])))), file=answers, flush=True)


if __name__ == "__main__":
    main()
