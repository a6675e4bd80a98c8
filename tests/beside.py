"""What must hold whatever happens to a monitor, its planners and its clock, told from outside.

That is from what is published, and from how fast the robots may be.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from forewarn_msgs.msg import Intervention
from lives import Lives
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from robot_ends import ApolloEnd, AutowareEnd, GateEnd, Nav2End

from apollo_bridge.commands import way_of
from forewarn.config.actions import ACTIONS, SEVERITY
from forewarn.config.file import load_spec
from forewarn_ros.status import Severity

MONITOR = """
version: 1
rate: 10
startup_grace: 0.3
mode: act
model: model.json
bounds: {kind: none}
signals:
  near: {topic: /near, type: std_msgs/msg/Float32, value: data, timeout: 0.2}
  slow: {topic: /slow, type: std_msgs/msg/Float32, value: data, timeout: never}
predicates: {p: near > 0.5, q: slow > 0.5}
properties:
  stop:
    formula: always(p implies eventually[0:0.3](q))
    horizon: 1.0
    thresholds: {warn: 0.2, act: 0.5, release: 0.25}
    enter: 1
    exit: 2
    hold: 0.4
    out_of_model_timeout: 3600
    intervention: LIMIT_SPEED
    speed_limit: 0.5
    escalation: [{after: 0.3, action: COMFORTABLE_STOP}, {after: 0.6, action: EMERGENCY_STOP}]
  aside:
    formula: always(not (p and q))
    horizon: 1.0
    thresholds: {warn: 0.3, act: 0.6, release: 0.3}
    enter: 1
    exit: 2
    out_of_model_timeout: 3600
    intervention: PULL_OVER
actuators:
  autoware: {}
  nav2: {max_speed: 1.0, lock_topic: /lock, emergency_stop: [lock, cancel]}
  twist: {input: /raw, output: /cmd, max_speed: 1, max_turn: 1}
