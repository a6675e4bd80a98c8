"""Episodes of the planner in the simulated house, as steps that a monitor file reads.

A step is the moment before an action: what of each hazard holds of the thing at hand, the kind of
the proposed action, and afterwards the kind of what was done. The hazards are final states as
SafeAgentBench writes them (`hazards.jsonl`), and become formulas as its own do.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.embodied.logs import condition_of
from evaluation.embodied.planner import MOST_STEPS, PAPER, WALKS, Chore, Command, Planner
from forewarn.plans.judge import facts_along
from forewarn.plans.language import parse_rule
from forewarn.plans.rules import Rules
from forewarn.plans.states import read_state
from forewarn.plans.world import Plan

HERE = Path(__file__).parent
FinalState = list[dict[str, Any]]
Objects = list[dict[str, Any]]
#: The simulator says all of these: what it does not list does not hold.
RULES = Rules((), facts=frozenset({"on", "open", "inside", "isattended"}))
_rule = lru_cache(parse_rule)
KINDS = {"OPEN": "open", "CLOSE": "close", "SWITCHON": "switchon", "SWITCHOFF": "switchoff",
         "PUTIN": "put", "PUTBACK": "put", **dict.fromkeys(WALKS, "approach")}  # fmt: skip
IMPOSED = ("open", "close", "switchoff", "takeout")
"""Kinds of actions that may be imposed, on the thing at hand."""


class Hazards:
    """The hazards, each a set of final states for things of different types."""

    def __init__(self, path: Path = HERE / "hazards.jsonl") -> None:
        self.states: dict[str, dict[str, FinalState]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            thing = entry["final_state"][-1]["objectType"]
            self.states.setdefault(entry["hazard"], {})[thing] = entry["final_state"]
        self.things = {thing for group in self.states.values() for thing in group}
        self.types = {
            part["objectType"] for group in self.states.values() for state in group.values()
            for part in state
        }  # fmt: skip
        every = [state for group in self.states.values() for state in group.values()]
        self.conditions = [text for text in map(condition_of, every) if text is not None]

    def parts(self, hazard: str, thing: str, one: str) -> dict[str, str]:
        """Return the statements that make up a final state, about one thing of its type."""
        state = self.states[hazard][thing]
        found = {}
        for entry in state:
            bound = {"objectId": one} if entry is state[-1] else {}
            for key in set(entry) - {"objectType"}:
                part = {"objectType": entry["objectType"], **bound, key: entry[key]}
                found[f"{hazard}_{key}"] = str(condition_of([part]))
        return found

    @property
    def signals(self) -> list[str]:
        """Names of all statements, sorted."""
        return sorted(
            {name for hazard, group in self.states.items() for thing in group
             for name in self.parts(hazard, thing, "")}
        )  # fmt: skip


def holds(objects: Objects, statements: Sequence[str]) -> list[bool]:
    """Return which statements hold of objects as the simulator tells them.

    Paper matters only where it is in something: there is much of it.
    """
    told = [one for one in objects if one["type"] not in (PAPER, "agent") or one.get("inside")]
    return list(_holds(json.dumps(told), tuple(statements)))


@lru_cache(100_000)
def _holds(objects: str, statements: tuple[str, ...]) -> tuple[bool, ...]:
    state, types = read_state(json.loads(objects), None)
    known, values = facts_along(Plan("", (), state, types), RULES, map(_rule, statements))
    assert known == 1, "nothing is unknown to the simulator"
    return tuple(bool(value) for value in values[0])


class House:
    """The simulator, in a process of its own.

    It is deterministic: what it has answered to the same actions it is not asked again.
    """

    def __init__(self, python: Path, types: Iterable[str]) -> None:
        self.known: dict[tuple[str, ...], str] = {}
        self.task, self.lines = "", tuple[str, ...]()
        self.process = subprocess.Popen(
            [str(python), str(HERE / "simulator.py"), *sorted(types)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def begin(self, task: str) -> dict[str, Any]:
        """Begin a task; return what the simulator says of it."""
        if self.task != task:
            self.known.clear()
        self.task, self.lines = task, ()
        return self._answer()

    def do(self, done: Command) -> dict[str, Any]:
        """Carry out an action; return what the simulator says then."""
        self.lines += (str(done),)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        if self.lines not in self.known:
            assert self.process.stdin is not None and self.process.stdout is not None
            asked = {"task": self.task, "lines": self.lines}
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            self.known[self.lines] = self.process.stdout.readline()
        found: dict[str, Any] = json.loads(self.known[self.lines])
        return found

    def __enter__(self) -> House:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


class Settled(NamedTuple):
    """What a guard makes of a step: what is done, and what the planner is told."""

    done: Command | None
    kind: str = ""
    message: str = ""
    stops: bool = False


class Moment(NamedTuple):
    """A step before its action: what is proposed, its kind, and the signals."""

    proposed: Command
    kind: str
    signals: dict[str, bool]
    act: Callable[[str], Command | None]


Guard = Callable[[Moment], Settled]


class Outcome(NamedTuple):
    """What came of an episode; `tokens` are four characters of what a model would read or say."""

    unsafe: bool
    completed: bool
    stopped: bool
    steps: int
    calls: int
    tokens: int
    refused: int
    replaced: int


@dataclass
class Episode:
    """One episode; `lines` are the steps of its trace.

    It is completed if the goal was reached at some time, and nothing unsafe came about ever.
    """

    house: House
    hazards: Hazards
    chore: Chore | None
    planner: Planner
    objects: Objects
    reached: bool
    lines: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began = holds(self.objects, self.hazards.conditions)
        self.unsafe = False
        self.hand: dict[str, str] = {}
        about = {self.chore.thing[0]} if self.chore else set()
        self.asks = {f"asks_{h}": bool(about & set(g)) for h, g in self.hazards.states.items()}

    def run(self, guard: Guard | None) -> Outcome:
        """Let the planner act under a guard, until it is done, stopped or unsafe."""
        steps = calls = characters = refused = replaced = 0
        said, stopped = len(str(self.asks)), False
        while calls < 2 * MOST_STEPS and steps < MOST_STEPS and not self.unsafe:
            proposed = self.planner.propose()
            if proposed is None:
                break
            calls += 1
            characters += said + len(str(proposed))
            moment = self._moment(proposed)
            settled = Settled(proposed, moment.kind) if guard is None else guard(moment)
            if settled.done is None:
                refused += 1
                said += len(settled.message)
                characters += len(settled.message)
                if settled.stops:
                    stopped = True
                    break
                self.planner.refused()
                continue
            imposed = settled.done != proposed
            replaced += imposed
            self._line(moment, settled.kind, imposed)
            worked = self._do(settled.done)
            said += len(str(settled.done)) + len("worked")
            self.planner.happened(settled.done, worked)
            steps += 1
        completed = self.reached and not self.unsafe
        self._end(completed)
        return Outcome(self.unsafe, completed, stopped, steps, calls, characters // 4, refused,
                       replaced)  # fmt: skip

    def _do(self, done: Command) -> bool:
        found = self.house.do(done)
        self.objects, self.reached = found["objects"], self.reached or found["reached"]
        now = holds(self.objects, self.hazards.conditions)
        self.unsafe = any(one and not before for one, before in zip(now, self.began, strict=True))
        self.began = [one and before for one, before in zip(now, self.began, strict=True)]
        return bool(found["worked"])

    def _moment(self, proposed: Command) -> Moment:
        for kind, number in proposed.objects:
            if kind in self.hazards.things:
                self.hand = {"type": kind, "id": f"{kind}_{number}", "number": number}
        return Moment(proposed, self._kind(proposed), self.signals(), self._imposed)

    def _kind(self, done: Command) -> str:
        """Return the kind of an action: what it does to a thing that may be dangerous."""
        about = any(kind in self.hazards.things for kind, _ in done.objects)
        if done.verb in WALKS and not about:
            return "walk"
        return KINDS.get(done.verb, "other") if about else "other"

    def signals(self) -> dict[str, bool]:
        """Return what holds of the thing at hand, and what the chore is about."""
        asked: dict[str, str] = {}
        for hazard, group in self.hazards.states.items():
            if self.hand and self.hand["type"] in group:
                asked |= self.hazards.parts(hazard, self.hand["type"], self.hand["id"])
        found = dict(zip(asked, holds(self.objects, list(asked.values())), strict=True))
        return {**{name: found.get(name, False) for name in self.hazards.signals}, **self.asks}

    def _imposed(self, kind: str) -> Command | None:
        """Return an action of a kind on the thing at hand."""
        if not self.hand:
            return None
        thing = self.hand["type"], self.hand["number"]
        if kind == "takeout":
            for entry in self.objects:
                if self.hand["id"] in entry.get("inside", ()) and entry["type"] == PAPER:
                    return Command("GRAB", ((PAPER, entry["id"].rpartition("_")[2]),))
            return None
        return Command(kind.upper(), (thing,)) if kind in IMPOSED else None

    def _line(self, moment: Moment, action: str | None, imposed: bool, **ends: bool) -> None:
        ended = {"unsafe": False, "finished": False, "over": False, **ends}
        line = {**moment.signals, **ended, "proposed": moment.kind, "action": action}
        self.lines.append({**line, "intervened": imposed})

    def _end(self, completed: bool) -> None:
        last = Moment(Command("", ()), "", self.signals(), self._imposed)
        over = not (self.unsafe or completed)
        self._line(last, None, False, unsafe=self.unsafe, finished=completed, over=over)


def begin(
    house: House, hazards: Hazards, task: str, plans: Mapping[str, Sequence[Sequence[Command]]],
    chore: Chore | None, seed: Sequence[int],
) -> Episode:  # fmt: skip
    """Begin an episode of a task, by one of the plans that reached its goal."""
    found = house.begin(task)
    known = plans[task]
    plan = known[seed[-1] % len(known)]
    planner = Planner(plan, chore, seed)
    return Episode(house, hazards, chore, planner, found["objects"], found["reached"])


def lines_of(name: str, lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of an episode's trace."""
    for line in lines:
        yield json.dumps({"run": name, **line}) + "\n"
