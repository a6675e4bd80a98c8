"""Run the plans of `virtualhome-eval` through its simulator and write them as JSON lines.

Runs in an environment of its own, which needs nothing of Forewarn: see README.md. The package keeps
answers as JSON objects from actions to arguments. Its own evaluation reads them as dictionaries, so
that of an action which stands twice only the last is left; here every action is kept, in order.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import json
import logging
from pathlib import Path
from typing import Any

import virtualhome_eval
from virtualhome_eval.simulation.evolving_graph import utils
from virtualhome_eval.simulation.evolving_graph.checker import TemporalOrderChecker
from virtualhome_eval.simulation.evolving_graph.environment import Relation
from virtualhome_eval.simulation.evolving_graph.eval_utils import (
    check_order_with_or_score,
    construct_planner,
    remove_duplicate_dicts,
    valid_actions,
)

ROOT = Path(virtualhome_eval.__file__).parent
DATA = ROOT / "dataset" / "programs_processed_precond_nograb_morepreconds"
RELATIONS = {
    "INSIDE": "inside",
    "ON": "ontop",
    "HOLDS_RH": "holding",
    "HOLDS_LH": "holding",
    "CLOSE": "near",
}
ADDITIONAL_STEP = 4


def answer(text: str) -> list[tuple[str, list[str]]] | None:
    """Return the actions of an answer with their arguments; None if it cannot be read."""
    text = text.removeprefix("```json").strip().replace("\n", "").replace("'", '"')
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except ValueError:
        return None
    if not isinstance(pairs, list) or not all(
        isinstance(p, (list, tuple)) and len(p) == 2 for p in pairs
    ):
        return None
    if not all(isinstance(a, list) and all(isinstance(o, str) for o in a) for _, a in pairs):
        return None
    return [(action, [o for o in objects if o]) for action, objects in pairs]


def commands(pairs: list[tuple[str, list[str]]], ids: dict[str, int]) -> tuple[list[str], str]:
    """Return the lines for the simulator, or what is wrong with an answer."""
    lines = []
    for action, objects in pairs:
        if action.upper() not in valid_actions or any(ids.get(o) is None for o in objects):
            return [], "names what is not there"
        if action not in valid_actions or len(objects) != valid_actions[action][1]:
            return [], "wrong number of arguments"
        lines.append(" ".join([f"[{action}]", *(f"<{o}> ({ids[o]})" for o in objects)]))
    return lines, ""


def objects(state: dict[str, Any], wanted: set[int], agent: int) -> list[dict[str, Any]]:
    """Return what is said of the objects that matter."""
    names = {agent: "agent"}
    kept = [node for node in state["nodes"] if node["id"] in wanted or node["id"] == agent]
    for node in kept:
        names.setdefault(node["id"], f"{node['class_name']}_{node['id']}")
    told = {
        node["id"]: {
            "id": names[node["id"]],
            "type": "agent" if node["id"] == agent else node["class_name"],
            "states": node["states"],
            "properties": node["properties"],
        }
        for node in kept
    }  # fmt: skip
    for edge in state["edges"]:
        relation = RELATIONS.get(edge["relation_type"])
        if relation and edge["from_id"] in told and edge["to_id"] in told:
            told[edge["from_id"]].setdefault(relation, []).append(names[edge["to_id"]])
    return list(told.values())


class Task:
    """One task: a scene, its goals, and the simulator."""

    def __init__(self, name: str, entry: dict[str, Any], tables: tuple[Any, ...]) -> None:
        goals = entry["vh_goal"]
        self.name = name
        self.nodes = remove_duplicate_dicts([g for g in goals["goal"] if "state" in g])
        self.edges = remove_duplicate_dicts([g for g in goals["goal"] if "relation_type" in g])
        self.actions = list(dict.fromkeys(goals["actions"]))
        self.planner, self.relevant, *_ = construct_planner(
            *tables, scenegraph_id=1, script_id=name, dataset_root=str(DATA)
        )
        *_, self.ids = self.planner.get_symbolic_goal_nl(
            self.nodes, self.edges, action_goals=self.actions
        )

    def begin(self) -> list[dict[str, Any]]:
        """Go back to the beginning of the task; return what is said of its objects."""
        self.planner.reset()
        self.state = self.read()
        self.done: list[str] = []
        self.history = [self.state]
        return self.objects()

    def read(self) -> dict[str, Any]:
        """Return nodes and edges of the scene."""
        found: dict[str, Any] = self.planner.env_state.to_dict()
        return found

    def objects(self) -> list[dict[str, Any]]:
        """Return what is said of the objects of the task now."""
        return objects(self.state, set(self.ids.values()), self.planner.acting_char_id)

    def act(self, line: str) -> tuple[bool, Any]:
        """Carry out an action; return whether it worked, and what the simulator says of it."""
        worked, info = self.planner.my_execute_primitive_action_eval(line)
        self.state = self.read()
        if worked:
            self.done.append(line)
            self.history.append(self.state)
        return worked, info

    def reached(self) -> tuple[int, int]:
        """Return how many goals are reached, and how many there are."""
        reached = sum(
            any(
                node["id"] == goal["id"] and goal["state"] in node["states"]
                for node in self.state["nodes"]
            )
            for goal in self.nodes
        )
        reached += sum(goal in self.state["edges"] for goal in self.edges)
        if self.actions:
            reached += check_order_with_or_score(self.actions, " ".join(self.done))[0]
        return reached, len(self.nodes) + len(self.edges) + len(self.actions)

    def run(self, lines: list[str]) -> dict[str, Any]:
        """Carry out a plan until an action cannot be; return what came of it."""
        before, steps, valid = self.begin(), [], True
        for line in lines:
            worked, info = self.act(line)
            steps.append({"action": line, "success": worked, "objects": self.objects()})
            if worked:
                continue
            checker = TemporalOrderChecker(info, copy.copy(self.history))
            if checker.run_checker().get_error_type() != ADDITIONAL_STEP:
                valid = False
                break
        reached, goals = self.reached()
        return {"initial": {"objects": before}, "plan": steps, "valid": valid, "goals": goals,
                "goals_reached": reached, "success": reached == goals}  # fmt: skip


def nodes_of(state: Any, wanted: set[int]) -> dict[str, Any]:
    """Return some nodes of a scene and the edges that begin there; all of them take long."""
    known = {one: node for one in wanted if (node := state.get_node(one)) is not None}
    return {
        "nodes": [node.to_dict() for node in known.values()],
        "edges": [
            {"from_id": one, "relation_type": relation.name, "to_id": other}
            for one in known
            for relation in Relation
            for other in state.get_node_ids_from(one, relation)
        ],
    }


def load_tables() -> tuple[Any, ...]:
    """Return what the simulator knows of objects in general."""
    return (
        utils.load_name_equivalence(),
        utils.load_properties_data(),
        utils.load_object_placing(),
    )


def load_tasks() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the kind and the goals of each task."""
    resources = ROOT / "resources" / "virtualhome"
    entries = json.loads((resources / "task_state_LTL_formula_accurate.json").read_text())
    kinds = json.loads((resources / "id2task.json").read_text())
    return {name: (kind, entries["scene_1"][kind][name]) for name, kind in kinds.items()}


