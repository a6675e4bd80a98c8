"""Carries the monitor's interventions to Apollo, through the lives of the bridge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from apollo_bridge.commander import Command, Commander
from forewarn.config.actions import ACTIONS, SEVERITY
from forewarn.errors import RecordingError
from forewarn.files.journal import JournalFile
from forewarn.monitoring.intervention import Intervention

SETTLING_NS = 5_000_000_000
"""For so long after connecting, readers of Apollo may not have found the bridge's writers yet."""
ENDS_WHILE_SETTLING = 3
MOST_SESSIONS = 8
FORMAT = 1
OLD = "the command stays in force: the monitor's verdicts are too old to end it"
TWO = (
    "several monitors speak: the strongest of what they ask for is in force until one of them is "
    "left"
)


def strength_of(wish: Intervention) -> tuple[int, float]:
    """Return how strong it is, for comparison: the stronger one is greater."""
    if not wish.active:
        return -1, 0.0
    # An unknown action of a newer monitor counts as stronger than every known one.
    if wish.action not in ACTIONS:
        return len(SEVERITY), 0.0
    return SEVERITY.index(wish.action), -wish.speed_limit if wish.limits else 0.0


class Wishes:
    """What each life of the monitor wants: none takes back what another one asks for."""

    def __init__(self) -> None:
        self._newest = ""
        self._by_session: dict[str, Intervention] = {}

    def take(self, wish: Intervention, session: str) -> None:
        """Take in what one wants."""
        self._newest = session
        self._by_session.pop(session, None)
        self._by_session[session] = wish
        if len(self._by_session) > MOST_SESSIONS:
            weakest = min(self._by_session, key=lambda one: strength_of(self._by_session[one]))
            del self._by_session[weakest]

    def settle(self) -> None:
        """Take note that one monitor is left: the wishes of others have ended with them."""
        self._by_session = {k: v for k, v in self._by_session.items() if k == self._newest}

    @property
    def strongest(self) -> Intervention | None:
        """The wish to carry out; None before any monitor spoke."""
        return max(self._by_session.values(), key=strength_of, default=None)

    def __len__(self) -> int:
        return len(self._by_session)


