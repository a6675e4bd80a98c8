"""What survives a crash of the node: obligations, alerts, mutes, the run, what actuators left."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forewarn.errors import ForewarnError, RecordingError
from forewarn.files.journal import JournalFile
from forewarn.monitoring.alerts import Alerts, Kept, parse_kept
from forewarn.monitoring.checkpoint import asking, outdated, recall, remember
from forewarn.monitoring.live_session import LiveSession
from forewarn.monitoring.policy import Level
from forewarn_ros.status import Severity, Status

FORMAT = 2
KEEPING = ("autoware", "nav2")
"""Actuators whose stacks keep the last command; a gate follows the monitor's topics."""

MUTES = ("tick", "mutes", "heard", "reasons")
"""What a memory tells of mutes, and of when it was."""

NO_ALERTS = Kept(0, ())


class Entry(NamedTuple):
    """What a former life of the node left behind."""

    memory: Mapping[str, Any]
    owing: tuple[str, ...]
    alerts: Kept = NO_ALERTS


class Journal:
    """Reads what was left behind, and keeps the present.

    `max_age`: seconds after which obligations and alerts count no more.
    `actuators`: those that may have left something in force.

    Raises RecordingError if the file is something else than a journal of a monitor: it is not
    written over.
    """

    def __init__(self, path: Path, max_age: float, actuators: Sequence[str] = ()) -> None:
        self.path = path
        self.max_age = max_age
        self.problem = ""
        self.recalled = "nothing"
        # What a damaged journal has lost, and what is over because the monitor file does not know
        # it any more, in this life or a former one; empty once acknowledged
        self.lost = ""
        self.left: Entry | None = None  # What a former life left behind, until it is recalled
        self._actuators = tuple(actuators)
        self._left_alone: tuple[str, ...] = ()
        self._file = JournalFile(path, "monitor", FORMAT)
        self._written: tuple[Any, ...] | None = None
        self._alerts = NO_ALERTS.data
        self._last: tuple[Mapping[str, Any], Sequence[str]] | None = None
        found, damage = self._file.read(_parsed)
        if found is not None:
            self.left, self.lost = found
            self._last, self._alerts = self.left[:2], self.left.alerts.data
            self._left_alone = tuple(
                name for name in self.left.owing if name in KEEPING and name not in self._actuators
            )
        if damage:
            self._lose(damage)

    @property
    def to_look_at(self) -> str:
        """What an operator has to look at: what is left in force, and `lost`; empty if nothing.

        The next life that acts by these actuators takes it back, and reports nothing.
        """
        if not self._left_alone:
            return self.lost
        left = (
            f"a former life asked for something by {' and '.join(self._left_alone)}, and this one "
            "does not act by it: it may stay in force until you take it back"
        )
        return "; ".join(filter(None, (_until_looked_at(left), self.lost)))

    def _lose(self, damage: str) -> None:
        lost = f"{damage}: obligations, alerts, counts and mutes of the former life are lost"
        if self._actuators:
            duty = f"if it limited or stopped the robot by {' or '.join(self._actuators)}"
            lost += f", and {duty}, that stays until you take it back"
        self._look(lost)

    def _look(self, why: str) -> None:
        """Report until an operator has looked."""
        warning = _until_looked_at(why)
        if warning not in self.lost:
            self.lost = "; ".join(filter(None, (self.lost, warning)))

    def acknowledge(self) -> str:
        """Report it no longer, and return it; the next entry knows nothing of it."""
        warning, self.lost, self._left_alone = self.to_look_at, "", ()
        return warning

    def keep(self, watch: LiveSession, owing: Sequence[str]) -> None:
        """Keep the present of a monitor; before its first tick, with the mutes of a former life."""
        memory = remember(watch)
        if self.left is not None and self.left.memory.get("key") == memory["key"]:
            former = self.left.memory
            memory.update((name, former[name]) for name in MUTES if name in former)
        self.write(memory, owing)

    def settle(self, owing: Sequence[str]) -> None:
        """Keep what is still in force after an orderly end, beside what was kept last."""
        if self._last is not None:
            self.write(self._last[0], owing)

    def keep_alerts(self, alerts: Alerts) -> None:
        """Keep unacknowledged alerts, beside those kept last."""
        self._alerts = alerts.lasting().data
        if self._last is not None:
            self.write(*self._last)

    def recall(self, watch: LiveSession, first: int) -> Mapping[str, Any] | None:
        """Go on where a former life ended; return its memory, None if there was none.

        Of one that is too old, or ahead of the clock, only alerts that asked for something go on.
        """
        left, self.left = self.left, None
        if left is None:
            return None
        memory = left.memory
        try:
            recall(watch, memory, first, self.max_age * watch.clock.rate)
        except ForewarnError as error:
            return self._held(watch, memory, first, error)
        pending = "obligations and alerts" if memory["pending"] else "counts and mutes"
        self.recalled = f"{pending} of tick {memory['tick']}"
        if memory["run"] is not None:
            known = watch.memory.state.run is not None
            self.recalled += ", and the run" if known else ", not the run: others calibrated it"
        return memory

    def _held(
        self, watch: LiveSession, memory: Mapping[str, Any], first: int, error: ForewarnError
    ) -> Mapping[str, Any]:
        """Go on with alerts alone where a memory is of no use, or raise why it is not."""
        self.recalled = f"nothing: {error}"
        try:
            asked = asking(memory)
        except ForewarnError as reason:
            if memory.get("pending", True) and memory.get("mode", "act") == "act":
                self._look(f"{reason}: if the former life limited or stopped the robot, it is over")
            raise
        over = [
            name
            for name, policy in asked.items()
            if name not in watch.names
            # A warning asks for no motion, but for one of a state that was never seen.
            and (policy.level == Level.ACT or policy.out_of_model_since is not None)
        ]
        if over:
            self._look(
                f"what a former life asked for because of {' and '.join(over)} is over: the "
                "monitor file has no such property"
            )
        held = outdated(watch, memory, asked, first)
        if held is None:
            raise error
        recall(watch, held, first)
        self.recalled = f"alerts alone, until they may end: {error}"
        return held

    def write(self, memory: Mapping[str, Any], owing: Sequence[str]) -> None:
        """Keep the present, unless nothing has changed but the tick of an idle monitor."""
        owing = [*owing, *(name for name in self._left_alone if name not in owing)]
        tick = memory["tick"] if memory["pending"] else None
        self._last = memory, owing
        alerts = self._alerts
        content = (tick, {**memory, "tick": None}, tuple(owing), self.lost, alerts)
        if content == self._written and not self.problem:
            return
        body = {"memory": memory, "owing": list(owing), "lost": self.lost, "alerts": alerts}
        try:
            self._file.write(body)
        except RecordingError as error:
            self.problem = str(error)
            return
        self.problem = ""
        self._written = content

    def status(self) -> Status:
        """Report."""
        values = {"file": self.path, "recalled": self.recalled}
        problems = [remark for remark in (self.problem, self.to_look_at) if remark]
        if problems:
            return Status("journal", Severity.ERROR, "; ".join(problems), values)
        return Status("journal", Severity.OK, f"recalled: {self.recalled}", values)


