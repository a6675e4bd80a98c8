"""``forewarn learn-states``: from traces to a tree whose leaves are the states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from forewarn.cli.common import at_least_one, folds_option, report_option, write_report
from forewarn.cli.editing import put, shortened, text_of, with_predicate
from forewarn.cli.options import option
from forewarn.cli.output import Output
from forewarn.cli.readers import Readers
from forewarn.errors import ConfigError, InputError, plural
from forewarn.files.outputs import check_output
from forewarn.learning.folds import grouping_of, groups_in_words
from forewarn.logic.specification import CompiledSpec
from forewarn.monitoring.loading import load_compiled
from forewarn.recordings.registry import existing_recordings
from forewarn.wings.trees.examples import WAYS, classifier, examples_of
from forewarn.wings.trees.growing import (
    TreeOptions,
    chosen_variables,
    declared_roles,
    leaf_size_option,
    put_tree,
    read_runs,
    running_variables,
    variables_before_action,
)
from forewarn.wings.trees.growth import Grown, Size, choose_size, learn_tree
from forewarn.wings.trees.labels import LearnedLabel, end_of, learn_label, name_of_run, read_labels

DESCRIPTION = """\
Learn a predicate tree from recordings: its leaves, with the predicates of the file, are the states.
It is split where that tells most about a class: what is done next, which state follows, the next
actions, or whether a violation follows within a time. Then learn the model again.

With --label, learn an expression for a label that only few runs have, and write it as the
predicate learned_NAME."""

EPILOG = """\
exit codes: 0 a tree was learned, 1 no condition separates the classes, 2 wrong usage or input.

