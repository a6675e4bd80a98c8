"""Learning an expression for a label that few runs have, for ``forewarn learn-states --label``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from forewarn.cli.editing import put, text_of, with_predicate
from forewarn.cli.output import Output
from forewarn.cli.readers import Readers
from forewarn.errors import ConfigError, plural
from forewarn.learning.folds import grouping_of, groups_in_words
from forewarn.logic.specification import CompiledSpec
from forewarn.wings.trees.growth import Growth
from forewarn.wings.trees.labels import LearnedLabel, end_of, learn_label, name_of_run, read_labels

LEAVES = 8


def run_label(
    label: str,
    file: Path | None,
    recordings: Sequence[Path],
    compiled: CompiledSpec,
    variables: Sequence[str],
    growth: Growth,
    folds: int,
    config: Path,
    readers: Readers,
    *,
    write: bool,
) -> int:
    """Read how runs ended, learn, show, and write if asked to; raises InputError."""
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
    found = learn_label(ends, growth, folds)
    _show(label, found, output)
    name, change = f"learned_{label}", ""
    if found.expression:
        remark = (
            f"learned by `forewarn learn-states --label`: {_accuracy(found)}; edit it as you like"
        )
        before = text_of(config)
        after = with_predicate(config, before, name, found.expression, remark)
        change = put(config, before, after, output, write=write)
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


def _show(label: str, found: LearnedLabel, output: Output) -> None:
    if not found.expression:
        output.say(f"{label}: no condition separates the runs; {_accuracy(found)}")
        return
    output.say(f"{label}: {found.expression}")
    output.say(_accuracy(found))
    if found.right <= found.common * found.runs:
        output.note("note: it is no better than a constant on runs that were held out")
    if found.unlabelled:
        output.note(f"note: {plural(found.unlabelled, 'run')} without a label did not count")
