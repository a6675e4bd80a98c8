"""``forewarn abstract``: from traces to a tree whose leaves are the states."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from forewarn.cli.common import (
    add_config,
    add_recordings,
    existing_recordings,
    load_compiled,
    positive_number,
    whole_number,
)
from forewarn.cli.editing import difference, with_section
from forewarn.cli.output import Output
from forewarn.errors import ConfigError
from forewarn.files.outputs import check_output, write_output
from forewarn.learning.candidates import TEXT_KINDS
from forewarn.learning.examples import WAYS, classifier, examples_of, read_run
from forewarn.learning.trees import Grown, Growth, Size, choose_size, learn_tree
from forewarn.logic.specification import CompiledSpec
from forewarn.recordings.interface import plural
from forewarn.states.tree import TREE
from forewarn.states.tree.nodes import MAX_DEPTH, MAX_LEAVES, Leaf, Node

DESCRIPTION = """\
Learn a predicate tree from recordings, and write it into the monitor file: its leaves, together
with the predicates that the file declares, are the states then. The tree is split where that tells
most about a class: what is done next (the default), which state follows, the next actions, or
whether a violation follows within a time. How many leaves it has is chosen on recordings that it
is not learned from, unless --leaves says it. Learn the model anew afterwards."""

EPILOG = """\
exit codes: 0 a tree was learned, 1 nothing tells the classes apart, 2 wrong usage or input.

