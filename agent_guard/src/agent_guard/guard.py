"""The guard: a decision about each call of a tool before it is made. No framework is known here.

What a guard remembers of a run is a value, `RunState`, which `dump` turns into plain data. Deciding
changes nothing: the caller keeps the state that came of it, once the call was made or not.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_guard.classifiers import Classifiers
from agent_guard.deadline import Deadline
from agent_guard.decision_log import DecisionLog
from agent_guard.decisions import NOTHING, Decision, Proposal, describe, plain
from agent_guard.human_response import read_answer
from agent_guard.options import Options
from agent_guard.outcomes import GuardError, JudgedCall, RunState, Settled
from agent_guard.recent import Recent
from agent_guard.record import StepRecord
from forewarn.config.actions import ACTIONS, COMFORTABLE_STOP, REPLAN
from forewarn.errors import ForewarnError
from forewarn.files.chain import read_key
from forewarn.monitoring.loading import load_fitting
from forewarn.wings.agents.calls import Call
from forewarn.wings.agents.chats import split
from forewarn.wings.agents.proposals import Judge, Judgement, RuleState
from forewarn.wings.agents.steps import text_of_result
from forewarn.wings.agents.texts import says_failed, text_of

log = logging.getLogger("agent_guard")
SAY = "say"
"""The tool that stands for what an agent says to the user, as in recordings."""
MOST_ARGUMENTS = 10_000
FEW_CHARACTERS = 20_000
QUICK = (int, float, bool, type(None))


@dataclass(frozen=True)
class Guard:
    """Decides about calls; may be shared by all runs and threads of a process.

    `judge`: the rules; None if they cannot be loaded and `options.on_failure` is ``pass``.
    `options`: see there.
    `record`: where the steps are written.
    `decisions`: where decisions against calls are written, and those that could not be made.
    `failure`: why there are no rules.
    """

    judge: Judge | None
    options: Options = field(default_factory=Options)
    record: StepRecord | None = None
    decisions: DecisionLog | None = None
    failure: str = ""
    _deadline: Deadline = field(init=False, repr=False, compare=False)
    _classifiers: Classifiers = field(init=False, repr=False, compare=False)
    recent: Recent[RunState] = field(default_factory=Recent, init=False, repr=False, compare=False)

    @classmethod
    def open(
        cls,
        monitor: Path | str,
        model: Path | str | None = None,
        *,
        record: Path | str | None = None,
        decisions: Path | str | None = None,
        record_key: Path | str | None = None,
        **options: Any,
    ) -> Guard:
        """Return the guard of a monitor file.

        `monitor`: the monitor file, under ``clock: steps``.
        `model`: the model; by default that of the monitor file, if it names one.
        `record`: a trace that the steps are appended to, JSON lines.
        `decisions`: a file that each decision against a call is appended to, JSON lines: when,
            which call, what was done, the rule, what it wanted and got, and what decided.
        `record_key`: the file with the key of the chains of hashes of both.
        `**options`: see `Options`.

        Raises ForewarnError if file and model cannot be loaded or do not fit, unless calls pass
        ``on_failure``: then every decision says why nothing is judged.
        """
        chosen = Options(**options)
        key = read_key(record_key)
        written = None if record is None else StepRecord(record, key)
        try:
            given = None if model is None else Path(model)
            judge = Judge.of(*load_fitting(Path(monitor), given))
        except ForewarnError as error:
            if chosen.on_failure == "block":
                raise
            log.error("nothing is guarded: %s", error)
            return cls(None, chosen, written, DecisionLog.of(decisions, None, key), str(error))
        if judge.monitor.spec.mode != "act":
            log.warning("%s only observes: every call passes (mode: act would stop calls)", monitor)
        return cls(judge, chosen, written, DecisionLog.of(decisions, judge, key))

    def __post_init__(self) -> None:
        """Begin to watch the time."""
        object.__setattr__(self, "_deadline", Deadline(self.options.timeout))
        object.__setattr__(self, "_classifiers", Classifiers(self.options.classifiers))

    def start(self) -> RunState:
        """Return what is remembered of a run before its first call."""
        return RunState(None if self.judge is None else self.judge.start())

    def add_user_message(self, state: RunState, message: object) -> RunState:
        """Return the state after a message of the user: a text, or content blocks."""
        if state.standing is None:
            return state
        progress = state.standing.progress.with_user_message(text_of(split(message)[0]))
        return state._replace(standing=state.standing._replace(progress=progress))

    def heard(self, state: RunState, messages: Iterable[tuple[str, object]]) -> RunState:
        """Return the state after named messages of the user; known names change nothing."""
        for name, text in messages:
            if name not in state.heard:
                state = self.add_user_message(state, text)._replace(heard=(*state.heard, name))
        return state

    def decide(
        self, state: RunState, run: str, proposal: Proposal, context: Mapping[str, Any] = NOTHING
    ) -> JudgedCall:
        """Decide about a call, and change nothing.

        `state`: what is remembered of the run.
        `run`: its name.
        `context`: values of other signals that the monitor file names.
        """
        try:
            if self._is_quick(state, proposal):
                return self._decide(state, run, proposal, context)
            return self._deadline.run(self._decide, state, run, proposal, context)
        except Exception as error:
            return self.failed(state, run, proposal, error)

    def answered(
        self,
        state: RunState,
        result: object,
        failed: bool | None = None,
        call: int | None = None,
    ) -> RunState:
        """Return what is remembered once a call has been answered.

        `state`: what `decide` gave for a call that was made.
        `result`: what the tool returned.
        `failed`: whether the call failed; by default, if its result begins with "error".
        `call`: number of the call among those that were made; by default the first that comes after
            all that have been answered.
        """
        if state.standing is None:
            return state
        text = text_of_result(result)
        if failed is None:
            failed = says_failed(result)
        progress = state.standing.progress.answered(text, failed, call=call)
        return RunState(RuleState(progress, *state.standing[1:]), *state[1:])

    def close(
        self, state: RunState, run: str, context: Mapping[str, Any] = NOTHING
    ) -> JudgedCall | None:
        """Evaluate the step after the last call; None if that is not possible."""
        if self.judge is None or state.standing is None:
            return None
        try:
            known = self._classifiers.classify(state.standing.progress.outputs).values
            told = {**context, **known}
            found = self._deadline.run(self.judge.close, state.standing, run, told)
        except Exception as error:
            log.error("run %s: its end could not be judged: %s", plain(run, 80), _error_text(error))
            return None
        step = state.standing.progress.step
        decision = _decision(self.judge, run, step, Proposal("", {}), found)
        after = RunState(found.after, heard=state.heard)
        self.write(decision, found.values)
        return JudgedCall(decision, after, after, found.values)

    def settle(
        self,
        state: RunState,
        judged: JudgedCall,
        answer: object = None,
        context: Mapping[str, Any] = NOTHING,
    ) -> Settled:
        """Do what was decided, as far as it is a matter of the guard, and tell it.

        The caller records the step of the call it makes, by `write`.

        `state`: what was remembered when it was decided.
        `judged`: what `decide` gave.
        `answer`: what a person answered, where one was to be asked: see `answers.ACCEPTED`.
        `context`: as for `decide`.
        """
        settled = self._settled(state, judged, answer, context)
        decision = settled.decision
        if decision.failure or decision.rules or decision.unknown:
            notable = decision.active or decision.failure or decision.unknown
            level = logging.WARNING if notable else logging.INFO
            log.log(level, "%s", describe(decision, settled.call is not None))
            if self.decisions is not None:
                self.decisions.keep(settled)
        if self.options.on_decision is None:
            return settled
        try:
            self.options.on_decision(decision)
        except Exception as error:
            return self._untold(state, settled, error)
        return settled

    def _untold(self, state: RunState, settled: Settled, error: Exception) -> Settled:
        """Return what becomes of a call if `on_decision` failed; a refused one stays refused."""
        log.error(
            "run %s: `on_decision` failed: %s", plain(settled.decision.run, 80), _error_text(error)
        )
        if settled.call is None or self.options.on_failure == "pass":
            return settled
        decision = settled.decision
        judged = self.failed(state, decision.run, decision.proposal, error)
        return Settled(None, judged.refused, judged.decision.message, judged.decision)

    def write(self, decision: Decision, values: Mapping[str, Any]) -> None:
        """Record a step, if steps are recorded."""
        if self.record is not None and values:
            self.record.write(decision.run, decision.proposal.id, values, decision.account)

    def dump(self, state: RunState) -> dict[str, Any]:
        """Return what is remembered of a run as plain data that goes through JSON."""
        standing = None
        if self.judge is not None and state.standing is not None:
            standing = self.judge.dump(state.standing)
        data = {
            "standing": standing,
            "refused": state.refused,
            "stopped": state.stopped,
            "heard": list(state.heard),
        }
        self.recent.keep(data, state)
        return data

    def load(self, data: Mapping[str, Any]) -> RunState:
        """Return what `dump` was given.

        What belongs to other rules, or makes no sense, is a failure: calls are then blocked, or
        pass, as `options.on_failure` says.
        """
        known = self.recent.find(data)
        if known is not None:
            return known
        try:
            standing = data["standing"]
            if self.judge is not None and standing is not None:
                standing = self.judge.load(standing)
            return RunState(standing, data["refused"], data["stopped"], tuple(data["heard"]))
        except (ForewarnError, KeyError, TypeError, ValueError) as error:
            log.error("the memory of a run cannot be used: %s", _error_text(error))
            stopped = data.get("stopped") if isinstance(data, Mapping) else ""
            return RunState(None, stopped=stopped if isinstance(stopped, str) else "")

    def _settled(
        self, state: RunState, judged: JudgedCall, answer: object, context: Mapping[str, Any]
    ) -> Settled:
        decision = judged.decision
        match decision.does:
            case "pass" | "warn":
                return _made(judged, decision.proposal)
            case "replace":
                return _made(judged, decision.replacement)
            case "reflect" | "stop":
                return Settled(None, judged.refused, decision.message, decision)
            case "ask":
                found = read_answer(answer, decision.proposal)
                if found.kind == "approve":
                    return _made(judged, decision.proposal)
                if found.kind == "edit" and found.proposal is not None:
                    return self._edited(state, decision.run, found.proposal, context)
                message = f"{decision.message} A person was asked and refused. {found.message}"
                return Settled(None, judged.refused, message.strip(), decision)
        raise AssertionError(f"no case for {decision.does}")

    def _edited(
        self, state: RunState, run: str, proposal: Proposal, context: Mapping[str, Any]
    ) -> Settled:
        """Judge a call that a person has edited: what would be asked about has been answered."""
        judged = self.decide(state, run, proposal, context)
        decision = judged.decision
        if decision.passes or decision.does == "ask":
            return _made(judged, proposal)
        return Settled(None, judged.refused, decision.message, decision)

    def _is_quick(self, state: RunState, proposal: Proposal) -> bool:
        """Tell whether so little is to be looked at that it needs no watch (and no thread)."""
        if state.standing is None or self.options.replace is not None or self._classifiers:
            return False
        known, arguments = state.standing.progress, proposal.arguments
        inputs = itertools.chain.from_iterable(filter(None, known.inputs))
        texts = [text for text in (known.task, *known.outputs, *inputs) if text is not None]
        if isinstance(arguments, str):
            texts.append(arguments)
        else:
            for value in arguments.values():
                if isinstance(value, str):
                    texts.append(value)
                elif not isinstance(value, QUICK):
                    return False
        return len(texts) + sum(map(len, texts)) <= FEW_CHARACTERS

    def _decide(
        self, state: RunState, run: str, proposal: Proposal, context: Mapping[str, Any]
    ) -> JudgedCall:
        if self.judge is None or state.standing is None:
            raise GuardError(self.failure or "the run began without rules")
        known = state.standing.progress
        classified = self._classifiers.classify(known.outputs)
        context = {**context, **classified.values}
        found = self.judge.judge(state.standing, run, call_of(proposal), context)
        decision = _decision(self.judge, run, known.step, proposal, found)
        decision = decision._replace(waited=classified.seconds)
        if state.stopped:
            decision = _still_stopped(decision)
        elif decision.does == "replace":
            decision, found = self._replaced(state.standing, decision, found, context)
        decision = self._harder(decision, state)
        made = RunState(found.after, *state[1:])
        return JudgedCall(decision, made, _refused(state, decision), found.values)

    def _replaced(
        self, standing: RuleState, decision: Decision, found: Judgement, context: Mapping[str, Any]
    ) -> tuple[Decision, Judgement]:
        """Look for a call to make instead; where none passes, the model gets a message."""
        assert self.judge is not None
        other = None if self.options.replace is None else self.options.replace(decision)
        reason = f"{decision.reason}; no other call is known"
        if other is not None:
            call = call_of(other)
            instead = self.judge.judge(standing, decision.run, call, context, imposed=True)
            if not instead.active or ACTIONS[instead.action].agent == "warn":
                return decision._replace(
                    replacement=other._replace(id=decision.proposal.id)
                ), instead
            reason = f"{decision.reason}; {plain(other.tool, 80)} would not do: {instead.reason}"
        return decision._replace(action=REPLAN, reason=reason), found

    def _harder(self, decision: Decision, state: RunState) -> Decision:
        """Return the decision once the model was refused often enough."""
        if decision.does != "reflect":
            return decision
        attempt, attempts = state.refused + 1, self.options.attempts
        if attempt <= attempts:
            return decision._replace(attempt=attempt, attempts=attempts)
        reason = f"{decision.reason}; the model was refused {attempts} times"
        return decision._replace(action=self.options.then, reason=reason)

    def failed(self, state: RunState, run: str, proposal: Proposal, error: Exception) -> JudgedCall:
        """Return the decision that was chosen for calls that cannot be judged."""
        blocks = self.options.on_failure == "block"
        step = 0 if state.standing is None else state.standing.progress.step
        decision = Decision(
            run,
            step,
            proposal,
            action=REPLAN,
            active=blocks,
            failure=_error_text(error),
        )
        decision = _still_stopped(decision) if state.stopped else self._harder(decision, state)
        made = state
        if state.standing is not None:
            # Its step counts as one about which nothing is known.
            progress = state.standing.progress.made(str(proposal.tool), args=None)
            made = state._replace(standing=state.standing._replace(progress=progress))
        return JudgedCall(decision, made, _refused(state, decision), NOTHING)


def call_of(proposal: Proposal) -> Call:
    """Return a proposal as a call of a run; raises GuardError."""
    if not isinstance(proposal.tool, str) or not proposal.tool.strip():
        raise GuardError(f"{proposal.tool!r} names no tool", accepted="a text")
    try:
        call = Call.of(proposal.tool, proposal.arguments, strict=True)
    except ValueError as error:  # the caller may read it otherwise
        raise GuardError(
            f"the text of the arguments {error}",
            accepted="JSON in which no key comes twice; a text as {'input': ...}",
        ) from error
    if len(call.arguments) > MOST_ARGUMENTS:
        raise GuardError(f"{len(call.arguments)} arguments", accepted=f"up to {MOST_ARGUMENTS}")
    return call


def _decision(judge: Judge, run: str, step: int, proposal: Proposal, found: Judgement) -> Decision:
    rule = judge.monitor.spec.properties.get(found.property)
    return Decision(
        run,
        step,
        proposal,
        found.action,
        found.active,
        found.property,
        "" if rule is None else rule.description or rule.formula,
        found.properties,
        found.certain,
        found.unknown,
        found.risk,
        found.reason,
        found.evidence,
        found.recommendation,
    )


def _still_stopped(decision: Decision) -> Decision:
    return decision._replace(action=COMFORTABLE_STOP, active=True, reason="the run was stopped")


def _refused(state: RunState, decision: Decision) -> RunState:
    stopped = decision.message if decision.does == "stop" else state.stopped
    return RunState(state.standing, state.refused + 1, stopped, state.heard)


def _made(judged: JudgedCall, call: Proposal | None) -> Settled:
    return Settled(call, judged.made, "", judged.decision, judged.values)


def _error_text(error: BaseException) -> str:
    return plain(f"{type(error).__name__}: {error}", 500)