def main() -> None:
    """Write one line for each model and task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--models", type=int, default=99)
    parser.add_argument("--tasks", type=int, default=9999)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    tables, tasks = load_tables(), load_tasks()
    files = sorted((ROOT / "llm_response" / "action_sequence").glob("*_outputs.json"))[
        : options.models
    ]
    answers = {
        path.name.removesuffix("_outputs.json"): {
            row["identifier"]: row["llm_output"] for row in json.loads(path.read_text())
        }
        for path in files
    }  # fmt: skip
    with gzip.open(options.output, "wt") as file:
        for name in sorted(tasks)[: options.tasks]:
            kind, entry = tasks[name]
            task = Task(name, entry, tables)
            for model, texts in answers.items():
                row: dict[str, Any] = {
                    "id": f"{model}:{name}",
                    "model": model,
                    "task": kind,
                }
                pairs = answer(texts[name])
                lines, wrong = (
                    ([], "cannot be read") if pairs is None else commands(pairs, task.ids)
                )
                if pairs == []:
                    wrong = "has no action"
                row["calls"] = len(pairs or [])
                row["twice"] = len({a for a, _ in pairs or []}) < len(pairs or [])
                try:
                    row |= task.run(lines) if not wrong else {"plan": []}
                except Exception as error:  # the simulator asserts on some states
                    row |= {"plan": []}
                    wrong = f"the simulator fails: {type(error).__name__}"
                if wrong:
                    row |= {"valid": False, "success": False, "wrong": wrong}
                    row.setdefault("goals", len(task.nodes) + len(task.edges) + len(task.actions))
                    row.setdefault("goals_reached", 0)
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
