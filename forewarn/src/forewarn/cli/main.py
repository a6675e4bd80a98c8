"""The entry point: parse, run one command, turn errors into exit codes."""

from __future__ import annotations

import argparse
import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from difflib import get_close_matches
from itertools import pairwise
from types import ModuleType

from forewarn.cli.interrupt import Interrupt
from forewarn.cli.options import add_options
from forewarn.errors import ForewarnError, MissingWingError, NotBuiltError
from forewarn.registry import COMMAND_POINTS, command_module, extensions
from forewarn.threads import compute_in_one_thread

FINE, FINDINGS, INPUT_ERROR, INTERRUPTED = 0, 1, 2, 130

SECTIONS = {
    "your robot": {
        "init": "write a commented monitor file from the topics of a recording",
        "info": "show topics, rates, gaps and clocks of recordings, and draw a signal",
        "validate": "check monitor files, and whether recordings and a model fit them",
        "learn": "learn a model from recordings",
        "replay": "run the monitor over recordings: alerts, lead times, violations",
        "tune": "choose thresholds: lead time under a budget of false alarms",
        "compare": "judge monitor files and rivals on the same recordings",
        "report": "replay recordings and write one HTML page about it",
        "incidents": "list what a node's black box has written, label it, report on it",
        "verify": "replay a node's own record and compare to the last bit",
    },
    "its model": {
        "inspect": "show the states of a model, their coverage and risk",
        "check": "ask a model a question in PCTL or CTL",
        "merge": "add up models that were learned with the same monitor file",
        "drift": "tell in which states robots, versions or weeks do not go on alike",
        "anomalies": "tell runs that are unlike normal ones",
        "learn-states": "learn a tree whose leaves are the states",
        "refine": "split the leaves of a tree by counterexamples of a bound",
        "import": "read a chain of another tool as a model",
        "export": "write the chain of a model for another tool",
    },
    "agents, plans and requirements": {
        "check-runs": "merge executions into a tree, and check CTL with time on it",
        "plan check": "judge plans by rules about objects before anything moves",
        "plan ask": "ask a language model for plans, with rules and without",
        "spec fret": "translate requirements in FRET's structured English into properties",
        "spec grade": "tell whether formulas of translators mean what the references mean",
        "spec ask": "ask a language model for the formulas of requirements",
    },
    "tools": {
        "explain": "show what a formula means and the automaton that monitors it",
        "convert": "write a recording as MCAP, for Foxglove and ROS 2's tools",
        "completion": "install tab completion for your shell",
    },
}
"""Commands by what they are about, those used most first."""
COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}
#: The first words of the commands that have two.
GROUPS = {
    "plan": "plans and rules about objects",
    "spec": "requirements and formulas",
}

#: What comes of a stream that is full or has been left.
_OF_STREAMS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE)

PROGRAM, OTHERS = "forewarn", "of another package"
DESCRIPTION = "Says how likely a robot is to break a safety rule, seconds before it does."
EPILOG = """\
exit codes: 0 fine, 1 findings (see each command), 2 wrong usage or input.

`forewarn COMMAND --help` tells more about each command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _open_streams()
    compute_in_one_thread()
    if arguments is None:
        gc.disable()  # until all is imported, see below
    with Interrupt() as interrupt:
        try:
            return _run(given, interrupt)
        except KeyboardInterrupt:
            pass
        except OSError as error:
            if error.filename is not None or error.errno not in _OF_STREAMS:
                raise
            return _unheard(error)
        except Exception:
            if not interrupt.signalled:  # C++ makes another error of it
                raise
    print("interrupted", file=sys.stderr)
    return INTERRUPTED


def _open_streams() -> None:
    """Give what was started without stdout or stderr, as by ``>&-``, one that goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _unheard(error: OSError) -> int:
    """Return the exit code where a stream could not be written to.

    Errors of files have their names; what is left is the error of a stream.
    """
    with suppress(OSError):
        sys.stdout.flush()
    # Python would try to write what is left at its end, and fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:  # the reader has gone: nothing is left to say
        return FINE
    with suppress(OSError):
        print(f"forewarn: error: the output cannot be written: {error.strerror}", file=sys.stderr)
    return INPUT_ERROR


def _run(given: Sequence[str], interrupt: Interrupt) -> int:
    try:
        with interrupt.held():
            # Whatever takes long to import is imported here; what help does not need comes last.
            namespace, command = _parse(given)
            from forewarn.cli.output import Output
            from forewarn.files.outputs import is_stdout

            # What was imported stays: to look for garbage among it takes a tenth of the start.
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else INPUT_ERROR
    except (MissingWingError, NotBuiltError) as error:
        print(f"forewarn: error: {error}", file=sys.stderr)
        return INPUT_ERROR
    output = Output(
        as_json=namespace.as_json,
        quiet=namespace.quiet,
        aside=is_stdout(getattr(namespace, "output", None)),
    )
    try:
        values, known = vars(namespace), {field.name for field in fields(command.Options)}
        options = command.Options(**{name: values[name] for name in known & values.keys()})
        code: int = command.run(options, output)
        sys.stdout.flush()
    except ForewarnError as error:
        interrupt.check()
        output.error(f"forewarn {namespace.command}: error: {error}")
        return INPUT_ERROR
    return code


