"""The section `actuators` of the monitor file: through which interfaces a node intervenes.

Only names and numbers; what is done with them lies in `monitor_node`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, model_validator

from forewarn.config.actions import Stop
from forewarn.config.fields import Finite, Positive, Section, default, with_others
from forewarn.config.signals import Expr
from forewarn.registry import ACTUATOR_SECTIONS

TOPIC = re.compile(r"/?([A-Za-z_][A-Za-z0-9_]*)(/[A-Za-z_][A-Za-z0-9_]*)*\Z")


def _name(value: str) -> str:
    if not TOPIC.match(value) or "__" in value:
        raise ValueError(f"{value!r} is no ROS name (accepted: /planning/limit)")
    return value


def _global_name(value: str) -> str:
    if not _name(value).startswith("/"):
        raise ValueError(f"{value!r} is no full name of a node (accepted: /monitor)")
    return value


Name = Annotated[str, AfterValidator(_name)]
NodeName = Annotated[str, AfterValidator(_global_name)]
Wait = Annotated[Positive, Field(le=60)]
Means = Literal["cancel", "lock"]


HELD_PERIODS = 5
"""For so many of its periods the gate reckons with an output that is let out of a stop."""


class Braking(Section):
    """How hard to brake.

    Attributes
    ----------
    deceleration : float
        m/s^2, positive.
    jerk : float
        m/s^3, positive.
    """

    deceleration: Annotated[Positive, Field(le=15)]
    jerk: Annotated[Positive, Field(le=100)]


class AutowareSpec(Section):
    """Autoware: velocity limits and requests for minimal-risk manoeuvres.

    Attributes
    ----------
    sender : str
        Name under which Autoware keeps limits and requests.
    limit_topic, clear_topic, readback_topic : str
        Topics of a limit (VelocityLimit), of its withdrawal (VelocityLimitClearCommand), and of the
        limit in force (VelocityLimit).
    mrm_service, mrm_state_topic : str
        Service of the AD API that requests a minimal-risk manoeuvre, and topic of its state
        (MrmState).
    mrm_for : tuple of str
        Actions for which a minimal-risk manoeuvre is requested.
    comfortable, emergency : Braking
        How hard a stop brakes: ``{deceleration: m/s^2, jerk: m/s^3}``.
    confirm_timeout : float
        Seconds after which a request that is not reported back is an ERROR.
    diagnostic_graph : bool
        Whether a unit of Autoware's diagnostic graph takes the mode away when the monitor falls
        silent. Without it and without a gate nothing happens then.
    """

    sender: Annotated[str, Field(min_length=1)] = "forewarn"
    limit_topic: Name = "/planning/scenario_planning/max_velocity_candidates"
    clear_topic: Name = "/planning/scenario_planning/clear_velocity_limit"
    readback_topic: Name = "/planning/scenario_planning/max_velocity"
    mrm_service: Name = "/api/fail_safe/mrm_request/send"
    mrm_state_topic: Name = "/api/fail_safe/mrm_state"
    mrm_for: tuple[Stop, ...] = ("EMERGENCY_STOP", "PULL_OVER")
    comfortable: Braking = default(Braking, deceleration=1.0, jerk=0.6)
    emergency: Braking = default(Braking, deceleration=2.5, jerk=1.5)
    confirm_timeout: Wait = 1.0
    diagnostic_graph: bool = False

    @model_validator(mode="after")
    def _names_of_others(self) -> AutowareSpec:
        if self.sender == "api":
            raise ValueError("sender 'api' is Autoware's own: choose another name")
        return self


class Nav2Spec(Section):
    """Nav2: speed limit, cancelled goals, a lock of twist_mux.

    Attributes
    ----------
    speed_limit_topic : str
        Topic from which the controller server takes its limit (SpeedLimit).
    max_speed : float or None
        Greatest speed of the controller in m/s: 100 % where another node limits it in percent.
        Where not given, such a limit is replaced by ours: an ERROR.
    actions : tuple of str
        Actions whose goals are cancelled to stop.
    lock_topic : str or None
        Topic of a lock of twist_mux (Bool). Without a lock, a bond or a gate nothing happens when
        the monitor dies.
    comfortable_stop, emergency_stop : tuple of str
        How to stop: ``cancel``, ``lock`` or both.
    confirm_timeout : float
        Seconds after which a request that is not taken up is an ERROR.
    """

    speed_limit_topic: Name = "/speed_limit"
    max_speed: Positive | None = None
    actions: Annotated[tuple[Name, ...], Field(min_length=1)] = ("/navigate_to_pose",)
    lock_topic: Name | None = None
    comfortable_stop: Annotated[tuple[Means, ...], Field(min_length=1)] = ("cancel",)
    emergency_stop: Annotated[tuple[Means, ...], Field(min_length=1)] = ("cancel",)
    confirm_timeout: Wait = 1.0

    @model_validator(mode="after")
    def _lock(self) -> Nav2Spec:
        if "lock" in self.comfortable_stop + self.emergency_stop and self.lock_topic is None:
            raise ValueError("a stop by 'lock' needs lock_topic: the topic of a lock of twist_mux")
        return self


class Ways(NamedTuple):
    """Ways in which a stopped robot may move: true for those that are clear, or that there are.

    Attributes
    ----------
    reverse : bool
        Backwards.
    turn : bool
        In place.
    """

    reverse: bool = False
    turn: bool = False

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return self.reverse or self.turn


NO_WAY = Ways()


class ReverseSpec(Section):
    """How a stopped robot may back away.

    Attributes
    ----------
    when : str
        Whether this way is clear; each signal in it needs a ``timeout`` of at most 1 s, no
        ``default``, no ``stale: hold`` and no memory.
    speed : float
        Greatest speed backwards, in m/s, at most `max_speed`.
    """

    when: Expr
    speed: Annotated[Positive, Field(le=1)]


class TurnSpec(Section):
    """How a stopped robot may turn in place.

    Attributes
    ----------
    when : str
        As for `reverse`; or ``"true"``, for a robot that may turn anywhere: a round one.
    speed : float
        Greatest turn rate in place, in rad/s, at most `max_turn`.
    """

    when: Expr
    speed: Annotated[Positive, Field(le=2)]


class EscapeSpec(Section):
    """How a robot that the gate has stopped may turn in place or back away.

    Attributes
    ----------
    reverse, turn : ReverseSpec or None, TurnSpec or None
        When it may back away, and when it may turn in place, `{when, speed}` each; not without. One
        of them is needed.
    distance, time : float
        Metres backwards, and seconds of motion, in one stop.
    renewed_after : float
        Seconds without a stop after which the next one has `distance` and `time` again.
    """

    reverse: ReverseSpec | None = None
    turn: TurnSpec | None = None
    distance: Annotated[Positive, Field(le=5)] = 0.5
    time: Wait = 10.0
    renewed_after: Annotated[Finite, Field(ge=1, le=60)] = 5.0

    @model_validator(mode="before")
    @classmethod
    def _one_for_each_way(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        speeds = {
            way: value[way] for way in Ways._fields if isinstance(value.get(way), int | float)
        }
        if "when" in value or speeds:
            when = value.get("when", "...")
            ways = (f'{way}: {{when: "{when}", speed: {speed:g}}}' for way, speed in speeds.items())
            accepted = ", ".join(ways) or f'reverse: {{when: "{when}", speed: 0.1}}'
            raise ValueError(f"each way has its own 'when' and 'speed' (accepted: {accepted})")
        return value

    @model_validator(mode="after")
    def _moves(self) -> EscapeSpec:
        if self.reverse is None and self.turn is None:
            raise ValueError("neither reverse nor turn is given: nothing would move")
        return self

    @property
    def conditions(self) -> dict[str, str]:
        """Return the expression of each way that is given."""
        ways = {"reverse": self.reverse, "turn": self.turn}
        return {name: way.when for name, way in ways.items() if way is not None}

    @property
    def greatest(self) -> tuple[float, float]:
        """Return the greatest speed backwards and the greatest turn rate; 0 for none."""
        reverse, turn = self.reverse, self.turn
        return (
            0.0 if reverse is None else reverse.speed,
            0.0 if turn is None else turn.speed,
        )


class TwistSpec(Section):
    """The gate between two topics of velocity commands, a process of its own.

    Attributes
    ----------
    input, output : str
        Topics of the velocity commands before and behind the gate.
    max_speed, max_turn : float
        Greatest speed, in m/s, and turn rate, in rad/s. Commands beyond them are scaled down, as a
        whole.
    odometry : str or None
        Topic of a nav_msgs/msg/Odometry: a stop begins at the measured speed where that is lower
        than what was let through last.
    comfortable_deadline, emergency_deadline : float or None
        Seconds after which a stop has ended. Where not given: as long as it takes from
        ``max_speed`` and ``max_turn``.
    stamped : bool
        Whether commands are TwistStamped, not Twist.
    monitor, gate : str
        Full names of the two nodes.
    base : str or None
        Full name of the node that drives the base: an ERROR while it does not subscribe to
        ``output``. Where not given: any subscriber.
    comfortable_deceleration, comfortable_angular_deceleration : float
        How hard a comfortable stop brakes, in m/s^2 and rad/s^2.
    emergency_deceleration, emergency_angular_deceleration : float
        How hard an emergency stop brakes, in m/s^2 and rad/s^2.
    acceleration, angular_acceleration : float
        Greatest increase once an intervention is over, in m/s^2 and rad/s^2.
    rate : float
        Commands per second while the gate itself drives.
    command_timeout : float
        Seconds without a command after which the output is brought to rest; a measured speed that
        is older counts no more.
    monitor_timeout : float or None
        Seconds without a sign of the monitor after which the robot is stopped. Where not given:
        five periods of the monitor, at least 0.2 s.
    deadline : float or None
        Seconds after which a verdict is too old and the robot is stopped; clocks of two computers
        have to differ by less. Where not given: two periods of the monitor, or ``monitor_timeout``
        under ``clock: steps``. ``settle`` is added.
    confirm_timeout : float
        Seconds after which a request that the gate does not take up is an ERROR.
    escape : EscapeSpec or None
        How a robot that is stopped may move out of its place; not under ``clock: steps``.
    """

    input: Name
    output: Name
    max_speed: Positive
    max_turn: Positive
    odometry: Name | None = None
    comfortable_deadline: Wait | None = None
    emergency_deadline: Wait | None = None
    stamped: bool = False
    monitor: NodeName = "/monitor"
    gate: NodeName = "/twist_gate"
    base: NodeName | None = None
    comfortable_deceleration: Positive = 0.5
    comfortable_angular_deceleration: Positive = 1.0
    emergency_deceleration: Positive = 2.5
    emergency_angular_deceleration: Positive = 5.0
    acceleration: Positive = 0.5
    angular_acceleration: Positive = 1.0
    rate: Annotated[Finite, Field(ge=5, le=200)] = 30.0
    command_timeout: Wait = 0.5
    monitor_timeout: Wait | None = None
    deadline: Wait | None = None
    confirm_timeout: Wait = 1.0
    escape: EscapeSpec | None = None

    @model_validator(mode="after")
    def _slow_escape(self) -> TwistSpec:
        if self.escape is None:
            return self
        bounds = ("max_speed", self.max_speed), ("max_turn", self.max_turn)
        for key, asked, (most, bound) in zip(
            Ways._fields, self.escape.greatest, bounds, strict=True
        ):
            if asked > bound:
                raise ValueError(
                    f"escape.{key}.speed is {asked:g} (accepted: at most {most}, {bound:g})"
                )
        held, escape = HELD_PERIODS / self.rate, self.escape
        for key, least in (("distance", escape.greatest[0] * held), ("time", held)):
            if getattr(escape, key) < 2 * least:
                raise ValueError(
                    f"escape.{key} is {getattr(escape, key):g}: nothing would pass at a rate "
                    f"of {self.rate:g} (accepted: at least {2 * least:g})"
                )
        return self

    @model_validator(mode="after")
    def _two_topics(self) -> TwistSpec:
        if self.input == self.output:
            raise ValueError(f"input and output are both {self.input}: the gate has to lie between")
        return self


class ActuatorsSpec(Section):
    """The interfaces through which the node intervenes; none unless named.

    Attributes
    ----------
    autoware, nav2, twist : AutowareSpec, Nav2Spec, TwistSpec or None
        One section for each.
    others : mapping of str to Section
        Those that other packages add, as entry points of ``forewarn.actuator_sections``. Their keys
        stand beside `twist` in the file.
    """

    autoware: AutowareSpec | None = None
    nav2: Nav2Spec | None = None
    twist: TwistSpec | None = None
    others: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _of_others(cls, given: Any) -> Any:
        return with_others(cls, given, ACTUATOR_SECTIONS)

    @model_validator(mode="after")
    def _named_means_meant(self) -> ActuatorsSpec:
        for name in sorted(self.model_fields_set):
            if getattr(self, name) is None:
                raise ValueError(f"{name} is empty: write {name}: {{}} for its defaults")
        return self
