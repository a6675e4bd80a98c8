"""A property's automaton as it runs live: it goes on after violations and between episodes.

If not all is known at a tick, several states are possible. Each of them is a branch, and branches
go on independently. A branch that violates the property starts again from ``delta(initial,
letter)``. It waits in the state `violated` while the letter alone is a violation already.

So a rule that stays broken is violated again and again, and a quantity that flickers about its
limit breaks the rule once for each flicker. Such violations are one breach, and count once, until
the breach has cleared:

- It lasts while the condition that broke the rule holds, and while an obligation is pending that
  would be violated if the present state went on.
- It has cleared as soon as a pending obligation is met; else after `clear` ticks in a row at which
  it is known not to last; and at once where an episode ends, and where the rule is not active.
- A tick at which this is not known leaves it as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forewarn.checking.interface import ENDED, label_states
from forewarn.monitoring.policy import Broken
from forewarn.monitoring.verdict import PropertyStatus
from forewarn.states.interface import StateSpace, terminal_code, terminal_index

if TYPE_CHECKING:
    from forewarn.logic.automaton import Automaton

#: What a letter does in a branch: nothing that matters, the end of an episode, a violation, or one
#: that lasts.
NOTHING, ENDS, BEGINS, LASTS = range(4)
IN_BREACH = frozenset({BEGINS, LASTS})


class Step(NamedTuple):
    """Where the branches of a property are after a tick."""

    branches: tuple[int, ...]
    # States of the automaton that they stand for: between episodes it is in its initial one
    automaton: tuple[int, ...]
    latched: bool  # The violation for which some of them wait has been counted
    # VIOLATED or ENDED if it is so in every branch, UNKNOWN if some are violated
    status: PropertyStatus
    violation: bool  # A violation is certain, and has not been counted yet
    possible: bool  # A violation begins in some branch, and none is counted


@dataclass(frozen=True, eq=False)
class LiveAutomaton:
    """The steps of a monitor that never stops.

    A letter is a class of the automaton or, from `terminals` on, a terminal label. A branch is a
    state of the automaton: `violated` waits for a letter that is no violation by itself. If the
    formula names a terminal label, there are two more that have read one and read no other before
    the next episode: `over`, and `broken`, which it violated and which is not counted yet.
    """

    letters: int  # Number of letters
    terminals: int  # Letter of the first terminal label
    # initial, over, broken: branches before an episode, and after a label; equal if none is named
    initial: int
    over: int
    broken: int
    violated: int  # The branch that waits; -1 if the property cannot be violated
    following: NDArray[np.int32]  # The next branch
    outcome: NDArray[np.uint8]  # NOTHING, ENDS, BEGINS or LASTS
    # Where one branch and one letter make the whole step, and nothing that matters happens
    calm: tuple[Step | None, ...]
    # What is certain in a branch in which nothing that matters has happened
    certain: tuple[PropertyStatus, ...]

    def letter(self, state: int) -> int:
        """Return the letter of a terminal state."""
        return self.terminals + terminal_index(state)


def live_automaton(automaton: Automaton, vocabulary: StateSpace) -> LiveAutomaton:
    """Return the live steps of a property's monitor."""
    codes = [terminal_code(i) for i in range(len(vocabulary.terminals))]
    labels = label_states(automaton, vocabulary, codes)
    n, width = automaton.transitions.shape
    initial = automaton.initial
    violated = -1 if automaton.violated is None else automaton.violated
    named = bool((labels != ENDED).any())
    over, broken = (n, n + 1) if named else (initial, initial)
    # A branch that waits, or is between episodes, reads a letter as if it were the first.
    branches = np.arange(n + 2 * named)
    waits = branches == violated
    source = np.where(waits | (branches >= n), initial, branches)
    following = np.full((branches.size, width + labels.size), initial, dtype=np.int32)
    outcome = np.full(following.shape, ENDS, dtype=np.uint8)
    plain = automaton.transitions[source]
    first = automaton.transitions[initial]
    following[:, :width] = np.where(plain == violated, first, plain)
    breach = np.where(waits[:, None], LASTS, BEGINS)
    outcome[:, :width] = np.where(plain == violated, breach, NOTHING)
    read = np.flatnonzero(labels != ENDED)
    violates = plain[:, labels[read]] == violated
    following[:, width + read] = np.where(violates, broken, over)
    outcome[:, width + read] = np.where(violates, breach, ENDS)
    following[n:, width:] = over
    following[n + 1 :, width + read] = np.where(violates[n + 1 :], broken, over)
    outcome[n:, width:] = ENDS
    certain = tuple(
        PropertyStatus.CANNOT_BE_VIOLATED
        if q == automaton.satisfied
        else PropertyStatus.SATISFIED_SO_FAR
        for q in range(n)
    )
    steps = [Step((q,), (q,), False, status, False, False) for q, status in enumerate(certain)]
    return LiveAutomaton(
        letters=width + labels.size,
        terminals=width,
        initial=initial,
        over=over,
        broken=broken,
        violated=violated,
        following=following,
        outcome=outcome,
        calm=tuple(
            None if kind else steps[branch]
            for branch, kind in zip(
                following.ravel().tolist(), outcome.ravel().tolist(), strict=True
            )
        ),
        certain=certain,
    )