"""
ODD = 200
RELEASE = {"stop": 0.25, "aside": 0.3, "halt": 0.25}
EXIT = 2
FILES = {
    "same": MONITOR,
    "thresholds": MONITOR.replace("act: 0.5", "act: 0.9"),
    "formula": MONITOR.replace("[0:0.3](q)", "[0:0.2](q)"),
    "renamed": MONITOR.replace("  stop:", "  halt:"),
    "observes": MONITOR.replace("mode: act", "mode: observe"),
    "no actuators": MONITOR[: MONITOR.index("actuators:")],
}
WITHOUT = ("observes", "no actuators")
PROPERTIES = {"stop": "LIMIT_SPEED", "halt": "LIMIT_SPEED", "aside": "PULL_OVER"}
VALUES = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (None, 0.0), (math.nan, 0.0)]
PATIENCE, REPAIR = 1.3, 7.0
"""Seconds after which what is not taken up is an error, and after which a healthy stack has it."""
GATE = 2.8
ERROR = Severity.ERROR


def limit_of(said: Intervention | None) -> float:
    """Return how fast the robot may be by an intervention."""
    if said is None or not said.active:
        return math.inf
    action = ACTIONS[NAMES[said.action]]
    return 0.0 if action.stops else said.speed_limit if action.limits else math.inf


NAMES = {getattr(Intervention, name): name for name in ACTIONS}


class Beside:
    """Beside the lives: what was asked for, who has let go, who is weaker than asked, since when.

    Attributes
    ----------
    acting : dict of str to int
        For how many ticks each property was calm of which the last message says that it acts.
    excused : set of str
        Properties whose alert a person has ended, or which nobody can know of.
    unknown : bool
        Nobody but a person can take back what is in force.
    noticed : str
        Why the journal has to be an ERROR until somebody acknowledges it; empty if it need not.
    """

    def __init__(self, lives: Lives, folder: Path) -> None:
        self.lives, self.folder, board = lives, folder, lives.board
        spec = load_spec(folder / "same.yaml").actuators
        assert spec.autoware is not None and spec.nav2 is not None and spec.twist is not None
        self.autoware = AutowareEnd(board, spec.autoware)
        self.nav2 = Nav2End(board, spec.nav2)
        self.gate = GateEnd(board, spec.twist, 0.1, 0.5)
        self.apollo = ApolloEnd(board, way_of(9, "pad"), folder / "bridge")
        self.apollo.route()
        self.ends = (self.autoware, self.nav2, self.gate, self.apollo)
        board.create_subscription(None, "/monitor/output/intervention", self._asked, 1)
        board.create_subscription(None, "/monitor/output/risk", self._judged, 1)
        board.create_subscription(None, "/monitor/output/alerts", self._alerted, 1)
        self.file = "same"
        self.asked: Intervention | None = None
        self.acting: dict[str, int] = {}
        self.excused: set[str] = set()
        self.weaker = True
        self.weak = dict.fromkeys((end.name for end in self.ends), 0.0)
        self.well = dict.fromkeys((end.name for end in self.ends), 0.0)
        self.heard = -math.inf
        self.unacknowledged: set[tuple[int, str]] = set()
        self.noticed = ""
        self.fails = self.unknown = False
        self.wrong: list[str] = []
        self.values: dict[str, float | None] = {}
        self.begin("same")

    # What is published

    def demand(self, holds: bool, otherwise: str) -> None:
        """Note what does not hold: raised here, it would be a tick that fails to the node."""
        if not holds:
            self.wrong.append(otherwise)

    def _asked(self, said: Intervention) -> None:
        if said.action == ODD:
            return
        before, self.asked = self.asked, said
        if before is None or (before.action, before.active) != (said.action, said.active):
            self.weak = dict.fromkeys(self.weak, 0.0)

    def _judged(self, array: Any) -> None:
        self.heard = self.lives.now
        held, acts = self.acting, self.file != "observes"
        self.acting = {}
        for risk in array.risks:
            name = risk.property
            calm = held.get(name, 0) + 1 if risk.probability < RELEASE[name] else 0
            if risk.level == 2:
                self.acting[name] = calm
            elif name in held and name not in self.excused:
                self.demand(calm >= EXIT, f"{name} was let go")
        if self.acting and acts:
            said = self.asked
            self.demand(said is not None and said.active, "nothing is asked for")
            if said is None:
                return
            least = max(SEVERITY.index(PROPERTIES[name]) for name in self.acting)
            if held.keys() <= self.acting.keys() and not self.weaker:
                least = max(least, self.strength)
            self.strength = SEVERITY.index(NAMES[said.action])
            self.demand(self.strength >= least, f"{NAMES[said.action]} is too weak")
        self.weaker = not self.acting or not acts
        self.excused.clear()

    def _alerted(self, array: Any) -> None:
        there = {
            (alert.id, alert.property)
            for alert in array.alerts
            if (alert.acted.sec or alert.acted.nanosec) and not alert.acknowledged_by
        }
        self.demand(
            self.unacknowledged <= there, "an alert is forgotten that nobody has acknowledged"
        )
        self.unacknowledged = there

    # What happens

    def begin(self, file: str) -> None:
        self.file = file
        self.lives.begin(self.folder / f"{file}.yaml")

    def let_go(self) -> None:
        """Take note that a person has let go, or that nobody can know what was asked for."""
        self.excused, self.weaker = set(PROPERTIES), True

    def do(self, what: str, number: int) -> None:
        """Let something happen; `number` says how much, or which."""
        getattr(self, f"on_{what}")(number)
        self.step()

    def on_values(self, number: int) -> None:
        self.values = dict(zip(("near", "slow"), VALUES[number % len(VALUES)], strict=True))

    def on_wait(self, number: int) -> None:
        for _ in range(number % 9):
            self.step()

    def on_jump(self, number: int) -> None:
        self.lives.tick += (-5000, -30, -1, 10, 60, 5000)[number % 6]
        if number % 6 not in (2, 3):
            self.acting = dict.fromkeys(self.acting, 0)  # what was seen before counts no more

    def on_mute(self, number: int) -> None:
        self.person("mute", duration=(0.3, 60.0, 0.0)[number % 3])

    def on_release(self, number: int) -> None:
        self.person("release")

    def on_reset(self, number: int) -> None:
        self.person("reset")

    def person(self, name: str, **fields: Any) -> None:
        if self.lives.node is not None:
            self.lives.call(name, **fields)
            self.let_go()

    def on_acknowledge(self, number: int) -> None:
        if self.lives.node is not None:
            self.unacknowledged = set()
            self.lives.call("acknowledge", requester="anna")
            self.unknown |= self.noticed == "may still be in force"  # now it is up to her
            self.noticed = ""

    def on_change(self, number: int) -> None:
        name = "halt" if self.file == "renamed" else "stop"
        if self.lives.node is not None:
            values = [Parameter(f"properties.{name}.act", value=(0.5, 0.9)[number % 2])]
            self.lives.node.set_parameters(values)

    def on_deactivate(self, number: int) -> None:
        node = self.lives.node
        if node is not None:
            self.let_go()
            assert node.trigger_deactivate() == TransitionCallbackReturn.SUCCESS
            self.lives.activate()

    def on_kill(self, number: int) -> None:
        if self.lives.node is not None:
            self.lives.kill()
            self.fails = False
            self.nav2.theirs = 0.0  # the next life cannot know of it

    def on_restart(self, number: int) -> None:
        """Another life, with the same file or another one, with its journal or without."""
        self.on_kill(0)
        file = [*FILES, "same", "same", "same"][number % (len(FILES) + 3)]
        journal = ("", "", "", "", "damaged", "absent")[number // 16 % 6]
        asked = limit_of(self.asked) < math.inf
        if self.noticed == "may still be in force" and file not in WITHOUT:
            self.noticed = ""  # it takes that back
        if journal:
            path = self.lives.journal
            if path.exists() and journal == "damaged":
                path.write_bytes(path.read_bytes()[:-9])
                self.noticed = "lost"
            else:
                path.unlink(missing_ok=True)
                self.noticed = ""
            self.unacknowledged, self.unknown = set(), True
            self.let_go()
        elif asked and self.file not in WITHOUT and file in WITHOUT:
            self.noticed = "may still be in force"
        gone = {"stop", "halt"} - {"halt" if file == "renamed" else "stop"}
        if not journal and asked and gone & self.acting.keys():
            self.noticed = "no such property"
        self.acting = {k: v for k, v in self.acting.items() if k not in gone}
        self.unacknowledged = {alert for alert in self.unacknowledged if alert[1] not in gone}
        self.weaker = True
        self.begin(file)

    def on_autoware(self, number: int) -> None:
        manner = ("accept", "refuse", "silent", "go", "come", "fail", "stop", "start")[number % 8]
        if manner in ("accept", "refuse", "silent"):
            self.autoware.manner = manner
        else:
            {
                "go": self.autoware.go,
                "come": self.autoware.come,
                "fail": self.autoware.fail,
                "stop": self.autoware.stop_handler,
                "start": self.autoware.start_handler,
            }[manner]()

    def on_nav2(self, number: int) -> None:
        manner = ("accept", "refuse", "silent", "go", "come", "send", "limit", "limit")[number % 8]
        if manner in ("accept", "refuse", "silent"):
            self.nav2.manner = manner
        elif manner == "limit":
            self.nav2.limit((0.0, 0.2, 0.8)[number // 8 % 3])
        else:
            {"go": self.nav2.go, "come": self.nav2.come, "send": self.nav2.send}[manner]()

    def on_gate(self, number: int) -> None:
        (self.gate.go, self.gate.come)[number % 2]()

    def on_apollo(self, number: int) -> None:
        manner = ("go", "come", "route", "connect", "disconnect")[number % 5]
        if manner in ("connect", "disconnect"):
            self.apollo.connected = manner == "connect"
        else:
            {"go": self.apollo.go, "come": self.apollo.come, "route": self.apollo.route}[manner]()

    def on_odd(self, number: int) -> None:
        """Have somebody ask for what nobody has heard of: he is not taken for less than a stop."""
        session = "" if self.asked is None else self.asked.session
        said = Intervention(action=ODD, active=True, id=number + 1, session=session)
        self.lives.board.publish("/monitor/output/intervention", said)
        assert not self.gate.there or self.gate.watchdog.demand(self.gate.now)[0].stops
        assert not self.apollo.well or self.apollo.stopped

    def on_hang(self, number: int) -> None:
        if self.lives.node is not None:
            self.lives.node.hangs = not self.lives.node.hangs

    def on_fail(self, number: int) -> None:
        node = self.lives.node
        if node is None or node.watch is None:
            return
        self.fails = not self.fails

        def fail(tick: int) -> Any:
            raise RuntimeError("it fails")

        if self.fails:
            node.watch.evaluate = fail  # type: ignore[method-assign]
        else:
            del node.watch.evaluate  # type: ignore[method-assign]

    # What must hold

    def step(self, seconds: float = 0.1) -> None:
        for end in self.ends:
            end.now = self.lives.now
        before, freed = limit_of(self.asked), (self.autoware.freed, self.nav2.freed)
        self.lives.step(seconds, **self.values)
        self.lives.board.deliver()
        if max(before, limit_of(self.asked)) < math.inf:
            assert freed == (self.autoware.freed, self.nav2.freed), "it is let go while it is held"
        assert not self.nav2.raised, "somebody's lower limit is raised"
        self.gate.advance(seconds)
        self.apollo.now = self.nav2.now = self.lives.now
        self.apollo.poll()
        self.check(seconds)

    def check(self, seconds: float) -> None:
        assert not self.wrong
        node, limit = self.lives.node, limit_of(self.asked)
        serves = node is not None and not node.hangs
        for end in self.ends:
            name = end.name
            weak = end.allowed > limit + 1e-3
            self.weak[name] = self.weak[name] + seconds if weak else 0.0
            self.well[name] = self.well[name] + seconds if end.well else 0.0
        if self.gate.there and self.lives.now - self.heard > GATE:
            assert self.gate.allowed == 0.0, "nobody speaks, and the robot drives"
        assert self.weak["twist"] < GATE, "the gate does not stop"
        if self.weak["apollo"] > PATIENCE and self.apollo.there:
            assert self.apollo.relay.remark
        assert min(self.weak["apollo"], self.well["apollo"]) < REPAIR
        if not serves or self.fails:
            self.weak |= dict.fromkeys(("autoware", "nav2"), 0.0)
        if not serves:
            return
        if self.fails:
            assert self.lives.level("node") == ERROR
            if self.file not in WITHOUT:
                assert self.lives.level("intervention") == ERROR
            return
        if self.noticed:
            assert self.lives.level("journal") == ERROR, self.noticed
        if self.file in WITHOUT:
            return
        for end in self.ends[:3]:
            if self.weak[end.name] > PATIENCE:
                assert self.lives.level(f"actuator {end.name}") == ERROR, end.name
            assert min(self.weak[end.name], self.well[end.name]) < REPAIR, end.name

    def calm_down(self) -> None:
        """Let everybody be there and well, and nothing be at risk: then nobody is held."""
        if self.lives.node is None or self.file != "same":
            self.on_restart(0)
        assert self.lives.node is not None
        self.lives.node.hangs = False
        if self.fails:
            self.on_fail(0)
        self.person("mute", duration=0.0)
        self.on_acknowledge(0)
        self.autoware.manner = self.nav2.manner = "accept"
        if self.autoware.state == 4 or not self.autoware.handles:
            self.autoware.start_handler()
        for end in self.ends:
            if not end.well or (self.unknown and end in (self.autoware, self.nav2)):
                end.come()  # a person takes back what nobody knows of
        self.apollo.connected = True
        self.apollo.route()
        self.on_values(2)
        self.nav2.limit(0.0)
        for _ in range(30):
            self.step(0.3)
        assert limit_of(self.asked) == math.inf
        self.nav2.send()
        self.step()
        for end in self.ends:
            assert end.allowed == math.inf, f"{end.name} is held"
        for name in ("intervention", "journal", "actuator autoware", "actuator nav2"):
            assert self.lives.level(name) == Severity.OK
