"""Whom a gate trusts, and what is asked for: without ROS, by a steady clock.

A gate trusts one monitor at a time. It adopts a session once it has heard a full verdict of it, an
intervention and a risk array that agree, while no other session speaks and no other publisher is
alive. Whatever does not fit in ends that trust: another session, another publisher, content that
cannot be understood. Without trust the robot is stopped, and a trust that has ended takes another
full verdict, no sooner than `timeout` after the last thing that did not fit in.

The numbers of a session rise, so that a late message brings nothing back. Should one have been
heard that is higher than the monitor's own, another node sent it: once nothing newer has come
for `timeout` and no other node is there, the monitor's own numbers count again, after such a doubt.

Once a monitor that acts was trusted, one that only observes lifts nothing until an operator has
acknowledged it: the robot would be let go because the monitor that stopped it has died.

The content has to be fresh: a verdict counts from the moment that it is about, and lets
nothing pass once that is longer ago than `oldest`. A stop counts however old it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from forewarn.config.actions import COMFORTABLE_STOP, EMERGENCY_STOP
from forewarn.config.actuators import NO_WAY, Ways
from forewarn.monitoring.intervention import NOTHING, Intervention, strongest
from monitor_node.statements import ACT, OBSERVE, Statement

NOTHING_ASKED = "nothing is asked for"
BY_MONITOR = "asked for by the monitor"
TWO = "another monitor speaks as well"
COUNTED_BACK = "the monitor's numbers fall: another node has published in its name"
LATE = "the monitor misses its deadline"
LAGS = "the monitor lags: its verdicts are too old"
WEAKER = "the monitor only observes, and the one before it acted: look at the robot and acknowledge"
AHEAD = "the monitor's verdicts are about a time to come: the clocks differ"
NEVER = -math.inf
MOST_SESSIONS = 8
RISK, INTERVENTION = "risk", "intervention"


@dataclass
class Heard:
    """The last statement of one session on each topic, and when it spoke last."""

    statements: dict[str, Statement] = field(default_factory=dict)
    # at, about: when it came, and the moment that it is about
    at: dict[str, float] = field(default_factory=dict)
    about: dict[str, float] = field(default_factory=dict)
    # Since when the two have contradicted each other; infinite while they agree
    differ_since: float = math.inf
    last: float = NEVER  # When it spoke last, be it that the message came late: it is there

    @property
    def agrees(self) -> bool:
        """Tell whether it has made both statements, and they say the same."""
        return len(self.statements) == 2 and self.statements[RISK].agrees(
            self.statements[INTERVENTION]
        )

    @property
    def demand(self) -> Intervention:
        """What it asks for on either topic: it has ended only when both say so."""
        demand = NOTHING
        for statement in self.statements.values():
            demand = strongest(demand, statement.demand)
        return demand

    def take(self, topic: str, statement: Statement, now: float) -> None:
        """Take in a statement."""
        self.statements[topic], self.at[topic] = statement, now
        self.about[topic] = now - statement.age
        self.differ_since = math.inf if self.agrees else min(self.differ_since, now)


class Watchdog:
    """Trusts a monitor as long as it speaks, alone, and in a way that can be understood.

    `timeout`: seconds without a verdict after which the monitor counts as dead.
    `period`: seconds between verdicts: for so long the two topics may differ.
    `oldest`: seconds for which a verdict counts, from the moment that it is about.
    """

    def __init__(self, timeout: float, period: float, oldest: float) -> None:
        self.timeout, self.period, self.oldest = timeout, period, oldest
        self.adopted = ""
        self.late = 0
        self._acted = ""  # the session that was trusted last of those that act
        self._heard: dict[str, Heard] = {}
        self._doubt, self._doubted = "", NEVER
        self._alive = 1
        self._publishers, self._rivals_since = 1, math.inf

    # What comes in

    def verdict(self, statement: Statement, now: float) -> None:
        """Take in what a RiskArray repeats of the intervention in force."""
        heard = self._accept(RISK, statement, now)
        if heard is None:
            return
        if self._may_adopt(heard, now):
            self.adopted = statement.session
            self._heard = {statement.session: heard}
            self._acted = self.adopted if statement.mode == ACT else self._acted

    def intervene(self, statement: Statement, now: float) -> None:
        """Take in an intervention that has begun, is repeated or withdrawn."""
        self._accept(INTERVENTION, statement, now)

    def liveliness(self, alive: int) -> None:
        """Take in how many monitors are alive, as the middleware has it."""
        self._alive = alive

    def publishers(self, number: int, now: float) -> None:
        """Take in how many publishers a topic of the monitor has that are not known to be dead."""
        self._publishers = number
        self._rivals_since = min(self._rivals_since, now) if number > 1 else math.inf

    def acknowledge(self, now: float) -> bool:
        """Let a monitor that only observes be trusted after one that acted; tell whether one is."""
        weaker = WEAKER in self._problems(now)
        self._acted = "" if weaker else self._acted
        return weaker

    def misses_intervention(self, now: float) -> bool:
        """Tell whether a monitor should be asked for its interventions once more.

        It repeats those that are over to late subscribers only. What was heard last of it may be
        forged, or may have been refused.
        """
        return any(
            now - heard.last <= self.timeout < now - heard.differ_since
            for heard in self._heard.values()
        )

    def age(self, now: float) -> float:
        """Return for how long nothing is known: the age of the newest verdict; infinite if none."""
        heard = self._heard.get(self.adopted)
        return math.inf if heard is None else now - heard.about[RISK]

    def _accept(self, topic: str, statement: Statement, now: float) -> Heard | None:
        """Take in a statement, unless it cannot be understood, is forged, or came late."""
        problem = statement.problem
        if problem:
            self._distrust(problem, now)
            return None
        session = statement.session
        if self.adopted and session != self.adopted:
            # The successor of a dead monitor is no threat, but it has to be adopted first.
            alone = now - self._heard[self.adopted].last > self.timeout
            self._distrust("" if alone else TWO, now)
        heard = self._known(session)
        before = heard.statements.get(topic)
        if before is not None and before.writer != statement.writer:
            self._distrust("another node publishes in the name of the monitor", now)
            if now - heard.last <= self.timeout or self._publishers > 1:
                return None
            heard, before = Heard(), None  # only one is left: it has to be adopted again
            self._heard[session] = heard
        heard.last = now
        if before is not None and statement.sequence <= before.sequence:
            self.late += 1  # a late one must not bring back what has been withdrawn meanwhile
            same = statement.sequence == before.sequence
            if same or now - heard.at[topic] <= self.timeout or self._publishers > 1:
                return None
            self._distrust(COUNTED_BACK, now)
        heard.take(topic, statement, now)
        return heard

    def _known(self, session: str) -> Heard:
        if session not in self._heard and len(self._heard) >= MOST_SESSIONS:
            del self._heard[min(self._heard, key=lambda known: self._heard[known].last)]
        return self._heard.setdefault(session, Heard())

    def _distrust(self, why: str, now: float) -> None:
        self.adopted = ""
        if why:
            self._doubt, self._doubted = why, now

    def _may_adopt(self, heard: Heard, now: float) -> bool:
        others = (other for other in self._heard.values() if other is not heard)
        return (
            heard.agrees
            and now - self._doubted > self.timeout
            and all(now - other.last > self.timeout for other in others)
            and self._publishers <= 1
            and self._alive <= 1
        )

    # What it means

    def demand(self, now: float) -> tuple[Intervention, str]:
        """Return what to do at `now`, and why."""
        asked = NOTHING
        for heard in self._heard.values():
            asked = strongest(asked, heard.demand)
        problem = next(self._problems(now), "")
        if problem:
            # If anybody asked for an emergency stop before, it stays one.
            return Intervention(EMERGENCY_STOP if asked.hard else COMFORTABLE_STOP), problem
        return (asked, BY_MONITOR) if asked.moves else (NOTHING, NOTHING_ASKED)

    def way_out(self, now: float) -> Ways:
        """Return which ways out of its stop the only monitor says are clear.

        Both of its topics have to say so, in messages about the last two periods.
        """
        heard = self._heard.get(self.adopted)
        if not (
            heard is not None
            and len(self._heard) == 1
            and next(self._problems(now), None) is None
            and heard.agrees
            and all(now - about <= 2 * self.period for about in heard.about.values())
        ):
            return NO_WAY
        escapes = [statement.escape for statement in heard.statements.values()]
        return Ways(*map(all, zip(*escapes, strict=True)))

    def _problems(self, now: float) -> Iterator[str]:
        """Return why nothing may pass that the monitor lets pass, the gravest first."""
        if self._alive > 1 or now - self._rivals_since > self.timeout:
            yield "the monitor's topics have another publisher"
        if sum(now - heard.last <= self.timeout for heard in self._heard.values()) > 1:
            yield TWO
        if now - self._doubted <= self.timeout:
            yield self._doubt
        if not self._heard:
            yield "the monitor has not spoken yet"
        if not self._alive:
            yield "the monitor has lost its liveliness"
        yield from self._silence(now)
        if self._is_weaker:
            yield WEAKER
        if not self.adopted:
            yield "no full verdict of one monitor has been heard"

    @property
    def _is_weaker(self) -> bool:
        """Tell whether the trusted monitor only observes, and one before it acted."""
        heard = self._heard.get(self.adopted)
        return (
            self._acted not in ("", self.adopted)
            and heard is not None
            and heard.statements[RISK].mode == OBSERVE
        )

    def _silence(self, now: float) -> Iterator[str]:
        heard = self._heard.get(self.adopted)
        if heard is None:
            return
        if now - heard.at[RISK] > self.timeout:
            yield "the monitor is silent"
        if now - heard.about[RISK] > self.oldest:
            yield LAGS if now - heard.at[RISK] <= self.oldest else LATE
        if heard.about[RISK] - now > self.oldest:
            yield AHEAD
        if now - heard.differ_since > self.period:
            yield "the monitor's risk and intervention contradict each other"
        if heard.demand.moves and now - heard.about[INTERVENTION] > self.timeout:
            yield "the monitor went silent during an intervention"
