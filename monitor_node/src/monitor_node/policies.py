"""Thresholds as parameters: declared with the monitor, checked before they are set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rcl_interfaces.msg import SetParametersResult
from rclpy.exceptions import InvalidParameterValueException
from rclpy.parameter import Parameter

from forewarn.errors import ConfigError, ForewarnError
from forewarn.monitoring.live_session import LiveSession, with_policies
from forewarn.monitoring.policy import needs_bounds
from monitor_node import parameters

if TYPE_CHECKING:
    from monitor_node.node import MonitorNode


class Policies:
    """The parameters ``properties.NAME.KEY`` of a node.

    `changed`: called with a property and its new values once they are in force.
    """

    def __init__(
        self, node: MonitorNode, changed: Callable[[str, Mapping[str, object]], None]
    ) -> None:
        self._node = node
        self._changed = changed
        self._names: list[str] = []
        self._is_posted = hasattr(node, "add_post_set_parameters_callback")  # not on Humble
        node.add_on_set_parameters_callback(self._check)
        if self._is_posted:
            node.add_post_set_parameters_callback(self._use)

    def declare(self, watch: LiveSession) -> None:
        """Declare the parameters of a monitor, and let those that a user has given prevail."""
        try:
            for name, section in watch.compiled.spec.properties.items():
                found = parameters.policy_parameters(name, section)
                self._names += [problem.name for problem in found]
                parameters.declare(self._node, found)
            given = parameters.policy_values(
                self._names, lambda name: self._node.get_parameter(name).value
            )
            for name, values in given.items():
                watch.set_policy(name, values)
        except (InvalidParameterValueException, ForewarnError) as error:
            self.clear()
            raise ConfigError(str(error)) from error

    def clear(self) -> None:
        """Take the parameters back."""
        for name in self._names:
            if self._node.has_parameter(name):
                self._node.undeclare_parameter(name)
        self._names = []

    def _check(self, given: list[Parameter]) -> SetParametersResult:
        refusals = (parameters.refuse(parameter.name, parameter.value) for parameter in given)
        refused = "; ".join(filter(None, refusals))
        if not refused and self._node.watch is not None:
            try:
                monitor = self._node.watch.monitor
                changed = with_policies(monitor, self._values(given))
                if needs_bounds(changed.spec) and not monitor.bounded:
                    refused = "risk_measure: upper needs bounds, and they are not computed yet"
                elif changed.spec.bounds.kind == "none" and any(
                    values.get("risk_measure") == "upper" for values in self._values(given).values()
                ):
                    refused = "risk_measure: upper needs bounds, and the monitor file has none"
            except ForewarnError as error:
                refused = " | ".join(str(error).splitlines())
        if not refused and not self._is_posted:
            self._use(given)
        return SetParametersResult(successful=not refused, reason=refused)

    def _use(self, given: list[Parameter]) -> None:
        if self._node.watch is None:
            return
        for name, values in self._values(given).items():
            self._node.watch.set_policy(name, values)
            self._changed(name, values)

    def _values(self, given: list[Parameter]) -> dict[str, dict[str, object]]:
        mine = {
            parameter.name: parameter.value for parameter in given if parameter.name in self._names
        }
        return parameters.policy_values(mine, mine.__getitem__)


def changed_policies(watch: LiveSession) -> Mapping[str, dict[str, object]]:
    """Return the policy values of each property that differ from the monitor file."""
    found: dict[str, dict[str, object]] = {}
    for name, section in watch.spec.properties.items():
        given = watch.compiled.spec.properties[name]
        changes = {
            key: value
            for now, then in ((section, given), (section.thresholds, given.thresholds))
            for key, value in now.model_dump(exclude={"thresholds"}).items()
            if getattr(then, key) != value
        }
        if changes:
            found[name] = changes
    return found
