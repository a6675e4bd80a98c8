"""Lifecycle nodes: transitions that never end in a traceback, and the life of their process."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from rclpy.exceptions import InvalidParameterValueException
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from forewarn.errors import ForewarnError
from forewarn_ros.process import Interrupt, spin


class Transitioning(Protocol):
    """What is needed of a node: where to keep the problem, and how to clear up after it."""

    problem: str

    def undo(self, transition: str) -> None:
        """Take back what a transition that failed has left behind."""

    def get_logger(self) -> Any:
        """Return the logger."""


Transition = Callable[..., TransitionCallbackReturn]


def reported(transition: Transition) -> Transition:
    """Turn errors of a transition into one line of log, a diagnostic and a return code."""

    @functools.wraps(transition)
    def guarded(node: Transitioning, state: LifecycleState) -> TransitionCallbackReturn:
        node.problem = ""
        try:
            return transition(node, state)
        except (ForewarnError, InvalidParameterValueException) as error:
            node.problem = " | ".join(str(error).splitlines())
            code = TransitionCallbackReturn.FAILURE
        except Exception as error:
            node.problem = f"{transition.__name__}: {type(error).__name__}: {error}"
            node.get_logger().debug(traceback.format_exc())
            code = TransitionCallbackReturn.ERROR
        node.get_logger().error(node.problem)
        node.undo(transition.__name__)
        return code

    return guarded


def serve(node: Any, executor: Any, interrupt: Interrupt) -> None:
    """Serve a node until there is a signal, then let it `finish` and destroy it.

    It is configured and activated first if its parameter `autostart` says so.
    """
    try:
        if node.get_parameter("autostart").value:
            with interrupt.raising():  # what a file asks for may take long to compute
                configured = node.trigger_configure() == TransitionCallbackReturn.SUCCESS
            if configured and not interrupt.told:
                node.trigger_activate()
        spin(executor, interrupt)
    finally:
        node.finish()
        # A service that still awaits its thread would be waited for on Humble, for ever.
        executor.shutdown(timeout_sec=0)
        node.destroy_node()
