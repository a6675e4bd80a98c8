"""A job beside the ticks: when one begins, and that there are never two."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait

from monitor_node.background import Recurring


class Jobs:
    """Jobs of a recurring one, each of which ends when it is told to."""

    def __init__(self, period: int) -> None:
        self.recurring: Recurring[int] = Recurring("job", period)
        self.begun: list[int] = []
        self.ended: list[threading.Event] = []
        self.idle = False

    def after(self, tick: int) -> Future[int] | None:
        def work():
            if self.idle:
                return None
            number, end = len(self.begun), threading.Event()
            self.begun.append(tick)
            self.ended.append(end)
            return lambda: number if end.wait(60.0) else -1

        return self.recurring.after(tick, work)

    def end(self, tick: int) -> int:
        """End the job that is under way, and return what the next tick that sees it is given."""
        self.ended[-1].set()
        running = self.recurring._running
        assert running is not None
        wait([running], 60.0)
        found = self.after(tick)
        assert found is running
        return found.result()


def test_it_begins_each_period_and_never_beside_another():
    jobs = Jobs(10)
    assert [jobs.after(tick) for tick in range(100, 135)] == [None] * 35
    assert jobs.begun == [110], "the others were due, and it was not over"
    assert jobs.end(135) == 0
    assert jobs.after(136) is None and jobs.begun == [110]
    assert [jobs.after(tick) for tick in range(137, 150)] == [None] * 13
    assert jobs.begun == [110, 146], "a period after the tick that found it overdue"
    assert jobs.end(150) == 1


def test_ticks_that_go_back_begin_a_new_period():
    jobs = Jobs(10)
    for tick in (500, 505, 3, 12):
        jobs.after(tick)
    assert jobs.begun == []
    jobs.after(13)
    assert jobs.begun == [13]
    jobs.end(14)


def test_with_nothing_to_do_nothing_begins_and_what_is_forgotten_is_for_nobody():
    jobs = Jobs(10)
    jobs.idle = True
    for tick in range(11):
        jobs.after(tick)
    assert jobs.begun == []
    jobs.idle = False
    for tick in range(11, 22):
        jobs.after(tick)
    assert jobs.begun == [21]
    jobs.recurring.forget()
    jobs.ended[-1].set()
    assert jobs.after(22) is None