examples: forewarn abstract runs/ -c monitor.yaml
          forewarn abstract runs/ -c monitor.yaml --class violation:calm:2 --write
          forewarn abstract runs/ -c monitor.yaml --variable files --variable errors --leaves 8"""

SHOWN = 4


@dataclass(frozen=True)
class Options:
    """The arguments of ``abstract``."""

    recordings: list[Path]
    config: Path
    kind: str
    variables: list[str]
    leaves: int | None
    depth: int
    leaf_size: int
    gain: float
    once: bool
    thresholds: int
    text: list[str]
    folds: int
    write: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recordings(parser)
    add_config(parser)
    add = parser.add_argument
    add("--class", dest="kind", default="action", metavar="CLASS", help=f"{WAYS} (action)")
    add(
        "--variable",
        dest="variables",
        action="append",
        default=[],
        metavar="SIGNAL",
        help="signals to ask about (may be repeated); else `states.variables`, else all",
    )
    at_least_one = partial(whole_number, least=1)
    add("--leaves", type=at_least_one, metavar="N", help="number of leaves at most")
    add(
        "--depth",
        type=at_least_one,
        default=MAX_DEPTH,
        metavar="N",
        help=f"conditions on a path at most ({MAX_DEPTH})",
    )
    add(
        "--leaf-size",
        type=at_least_one,
        default=20,
        metavar="N",
        help="moments in a leaf at least (20)",
    )
    add(
        "--gain",
        type=positive_number,
        default=0.001,
        metavar="BITS",
        help="information gain of a split at least (0.001)",
    )
    add(
        "--once", action="store_true", help="ask about no variable twice on a path, as in the paper"
    )
    add(
        "--thresholds",
        type=at_least_one,
        default=64,
        metavar="N",
        help="thresholds of a number that are tried at a leaf: midpoints, else quantiles (64)",
    )
    add(
        "--text",
        action="append",
        default=[],
        choices=TEXT_KINDS,
        help="what to ask of texts (may be repeated; all)",
    )
    add(
        "--folds",
        type=partial(whole_number, least=2),
        default=5,
        metavar="K",
        help="parts of the recordings by which the number of leaves is chosen (5)",
    )
    add("--write", action="store_true", help="write the tree into the monitor file")


def run(options: Options, output: Output) -> int:
    """Read, grow, show, and write if asked to."""
    check_output(options.config if options.write else None)
    compiled = load_compiled(options.config)
    variables = _variables(options, compiled)
    classify = classifier(options.kind, compiled)
    recordings = existing_recordings(options.recordings, compiled.spec)
    runs = []
    with output.progress(f"reading {plural(len(recordings), 'recording')}") as tell:
        for number, path in enumerate(recordings, 1):
            runs.append(read_run(path, compiled, variables))
            tell(number / len(recordings))
    examples = examples_of(runs, classify)
    growth = Growth(
        options.gain,
        options.depth,
        options.leaf_size,
        options.leaves or min(MAX_LEAVES, 64),
        not options.once,
        options.thresholds,
        tuple(options.text) or TEXT_KINDS,
    )
    sizes: list[Size] = []
    if options.leaves is None and len(runs) > 1:
        with output.progress("choosing the number of leaves"):
            chosen, sizes = choose_size(examples, growth, options.folds)
        growth = replace(growth, leaves=chosen)
    elif options.leaves is None:
        output.note("note: one recording cannot choose the number of leaves: 64 at most")
    grown = learn_tree(examples, growth)
    _show(grown, sizes, len(examples.classes), output)
    remark = f"{plural(len(runs), 'recording')}, class {options.kind}"
    before, after = with_section(options.config, "states", _section(grown, variables, remark))
    change = difference(options.config, before, after)
    if options.write:
        write_output(options.config, after)
        output.say(f"written: {options.config}")
    else:
        output.say(change)
        output.say("not written: --write does it")
    output.emit(_record(grown, sizes, len(examples.classes), change, options))
    return 0 if grown.splits else 1


def _variables(options: Options, compiled: CompiledSpec) -> tuple[str, ...]:
    spec = compiled.spec
    given = options.variables or (spec.states.model_extra or {}).get("variables") or spec.signals
    for name in given:
        if name not in spec.signals:
            raise ConfigError(
                f"{name!r} is no signal",
                file=options.config,
                key="states.variables",
                accepted=", ".join(spec.signals),
            )
    return tuple(dict.fromkeys(given))


def _show(grown: Grown, sizes: Sequence[Size], examples: int, output: Output) -> None:
    if sizes:
        chosen = sizes[len(grown.counts) - 1]
        output.say(
            f"{plural(len(grown.counts), 'leaf').replace('leafs', 'leaves')}: held-out loss "
            f"{chosen.loss:.3f} bits a moment (one leaf: {sizes[0].loss:.3f})"
        )
    output.table(
        ("split", ">gain (bits)"), [(one.condition, f"{one.gain:.3f}") for one in grown.splits]
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


def _kind(kind: Any) -> str:
    return " > ".join(kind) if isinstance(kind, tuple) else str(kind)


def _section(grown: Grown, variables: Sequence[str], remark: str) -> str:
    lines = [
        "states:",
        f"  kind: {TREE}",
        f"  # learned by `forewarn abstract` from {remark}; edit it as you like",
        f"  variables: [{', '.join(variables)}]",
        *_lines("tree", grown.tree, grown.counts, 1),
    ]
    return "\n".join(lines) + "\n"


def _lines(
    key: str, node: Node, counts: Mapping[str, Mapping[Any, int]], depth: int
) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(node, Leaf):
        kinds = counts[node.name]
        text = " ".join(f"{sum(kinds.values())} moments: {_kinds(kinds)}".split())
        yield f"{indent}{key}: {node.name}  # {text}"
        return
    yield f"{indent}{key}:"
    yield f"{indent}  if: {json.dumps(node.condition, ensure_ascii=False)}"
    yield from _lines("then", node.then, counts, depth + 1)
    yield from _lines("else", node.otherwise, counts, depth + 1)


def _record(
    grown: Grown, sizes: Sequence[Size], examples: int, change: str, options: Options
) -> dict[str, Any]:
    return {
        "class": options.kind,
        "moments": examples,
        "undecided": grown.undecided,
        "splits": [{"condition": one.condition, "gain": one.gain} for one in grown.splits],
        "leaves": {
            leaf: {_kind(kind): count for kind, count in kinds.items()}
            for leaf, kinds in grown.counts.items()
        },
        "sizes": [size._asdict() for size in sizes],
        "diff": change,
        "written": options.write,
    }
