"""From interventions to what planners understand: one module for each stack."""

from monitor_node.actuators.interface import Actuator, Demand
from monitor_node.actuators.loading import Actuators, check_messages, named

__all__ = ["Actuator", "Actuators", "Demand", "check_messages", "named"]