def _until_looked_at(why: str) -> str:
    return f"{why}; look at the robot, then call ~/acknowledge"


def _parsed(body: Any) -> tuple[Entry, str]:
    alerts = parse_kept(body["alerts"])
    entry = Entry(dict(body["memory"]), tuple(map(str, body["owing"])), alerts)
    return entry, str(body["lost"])


def carried_over(alerts: Alerts, journal: Journal | None, names: Collection[str]) -> list[str]:
    """Recall the alerts of a former life, and return messages about those dropped.

    What this process had before it was deactivated is more than the journal has.
    """
    left = None if journal is None else journal.left
    if left is not None and not alerts.all and not alerts.forgotten:
        alerts.recall(left.alerts)
    return [
        f"unacknowledged alert {alert.id} of {alert.name} is dropped: the monitor "
        "file has no such property"
        for alert in alerts.only(names)
        if not alert.acknowledged
    ]


def take_up(
    journal: Journal | None, watch: LiveSession, first: int, warn: Callable[[str], None]
) -> Mapping[str, Any] | None:
    """Go on where a former life ended, and return its memory; warn of what cannot be recalled."""
    if journal is None:
        return None
    before, memory = journal.lost, None
    try:
        memory = journal.recall(watch, first)
    except ForewarnError as error:
        warn(f"{journal.path}: not recalled: {error}")
    if journal.lost != before:
        warn(journal.lost)
    return memory
