"""``forewarn refine``: split the leaves of a tree until a bound holds, or is really broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from forewarn.cli.common import at_least_one, recording_path, report_option, write_report
from forewarn.cli.editing import shortened
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import Readers
from forewarn.errors import CheckingError, ConfigError, RecordingError, plural
from forewarn.files.outputs import check_output
from forewarn.learning.folds import dealt
from forewarn.logic.specification import CompiledSpec
from forewarn.models.file import check_replaceable
from forewarn.models.trie import Concrete
from forewarn.monitoring.loading import load_compiled
from forewarn.recordings.registry import existing_recordings
from forewarn.registry import part
from forewarn.wings.trees.concrete import concrete, condition_of
from forewarn.wings.trees.examples import Run
from forewarn.wings.trees.growing import (
    RunsRead,
    TreeOptions,
    chosen_variables,
    put_tree,
    read_runs,
    running_variables,
)
from forewarn.wings.trees.nodes import Leaf, Node
from forewarn.wings.trees.refined import (
    ENDINGS,
    GoalEstimate,
    Limits,
    Refined,
    RefinementQuery,
    Trace,
)
from forewarn.wings.trees.refinement import Refiner
from forewarn.wings.trees.refinement_file import (
    FORMAT,
    NOUN,
    Refinement,
    refinement_record,
    save_refinement,
)
from forewarn.wings.trees.space import TreeSpace

DESCRIPTION = """\
Check an upper bound of a probability on the decision process that recordings and tree make. The
policy that breaks the bound is followed through the recorded runs; where only merged states promise
it, the leaf is split. It ends when the bound holds, when runs themselves break it, when no split
predicts held-out runs better, or with the budget."""

EPILOG = """\
exit codes: 0 the bound holds, 1 it does not, 2 wrong usage or input.

examples: forewarn refine runs/ -c monitor.yaml --query 'Pmax(failure) <= 0.2'
          forewarn refine runs/ -c monitor.yaml --query 'Pmin(collision) <= 0.05' --write
          forewarn refine runs/ -c monitor.yaml --query 'Pmax(failure) <= 0.2' --held-out more/ \\
              --rounds 50 --leaves 64 --leaf-size 10 --save refined.json"""


@dataclass(frozen=True, kw_only=True)
class Options(TreeOptions):
    """The arguments of ``refine``."""

    query: str = option(
        "the bound: Pmax(NAME) <= P or Pmin(NAME) <= P, NAME a predicate or terminal label",
        "BOUND",
        required=True,
    )
    held_out: list[Path] = option(
        "recordings on which splits are tried (every third)",
        "RECORDING",
        of=recording_path,
        nargs="+",
    )
    rounds: int = option("splits at most", "N", of=at_least_one, default=20)
    leaves: int = option("leaves at most", "N", of=at_least_one, default=128)
    save: Path | None = option("keep all rounds, for `forewarn report`", "FILE")
    report: Path | None = report_option()


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
    paths = [*recordings, *held_out]
    readers = Readers(options, paths, output)
    read = read_runs(paths, options, compiled, variables, readers, goal)
    readers.warn()
    is_tried = _held_out(read, recordings, held_out)
    runs = [episodes for episodes, tried in zip(read.runs, is_tried, strict=True) if not tried]
    variables = running_variables(runs, variables, output)
    traces: list[list[Trace]] = [[], []]
    groups = []
    for episodes, group, tried in zip(read.runs, read.groups, is_tried, strict=True):
        traces[tried] += [_trace(run, variables) for run in episodes]
        groups += [] if tried else [group] * len(episodes)
    limits = Limits(options.rounds, options.leaves, options.growth(2))
    space = compiled.abstraction.vocabulary
    tree: Node = space.tree if isinstance(space, TreeSpace) else Leaf("s0")
    refiner = Refiner(
        tree,
        variables,
        traces[False],
        traces[True],
        lambda text: condition_of(text, variables),
        groups,
    )
    with output.progress("refining") as bar:

        def progress(splits: int, answer: GoalEstimate) -> None:
            bar(splits, limits.rounds, f"refining: {answer.leaves} leaves, {answer.estimate:.3g}")

        refined = refiner.refine(question, limits, progress)
    _show(refined, options.query, output)
    change = ""
    if refined.rounds:
        remark = f"refined by `forewarn refine` for {options.query}"
        marks = (*read.marks, *compiled.abstraction.state_source_recordings)
        change = put_tree(options, refined.tree, None, variables, compiled, remark, marks, output)
    found = Refinement(options.query, refined)
    if options.save is not None:
        save_refinement(found, options.save)
    if options.report is not None:
        from forewarn.wings.trees.report import refinement_page

        write_report(options.report, refinement_page(found), output)
    record = refinement_record(found)
    output.emit({**record, "diff": change, "written": options.write and bool(change)})
    return 0 if refined.ending == "holds" else 1


def _held_out(read: RunsRead, recordings: Sequence[Path], held_out: Sequence[Path]) -> list[bool]:
    """Tell on which recordings splits are tried; raises InputError if nothing can be held out."""
    if not held_out:
        groups = len({*read.groups})
        if groups < 3:
            alone = groups == len(read.groups)
            raise ConfigError(
                plural(groups, "recording" if alone else "group"),
                accepted="three or more, or some by --held-out",
            )
        return [part == 2 for part in dealt(read.groups, 3)]
    tried = {*held_out}
    for path in recordings:
        if path in tried:
            raise RecordingError(
                "is learned from and held out", file=path, accepted="each recording once"
            )
    is_tried = [path in tried for path in read.paths]
    learned = {group for group, out in zip(read.groups, is_tried, strict=True) if not out}
    for path, group in zip(read.paths, read.groups, strict=True):
        if path in tried and group in learned:
            raise RecordingError(
                f"is held out, and others of its group, {group}, are learned from",
                file=path,
                accepted="groups that are held out as a whole",
            )
    return is_tried


def _question(text: str, compiled: CompiledSpec) -> tuple[RefinementQuery, str]:
    query = part("decisions", "process_query", "refine").parse_process_query(text)
    atoms = compiled.abstraction.vocabulary.atoms
    goal = "" if query is None else query.goal.strip('" ')
    bounded = query is not None and query.sign.startswith("<") and query.horizon is None
    if query is None or not bounded or goal not in atoms or query.way != "true":
        raise CheckingError(
            f"{text!r} is no bound that can be refined for",
            accepted=f"Pmax(NAME) <= P or Pmin(NAME) <= P; names: {', '.join(atoms)}",
        )
    return RefinementQuery(query.maximise, query.threshold), goal


def _trace(run: Run, variables: Sequence[str]) -> Trace:
    actions = ["", *(moment.action or "" for moment in run[:-1])]
    trace: list[tuple[str, Concrete]] = [
        (action, (*concrete(moment.values, variables), moment.reached))
        for action, moment in zip(actions, run, strict=True)
    ]
    if run[-1].ends is not None and not run[-1].reached:
        trace.append((run[-1].action or "", (None,) * (len(variables) + 1)))
    return trace


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
        output.say(refined.among_runs)
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


def _figures(answer: GoalEstimate) -> tuple[str, ...]:
    return (
        f"{answer.estimate:.3g}",
        f"{answer.lower:.3g}",
        f"{answer.upper:.3g}",
        f"{answer.loss:.3f}",
    )
