"""Autoware: velocity limits, and requests for minimal-risk manoeuvres.

The selector of velocity limits keeps one entry per sender, without expiry, and the lowest wins; it
subscribes transient local. A limit of 0 means to stop, and one that is no number is taken for no
limit. A sender that it does not know must not be cleared (autoware_universe issue 11370). It
publishes the limit in force, volatile, whenever a limit or a clear arrives. The state of a
manoeuvre is published when it changes, and at no other time.
"""

from __future__ import annotations

import math
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from forewarn.config.actions import ACTIONS
from forewarn.config.actuators import AutowareSpec, Braking
from forewarn.monitoring.intervention import NOTHING, Intervention
from forewarn_ros.status import Severity, Status
from monitor_node.actuators.interface import PATIENCE, Confirmation
from monitor_node.message_types import interface_class

PACKAGE = "autoware_internal_planning_msgs"
LIMIT = f"{PACKAGE}/msg/VelocityLimit"
CLEAR = f"{PACKAGE}/msg/VelocityLimitClearCommand"
MRM_REQUEST = "autoware_adapi_v1_msgs/srv/SendMrmRequest"
MRM_STATE = "autoware_adapi_v1_msgs/msg/MrmState"
INTERFACES = (LIMIT, CLEAR, MRM_REQUEST, MRM_STATE)
LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TOLERANCE = 1e-3


class Autoware:
    """Both ways; a stop uses the limit, a minimal-risk manoeuvre or both, as the file says."""

    name = "autoware"

    def __init__(self, node: Node, spec: AutowareSpec) -> None:
        self._limit = _Limit(node, spec)
        self._manoeuvre = _Manoeuvre(node, spec)

    def demand(self, demand: Intervention, now: float) -> None:
        """Set or take back the limit and the manoeuvre."""
        self._manoeuvre.want(demand, now)
        self._limit.want(demand, now, drives=self._manoeuvre.works)

    def poll(self, now: float) -> None:
        """Repeat what was not confirmed; call the service when it appears."""
        self._limit.poll(now)
        self._manoeuvre.poll(now)

    def status(self, now: float) -> Status:
        """Report the worse of both."""
        found = [self._limit.status(now), self._manoeuvre.status(now)]
        worst = max(found, key=lambda status: status.level)
        values = {
            f"{part} {key}": value
            for part, status in zip(("limit", "manoeuvre"), found, strict=True)
            for key, value in status.values.items()
        }
        if worst.level == Severity.OK:
            text = "; ".join(
                remark.message for remark in found if remark.values["asked for"] != "nothing"
            )
            return worst._replace(message=text or worst.message, values=values)
        return worst._replace(values=values)

    def owes(self) -> bool:
        """Tell whether a limit or a request of ours is kept."""
        return self._limit.entry or self._manoeuvre.entry

    def resume(self) -> None:
        """Have both taken back, unless they are asked for again."""
        self._limit.entry = self._manoeuvre.entry = True

    def close(self) -> None:
        """Destroy publishers, subscriptions and the client."""
        self._limit.close()
        self._manoeuvre.close()


ACTUATOR = Autoware


