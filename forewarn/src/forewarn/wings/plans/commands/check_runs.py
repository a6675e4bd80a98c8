"""``forewarn check-runs``: executions as a computation tree, and CTL on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from forewarn.checking.ctl import CtlFormula, is_ctl, names_in, parse
from forewarn.cli.common import RECORDINGS_HELP, at_least_one, top_option
from forewarn.cli.options import argument, option
from forewarn.cli.output import Output
from forewarn.cli.tables import changed
from forewarn.errors import CheckingError
from forewarn.wings.plans.commands.run_sources import Execution, PlanRuns, RecordedRuns, RunSource
from forewarn.wings.plans.computation_tree import (
    MOST_NODES,
    Branch,
    TreeBuilder,
    breaks_at,
    holds_at_the_start,
    judge_branches,
)
from forewarn.wings.plans.summary import GROUPS, Share, rows_by_group, share, table_of

DESCRIPTION = """\
Merge executions of a task into a computation tree and check CTL with bounds in time on it: `AG
!unsafe`, `AG (red => AF[<=2] stopped)`. Says whether the tree satisfies it, which branch does
not, and the share of executions that do. An execution that ends stays in its last state."""

EPILOG = """\
With -c, recordings are executions, and bounds are in seconds, or in steps if the clock is steps.
Without -c, plans and logs of agents are executions; names in formulas are statements about objects
in quotes, or rules of the file -r without temporal operators.

exit codes: 0 every formula holds, 1 one does not, 2 wrong usage or input.

examples: forewarn check-runs bags/ -c monitor.yaml -f 'AG (red => AF[<=2] stopped)'
          forewarn check-runs logs.jsonl -a household --by task -f 'AG !"on(Stove)"'
          forewarn check-runs logs.jsonl --rules kitchen.yaml \\
              -f no_fork --most-nodes 10000 --top 3"""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of ``check-runs``."""

    runs: list[Path] = argument(
        f"with -c: {RECORDINGS_HELP}; without: plans or logs of agents", "RUNS"
    )
    formula: list[str] = option("what to check; may be repeated", "CTL", "-f", required=True)
    config: Path | None = option("the monitor file", "FILE", "-c")
    rules: Path | None = option(
        "a file of rules about objects: names for formulas, and what actions do", "FILE", "-r"
    )
    actions: str | None = option("what actions do, in YAML, or `household`", "FILE", "-a")
    by: list[str] = option(
        "a field of the plans: one tree for each of its values; may be repeated", "FIELD"
    )
    most_nodes: int = option(
        "nodes of a tree before it is refused", "N", of=at_least_one, default=MOST_NODES
    )
    top: int = top_option("broken branches")


@dataclass(frozen=True)
class Found:
    """What a formula says of one tree, and of the executions taken alone (`share`).

    `branch` breaks it, and most executions took it: time and state of each change. `at` is when it
    breaks, in its element `broken`, where the formula says that one moment does.
    """

    group: str
    formula: str
    holds: bool
    share: Share
    execution: str = ""
    executions: int = 0
    at: str = ""
    branch: tuple[tuple[str, str], ...] = ()
    broken: int = 0


def run(options: Options, output: Output) -> int:
    """Merge and check."""
    source: RunSource
    if options.config is not None:
        if options.rules or options.actions or options.by:
            raise CheckingError(
                "--rules, --actions and --by speak of plans, -c of recordings",
                accepted="one or the other",
            )
        source = RecordedRuns(options.config)
    else:
        source = PlanRuns(options.rules, options.actions, options.by)
    formulas = [_parsed(text, source.unit) for text in options.formula]
    source.name_all({name for formula in formulas for name in names_in(formula)})
    builders: dict[str, TreeBuilder] = defaultdict(lambda: TreeBuilder(options.most_nodes))
    ended: list[tuple[Execution, int]] = []
    with output.progress("merging") as bar:
        for done, execution in enumerate(source.executions(options.runs, output)):
            node = builders[execution.group].add(execution.states, execution.name)
            if execution.fields is not None:
                ended.append((execution._replace(states=[]), node))
            if done % 64 == 0:
                bar(done, None)
    if not builders:
        raise CheckingError("no execution has a state", accepted="runs with known states")
    broken: set[tuple[str, int]] = set()
    found = list(_checked(options, formulas, source, builders, broken))
    _print(found, builders, options, output)
    judged = ((one.fields or {}, _verdict(one, node, broken)) for one, node in ended)
    rows, whole = rows_by_group(judged)
    if any(row.success or row.valid for row in rows):
        output.say()
        output.table(*table_of(rows, whole, GROUPS))
    output.emit(
        {
            "trees": {
                group: {"executions": tree.executions, "nodes": len(tree.parent)}
                for group, builder in builders.items()
                for tree in (builder.tree(),)
            },
            "found": found,
            "groups": GROUPS,
            "rows": rows,
        }
    )
    return 0 if all(one.holds for one in found) else 1


