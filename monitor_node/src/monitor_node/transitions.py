"""Transitions of the life cycle that never end in a traceback."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any, Protocol

from rclpy.exceptions import InvalidParameterValueException
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from forewarn.errors import ForewarnError


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
