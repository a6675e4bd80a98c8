"""The surprise of a transition: how improbable it is by a model, and what was expected."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from forewarn.errors import ModelError

if TYPE_CHECKING:
    from forewarn.models.counts import CountModel
    from forewarn.wings.anomalies.transitions import Transition

What = Literal["outcome", "choice", "both", "state"]
WHATS: tuple[What, ...] = get_args(What)


class Row(NamedTuple):
    """Counts of what was seen in one context, and their sum."""

    counts: Mapping[Hashable, int]
    total: int


_NOTHING = Row({}, 0)


class Surprise(NamedTuple):
    """Negative logarithms of predicted probabilities, in nats; always finite.

    `choice`: of the action in the state, ``-log P(a | s)``; 0 where no action is known.
    `outcome`: of the state that followed, ``-log P(s' | s, a)``.
    `state`: of the same state wherever one comes from, ``-log P(s')``: how rare it is at large. A
        run may get by likely steps to where no run stays.
    """

    choice: float
    outcome: float
    state: float

    def of(self, statistic: What) -> float:
        """Return the surprise that counts."""
        if statistic == "both":
            return self.choice + self.outcome
        return float(getattr(self, statistic))


class Expected(NamedTuple):
    """What a model expected, and how probable that was.

    `part`: which part of the transition was the more surprising one.
    `likeliest` (tuple of (name, probability)): actions or states, the likeliest first.
    """

    part: What
    likeliest: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predictive probabilities of a model's counts, none of which is 0.

    They are interpolated Witten-Bell estimates (Witten and Bell, 1991, method C; Chen and
    Goodman, 1996, section 2.4): ``P(x | row) = (C(row, x) + T P'(x)) / (N + T)``, with N counts
    and T distinct values in the row. P' is the estimate with less context: of an outcome, from
    state and action to the state, to states at large, to equal shares of all known states and
    one new one; of a choice, from the state to actions at large, to equal shares likewise.

    `outcomes`: counts of states that followed, by (state, action).
    `moves`: the same by state: the chain's counts.
    `choices`: counts of actions by state, without those that Forewarn imposed.
    `digest`: SHA-256 of all that determines the probabilities.
    """

    model: CountModel
    outcomes: Mapping[tuple[int, str], Row]
    moves: Mapping[int, Row]
    choices: Mapping[int, Row]
    digest: str
    _arrivals: Row
    _actions: Row
    _known: dict[tuple[int, str | None, int], Surprise] = field(default_factory=dict)
    _likeliest: dict[tuple[What, int, str | None], tuple[tuple[str, float], ...]] = field(
        default_factory=dict
    )

    def surprise(self, transition: Transition) -> Surprise:
        """Return how surprising a transition is."""
        key = transition.state, transition.action, transition.following
        found = self._known.get(key)
        if found is None:
            state, action, following = key
            choice = 0.0 if not action else -math.log(self.choice_probability(state, action))
            outcome = -math.log(self.outcome_probability(state, action, following))
            rarity = -math.log(self.state_probability(following))
            found = self._known[key] = Surprise(choice, outcome, rarity)
        return found

    def state_probability(self, state: int) -> float:
        """Return ``P(s')``, the share of steps that lead to a state."""
        return _interpolated([self._arrivals], state, self.model.size)

    def outcome_probability(self, state: int, action: str | None, following: int) -> float:
        """Return ``P(s' | s, a)``, or ``P(s' | s)`` where no action is known."""
        rows = [self._arrivals, self.moves.get(state, _NOTHING)]
        if action:
            rows.append(self.outcomes.get((state, action), _NOTHING))
        return _interpolated(rows, following, self.model.size)

    def choice_probability(self, state: int, action: str) -> float:
        """Return ``P(a | s)``."""
        rows = [self._actions, self.choices.get(state, _NOTHING)]
        return _interpolated(rows, action, len(self._actions.counts))

    def likelihood(self, run: Iterable[Transition]) -> float:
        """Return the paper's likelihood of a run, ``sum log C(s, a, s') / C(s, a)``.

        Where no action is known it is the chain's. One transition that was never seen makes it
        minus infinity (TriCEGAR, appendix C, unsmoothed).
        """
        total = 0.0
        for one in run:
            if one.action and self.outcomes:
                row = self.outcomes.get((one.state, one.action), _NOTHING)
            else:
                row = self.moves.get(one.state, _NOTHING)
            if one.following not in row.counts:
                return -math.inf
            total += math.log(row.counts[one.following] / row.total)
        return total

    def expected(self, transition: Transition, statistic: What, most: int = 3) -> Expected:
        """Return what was likeliest where the more surprising part of a transition happened."""
        found = self.surprise(transition)
        state, action = transition.state, transition.action
        part = statistic
        if statistic == "both":
            part = "choice" if found.choice > found.outcome else "outcome"
        key = part, state, None if part == "choice" else action
        likeliest = self._likeliest.get(key)
        if likeliest is None or len(likeliest) < most:
            likeliest = self._likeliest[key] = self._find_likeliest(*key, most)
        return Expected(part, likeliest[:most])

    def _find_likeliest(
        self, part: What, state: int, action: str | None, most: int
    ) -> tuple[tuple[str, float], ...]:
        # Of what was never seen in the state, the likeliest is what is most frequent elsewhere.
        if part == "choice":
            seen, elsewhere = self.choices.get(state, _NOTHING), self._actions
        else:
            seen, elsewhere = self.moves.get(state, _NOTHING), self._arrivals
        values = {
            *seen.counts,
            *heapq.nlargest(most, elsewhere.counts, elsewhere.counts.__getitem__),
        }
        if part == "state":
            name = self.model.vocabulary.name
            chances = {
                name(code): self.state_probability(code) for code in values if isinstance(code, int)
            }
        elif part == "choice":
            chances = {str(a): self.choice_probability(state, str(a)) for a in values}
        else:
            values |= {*self.outcomes.get((state, action or ""), _NOTHING).counts}
            name = self.model.vocabulary.name
            chances = {
                name(code): self.outcome_probability(state, action, code)
                for code in values
                if isinstance(code, int)
            }
        return tuple(sorted(chances.items(), key=lambda pair: (-pair[1], pair[0]))[:most])


def _interpolated(rows: Iterable[Row], value: Hashable, known: int) -> float:
    """Return the Witten-Bell estimate from `rows`, the one with the least context first."""
    estimate = 1.0 / (known + 1)
    for row in rows:
        distinct = len(row.counts)
        if distinct:
            seen = row.counts.get(value, 0)
            estimate = (seen + distinct * estimate) / (row.total + distinct)
    return estimate


def predictor_of(model: CountModel, statistic: What) -> Predictor:
    """Return the predictive probabilities of a model.

    Raises ModelError if choices are asked for, and the model counts no actions.
    """
    outcomes: dict[tuple[int, str], Counter[Hashable]] = defaultdict(Counter)
    choices: dict[int, Counter[Hashable]] = defaultdict(Counter)
    for step, count in model.steps:
        outcomes[step.state, step.action][step.following] += count
        if not step.imposed:
            choices[step.state][step.action] += count
    if statistic in ("choice", "both") and not choices:
        raise ModelError(
            "the model counts no actions: no choice can be surprising",
            key="actions",
            accepted="--statistic outcome or state, or a model of recordings with actions",
        )
    moves: dict[int, Counter[Hashable]] = defaultdict(Counter)
    counts = model.counts.tocoo()
    for i, j, count in zip(
        counts.row.tolist(), counts.col.tolist(), counts.data.tolist(), strict=True
    ):
        if count:
            moves[model.states[i]][model.states[j]] += count
    arrivals: Counter[Hashable] = Counter()
    for row in moves.values():
        arrivals.update(row)
    actions: Counter[Hashable] = Counter()
    for row in choices.values():
        actions.update(row)
    digest = hashlib.sha256((model.seed + repr(model.steps)).encode()).hexdigest()
    return Predictor(
        model,
        {key: _row(row) for key, row in outcomes.items()},
        {state: _row(row) for state, row in moves.items()},
        {state: _row(row) for state, row in choices.items()},
        digest,
        _row(arrivals),
        _row(actions),
    )


def _row(counts: Mapping[Hashable, int]) -> Row:
    return Row(dict(counts), sum(counts.values()))