class Help(argparse.HelpFormatter):
    """Help in which prose is as wide as the terminal, and examples stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        parts = text.split("\n\n")
        return "\n\n".join(
            part if part.startswith("example") else fill(part, width, indent) for part in parts
        )

    def _format_action(self, action: argparse.Action) -> str:
        """Return the lines of an action; commands stand below the headings of `SECTIONS`."""
        if not isinstance(action, argparse._SubParsersAction) or self._prog != PROGRAM:
            return super()._format_action(action)
        sections = {name.split()[0]: title for title, names in SECTIONS.items() for name in names}
        lines: dict[str, list[str]] = {title: [] for title in (*SECTIONS, OTHERS)}
        self._indent()
        for choice in action._choices_actions:
            lines[sections.get(choice.dest, OTHERS)].append(self._format_action(choice))
        self._dedent()
        return "\n".join(f"  {title}:\n{''.join(found)}" for title, found in lines.items() if found)


class Version(argparse.Action):
    """Shows the version, for which all that is installed is searched, and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Show it."""
        from importlib.metadata import version

        print(f"forewarn {version('forewarn')}")
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser that prints help for a command alone, and suggests words for mistyped ones."""

    def parse_all(self, given: Sequence[str]) -> argparse.Namespace:
        """Parse `given`; the parser of the command reports its own errors."""
        namespace, unknown = self.parse_known_args(given)
        if "command" not in namespace:
            (namespace.asked or self).print_help()
            self.exit()
        if unknown:
            parser = parser_of(self, namespace.command)
            known = [text for action in parser._actions for text in action.option_strings]
            parser.error(f"unknown argument {unknown[0]!r}{_meant(unknown[0], known)}")
        return namespace

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            word = str(value)
            meant = _meant(word, list(action.choices))
            problem = f"no command {word!r}{meant} (`{self.prog} -h` lists all)"
            raise argparse.ArgumentError(None, problem)
        super()._check_value(action, value)


def _meant(word: str, names: Sequence[str]) -> str:
    """Return a question after the name that `word` looks like."""
    found = get_close_matches(word.partition("=")[0], names, n=1)
    return f": did you mean {found[0]}?" if found else ""


def _parse(given: Sequence[str]) -> tuple[argparse.Namespace, ModuleType]:
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what could come next
        from argcomplete import autocomplete

        words = os.environ.get("COMP_LINE", "").split()
        autocomplete(build_parser(_named(words)), always_complete_options=False)
    namespace = build_parser(_named(given)).parse_all(given)
    return namespace, command_module(namespace.command)


def _named(words: Sequence[str]) -> list[str]:
    """Return the commands that occur: no other module is imported, so --help does not wait.

    Only a first word that no command of ours has is looked for in other packages.
    """
    pairs = (" ".join(pair) for pair in pairwise(words))
    found = [name for name in (*words, *pairs) if name in COMMANDS]
    first = words[0] if words else "-"
    if first.startswith("-") or first in GROUPS or found:
        return found
    return [first] if first in extensions(COMMAND_POINTS) else []


def build_parser(complete: Sequence[str] = tuple(COMMANDS)) -> Parser:
    """Return the parser, in which the commands in `complete` have their arguments."""
    parser = Parser(
        prog=PROGRAM,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=Help,
    )
    parser.set_defaults(asked=parser)
    hidden = argparse.SUPPRESS
    parser.add_argument("--version", action=Version, nargs=0, dest=hidden, help="show it and exit")
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    groups = {}
    for group, summary in GROUPS.items():
        child = commands.add_parser(group, help=summary, description=summary)
        child.set_defaults(asked=child)
        groups[group] = child.add_subparsers(metavar="COMMAND", help="one of these")
    others = {name: OTHERS for name in complete if name not in COMMANDS}
    for name, summary in {**COMMANDS, **others}.items():
        group, _, word = name.rpartition(" ")
        siblings = groups.get(group, commands)
        if name not in complete:
            siblings.add_parser(word, help=summary)
            continue
        module = command_module(name)
        child = siblings.add_parser(
            word,
            help=summary,
            description=module.DESCRIPTION,
            epilog=module.EPILOG,
            formatter_class=Help,
        )
        child.set_defaults(command=name)
        add_options(child, module.Options)
        child.add_argument(
            "--json", dest="as_json", action="store_true", help="print the result as JSON"
        )
        child.add_argument(
            "-q", "--quiet", action="store_true", help="no progress bars and no remarks"
        )
    return parser


def parser_of(parser: argparse.ArgumentParser, name: str) -> argparse.ArgumentParser:
    """Return the parser of a command, of one word or two, within that of all commands."""
    for word in name.split():
        (choices,) = (
            action.choices
            for action in parser._actions
            if isinstance(action, argparse._SubParsersAction)
        )
        parser = choices[word]
    return parser
