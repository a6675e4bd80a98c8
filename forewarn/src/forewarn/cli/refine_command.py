"""``forewarn refine``: split the leaves of a tree until a bound holds, or is really broken."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from forewarn.checking.process_query import parse_process_query
from forewarn.cli.common import add_report, recording_path, write_report
from forewarn.cli.fleet import Readers
from forewarn.cli.growing import (
    TreeOptions,
    add_tree_arguments,
    at_least_one,
    chosen_variables,
    put_tree,
    read_runs,
    running_variables,
)
from forewarn.cli.output import Output
from forewarn.errors import CheckingError, ConfigError, plural
from forewarn.files.outputs import check_output
from forewarn.learning.concrete import concrete, condition_of
from forewarn.learning.examples import Run
from forewarn.learning.refined import ENDINGS, Answer, Limits, Question, Refined, Trace
from forewarn.learning.refinement import Refiner
from forewarn.learning.refinement_file import (
    FORMAT,
    NOUN,
    Refinement,
    refinement_record,
    save_refinement,
)
from forewarn.logic.specification import CompiledSpec
from forewarn.models.file import check_replaceable
from forewarn.monitoring.loading import load_compiled
from forewarn.recordings.given import existing_recordings
from forewarn.states.tree.nodes import Leaf, Node, shortened
from forewarn.states.tree.space import TreeSpace

DESCRIPTION = """\
Check an upper bound of a probability on the decision process that recordings and tree make, and
refine the tree by counterexamples. The policy that breaks the bound is played in the recorded
runs: what they bear out is real; what only merged states promise is followed to the leaf where it
is lost, which is split by what tells apart how its states go on. A split has to predict runs
better that were held out. It ends when the bound holds, when runs themselves break it, when no
split helps, or with the budget."""

EPILOG = """\
exit codes: 0 the bound holds, 1 it does not, 2 wrong usage or input.