class Memory:
    """A small file that tells the next life of the bridge what it left in force in Apollo.

    Apollo holds a STOP until another command comes. If the intervention ends while no bridge runs,
    the next bridge has to know that it was a bridge who had asked for it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.lost = ""  # What a damaged file has lost; empty if none has
        self.left: Mapping[str, Any] = {}  # What a former life left in force, by channel or service
        self._failed = ""
        self._file = None if path is None else JournalFile(path, "apollo bridge", FORMAT)
        self._written: dict[str, Any] | None = None
        if self._file is not None:
            found, damage = self._file.read(lambda body: dict(body["in_force"]))
            self.left = found or {}
            if damage:
                self.lost = (
                    f"{damage}: a command of the former bridge may still be in force in Apollo. "
                    "Look at the vehicle, end the command, then configure the bridge again"
                )

    @property
    def problem(self) -> str:
        """What was lost, and why it cannot be written."""
        return "; ".join(remark for remark in (self.lost, self._failed) if remark)

    def write(self, in_force: Mapping[str, Any]) -> None:
        """Keep what is in force now; the file is replaced as a whole."""
        if self._file is None or in_force == self._written:
            return
        try:
            self._file.write({"in_force": dict(in_force)})
        except RecordingError as error:
            self._failed = str(error)
            return
        self._failed, self._written = "", dict(in_force)


class Relay:
    """Turns what the monitor says into commands, writes them, and knows what is in force.

    Apollo holds a command until another one comes, and the monitor tells a new subscriber only what
    holds now. Therefore the first message counts for more: it also tells what became of what a
    former life of the bridge had asked for.

    `may_act`: whether the monitor file allows interventions at all.
    """

    def __init__(self, commander: Commander, memory: Memory, may_act: bool, log: Any) -> None:
        self.commander = commander
        self._memory = memory
        self._may_act = may_act
        self._log = log
        self._write: Callable[[str, bytes], bool] | None = None
        self._wishes = Wishes()
        self._remarks: dict[str, str] = {}
        self._untold: list[str] = []
        self._former = ""
        self._strength: tuple[int, float] = (len(SEVERITY), 0.0)  # of what may be in force
        self._connected_ns: int | None = None
        commander.recall(memory.left)

    @property
    def remark(self) -> str:
        """The remark for /diagnostics; empty if all is well."""
        several = TWO if len(self._wishes) > 1 else ""
        found = [*self._remarks.values(), several, self._former, self._memory.problem]
        return "; ".join(remark for remark in found if remark)

    @property
    def lost(self) -> bool:
        """Tell whether the record of what a former bridge left in force is lost."""
        return bool(self._memory.lost)

    def start(self, write: Callable[[str, bytes], bool]) -> None:
        """Begin to write; nothing is known yet of what the monitor wants."""
        self._write, self._wishes, self._connected_ns = write, Wishes(), None
        held = self.commander.described
        if held:
            self._former = f"{held} from before may be in force in Apollo until the monitor speaks"

    def stop(self) -> None:
        """Write nothing more; what is in force in Apollo stays in force."""
        self.log_changes()
        self._write, self._wishes = None, Wishes()
        held = self.commander.described
        if held:
            self._log.warning(
                f"{held} stays in force in Apollo; {self.commander.way.resume} ends a stop"
            )

    def intervene(
        self,
        wish: Intervention,
        now_ns: int,
        session: str = "",
        *,
        alone: bool = True,
        fresh: bool = True,
    ) -> None:
        """Take in what a life of a monitor wants; for `alone` and `fresh` see `update`."""
        if self._write is None:
            return
        if not len(self._wishes):
            self._first(wish)
        elif wish.active:
            self._former = ""
        self._wishes.take(wish, session)
        self.update(now_ns, alone=alone, fresh=fresh)

    def _first(self, wish: Intervention) -> None:
        """Say what the first message after the start means for what came before."""
        self._former = ""
        held = self.commander.described
        if wish.active:
            self._log.warning(
                f"intervention {wish.id} ({wish.action}) was there before the bridge, which now "
                "sees to it"
            )
        elif held:
            self._log.warning(
                f"the intervention ended while no bridge ran: {held} from before is ended now"
            )
        elif wish.id > 0 and self._may_act and self._memory.path is None:
            self._former = (
                f"intervention {wish.id} ended before this bridge came. If a bridge had stopped "
                f"Apollo for it, Apollo still stands, and {self.commander.way.resume} ends that; "
                "with the parameter journal the bridge would know"
            )
            self._log.warning(self._former)

    def connected(self, now_ns: int) -> None:
        """Take note that the connection to Apollo stands, again or for the first time."""
        self._connected_ns = now_ns

    def answered(self, target: str, problem: str) -> None:
        """Take note of what became of the call of a service."""
        if problem:
            self.commander.not_written(target)
            self._log.warning(problem, throttle_duration_sec=5.0)
        self._remarks[target] = problem

    def update(self, now_ns: int, *, alone: bool = True, fresh: bool = True) -> None:
        """Write what is due.

        `alone` tells whether no other monitor is known to be there, `fresh` whether the newest
        verdict is about a time that is not too long ago. If it is not, nothing is taken back.
        """
        if alone:
            self._wishes.settle()
        elif len(self._wishes) > 1:
            self._log.warning(TWO, throttle_duration_sec=5.0)
        wish = self._wishes.strongest
        if wish is None or self._write is None:
            return
        before = self.commander.in_force
        if before and not fresh and strength_of(wish) < self._strength:
            self._log.warning(OLD, throttle_duration_sec=5.0)
            return
        self._strength = strength_of(wish)
        for command in self.commander.update(wish.action, wish.active, wish.speed_limit, now_ns):
            self._carry_out(command, before, wish.reason)
            ended = command.target in before and command.target not in self.commander.in_force
            since = self._connected_ns
            if ended and (since is None or now_ns - since < SETTLING_NS):
                self.commander.repeat_end(command.target, ENDS_WHILE_SETTLING)

    def _carry_out(self, command: Command, before: dict[str, object], reason: str) -> None:
        assert self._write is not None
        remark = command.remark
        if command.data is None:
            self.commander.not_written(command.target)
            remark = f"{command.name} was not written: {remark}"
        elif not self._write(command.target, command.data):
            self.commander.not_written(command.target)
            remark = f"{command.name} was not written: there is no connection to Apollo"
        else:
            self._memory.write(self.commander.in_force)
        self._remarks[command.target] = remark
        if remark:
            self.log_changes()
            self._log.warning(remark, throttle_duration_sec=5.0)
        elif self.commander.in_force.get(command.target) != before.get(command.target):
            self._untold.append(f"{command.name}: {reason or 'the intervention ended'}")

    def log_changes(self) -> None:
        """Log what was written since the last time.

        To log in ROS takes as long as all the rest of a command, and would hold up the process that
        is to carry the command on.
        """
        for line in self._untold:
            self._log.info(line)
        self._untold.clear()