def _parsed(text: str, unit: str) -> CtlFormula:
    if not is_ctl(text):
        raise CheckingError(f"{text} asks for a probability", accepted="CTL: AG !unsafe")
    return parse(text, unit)


def _checked(
    options: Options,
    formulas: list[CtlFormula],
    source: RunSource,
    builders: dict[str, TreeBuilder],
    broken: set[tuple[str, int]],
) -> Iterator[Found]:
    """Yield what each formula says of each tree; add the ends of branches that break one."""
    for group, builder in builders.items():
        tree = builder.tree()
        for text, formula in zip(options.formula, formulas, strict=True):
            safe, worst = 0, None
            for branch, holds in judge_branches(tree, formula, source.holds, source.clock):
                safe += branch.executions if holds else 0
                if not holds:
                    broken.add((group, branch.end))
                if not holds and (worst is None or branch.executions > worst.executions):
                    worst = branch
            whole = holds_at_the_start(tree, formula, source.holds, source.clock)
            finding = Found(group, text, whole, share(safe, tree.executions))
            if worst is not None and not whole:
                finding = _with_branch(finding, worst, formula, builder, source)
            yield finding


def _verdict(execution: Execution, node: int, broken: set[tuple[str, int]]) -> str:
    """Return whether an execution keeps to all formulas; what was cut is not known to."""
    if (execution.group, node) in broken:
        return "violated"
    return "unknown" if execution.cut else "safe"


def _with_branch(
    finding: Found, branch: Branch, formula: CtlFormula, builder: TreeBuilder, source: RunSource
) -> Found:
    at = breaks_at(branch, formula, source.holds, source.clock)
    changes: list[tuple[str, str]] = []
    before, broken = None, 0
    for position, state in enumerate(branch.states.tolist()):
        if state != before:
            changes.append((source.time(position), source.describe(state)))
        before = state
        broken = len(changes) - 1 if position == at else broken
    return Found(
        finding.group, finding.formula, finding.holds, finding.share, builder.first(branch.end),
        branch.executions, "" if at is None else source.time(at), tuple(changes), broken,
    )  # fmt: skip


def _print(
    found: list[Found], builders: dict[str, TreeBuilder], options: Options, output: Output
) -> None:
    rows = []
    for one in found:
        tree = builders[one.group].tree()
        rows.append(
            [one.group or "all", one.formula, "holds" if one.holds else "BROKEN",
             str(tree.executions), str(len(tree.parent)), str(one.share), one.at]
        )  # fmt: skip
    columns = ("tree", "formula", "verdict", ">executions", ">nodes", ">hold alone", ">first at")
    output.table(columns, rows)
    drawn = [one for one in found if one.branch]
    for one in drawn[: options.top or None]:
        output.say()
        where = f" in {one.group}" if one.group else ""
        output.say(
            f"{one.formula}{where} is broken by {one.execution or 'an execution'}"
            + (f" and {one.executions - 1} like it" if one.executions > 1 else "")
        )
        begin = max(0, one.broken - SHOWN_BEFORE)
        shown = one.branch[begin : begin + MOST_SHOWN]
        states = [state for _, state in shown]
        changes = [states[0], *(changed(*pair) for pair in pairwise(states))]
        cells = [(time, state) for (time, _), state in zip(shown, changes, strict=True)]
        output.table((">time", "state"), cells)
        if len(shown) < len(one.branch):
            output.say(f"{begin} changes before and {len(one.branch) - begin - len(shown)} after")
    if options.top and len(drawn) > options.top:
        output.say()
        output.say(f"{len(drawn) - options.top} more; --top 0 lists all")
    if any(not one.holds and not one.branch for one in found):
        output.say()
        output.say("Where no branch is shown, no single execution breaks the formula.")


SHOWN_BEFORE, MOST_SHOWN = 5, 12
