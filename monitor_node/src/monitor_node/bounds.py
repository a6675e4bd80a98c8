"""Bounds of the risk that are computed while the node watches already.

Tables without bounds take a tenth of a second where their credible bounds take many: hundreds of
chains have to be solved for those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future

from forewarn.config import MonitorSpec
from forewarn.logic.specification import CompiledSpec
from forewarn.messages import MessageType
from forewarn.models import CountModel
from forewarn.monitoring.carried import PackedTables
from forewarn.monitoring.live_session import Watch
from forewarn.monitoring.step import Monitor
from monitor_node.background import in_background


def are_compared(spec: MonitorSpec) -> bool:
    """Tell whether a threshold is compared with a bound: then nothing may begin without them."""
    return any(section.figure == "upper" for section in spec.properties.values())


class BackgroundBounds:
    """A thread that solves the tables again, with bounds.

    Parameters
    ----------
    watch : Watch
        The monitor without bounds.
    model : CountModel
        Its model.
    """

    def __init__(self, watch: Watch, model: CountModel) -> None:
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
        """Tell whether there will be no bounds."""
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

        Raises
        ------
        ForewarnError
            If they cannot be computed.
        """
        if not are_compared(self._watch.spec):
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
) -> tuple[Watch, BackgroundBounds | None]:
    """Return a monitor, and what computes its bounds if that is left to the background.

    Only credible bounds are: sound ones may turn out to be impossible, which has to be known when
    the node is configured.
    """
    spec = compiled.spec
    if (
        model is None
        or not background
        or spec.bounds.kind != "credible"
        or are_compared(compiled.spec)
    ):
        return Watch(compiled, model, types, external), None
    watch = Watch(compiled, model, types, external, bounds=False)
    return watch, BackgroundBounds(watch, model)
