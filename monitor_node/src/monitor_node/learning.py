"""Learning while watching: new counts become new tables in another thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from forewarn.config.actions import ACTIONS
from forewarn.errors import ForewarnError
from forewarn.models import CountModel, check_replaceable, save_model
from forewarn.monitoring.live_session import TickResult, Watch
from forewarn.monitoring.online_learning import OnlineLearner
from forewarn.monitoring.step import Monitor
from monitor_node.background import in_background

Use = Callable[[], None]


class BackgroundLearning:
    """Counts after every tick and has tables solved anew every `refresh` seconds.

    The tick itself only counts; what it gets later is exact for all counts up to the moment at
    which solving began.

    Parameters
    ----------
    watch : Watch
        The monitor.
    model : CountModel
        Counts to begin with.
    save_to : Path or None
        File for the model with all counts, written at the end.
    ready : callable
        Called in another thread with a model and its monitor; returns what puts them into force.
    warn : callable
        Logs a line.
    """

    def __init__(
        self,
        watch: Watch,
        model: CountModel,
        save_to: Path | None,
        ready: Callable[[CountModel, Monitor], Use],
        warn: Callable[[str], None],
    ) -> None:
        self._watch = watch
        self._learner = OnlineLearner(watch.compiled, model)
        self._save_to = save_to
        self._ready = ready
        self._warn = warn
        self._running: Future[Use] | None = None
        self._period = watch.session.clock.at_least(watch.spec.learning.refresh)
        self._due: int | None = None

    def restart(self, model: CountModel) -> None:
        """Go on from another model; counts since then are those of this session no more."""
        self._learner = OnlineLearner(self._watch.compiled, model)
        self._running = None

    def after(self, result: TickResult) -> None:
        """Take in a tick; put tables into force that are ready, and have others solved if due."""
        verdict, request = result.verdict, result.request
        if request is not None and request.active and ACTIONS[request.action].shapes:
            acting, action = True, request.action
        else:
            acting, action = False, self._watch.compiled.abstraction.done(verdict.values)[0]
        self._learner.observe(verdict.tick, verdict.observation, intervened=acting, action=action)
        if self._running is not None:
            if self._running.done():
                self._take(self._running)
                self._running = None
            return
        if self._due is None or not 0 <= self._due - verdict.tick <= self._period:
            self._due = verdict.tick + self._period
        if verdict.tick >= self._due and self._learner.pending:
            self._due = verdict.tick + self._period
            counted = self._learner.later()
            self._running = in_background("learning", lambda: self._solve(counted()))

    def _solve(self, model: CountModel) -> Use:
        return self._ready(model, self._watch.build(model))

    def _take(self, solved: Future[Use]) -> None:
        try:
            solved.result()()
        except ForewarnError as error:
            self._warn(f"what was learned cannot be used: {error}")

    def close(self) -> None:
        """Write the model; tables that are still being solved are for nobody."""
        if self._save_to is None:
            return
        try:
            check_replaceable(self._save_to)  # something may have come there meanwhile
            save_model(self._learner.model(), self._save_to)
        except ForewarnError as error:
            self._warn(f"what was learned cannot be saved: {error}")
