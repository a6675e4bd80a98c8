"""Alerts: when each one warned, acted and ended, why, and who acknowledged it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from forewarn.errors import ConfigError
from forewarn.monitoring.intervention import reason_of
from forewarn.monitoring.memory_bound import MOST_ALERTS
from forewarn.monitoring.policy import Level
from forewarn.monitoring.risk_rows import INACTIVE, RiskRow, compared
from forewarn.monitoring.session_events import Event, Mute, Release, Reset

if TYPE_CHECKING:
    from forewarn.monitoring.evaluate import TickResult
    from forewarn.signals.clock import Clock

LASTING = 50
"""Alerts that the next life of a monitor gets: the newest unacknowledged ones."""
LONGEST = 1000
"""Characters of a text that it gets."""


class Alert(NamedTuple):
    """One alert of a property by its name; see forewarn_msgs/msg/Alert. Times are 0 at first."""

    id: int
    name: str
    warned_ns: int
    acted_ns: int
    ended_ns: int
    intervention: int
    risk: float
    violations: int
    reason: str
    end_reason: str
    acknowledged_by: str
    acknowledged_ns: int
    note: str
    incident: str

    @property
    def open(self) -> bool:
        """Tell whether it goes on."""
        return not self.ended_ns

    @property
    def acknowledged(self) -> bool:
        """Tell whether it is acknowledged; the clock may have stood at 0 then."""
        return bool(self.acknowledged_by)

    @property
    def unacknowledged(self) -> bool:
        """Tell whether it has asked for something and is not acknowledged."""
        return bool(self.acted_ns) and not self.acknowledged


class Kept(NamedTuple):
    """What a monitor's next life has to know of alerts: how many there were, and some of them."""

    total: int
    alerts: tuple[Alert, ...]

    @property
    def data(self) -> dict[str, Any]:
        """Return it as plain data that goes through JSON; `parse_kept` reads it."""
        return {
            "total": self.total,
            "alerts": [
                [None if value != value else value for value in alert] for alert in self.alerts
            ],
        }


def parse_kept(data: Any) -> Kept:
    """Return what `Kept.data` gave; raises LookupError, TypeError or ValueError."""
    alerts = []
    for values in data["alerts"]:
        found = Alert(*values)
        found = found._replace(risk=math.nan if found.risk is None else found.risk)
        for value, kind in zip(found, _KINDS, strict=True):
            if type(value) is not kind:
                raise ValueError(f"{value!r} in alert {found.id} is no {kind.__name__}")
        if any(isinstance(value, int) and value < 0 for value in found):
            raise ValueError(f"a number below 0 in alert {found.id}")
        alerts.append(found)
    numbers = [alert.id for alert in alerts]
    if sorted({0, *numbers}) != [0, *numbers] or not max(numbers, default=0) <= data["total"]:
        raise ValueError(f"alerts {numbers} do not rise from 1 to at most {data['total']}")
    open_ones = [alert.name for alert in alerts if alert.open]
    if len(set(open_ones)) < len(open_ones):
        raise ValueError(f"alerts that go on at the same time: {', '.join(open_ones)}")
    return Kept(int(data["total"]), tuple(alerts))


_KINDS = (int, str, int, int, int, int, float, int, str, str, str, int, str, str)


def _shortened(alert: Alert) -> Alert:
    texts = ("reason", "end_reason", "acknowledged_by", "note")
    return alert._replace(**{name: getattr(alert, name)[:LONGEST] for name in texts})