examples: forewarn learn-states runs/ -c monitor.yaml
          forewarn learn-states runs/ -c monitor.yaml --class violation:calm:2 --write
          forewarn learn-states runs/ -c monitor.yaml --variable files --variable errors --leaves 8
          forewarn learn-states runs/ -c monitor.yaml --label solved \\
              --labels labels.jsonl --write
          forewarn learn-states runs/ -c monitor.yaml --folds 10 --leaf-size 50 --depth 6 --once \\
              --text contains --group task"""

LEAVES = 8
"""Of a tree that tells a label, at most."""
SHOWN = 4


@dataclass(frozen=True, kw_only=True)
class Options(TreeOptions):
    """The arguments of ``learn-states``."""

    kind: str = option(f"{WAYS}", "CLASS", "--class", default="action")
    leaves: int | None = option("number of leaves at most", "N", of=at_least_one)
    folds: int = folds_option(
        "parts of the recordings by which the number of leaves is chosen", default=5
    )
    label: str | None = option(
        "learn an expression for this label that few runs have, instead of states", "NAME"
    )
    labels: Path | None = option(
        'labels beside the traces, lines like {"run": "a17", "NAME": true}', "FILE"
    )
    leaf_size: int = leaf_size_option(20)
    report: Path | None = report_option()


def run(options: Options, output: Output) -> int:
    """Read, grow, show, and write if asked to."""
    check_output(options.config if options.write else None, options.report)
    _check_usage(options)
    compiled = load_compiled(options.config)
    variables = chosen_variables(options, compiled)
    classify = classifier(options.kind, compiled)
    recordings = existing_recordings(options.recordings, compiled.spec)
    readers = Readers(options, recordings, output)
    if options.label is not None:
        return _learn_label(options.label, options, recordings, compiled, variables, readers)
    read = read_runs(recordings, options, compiled, variables, readers)
    runs = read.runs
    readers.warn()
    variables = running_variables(runs, variables, output)
    named = options.variables or declared_roles(compiled)
    if not named and options.kind.partition(":")[0] in ("action", "suffix"):
        variables = variables_before_action(runs, variables, compiled, output)
    examples = examples_of(runs, classify, variables, read.groups)
    growth = options.growth(options.leaves or 64)
    sizes: list[Size] = []
    if options.leaves is None and len({*examples.runs}) > 1:
        with output.progress("choosing the number of leaves") as bar:
            chosen, sizes = choose_size(examples, growth, options.folds, bar)
        growth = replace(growth, leaves=chosen)
    elif options.leaves is None:
        alone = "recording" if len(runs) == 1 else "group of recordings"
        output.note(f"note: one {alone} cannot choose the number of leaves: 64 at most")
    with output.progress("growing the tree"):
        grown = learn_tree(examples, growth)
    _show(grown, sizes, len(examples.classes), output)
    notes = {
        leaf: f"{plural(sum(kinds.values()), 'moment')}: {_kinds(kinds)}"
        for leaf, kinds in grown.counts.items()
    }
    source = f"{plural(len(runs), 'recording')}, class {options.kind}"
    remark = f"learned by `forewarn learn-states` from {source}"
    change = put_tree(options, grown.tree, notes, variables, compiled, remark, read.marks, output)
    if options.report is not None:
        from forewarn.wings.trees.report import tree_page

        page = tree_page(_readable(grown), sizes, options.kind, f"{options.config.name}: {source}")
        write_report(options.report, page, output)
    record = _record(grown, sizes, len(examples.classes), change, options)
    output.emit({**record, "left_out": readers.record()})
    return 0 if grown.splits else 1


def _check_usage(options: Options) -> None:
    """Refuse arguments that would count for nothing; raises InputError."""
    if options.label is None and options.labels is not None:
        raise InputError("--labels without --label", accepted="--label NAME --labels FILE")
    if options.label is not None and options.report is not None:
        raise InputError("--report beside --label", accepted="one of them: a label has no page")
    if options.label is not None and options.group is not None:
        raise InputError("--group beside --label", accepted="one of them: a run has one label")


def _show(grown: Grown, sizes: Sequence[Size], examples: int, output: Output) -> None:
    if sizes:
        chosen = sizes[len(grown.counts) - 1]
        output.say(
            f"{plural(len(grown.counts), 'leaf').replace('leafs', 'leaves')}: held-out loss "
            f"{chosen.loss:.3f} bits a moment (one leaf: {sizes[0].loss:.3f})"
        )
    output.table(
        ("split", ">gain (bits)"),
        [(shortened(one.condition), f"{one.gain:.3f}") for one in grown.splits],
    )
    output.table(
        ("leaf", ">moments", "class"),
        [(leaf, str(sum(kinds.values())), _kinds(kinds)) for leaf, kinds in grown.counts.items()],
    )
    if grown.undecided:
        output.note(
            f"note: {grown.undecided} of {examples} moments reach no leaf: a variable is unknown"
        )


def _kinds(kinds: Mapping[Any, int]) -> str:
    total = sum(kinds.values())
    most = [f"{_kind(kind)} {count / total:.0%}" for kind, count in list(kinds.items())[:SHOWN]]
    return ", ".join(most) + (", ..." if len(kinds) > SHOWN else "")


def _readable(grown: Grown) -> Grown:
    """Return the tree with classes as people read them."""
    counts = {
        leaf: {_kind(kind): number for kind, number in kinds.items()}
        for leaf, kinds in grown.counts.items()
    }
    return grown._replace(counts=counts)


def _kind(kind: Any) -> str:
    return " > ".join(kind) if isinstance(kind, tuple) else str(kind)


def _record(
    grown: Grown, sizes: Sequence[Size], examples: int, change: str, options: Options
) -> dict[str, Any]:
    return {
        "class": options.kind,
        "moments": examples,
        "undecided": grown.undecided,
        "splits": [{"condition": one.condition, "gain": one.gain} for one in grown.splits],
        "leaves": _readable(grown).counts,
        "sizes": [size._asdict() for size in sizes],
        "diff": change,
        "written": options.write,
    }


def _learn_label(
    label: str,
    options: Options,
    recordings: Sequence[Path],
    compiled: CompiledSpec,
    variables: Sequence[str],
    readers: Readers,
) -> int:
    """Read how runs ended, learn, show, and write if asked to; raises InputError."""
    file, config = options.labels, options.config
    signal = _signal(label, file, compiled, config)
    labels = {} if file is None else read_labels(file, label)
    names = [name_of_run(path) for path in recordings]
    missing = sorted(set(labels) - set(names))
    if missing:
        raise ConfigError(
            f"labels a run {missing[0]!r} that is not among the recordings",
            file=file,
            accepted=", ".join(names[:5]),
        )
    asked = [name for name in variables if name != label]
    output, grouping = readers.output, grouping_of(compiled.spec)
    read = readers.read(
        recordings, end_of, compiled, asked, signal, readers.allow_missing, grouping
    )
    ends = [one._replace(label=labels.get(name_of_run(path), one.label)) for path, one in read]
    readers.warn()
    if grouping is not None:
        groups = len({end.group for end in ends})
        output.note(f"note: {groups_in_words(len(ends), groups, ', '.join(grouping.keys))}")
    growth = replace(options.growth(min(options.leaves or LEAVES, LEAVES)), leaf_size=1)
    found = learn_label(ends, growth, options.folds)
    _show_label(label, found, output)
    name, change = f"learned_{label}", ""
    if found.expression:
        remark = (
            f"learned by `forewarn learn-states --label`: {_accuracy(found)}; edit it as you like"
        )
        before = text_of(config)
        after = with_predicate(config, before, name, found.expression, remark)
        change = put(config, before, after, output, write=options.write)
    output.emit(
        {
            "label": label,
            "predicate": name,
            **found._asdict(),
            "diff": change,
            "left_out": readers.record(),
        }
    )
    return 0 if found.expression else 1


def _signal(label: str, file: Path | None, compiled: CompiledSpec, config: Path) -> str | None:
    """Return the signal that is the label, if there is one; raises ConfigError."""
    section = compiled.spec.signals.get(label)
    if section is not None and section.default is not None:
        raise ConfigError(
            "has a default, so runs without a label cannot be recognised",
            file=config,
            key=f"signals.{label}.default",
            accepted="no default, or labels beside the traces by --labels",
        )
    if section is None and file is None:
        raise ConfigError(
            f"{label!r} is no signal",
            file=config,
            key="signals",
            accepted=f"{', '.join(compiled.spec.signals)}; or --labels FILE",
        )
    return None if section is None or label not in compiled.abstraction.signals else label


def _accuracy(found: LearnedLabel) -> str:
    return (
        f"right for {found.right} of {found.runs} held-out runs "
        f"({found.lower:.0%} to {found.upper:.0%}; a constant: {found.common:.0%})"
    )


def _show_label(label: str, found: LearnedLabel, output: Output) -> None:
    if not found.expression:
        output.say(f"{label}: no condition separates the runs; {_accuracy(found)}")
        return
    output.say(f"{label}: {found.expression}")
    output.say(_accuracy(found))
    if found.right <= found.common * found.runs:
        output.note("note: it is no better than a constant on runs that were held out")
    if found.unlabelled:
        output.note(f"note: {plural(found.unlabelled, 'run')} without a label did not count")
