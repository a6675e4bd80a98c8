"""What takes long and must not hold up the ticks: bounds of the risk, tables of what is learned.

Tables without bounds take a tenth of a second where their credible bounds take many: hundreds of
chains have to be solved for those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Generic, TypeVar

from forewarn.config.actions import ACTIONS
from forewarn.errors import ForewarnError
from forewarn.logic.specification import CompiledSpec
from forewarn.messages.definitions import MessageType
from forewarn.models.counts import CountModel
from forewarn.models.file import check_replaceable, save_model
from forewarn.monitoring.carried import PackedTables
from forewarn.monitoring.evaluate import TickResult
from forewarn.monitoring.intervention import Intervention
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.memory_bound import MOST_COUNTED
from forewarn.monitoring.online_learning import OnlineLearner
from forewarn.monitoring.policy import needs_bounds
from forewarn.monitoring.run_anomaly import Detector
from forewarn.monitoring.step import Monitor
from forewarn.threads import in_background

Result = TypeVar("Result")
Use = Callable[[], None]


class Recurring(Generic[Result]):
    """A job that is done again and again beside the ticks, never two at a time.

    `period`: ticks from the beginning of one to the next.
    """

    def __init__(self, name: str, period: int) -> None:
        self._name, self._period = name, period
        self._due: int | None = None
        self._running: Future[Result] | None = None

    def after(
        self, tick: int, work: Callable[[], Callable[[], Result] | None]
    ) -> Future[Result] | None:
        """Return the job that has ended since the last tick; begin the next one when it is due.

        `work` gives the next job, or None if there is nothing to do.
        """
        if self._running is not None:
            if not self._running.done():
                return None
            done, self._running = self._running, None
            return done
        if self._due is None or not 0 <= self._due - tick <= self._period:
            self._due = tick + self._period
        task = work() if tick >= self._due else None
        if task is not None:
            self._due = tick + self._period
            self._running = in_background(self._name, task)
        return None

    def forget(self) -> None:
        """Drop the result of the job under way."""
        self._running = None


def shapes(request: Intervention) -> bool:
    """Tell whether an intervention of ours shapes what the robot does."""
    return request.active and ACTIONS[request.action].shapes


class BackgroundBounds:
    """A thread that solves the tables again, with bounds."""

    def __init__(self, watch: LiveSession, model: CountModel) -> None:
        self._watch = watch
        self._model = model
        self._solved = in_background("bounds", lambda: watch.build(model))
        self._packed: Future[PackedTables] | None = None
        self._taken = False

    @property
    def _error(self) -> BaseException | None:
        return self._solved.exception() if self._solved.done() else None

    @property
    def status(self) -> str:
        """What there is to report; empty once the bounds are in force."""
        if (error := self._error) is not None:
            return f"there are no bounds: {type(error).__name__}: {error}"
        return "" if self._taken else "bounds are being computed"

    @property
    def failed(self) -> bool:
        """Return whether the bounds could not be computed."""
        return self._error is not None

    def take(
        self, pack: Callable[[Monitor], PackedTables] | None = None
    ) -> tuple[Monitor, PackedTables | None] | None:
        """Return the monitor with bounds, once, if it is ready and its model still in force.

        `pack` makes ready what a record will hold of its tables, which takes longer than a tick
        for large ones: in a thread, too, and a later call returns it.
        """
        if self._taken or not self._solved.done() or self.failed:
            return None
        present, monitor = self._watch.monitor, self._solved.result()
        if pack is not None and self._packed is None:
            self._packed = in_background("tables", lambda: pack(monitor))
            return None
        if self._packed is not None and not self._packed.done():
            return None
        self._taken = True
        same = present.model is not None and present.model.digest == self._model.fingerprint
        if not same or present.bounded:
            return None
        packed = self._packed
        return monitor, None if packed is None or packed.exception() else packed.result()

    def wait_if_compared(self) -> None:
        """Wait for the bounds and put them into force, if a threshold is compared with them.

        Raises ForewarnError if they cannot be computed.
        """
        if not needs_bounds(self._watch.spec):
            return
        self._solved.result()
        found = self.take()
        if found is not None:
            self._watch.use(found[0])


def open_watch(
    compiled: CompiledSpec,
    model: CountModel | None,
    types: Mapping[str, MessageType],
    external: str,
    *,
    background: bool,
    detector: Detector | None = None,
) -> tuple[LiveSession, BackgroundBounds | None]:
    """Return a monitor, and what computes its bounds if that is left to the background.

    Only credible bounds are: sound ones may turn out to be impossible, which has to be known when
    the node is configured.
    """
    spec = compiled.spec
    if (
        model is None
        or not background
        or spec.bounds.kind != "credible"
        or needs_bounds(compiled.spec)
    ):
        return LiveSession(compiled, model, types, external, detector=detector), None
    watch = LiveSession(compiled, model, types, external, bounds=False, detector=detector)
    return watch, BackgroundBounds(watch, model)


class BackgroundLearning:
    """Counts after every tick and has tables solved again every `refresh` seconds.

    The tick itself only counts; what it gets later is exact for all counts up to the moment at
    which solving began.

    `ready`: called in another thread with a model and its monitor; returns what puts them into
    force.
    """

    def __init__(
        self,
        watch: LiveSession,
        model: CountModel,
        save_to: Path | None,
        ready: Callable[[CountModel, Monitor], Use],
        warn: Callable[[str], None],
    ) -> None:
        self._watch = watch
        self._learner = OnlineLearner(watch.compiled, model)
        self._warned = False
        self._save_to = save_to
        self._ready = ready
        self._warn = warn
        period = watch.clock.at_least(watch.spec.learning.refresh)
        self._solving: Recurring[Use] = Recurring("learning", period)

    def restart(self, model: CountModel) -> None:
        """Go on from another model; counts since then are those of this session no more."""
        self._learner, self._warned = OnlineLearner(self._watch.compiled, model), False
        self._solving.forget()

    def after(self, result: TickResult) -> None:
        """Take in a tick; put tables into force that are ready, and have others solved if due."""
        verdict, request = result.verdict, result.request
        action, _ = self._watch.compiled.abstraction.done(verdict.values)
        acting = request is not None and shapes(request)
        if request is not None and acting:
            action = request.action
        self._learner.observe(verdict.tick, verdict.observation, intervened=acting, action=action)
        if self._learner.full and not self._warned:
            self._warned = True
            self._warn(
                f"learning: {MOST_COUNTED:,} different transitions were counted: nothing more is"
            )
        solved = self._solving.after(verdict.tick, self._next)
        if solved is not None:
            self._take(solved)

    def _next(self) -> Callable[[], Use] | None:
        if not self._learner.pending:
            return None
        counted = self._learner.later()
        return lambda: self._solve(counted())

    def _solve(self, model: CountModel) -> Use:
        return self._ready(model, self._watch.build(model))

    def _take(self, solved: Future[Use]) -> None:
        try:
            solved.result()()
        except ForewarnError as error:
            self._warn(f"the learned tables cannot be used: {error}")

    def close(self) -> None:
        """Write the model; drop tables that are still being solved."""
        if self._save_to is None:
            return
        try:
            check_replaceable(self._save_to)  # something may have come there meanwhile
            save_model(self._learner.model(), self._save_to)
        except ForewarnError as error:
            self._warn(f"the learned counts cannot be saved: {error}")
