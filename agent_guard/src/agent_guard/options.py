"""How a guard behaves where the monitor file does not say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from agent_guard.decisions import Decision, Replace
from forewarn.config.actions import ACTIONS, COMFORTABLE_STOP
from forewarn.errors import ConfigError


@dataclass(frozen=True)
class Options:
    """How a guard behaves where the monitor file does not say it.

    `on_failure`: what becomes of a call that could not be judged: ``block`` or ``pass``, with a
        message.
    `timeout`: seconds that a decision may take; None for no limit. A decision over few characters,
        and without `replace`, takes no thread of its own: what expressions do is bounded.
    `attempts`: how often a call is given back to the model, until the user speaks again.
    `then`: what is asked for beyond that: a stop, or ASK.
    `replace`: from a decision to the call that is made instead, for REPLACE; None gives it back.
    `classifiers`: signals that a function or model of yours gives: from the text of a tool's result
        to a number. The signal of that name is a list with a number for each result so far, NaN for
        one that was too long. A text is classified once. If a classifier raises, or gives no
        number, the call could not be judged; decisions say how long they waited for it.
    `on_decision`: called with every final decision. If it raises, the call could not be judged; one
        that was refused stays refused.
    """

    on_failure: Literal["block", "pass"] = "block"
    timeout: float | None = 1.0
    attempts: int = 3
    then: str = COMFORTABLE_STOP
    replace: Replace | None = None
    classifiers: Mapping[str, Callable[[str], float]] = field(default_factory=dict)
    on_decision: Callable[[Decision], None] | None = None

    def __post_init__(self) -> None:
        """Check the values; raises ConfigError."""
        harder = [n for n, a in ACTIONS.items() if a.agent in ("ask", "stop")]
        for key, value, fine, accepted in (
            ("on_failure", self.on_failure, self.on_failure in ("block", "pass"), "block, pass"),
            ("timeout", self.timeout, self.timeout is None or self.timeout > 0, "seconds, or None"),
            ("attempts", self.attempts, self.attempts >= 0, "0 and more"),
            ("then", self.then, self.then in harder, ", ".join(harder)),
        ):
            if not fine:
                raise ConfigError(f"{value!r}", key=key, accepted=accepted)
