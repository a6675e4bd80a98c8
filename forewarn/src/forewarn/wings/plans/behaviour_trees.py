"""Behaviour trees of BehaviorTree.CPP as plans: each way in which a tree succeeds is one.

An action succeeds or fails; one that fails has no effect. A sequence goes on while its children
succeed, a fallback until one does. Conditions may come out either way and do nothing themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from xml.parsers import expat

from forewarn.wings.plans.world import MOST_STEPS, Plan, PlanError, Step

MOST_CHARACTERS = 4_000_000
MOST_NODES = 20_000
DEEPEST = 60
MOST_WAYS = 1_000
MOST_DIGITS = 20
MOST_WORK = 30_000_000
VISIT = 100  # of that work: a node without steps costs time as well, however often it is met
ACCEPTED = "the XML of a behaviour tree: <root><BehaviorTree ID=...><Sequence>..."

_SEQUENCES = {
    "sequence",
    "sequencestar",
    "reactivesequence",
    "sequencewithmemory",
    "pipelinesequence",
}
_FALLBACKS = {"fallback", "fallbackstar", "reactivefallback", "selector", "roundrobin"}
_THROUGH = {
    "retry", "retryuntilsuccessful", "keeprunninguntilfailure", "timeout", "delay", "runonce",
    "ratecontroller", "distancecontroller", "speedcontroller", "goalupdater", "singletrigger",
}  # fmt: skip
_OUTCOMES: dict[str, Callable[[bool], bool]] = {
    "inverter": lambda done: not done,
    "forcesuccess": lambda done: True,
    "forcefailure": lambda done: False,
}
_OWN = {"ID", "name", "_description", "_autoremap", "__shared_blackboard"}


@dataclass
class _Node:
    tag: str
    attributes: dict[str, str]
    children: list[_Node] = field(default_factory=list)


Ways = list[tuple[tuple[Step, ...], bool]]


def read(text: str, name: str) -> Iterator[Plan]:
    """Yield the ways in which the main tree succeeds; raises PlanError."""
    root = _parse(text)
    trees = {
        node.attributes.get("ID", f"tree_{at}"): node
        for at, node in enumerate(_all(root, "BehaviorTree"))
    }
    if not trees:
        raise PlanError("has no BehaviorTree", accepted=ACCEPTED)
    main = root.attributes.get("main_tree_to_execute", next(iter(trees)))
    if main not in trees:
        raise PlanError(
            f"the tree {main!r} is not there", key="main_tree_to_execute", accepted=", ".join(trees)
        )
    ways = [steps for steps, succeeded in _Reading(trees).tree(main, ()) if succeeded]
    kept = list(dict.fromkeys(ways))
    if not kept:
        raise PlanError(
            f"the tree {main!r} cannot succeed", accepted="a tree with a way to succeed"
        )
    for at, steps in enumerate(kept):
        yield Plan(name if len(kept) == 1 else f"{name} way {at + 1}", steps, fields={"tree": main})


def _parse(text: str) -> _Node:
    if len(text) > MOST_CHARACTERS:
        raise PlanError("is too large", accepted=f"up to {MOST_CHARACTERS} characters")
    top = _Node("", {})
    stack = [top]
    count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MOST_NODES or len(stack) > DEEPEST:
            raise PlanError(
                "has too many nodes, or nests too deeply",
                accepted=f"{MOST_NODES} nodes, {DEEPEST} within each other",
            )
        node = _Node(tag, attributes)
        stack[-1].children.append(node)
        stack.append(node)

    def refuse(*_: object) -> None:
        raise PlanError("declares a document type or entities", accepted="XML without them")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: stack.pop()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode("utf-8"), True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # the latter of its encoding
        raise PlanError(f"is no XML ({error})", accepted=ACCEPTED) from None
    return top.children[0]


def _all(node: _Node, tag: str) -> Iterator[_Node]:
    for child in node.children:
        if child.tag == tag:
            yield child


class _Reading:
    """Finds the ways through nodes; those that fail only where something may come of them."""

    work = 0

    def __init__(self, trees: dict[str, _Node]) -> None:
        self.trees = trees

    def tree(self, name: str, above: tuple[str, ...], fail: bool = False) -> Ways:
        if name in above:
            raise PlanError(f"the tree {name!r} contains itself", accepted="trees without a circle")
        if name not in self.trees:
            raise PlanError(f"the tree {name!r} is not there", accepted=", ".join(self.trees))
        return self._sequence(self.trees[name].children, (*above, name), fail)

    def ways(self, node: _Node, above: tuple[str, ...], fail: bool) -> Ways:
        tag, children = node.tag.casefold(), node.children
        self._work(VISIT)
        if tag in ("subtree", "subtreeplus"):
            return self.tree(node.attributes.get("ID", ""), above, fail)
        if tag in _SEQUENCES:
            return self._sequence(children, above, fail)
        if tag in _FALLBACKS:
            return self._fallback(children, above, fail)
        if tag in ("parallel", "parallelall"):
            return self._parallel(children, above, fail)
        if tag == "repeat":
            return self._sequence(children * _cycles(node), above, fail)
        if tag == "recoverynode" and len(children) == 2:  # Nav2: recover, then try again
            again = _Node("Sequence", {}, [children[1], children[0]])
            return self._fallback([children[0], again], above, fail)
        if len(children) == 1 and tag in _THROUGH:
            return self.ways(children[0], above, fail)
        if len(children) == 1 and tag in _OUTCOMES:
            outcome = _OUTCOMES[tag]
            ways = [(steps, outcome(done)) for steps, done in self.ways(children[0], above, True)]
            return [(steps, done) for steps, done in ways if done or fail]
        if children:
            raise PlanError(
                f"<{node.tag}> is not known",
                accepted="Sequence, Fallback, Parallel, SubTree, decorators of BehaviorTree.CPP",
            )
        return _leaf(node, tag, fail)

    def _sequence(self, children: Sequence[_Node], above: tuple[str, ...], fail: bool) -> Ways:
        going: list[tuple[Step, ...]] = [()]
        failed: Ways = []
        for child in children:
            ways = self.ways(child, above, fail)
            self._spend(going, ways)
            failed = _limited(
                [*failed, *((s + more, False) for s in going for more, done in ways if not done)]
            )
            going = _few([s + more for s in going for more, done in ways if done])
        return _limited([*((steps, True) for steps in going), *failed])

    def _fallback(self, children: Sequence[_Node], above: tuple[str, ...], fail: bool) -> Ways:
        going: list[tuple[Step, ...]] = [()]
        over: Ways = []
        for at, child in enumerate(children, 1):
            ways = self.ways(child, above, fail or at < len(children))
            self._spend(going, ways)
            over = _limited(
                [*over, *((s + more, True) for s in going for more, done in ways if done)]
            )
            going = _few([s + more for s in going for more, done in ways if not done])
        return _limited([*over, *((steps, False) for steps in going if fail)])

    def _spend(self, going: list[tuple[Step, ...]], ways: Ways) -> None:
        self._work((sum(map(len, going)) + len(going)) * max(1, len(ways)))

    def _work(self, done: int) -> None:
        self.work += done
        if self.work > MOST_WORK:
            raise _too_many()

    def _parallel(self, children: Sequence[_Node], above: tuple[str, ...], fail: bool) -> Ways:
        """Return the ways of all children, their steps in any order between them."""
        mixed: Ways = [((), True)]
        for child in children:
            ways = self.ways(child, above, fail)
            mixed = _limited(
                [
                    (steps, done and also)
                    for first, done in mixed
                    for second, also in ways
                    for steps in islice(_shuffled(first, second), MOST_WAYS + 1)
                ]
            )
        return mixed


def _cycles(node: _Node) -> int:
    text = node.attributes.get("num_cycles", "")
    if not text.isdecimal() or len(text) > MOST_DIGITS or not 0 < int(text) <= MOST_WAYS:
        raise PlanError(f"<Repeat num_cycles={text!r}>", accepted=f"a number from 1 to {MOST_WAYS}")
    return int(text)


def _leaf(node: _Node, tag: str, fail: bool) -> Ways:
    if tag in ("alwayssuccess", "alwaysfailure"):
        ways: Ways = [((), tag == "alwayssuccess")]
    elif tag in ("condition", "scriptcondition", "script", "setblackboard"):
        ways = [((), True), ((), False)]
    else:
        ways = [((_step(node),), True), ((), False)]
    return [(steps, done) for steps, done in ways if done or fail]


def _few(ways: list[tuple[Step, ...]]) -> list[tuple[Step, ...]]:
    return [steps for steps, _ in _limited([(steps, True) for steps in ways])]


def _limited(ways: Ways) -> Ways:
    """Return each way once; raises PlanError where there are too many, or too long ones."""
    if len(ways) > 1:
        if sum(len(steps) for steps, _ in ways) > MOST_STEPS:
            raise _too_many()
        ways = list(dict.fromkeys(ways))
    if len(ways) > MOST_WAYS or any(len(steps) > MOST_STEPS for steps, _ in ways):
        raise _too_many()
    return ways


def _too_many() -> PlanError:
    return PlanError("there are too many ways through the tree", accepted=f"up to {MOST_WAYS}")


def _shuffled(first: tuple[Step, ...], second: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    if not first or not second:
        yield first + second
        return
    if len(first) + len(second) > 12:
        raise _too_many()
    for rest in _shuffled(first[1:], second):
        yield first[0], *rest
    for rest in _shuffled(first, second[1:]):
        yield second[0], *rest


def _step(node: _Node) -> Step:
    named = node.tag in ("Action", "Condition")
    action = node.attributes.get("ID", "") if named else node.tag
    if not action:
        raise PlanError(f"<{node.tag}> has no ID", accepted='<Action ID="open" object="fridge"/>')
    arguments = (value for name, value in node.attributes.items() if name not in _OWN)
    return Step(action, tuple(arguments))
