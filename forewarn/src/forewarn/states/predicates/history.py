"""States that remember the tick before: for chains whose next state depends on more than one."""

from __future__ import annotations

from forewarn.states.predicates.abstraction import Abstraction, Observation


def with_history(
    abstraction: Abstraction, previous: Observation | None, current: Observation
) -> Observation:
    """Return `current` with the predicate values of the tick before in its upper bits.

    Parameters
    ----------
    abstraction : Abstraction
        Without ``history: 2`` it leaves `current` as it is.
    previous : Observation or None
        What the tick before gave, without its own history. At the start of a run, and after a
        terminal label or an inactive phase, there is none: the present values stand in.
    current : Observation
        What this tick gives.
    """
    if not abstraction.remembers or (current.state is not None and current.state < 0):
        return current
    begins = previous is None or previous.active is False
    if begins or (previous is not None and previous.state is not None and previous.state < 0):
        previous = current
    assert previous is not None
    width = len(abstraction.predicates)
    # Where a terminal label may have held, the predicates of that tick say nothing.
    before = 0 if previous.open_terminals and previous is not current else previous.known
    known = current.known | before << width
    mask = (current.mask & current.known) | (previous.mask & before) << width
    complete = known == (1 << 2 * width) - 1 and not current.open_terminals
    return current._replace(state=mask if complete else None, known=known, mask=mask)