class Alerts:
    """All alerts of a monitor, as far as they are kept."""

    def __init__(self, most: int = MOST_ALERTS) -> None:
        self.all: dict[int, Alert] = {}  # Those that are kept, by their numbers, the oldest first
        self._most = most
        self._count = 0
        self._open: dict[str, int] = {}
        self._commands: dict[str, str] = {}

    def take(self, result: TickResult, clock: Clock, incident: str = "") -> bool:
        """Take in a tick; tell whether an alert has begun, acted or ended.

        `incident` is the file that is being written meanwhile.
        """
        time_ns, changed = result.verdict.time_ns, False
        request = result.request
        number = 0 if request is None else request.id
        for prop, row in zip(result.verdict.properties, result.rows, strict=True):
            level = Level(row.level)
            if not level:
                changed |= self._end(row.property, time_ns, self._why(row))
                continue
            if cause := self._commands.get(row.property):  # it alerts again, and at once
                self._end(row.property, time_ns, cause)
            if row.property not in self._open:
                self._begin(row, time_ns, reason_of(row, clock))
                changed = True
            alert = self.all[self._open[row.property]]
            if level is Level.ACT and not alert.acted_ns:
                reason = reason_of(row, clock)
                alert = alert._replace(acted_ns=time_ns, intervention=number, reason=reason)
                # Who took note of the warning knows nothing of what is asked for now.
                alert = alert._replace(acknowledged_by="", acknowledged_ns=0, note="")
                changed = True
            self.all[alert.id] = alert._replace(
                risk=_greater(alert.risk, compared(row)),
                violations=alert.violations + prop.counted,
                incident=alert.incident or incident,
            )
        self._commands.clear()
        return changed

    @property
    def forgotten(self) -> int:
        """How many alerts there were that are not kept."""
        return self._count - len(self.all)

    def lasting(self) -> Kept:
        """Return what the next life has to know, of bounded size."""
        lasting = [alert for alert in self.all.values() if alert.open or alert.unacknowledged]
        return Kept(self._count, tuple(map(_shortened, lasting[-LASTING:])))

    def recall(self, kept: Kept) -> None:
        """Take over what a former life kept; those that went on wait for `go_on`."""
        if self._count:
            raise ValueError("alerts are recalled before the first one")
        self._count = kept.total
        self.all = {alert.id: alert for alert in kept.alerts}

    def only(self, names: Collection[str]) -> tuple[Alert, ...]:
        """Drop alerts of other properties, and return them: the monitor file has them no more."""
        gone = tuple(alert for alert in self.all.values() if alert.name not in names)
        for alert in gone:
            del self.all[alert.id]
        return gone

    def go_on(self, time_ns: int, lost: str) -> bool:
        """Go on with the alerts that a former life left; tell whether something has changed.

        `lost`: why they are over, where their state is not known; empty if they go on.
        """
        waiting = [
            alert
            for alert in self.all.values()
            if alert.open and self._open.get(alert.name) != alert.id
        ]
        for alert in waiting:
            self._open[alert.name] = alert.id
            if lost:
                self._end(alert.name, time_ns, lost)
        return bool(waiting)

    def command(self, event: Event) -> None:
        """Remember what an operator did: it is why alerts end at the next tick."""
        if not isinstance(event, Release | Mute | Reset):
            return
        who = "" if isinstance(event, Reset) else f" by {event.requester or 'no name given'}"
        why = "" if isinstance(event, Reset) or not event.reason else f": {event.reason}"
        done = {Release: "released", Mute: "muted", Reset: "reset"}[type(event)]
        self._commands.update(dict.fromkeys(event.properties, f"{done}{who}{why}"))

    def end(self, time_ns: int, reason: str) -> bool:
        """End all that go on: the monitor stops."""
        return sum(self._end(name, time_ns, reason) for name in tuple(self._open)) > 0

    def acknowledge(
        self, numbers: Collection[int], by: str, note: str, time_ns: int
    ) -> tuple[int, ...]:
        """Acknowledge alerts (none named: all), and return the numbers of those that were not yet.

        Raises ConfigError if there is no such alert; then nothing has changed.
        """
        unknown = [number for number in numbers if number not in self.all]
        if unknown:
            listed = ", ".join(map(str, self.all)) or "no alert"
            raise ConfigError(f"there is no alert {unknown[0]}", key="alerts", accepted=listed)
        named = dict.fromkeys(numbers or self.all)
        chosen = tuple(number for number in named if not self.all[number].acknowledged)
        for number in chosen:
            self.all[number] = self.all[number]._replace(
                acknowledged_by=by, acknowledged_ns=time_ns, note=note
            )
        return chosen

    @property
    def unacknowledged(self) -> tuple[Alert, ...]:
        """Alerts that asked for something and are not acknowledged, the oldest first."""
        return tuple(alert for alert in self.all.values() if alert.unacknowledged)

    def _begin(self, row: RiskRow, time_ns: int, reason: str) -> None:
        self._count += 1
        number, nothing = self._count, math.nan
        self.all[number] = Alert(
            number, row.property, time_ns, 0, 0, 0, nothing, 0, reason, "", "", 0, "", ""
        )
        self._open[row.property] = number
        while len(self.all) > self._most:
            over = [alert for alert in self.all.values() if not alert.open]
            if not over:
                return  # as many as there are properties
            del self.all[min(over, key=lambda alert: (alert.unacknowledged, alert.id)).id]

    def _end(self, name: str, time_ns: int, reason: str) -> bool:
        number = self._open.pop(name, None)
        if number is None:
            return False
        alert = self.all[number]
        # The clock may have jumped back: no alert ends before it began.
        ended_ns = max(time_ns, alert.warned_ns, alert.acted_ns)
        self.all[number] = alert._replace(ended_ns=ended_ns, end_reason=reason)
        return True

    def _why(self, row: RiskRow) -> str:
        if cause := self._commands.get(row.property):
            return cause
        if row.muted:
            return "muted"
        if row.verdict == INACTIVE:
            return "it is not monitored any more"
        figure = compared(row)
        if figure != figure:
            return "the policy asks for nothing more, the risk is unknown"
        return f"its risk {figure:.3f} has been low for as long as it has to be"


def _greater(one: float, other: float) -> float:
    if one != one:
        return other
    return one if other != other else max(one, other)


def states_of(alert: Alert) -> Mapping[str, bool]:
    """Return which of the states of forewarn_msgs/msg/Alert an alert is in."""
    return {
        "ENDED": not alert.open,
        "ACTING": alert.open and bool(alert.acted_ns),
        "WARNING": alert.open and not alert.acted_ns,
    }