class _Limit:
    """Our entry in the table of velocity limits."""

    def __init__(self, node: Node, spec: AutowareSpec) -> None:
        self._node, self._spec = node, spec
        self._limit_class, self._clear_class = interface_class(LIMIT), interface_class(CLEAR)
        self._limits = node.create_publisher(self._limit_class, spec.limit_topic, LATCHED)
        self._clears = node.create_publisher(self._clear_class, spec.clear_topic, LATCHED)
        self._readback = node.create_subscription(
            self._limit_class, spec.readback_topic, self._read, QoSProfile(depth=1)
        )
        self._wanted: Intervention = NOTHING
        self._before: Intervention = NOTHING
        self._confirmation = Confirmation(spec.confirm_timeout)
        self._in_force: Any = None
        self._sent = -math.inf
        self._now = 0.0
        self._left: float | None = None
        self._again = self._stays = False
        self.entry = False

    def want(self, demand: Intervention, now: float, *, drives: bool) -> None:
        """Send what has changed; `drives`: a manoeuvre is carried out that may need to move."""
        self._now = now
        # Pulling over needs to move: a limit of 0 would stop the vehicle in its lane. But the limit
        # stays while the manoeuvre is refused, and comes back when it fails.
        # What a former life has left stays, too.
        self._stays = ACTIONS[demand.action].drives_on and not drives
        if ACTIONS[demand.action].drives_on:
            stays = not drives or (self._before.limits and _speed(self._before))
            demand = self._before if stays else NOTHING
        else:
            demand = self._before = demand if demand.moves else NOTHING
        if demand.limits and not math.isfinite(demand.speed_limit):
            raise ValueError(f"speed limit {demand.speed_limit}: Autoware takes it for none")
        before, self._wanted = self._wanted, demand
        if demand.moves and demand._replace(id=before.id) != before:
            self._confirmation.ask(f"{demand.action}: at most {_speed(demand):g} m/s", now)
            self._set(now)
        elif not demand.moves and self.entry and not self._stays:
            self._clear(now)

    def poll(self, now: float) -> None:
        """Say it again while the table does not follow: every arrival is answered by a readback."""
        self._now = now
        if now - self._sent < self._confirmation.timeout / 3:
            return
        if self._wanted.moves and not self._confirmation.confirmed:
            self._set(now)
        elif self._again and not self._stays:
            self._clear(now)

    def _set(self, now: float) -> None:
        self._sent, self._left, self._again = now, None, False
        self.entry = True
        message = self._limit_class(
            stamp=self._node.get_clock().now().to_msg(),
            max_velocity=_speed(self._wanted),
            sender=self._spec.sender,
        )
        if self._wanted.stops:
            message.use_constraints = True
            _brake(message, self._spec.emergency if self._wanted.hard else self._spec.comfortable)
        self._limits.publish(message)
        self._judge(now)

    def _clear(self, now: float) -> None:
        self.entry = False
        self._sent, self._again = now, False
        if self._ours and self._left is None:
            self._left = now
        self._confirmation.ask("", now)
        self._clears.publish(
            self._clear_class(
                stamp=self._node.get_clock().now().to_msg(), command=True, sender=self._spec.sender
            )
        )

    def _read(self, message: Any) -> None:
        self._in_force = message
        self._judge(self._now)
        # A selector that started after us was sent our old, latched limit. But it may have read our
        # limit before our clear, and a second one would be for a sender that it does not know.
        self._again = self._ours and not self._wanted.moves and not self._stays
        if not self._again:
            self._left = None
        elif self._left is None:
            self._left = self._now

    @property
    def _ours(self) -> bool:
        """Tell whether the limit in force is ours, by Autoware's last report."""
        return self._in_force is not None and self._in_force.sender == self._spec.sender

    def _judge(self, now: float) -> None:
        if self._wanted.moves:
            met = (
                self._in_force is not None
                and self._in_force.max_velocity <= _speed(self._wanted) + TOLERANCE
            )
            self._confirmation.observe(met, now)

    def status(self, now: float) -> Status:
        problem = ""
        if not self._limits.get_subscription_count():
            problem = f"no node subscribes to {self._spec.limit_topic}"
        elif self._in_force is not None:
            problem = (
                f"{self._in_force.max_velocity:g} m/s by {self._in_force.sender!r} is in force"
            )
        else:
            problem = f"nothing came on {self._spec.readback_topic}"
        values = {"kept": self.entry}
        if self._in_force is not None:
            values["in force (m/s)"] = self._in_force.max_velocity
            values["in force by"] = self._in_force.sender
        status = self._confirmation.status("autoware", now, problem, **values)
        if (
            self._left is not None
            and now - self._left >= self._confirmation.timeout
            and self._clears.get_subscription_count()
        ):
            text = f"our limit was cleared, and is in force: {self._in_force.max_velocity:g} m/s"
            return status._replace(level=Severity.ERROR, message=text)
        return status

    def close(self) -> None:
        self._node.destroy_publisher(self._limits)
        self._node.destroy_publisher(self._clears)
        self._node.destroy_subscription(self._readback)


