"""Growing the tree of the states again from the moments seen, while the ticks go on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from forewarn.errors import ForewarnError, ModelError
from forewarn.files.interpreters import command
from forewarn.files.outputs import check_output, write_output
from forewarn.models.file import check_replaceable, load_model
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.live_session import LiveSession
from forewarn.wings.trees.remembered import RememberedRuns
from monitor_node.background import Recurring, shapes

NICE = 10
LAST_WORDS = 500
COMMAND = "import os; os.nice({nice}); from forewarn.cli import main; sys.exit(main())"


class Grown(NamedTuple):
    """Where the traces are written, and the monitor file and the model that come of them."""

    traces: Path
    config: Path
    model: Path

    @classmethod
    def beside(cls, config: Path) -> Grown:
        """Return names beside a monitor file: there what it includes is found."""
        names = (f"{config.stem}.regrown{end}" for end in ("", ".yaml", ".model.json"))
        return cls(*(config.with_name(name) for name in names))

    @property
    def draft(self) -> Grown:
        """Names for what is being made."""
        return Grown(*(path.with_name(f"_{path.name}") for path in self))


class Regrowing:
    """Keeps what is seen and, every `regrow` seconds, has a tree and a model made of it.

    A tick only puts its moment into a queue. Traces are written in a thread; ``forewarn
    learn-states`` and ``forewarn learn`` run over them in processes of their own. What comes of it
    is written beside the monitor file and is not in force: other states are another abstraction.
    """

    def __init__(
        self,
        watch: LiveSession,
        text: str,
        paths: Grown,
        say: Callable[[str], object],
        warn: Callable[[str], object],
    ) -> None:
        learning = watch.spec.learning
        assert learning.regrow is not None
        check_output(paths.config, paths.draft.config, paths.draft.model)
        check_replaceable(paths.model)
        self._digest = watch.compiled.abstraction.digest
        self._text, self._paths = text, paths
        self._say, self._warn = say, warn
        self._runs = RememberedRuns(watch.compiled.abstraction, learning.remember)
        period = watch.clock.at_least(learning.regrow)
        self._growing: Recurring[str] = Recurring("regrowing", period)
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def after(self, result: TickResult) -> None:
        """Take in a tick; tell what has come of the tree, and begin another one if it is due."""
        verdict, request = result.verdict, result.request
        if request is None or not shapes(request):
            ended = verdict.observation.ended
            self._runs.observe(verdict.tick, verdict.values, ended=ended)
        grown = self._growing.after(verdict.tick, lambda: self._grow)
        if grown is not None:
            self._report(grown)

    def _report(self, grown: Future[str]) -> None:
        try:
            self._say(grown.result())
        except (ForewarnError, OSError) as error:
            self._warn(f"the tree could not be grown again: {error}")

    def _grow(self) -> str:
        draft, paths = self._paths.draft, self._paths
        _empty(draft.traces)
        draft.traces.mkdir(exist_ok=True)
        moments = self._runs.write(draft.traces)
        write_output(draft.config, self._text)
        self._run("learn-states", draft.traces, "-c", draft.config, "--write")
        self._run("learn", draft.traces, "-c", draft.config, "-o", draft.model, "-j", "1")
        digest = load_model(draft.model).digest
        _empty(paths.traces)
        for made, path in zip(draft, paths, strict=True):
            os.replace(made, path)
        grown = f"the tree was grown again from {moments} moments"
        if digest == self._digest:
            return f"{grown} and is as it was: load_model takes {paths.model}"
        return (
            f"{grown} and is another one: its states are not those of the present counts; to use "
            f"it, configure the node with config:={paths.config} model:={paths.model}"
        )

    def _run(self, *arguments: object) -> None:
        """Run a command; exit code 1 means that no condition separates the actions."""
        if self._closed:
            raise ForewarnError("the monitor has ended")
        growing = command(COMMAND.format(nice=NICE), *arguments)
        with subprocess.Popen(
            growing,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            self._process = process
            output = process.communicate()[1]
        self._process = None
        if process.returncode not in (0, 1):
            raise ModelError(
                f"`forewarn {arguments[0]}` ended with {process.returncode}: {output[-LAST_WORDS:]}"
            )

    def close(self) -> None:
        """Drop the result of the tree being grown."""
        self._closed = True
        process = self._process
        if process is not None:
            with suppress(OSError):
                process.terminate()


def _empty(folder: Path) -> None:
    """Remove the traces of a folder that an earlier tree was grown from, and the folder."""
    if folder.is_dir():
        for path in folder.glob("*.jsonl"):
            path.unlink()
        with suppress(OSError):  # files of others stay
            folder.rmdir()
