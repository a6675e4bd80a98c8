"""Whatever monitors, planners and forgers do, in whatever order: a stop that is asked for ends.

Hypothesis drives the gate's real logic (`watchdog` and `twist_gate`) against a small world of
monitors that live, hang, die and come back, with a graph and a middleware that tell of them as DDS
does. What must hold is derived from that world alone: from its deadline on the output is zero while
an acting monitor that the gate knows asks for a stop, or none is heard; or it is within the limits
of a way out, and the only monitor that is heard has said with its stop that this is clear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from extent import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from forewarn.config.actuators import NO_WAY, Ways
from monitor_node.escape import Limits
from monitor_node.motion import REST, Pace, Rates, Velocity
from monitor_node.statements import ACT, OBSERVE, Statement
from monitor_node.twist_gate import GateRules, GateState, Stop, measure, receive, step
from monitor_node.watchdog import Watchdog

STEP, TICK, LOOK = 0.02, 5, 5  # seconds; steps between verdicts, and between looks at the graph
TIMEOUT, PERIOD, LEASE = 0.5, TICK * STEP, 0.5
KEPT = 10  # interventions that the middleware keeps
RULES = GateRules(
    Pace(2.0, 2.0),
    comfortable=Stop(Rates(1.0, 2.0), 2.0),
    emergency=Stop(Rates(4.0, 8.0), 0.5),
    recovery=Rates(1.0, 2.0),
    command_timeout=0.5,
    escape=Limits(Pace(0.2, 0.4), 1.0, 20.0, 5.0, 5 * STEP, Rates(1.0, 2.0), measured=False),
)
AWAY = (Velocity(-0.5), Velocity(yaw=1.0), Velocity(yaw=-0.3), Velocity(-0.1, yaw=0.5))
ACTIONS = ("NONE", "WARN", "LIMIT_SPEED", "REPLAN", "PULL_OVER", "COMFORTABLE_STOP")
STOPPING = ("PULL_OVER", "COMFORTABLE_STOP", "EMERGENCY_STOP")
actions = st.sampled_from((*ACTIONS, "EMERGENCY_STOP"))
limits = st.sampled_from([0.0, 0.5, 1.5, -1.0])
components = st.floats() | st.floats(-3, 3)
ways = st.builds(Ways, st.booleans(), st.booleans())
velocities = st.builds(Velocity, components, components, yaw=components)


@dataclass
class Monitor:
    """One life of a monitor; its numbers rise from message to message."""

    session: str
    acting: bool
    writer: bytes
    phase: int
    running: bool = True
    dead: bool = False
    number: int = 0
    id: int = 0
    action: str = "NONE"
    limit: float = math.nan
    told: tuple[Any, ...] | None = None
    known: bool = False  # what it asks for has reached the gate
    spoke: float = -math.inf
    lost: bool = False  # an intervention that does not get through
    missed: bool = False  # the last one did not
    clear: Ways = NO_WAY  # the ways out of its stops that it says are
    said_clear: Ways = NO_WAY  # what it said last
    past: list[tuple[str, Statement]] = field(default_factory=list)

    @property
    def stops(self) -> bool:
        """Tell whether it asks for a stop, and the gate has heard of it."""
        still = self.action == "LIMIT_SPEED" and not self.limit > 0
        return self.acting and self.known and (self.action in STOPPING or still)

    def statement(self) -> Statement:
        """Return its next message."""
        self.number += 1
        return Statement(
            session=self.session,
            sequence=self.number,
            mode=ACT if self.acting else OBSERVE,
            id=self.id,
            action=self.action,
            active=self.acting and self.action != "NONE",
            speed_limit=self.limit,
            writer=self.writer,
            escape=self.clear if self.acting and self.action in STOPPING else NO_WAY,
        )


class Gate(RuleBasedStateMachine):
    """The gate in a world of monitors."""

    @initialize(told=st.booleans())
    def begin(self, told: bool) -> None:
        """Start with or without a middleware that tells who published."""
        self.told = told
        self.steps = 0
        self.gate, self.watchdog = GateState(), Watchdog(TIMEOUT, PERIOD, TIMEOUT)
        self.monitors: list[Monitor] = []
        self.command: Velocity | None = None
        self.measured: Velocity | None = None
        self.forger_until = self.blind_until = -math.inf
        self.since = self.urgent_since = 0.0
        self.asked = -math.inf

    @property
    def now(self) -> float:
        """Seconds of a steady clock."""
        return self.steps * STEP

    # Monitors

    @precondition(lambda self: sum(not monitor.dead for monitor in self.monitors) < 3)
    @rule(acting=st.booleans(), phase=st.integers(0, TICK - 1))
    def start(self, acting: bool, phase: int) -> None:
        """A monitor begins: it says that it asks for nothing."""
        name = f"s{len(self.monitors)}"
        writer = name.encode() if self.told else b""
        self.monitors.append(Monitor(name, acting, writer, phase))

    @precondition(lambda self: self.monitors)
    @rule(which=st.integers(0), what=st.sampled_from(["kill", "hang", "resume", "lose", "late"]))
    def happen(self, which: int, what: str) -> None:
        """Something happens to a monitor, or to one of its messages."""
        monitor = self.monitors[which % len(self.monitors)]
        if what == "kill":
            monitor.running, monitor.dead = False, True
        elif what == "lose":
            monitor.lost = True
        elif what == "late" and monitor.past:
            self.deliver(*monitor.past[which % len(monitor.past)])
        elif what in ("hang", "resume"):
            monitor.running = what == "resume" and not monitor.dead

    @precondition(lambda self: self.monitors)
    @rule(which=st.integers(0), action=actions, limit=limits)
    def ask(self, which: int, action: str, limit: float) -> None:
        """A monitor asks for something else from its next tick on."""
        monitor = self.monitors[which % len(self.monitors)]
        monitor.id += action != "NONE" and monitor.action == "NONE"
        monitor.action = action
        monitor.limit = limit if action == "LIMIT_SPEED" else math.nan
        monitor.known = False

    @precondition(lambda self: self.monitors)
    @rule(which=st.integers(0), clear=ways)
    def say(self, which: int, clear: Ways) -> None:
        """A monitor says from its next tick on that other ways out are clear."""
        self.monitors[which % len(self.monitors)].clear = clear

    @rule(command=st.sampled_from(AWAY), action=st.sampled_from(STOPPING), clear=ways)
    def leave(self, command: Velocity, action: str, clear: Ways) -> None:
        """One monitor is left, has stopped the robot, and says which ways out are clear."""
        self.start(acting=True, phase=0)
        which = len(self.monitors) - 1
        self.monitors[which].clear = clear
        self.stand(which, action)
        self.command = command
        self.advance(TICK * 6)
        self.monitors[which].clear = NO_WAY
        self.advance(2 * TICK)
        assert self.gate.output == REST

    @precondition(lambda self: self.monitors)
    @rule(which=st.integers(0), action=st.sampled_from(STOPPING))
    def stand(self, which: int, action: str) -> None:
        """One monitor is left and has stopped the robot: now anything may lift that."""
        one = self.monitors[which % len(self.monitors)]
        for monitor in self.monitors:
            monitor.running, monitor.dead = False, monitor.dead or monitor is not one
        one.running = not one.dead
        self.command = Velocity(1.0, yaw=0.5)
        self.advance(60)
        self.ask(which, action, 0.0)
        self.advance(110)

    def speak(self, monitor: Monitor) -> None:
        """Publish the intervention if it is asked for or new, and the risk."""
        asked = monitor.id, monitor.action, monitor.limit
        if monitor.action != "NONE" or repr(asked) != repr(monitor.told):
            statement = monitor.statement()
            if not monitor.lost:
                self.deliver("intervene", statement)
                monitor.past.append(("intervene", statement))
            monitor.told, monitor.lost, monitor.missed = asked, False, monitor.lost
        statement = monitor.statement()
        self.deliver("verdict", statement)
        monitor.past.append(("verdict", statement))
        monitor.known, monitor.spoke = True, self.now
        monitor.said_clear = statement.escape

    # Forgers

    @rule(
        which=st.integers(0),
        topic=st.sampled_from(["intervene", "verdict"]),
        ahead=st.sampled_from([-1000, 0, 1, 2, 1000]),
        said=st.fixed_dictionaries(
            {"mode": st.sampled_from([ACT, OBSERVE, ""]), "active": st.booleans()},
            optional={
                "session": st.sampled_from(["", "nobody", "s0", "s1", "x" * 100]),
                "id": st.integers(0, 3),
                "action": actions | st.just(""),
                "speed_limit": st.floats(),
                "verdicts": st.integers(0, 1),
                "escape": ways,
            },
        ),
    )
    def forge(self, which: int, topic: str, ahead: int, said: dict[str, Any]) -> None:
        """Somebody publishes, maybe in the name of a monitor; the graph shows it for a while."""
        victim = self.monitors[which % len(self.monitors)] if self.monitors else None
        given = {
            "session": "nobody" if victim is None else victim.session,
            "sequence": max(0, ahead + (0 if victim is None else victim.number)),
            "writer": b"forger" if self.told else b"",
            **said,
        }
        self.intrude()
        self.deliver(topic, Statement(**given))

    @precondition(lambda self: self.monitors)
    @rule(which=st.integers(0), ahead=st.integers(1, 3), steps=st.integers(1, 30))
    def impersonate(self, which: int, ahead: int, steps: int) -> None:
        """Somebody says a full verdict in the name of a monitor: that it asks for nothing."""
        victims = [monitor for monitor in self.monitors if monitor.running] or self.monitors
        victim = victims[which % len(victims)]
        self.intrude()
        writer = b"forger" if self.told else b""
        said = Statement(victim.session, victim.number + ahead, writer=writer, id=victim.id)
        self.deliver("intervene", said)
        self.deliver("verdict", said)
        self.advance(steps)

    def intrude(self) -> None:
        """Publish as a forger: the graph shows it for a while."""
        self.forger_until = self.now + 1.0
        if not self.told:
            # Without identities a forger that knows the session is found out by the graph alone.
            self.blind_until = self.now + LOOK * STEP + TIMEOUT

    def deliver(self, method: str, statement: Statement) -> None:
        """Hand a message to the gate."""
        getattr(self.watchdog, method)(statement, self.now)

    # Planners, and time

    @rule(command=st.none() | st.sampled_from(AWAY) | velocities, measured=st.none() | velocities)
    def plan(self, command: Velocity | None, measured: Velocity | None) -> None:
        """The planner commands something else from now on, or falls silent; so does odometry."""
        self.command, self.measured = command, measured

    @rule(steps=st.integers(1, 150))
    def advance(self, steps: int) -> None:
        """Let time pass."""
        for _ in range(steps):
            self.steps += 1
            for monitor in self.monitors:
                if monitor.running and self.steps % TICK == monitor.phase:
                    self.speak(monitor)
            self.middleware()
            if self.command is not None:
                self.gate = receive(RULES, self.gate, self.command, self.now)
            if self.measured is not None:
                self.gate = measure(self.gate, self.measured, self.now)
            demand, _ = self.watchdog.demand(self.now)
            clear = self.watchdog.way_out(self.now)
            self.gate = step(RULES, self.gate, demand, self.now, clear)
            self.check()

    def middleware(self) -> None:
        """Tell what DDS and the ROS graph tell."""
        alive = [monitor for monitor in self.monitors if self.now - monitor.spoke <= LEASE]
        if any(monitor.spoke > -math.inf for monitor in self.monitors):
            self.watchdog.liveliness(len(alive))
        if self.steps % LOOK == 0:
            forger = self.now <= self.forger_until
            self.watchdog.publishers(len(alive) + forger, self.now)
            if self.watchdog.misses_intervention(self.now) and self.now - self.asked > TIMEOUT:
                self.asked = self.now
                for monitor in alive:
                    self.repeat(monitor)

    def repeat(self, monitor: Monitor) -> None:
        """Say once more what the middleware keeps for late subscribers."""
        said = [statement for method, statement in monitor.past if method == "intervene"]
        for statement in said[-KEPT:]:
            self.deliver("intervene", statement)

    # What must hold

    def check(self) -> None:
        """Compare the output with what the world demands."""
        output = self.gate.output
        assert output.finite
        assert output.speed <= RULES.greatest.speed * (1 + 1e-9)
        assert output.turn <= RULES.greatest.turn * (1 + 1e-9)
        heard = [monitor for monitor in self.monitors if self.now - monitor.spoke <= TIMEOUT]
        asked = [item for item in heard if item.stops]
        if not asked and heard:
            self.since = self.now
        if not any(item.action == "EMERGENCY_STOP" for item in asked):
            self.urgent_since = self.now
        for since, stop in ((self.since, RULES.comfortable), (self.urgent_since, RULES.emergency)):
            if self.now - max(since, self.blind_until) > stop.deadline + STEP:
                assert output == REST or self.on_a_way_out(heard), (since, self.now, output)

    def on_a_way_out(self, heard: list[Monitor]) -> bool:
        """Tell whether the output is inside a way out, and one monitor alone says it is clear."""
        output = self.gate.output
        back, turn = Velocity(output.x), Velocity(yaw=output.yaw)
        said = heard[0].said_clear if len(heard) == 1 else NO_WAY
        return (said.reverse and output == back and -0.2 <= output.x <= 0.0) or (
            said.turn and output == turn and output.turn <= 0.4
        )

    @rule()
    def calm_down(self) -> None:
        """When all but a new monitor are gone and nothing is asked for, commands pass again."""
        for monitor in self.monitors:
            monitor.running, monitor.dead = False, True
        self.command, self.measured = Velocity(1.0, yaw=0.5), None
        self.advance(100)
        self.start(acting=True, phase=0)
        self.advance(350)
        assert self.gate.output == self.command

    @precondition(lambda self: self.monitors)
    @rule(which=st.integers(0))
    def outlive(self, which: int) -> None:
        """When one monitor is left that asks for nothing, commands pass again, whatever was.

        If it only observes, and one that acted was trusted before, somebody has to acknowledge.
        """
        one = self.monitors[which % len(self.monitors)]
        if one.dead:
            return
        for monitor in self.monitors:
            monitor.running, monitor.dead = False, monitor.dead or monitor is not one
        one.running = True
        one.action, one.limit = "NONE", math.nan
        self.command, self.measured = Velocity(1.0, yaw=0.5), None
        if one.lost or one.missed:
            one.told, one.lost, one.missed = None, False, False
        self.advance(450)
        if self.watchdog.acknowledge(self.now):
            assert not one.acting
            assert self.gate.output == REST
            self.advance(200)
        assert self.gate.output == self.command


TestGate = pytest.mark.slow(Gate.TestCase)
TestGate.settings = settings(max_examples=examples(100), stateful_step_count=25, deadline=None)