class _Manoeuvre:
    """Our request for a minimal-risk manoeuvre: kept per sender until CANCEL, without expiry."""

    def __init__(self, node: Node, spec: AutowareSpec) -> None:
        self._node, self._spec = node, spec
        self._service, self._state_class = interface_class(MRM_REQUEST), interface_class(MRM_STATE)
        self._client: Any = node.create_client(self._service, spec.mrm_service)
        # Latched, the last message from before our start arrives, too; volatile also matches
        # publishers that do not latch.
        self._states = [
            node.create_subscription(
                self._state_class,
                spec.mrm_state_topic,
                self._read,
                QoSProfile(depth=1, durability=durability),
            )
            for durability in (DurabilityPolicy.TRANSIENT_LOCAL, DurabilityPolicy.VOLATILE)
        ]
        self._confirmation = Confirmation(spec.confirm_timeout)
        self._wanted = False
        self._accepted = False
        self._call: Any = None
        self._asked = ""
        self._called = -math.inf
        self._state: Any = None
        self._problem = ""
        self._now = 0.0
        self.entry = False

    def want(self, demand: Intervention, now: float) -> None:
        self._now = now
        wanted = demand.action in self._spec.mrm_for
        if wanted != self._wanted:
            self._wanted, self._accepted = wanted, False
            self._problem, self._called = "", -math.inf
            self._confirmation.ask(f"manoeuvre for {demand.action}" if wanted else "", now)
        self.poll(now)

    @property
    def works(self) -> bool:
        """Tell whether the manoeuvre that is wanted was accepted, and has not failed."""
        return self._wanted and self._accepted and self._state != self._state_class.MRM_FAILED

    def poll(self, now: float) -> None:
        """Call the service if there is a new request that Autoware does not have yet."""
        self._now = now
        settled = self._wanted == self.entry and (self._accepted or not self._wanted)
        if settled and not self._is_forgotten(now):
            return
        if self._call is not None and now - self._called >= PATIENCE:
            self._client.remove_pending_request(self._call)
            self._call, self._problem = None, f"{self._asked}: no answer"
        if self._call is not None or now - self._called < self._confirmation.timeout / 2:
            return
        if not self._client.service_is_ready():
            self._problem = f"there is no service {self._spec.mrm_service}"
            return
        self._called = now
        request = self._service.Request()
        kind = type(request.request)
        request.request.sender = self._spec.sender
        self._asked = "DELEGATE" if self._wanted else "CANCEL"
        request.request.strategy = getattr(kind, self._asked)
        if self._wanted:
            self.entry = True  # whatever the answer, it may have been stored
        self._call = self._client.call_async(request)
        self._call.add_done_callback(self._answered)

    def _is_forgotten(self, now: float) -> bool:
        """Tell whether Autoware no longer knows of a request that it accepted: it has restarted."""
        normal = self._state == self._state_class.NORMAL
        return self._wanted and normal and self._confirmation.overdue(now)

    def _answered(self, future: Any) -> None:
        if future is not self._call:
            return
        self._call = None
        asked_on = self._asked == "DELEGATE"
        error = future.exception()
        if error is not None or future.result() is None:
            self._problem = f"{self._asked}: {error or 'no answer'}"
            return
        status = future.result().status
        if not status.success:
            self._problem = f"{self._asked} refused ({status.code}): {status.message}"
            self._accepted = False  # it may have been before, by an Autoware that has restarted
            return
        self._problem = ""
        self._accepted = asked_on
        self.entry = asked_on
        self._judge()
        self.poll(self._now)  # the opposite may be wanted by now

    def _read(self, message: Any) -> None:
        self._state = message.state
        self._judge()

    def _judge(self) -> None:
        if self._wanted:
            kind = self._state_class
            works = self._state in (kind.MRM_OPERATING, kind.MRM_SUCCEEDED)
            self._confirmation.observe(self._accepted and works, self._now)

    def status(self, now: float) -> Status:
        """Report; a request that cannot be taken back is an error as well."""
        kind = self._state_class
        problem = self._problem
        if not problem and self._wanted:
            problem = f"the state of the manoeuvre is {self._state_name()}"
        values = {"kept": self.entry, "state": self._state_name()}
        status = self._confirmation.status("autoware", now, problem, **values)
        if self._wanted and self._state == kind.MRM_FAILED:
            return status._replace(level=Severity.ERROR, message="the manoeuvre has FAILED")
        if not self._wanted and self.entry and self._problem:
            return status._replace(level=Severity.ERROR, message=self._problem)
        return status

    def _state_name(self) -> str:
        for name in ("NORMAL", "MRM_OPERATING", "MRM_SUCCEEDED", "MRM_FAILED"):
            if self._state == getattr(self._state_class, name):
                return name.removeprefix("MRM_")
        return "unknown"

    def close(self) -> None:
        self._node.destroy_client(self._client)
        for subscription in self._states:
            self._node.destroy_subscription(subscription)


def _speed(demand: Intervention) -> float:
    return max(0.0, demand.speed_limit) if demand.limits else 0.0


def _brake(message: Any, braking: Braking) -> None:
    message.constraints.min_acceleration = -braking.deceleration
    message.constraints.max_jerk = braking.jerk
    message.constraints.min_jerk = -braking.jerk