examples: forewarn refine runs/ -c monitor.yaml --query 'Pmax(failure) <= 0.2'
          forewarn refine runs/ -c monitor.yaml --query 'Pmin(collision) <= 0.05' --write"""


@dataclass(frozen=True)
class Options(TreeOptions):
    """The arguments of ``refine``."""

    query: str
    held_out: list[Path]
    save: Path | None
    report: Path | None
    rounds: int
    leaves: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add(
        "--query",
        required=True,
        metavar="BOUND",
        help="the bound: Pmax(NAME) <= P or Pmin(NAME) <= P, NAME a predicate or terminal label",
    )
    add(
        "--held-out",
        type=recording_path,
        nargs="+",
        default=[],
        metavar="RECORDING",
        help="recordings on which splits are tried; every third of the others if left out",
    )
    add("--rounds", type=at_least_one, default=20, metavar="N", help="splits at most (20)")
    add("--leaves", type=at_least_one, default=128, metavar="N", help="leaves at most (128)")
    add_tree_arguments(parser, leaf_size=5)
    add("--save", type=Path, metavar="FILE", help="keep all rounds, for `forewarn report`")
    add_report(parser)


def run(options: Options, output: Output) -> int:
    """Read, refine, tell every round, and write if asked to."""
    check_output(options.config if options.write else None, options.report)
    if options.save is not None:
        check_replaceable(options.save, FORMAT, NOUN)
    compiled = load_compiled(options.config)
    variables = chosen_variables(options, compiled)
    question, goal = _question(options.query, compiled)
    recordings = existing_recordings(options.recordings, compiled.spec)
    held_out = existing_recordings(options.held_out, compiled.spec)
    readers = Readers(options, [*recordings, *held_out])
    read = partial(
        read_runs,
        compiled=compiled,
        executor=readers.executor,
        output=output,
        goal=goal,
        allow_missing=options.allow_missing,
    )
    runs, marks = read(recordings, variables=variables)
    variables = running_variables(runs, variables, output)
    if options.held_out:
        tried, others = read(held_out, variables=variables)
        marks += others
    elif len(runs) < 3:
        raise ConfigError(
            plural(len(runs), "recording"), accepted="three or more, or some by --held-out"
        )
    else:
        tried = runs[2::3]
        runs = [run for number, run in enumerate(runs) if number % 3 != 2]
    readers.warn(output)
    limits = Limits(options.rounds, options.leaves + 1, options.growth(2))
    space = compiled.abstraction.vocabulary
    tree: Node = space.tree if isinstance(space, TreeSpace) else Leaf("s0")
    refiner = Refiner(
        tree,
        variables,
        [_trace(run, variables) for episodes in runs for run in episodes],
        [_trace(run, variables) for episodes in tried for run in episodes],
        lambda text: condition_of(text, variables),
    )
    with output.progress("refining") as bar:

        def told(splits: int, answer: Answer) -> None:
            bar(splits, limits.rounds, f"refining: {answer.leaves} leaves, {answer.estimate:.3g}")

        refined = refiner.refine(question, limits, told)
    _show(refined, options.query, output)
    change = ""
    if refined.rounds:
        remark = f"refined by `forewarn refine` for {options.query}"
        marks += compiled.abstraction.grown
        change = put_tree(options, refined.tree, None, variables, compiled, remark, marks, output)
    found = Refinement(options.query, refined)
    if options.save is not None:
        save_refinement(found, options.save)
    if options.report is not None:
        from forewarn.reports.learned import refinement_page

        write_report(options.report, refinement_page(found), output)
    record = refinement_record(found)
    output.emit({**record, "diff": change, "written": options.write and bool(change)})
    return 0 if refined.ending == "holds" else 1


def _question(text: str, compiled: CompiledSpec) -> tuple[Question, str]:
    query = parse_process_query(text)
    atoms = compiled.abstraction.vocabulary.atoms
    goal = "" if query is None else query.goal.strip('" ')
    bounded = query is not None and query.sign.startswith("<") and query.horizon is None
    if query is None or not bounded or goal not in atoms or query.way != "true":
        raise CheckingError(
            f"{text!r} is no bound that can be refined for",
            accepted=f"Pmax(NAME) <= P or Pmin(NAME) <= P; names: {', '.join(atoms)}",
        )
    return Question(query.maximise, query.threshold), goal


def _trace(run: Run, variables: Sequence[str]) -> Trace:
    actions = ["", *(moment.action or "" for moment in run[:-1])]
    return [
        (action, (*concrete(moment.values, variables), moment.reached))
        for action, moment in zip(actions, run, strict=True)
    ]


def _show(refined: Refined, query: str, output: Output) -> None:
    answers = [round_.before for round_ in refined.rounds] + [refined.answer]
    output.table(
        ("round", ">leaves", ">estimate", ">lower", ">upper", ">loss (bits)", "split"),
        [
            (str(number), str(answer.leaves), *_figures(answer), split)
            for number, (answer, split) in enumerate(
                zip(
                    answers,
                    [*(f"{one.leaf}: {shortened(one.condition)}" for one in refined.rounds), ""],
                    strict=True,
                )
            )
        ],
    )
    output.say(f"{query}: {ENDINGS[refined.ending]}")
    if refined.ending != "holds":
        output.say(f"borne out by runs: {refined.real:.3g} of {refined.answer.estimate:.3g}")
    output.table(
        (">probability", ">runs", "most probable ways to the goal"),
        [(f"{chance:.3g}", str(runs), " ".join(path)) for path, chance, runs, _ in refined.paths],
    )
    if refined.critical is not None:
        kind = "smallest part" if refined.critical.minimal else "a small part"
        chance = f"{refined.critical.probability:.3g}"
        output.say(f"{kind} that breaks the bound ({chance}): {', '.join(refined.critical.states)}")
    for leaf, condition in refined.rejected:
        output.note(
            f"note: {leaf} was not split by {shortened(condition)}: "
            "held-out runs do not bear it out"
        )
    output.note("note: lower and upper are not sound: the runs that are counted also made the tree")


def _figures(answer: Answer) -> tuple[str, ...]:
    return (
        f"{answer.estimate:.3g}",
        f"{answer.lower:.3g}",
        f"{answer.upper:.3g}",
        f"{answer.loss:.3f}",
    )