def advance(
    live: LiveAutomaton, branches: tuple[int, ...], latched: bool, letters: tuple[int, ...]
) -> Step:
    """Let every branch read every letter that is possible at a tick.

    `letters`: what the tick may be.
    """
    if len(letters) == 1 and len(branches) == 1:
        step = live.calm[branches[0] * live.letters + letters[0]]
        if step is not None:
            return step
    after, outcomes = (
        table[list(branches)][:, list(letters)].ravel().tolist()
        for table in (live.following, live.outcome)
    )
    return _judged(live, latched, set(zip(after, outcomes, strict=True)))


def _judged(live: LiveAutomaton, latched: bool, reached: set[tuple[int, int]]) -> Step:
    outcomes = {outcome for _, outcome in reached}
    counted = latched and LASTS in outcomes
    held = {(live.broken, ENDS)} if live.broken != live.over else set()
    begins = not counted and {outcome for _, outcome in reached - held} <= IN_BREACH
    after = tuple(sorted({_counted(live, *one, begins, latched) for one in reached}))
    ended = live.over, live.broken
    automaton = tuple(sorted({live.initial if q in ended else q for q in after}))
    if begins:
        return Step(after, automaton, live.violated in after, PropertyStatus.VIOLATED, True, False)
    if outcomes <= IN_BREACH:
        status = PropertyStatus.VIOLATED
    elif outcomes & IN_BREACH:
        status = PropertyStatus.UNKNOWN
    elif outcomes == {ENDS}:
        status = PropertyStatus.ENDED
    else:
        status = live.certain[after[0]] if len(after) == 1 else PropertyStatus.SATISFIED_SO_FAR
    lasts = latched and (live.violated, LASTS) in reached
    return Step(after, automaton, lasts, status, False, BEGINS in outcomes)


def _counted(live: LiveAutomaton, branch: int, outcome: int, begins: bool, latched: bool) -> int:
    """Return a branch, `over` in place of `broken` where the violation has been counted."""
    counted = begins or (latched and outcome == LASTS)
    return live.over if branch == live.broken and counted else branch


class Breach(NamedTuple):
    """A breach that has begun and not cleared."""

    quiet: int  # Ticks since it was last seen to last, without those at which that is unknown
    terminal: bool  # A terminal label held at the last tick
    obliged: bool  # An obligation was pending at the last tick of which that is known


class Evidence(NamedTuple):
    """What one tick tells about a breach."""

    violation: bool
    ended: bool
    terminal: bool  # A terminal label holds, or the episode has ended
    unknown: bool  # The tick does not tell whether the breach lasts
    waits: bool  # The condition that broke the rule holds
    obliged: bool  # An obligation is pending that is violated if the present state goes on


class Followed(NamedTuple):
    """What is open after a tick, how broken the rule is, and whether its violation counts."""

    breach: Breach | None
    broken: Broken
    counted: bool


WHOLE = Followed(None, Broken.NO, False)


def follow(before: Breach | None, now: Evidence, clear: int) -> Followed:
    """Take in a tick.

    `clear`: ticks in a row without a breach after which it has cleared.
    """
    fresh = now.ended or (before is not None and before.terminal and not now.terminal)
    if now.violation:
        lasts = now.unknown or now.waits or now.obliged
        breach = Breach(0, now.terminal, now.obliged)
        counted = before is None or fresh
        return Followed(breach, Broken.LASTS if lasts else Broken.AT_ONCE, counted)
    if before is None or fresh:
        return WHOLE
    if now.unknown:
        broken = Broken.CLEARING if before.quiet else Broken.LASTS
        return Followed(before._replace(terminal=now.terminal), broken, False)
    if now.waits or (now.obliged and not before.quiet):
        return Followed(Breach(0, now.terminal, now.obliged), Broken.LASTS, False)
    quiet = before.quiet + 1
    if quiet >= clear or (before.obliged and not now.obliged):
        return WHOLE
    return Followed(Breach(quiet, now.terminal, now.obliged), Broken.CLEARING, False)
