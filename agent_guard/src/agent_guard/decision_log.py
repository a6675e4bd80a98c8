"""Decisions against calls, as lines of JSON: a refused call is no step, so no record has it."""

from __future__ import annotations

import hashlib
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

from agent_guard.outcomes import Settled
from agent_guard.record import ChainedLines
from forewarn.wings.agents.proposals import Judge


class DecisionLog:
    """Appends decisions to a file, each with what decided.

    `path`: the file; what is in it stays. Its chain of hashes is beside it.
    `judge`: the rules; None if they could not be loaded.
    `key`: what the chain is keyed with.
    """

    def __init__(self, path: Path | str, judge: Judge | None, key: bytes | None = None) -> None:
        self._lines = ChainedLines(path, key)
        self._formulas: dict[str, str] = {}
        self._versions = {"version": version("forewarn")}
        if judge is not None:
            spec, model = judge.monitor.spec, judge.monitor.model
            self._formulas = {name: rule.formula for name, rule in spec.properties.items()}
            self._versions["rules"] = hashlib.sha256(spec.model_dump_json().encode()).hexdigest()
            self._versions["model"] = "" if model is None else model.digest

    @classmethod
    def of(
        cls, path: Path | str | None, judge: Judge | None, key: bytes | None
    ) -> DecisionLog | None:
        """Return the log, or None where no file is given."""
        return None if path is None else cls(path, judge, key)

    def keep(self, settled: Settled) -> None:
        """Append what became of a call."""
        decision = settled.decision
        self._lines.append(
            {
                "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                "run": decision.run,
                "step": decision.step,
                "call": decision.proposal.id,
                "tool": decision.proposal.tool,
                "arguments": decision.proposal.arguments,
                "made": None if settled.call is None else settled.call.tool,
                "reason": decision.account,
                "action": decision.action,
                "rule": decision.rule,
                "wanted": self._formulas.get(decision.rule, ""),
                "got": list(decision.evidence),
                **self._versions,
                "failure": decision.failure,
            }
        )
