"""What a decision of the guard costs, with `config/guard/ready.yaml`, and what a run keeps.

An agent reads mails and pages of a shop (results of 200 to 4,000 characters), buys, and writes
mails: 40 calls a run. A decision is the question before a call and the note of its result, in
processor time of the thread; each run has texts of its own, so that none is remembered. The
frameworks' own middleware comes beside it: `evaluation.guard.latency` measures that.
"""

from __future__ import annotations

import logging
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_guard import Guard, GuardedRun
from benchmarks._harness import Table, Target, quantile, run

READY = Path(__file__).resolve().parents[1] / "config" / "guard" / "ready.yaml"
CALLS = 40
TASK = "Please read my mails from Ann, buy the lamp that she likes, and write her its price."
MAIL = (
    "- sender: ann{0}@example.org\n  subject: Lamp {0}\n  body: 'Hi, I saw a lamp on "
    "www.lamps{0}.com. Number P{0} is nice, and not too dear. See you on Monday, Ann'\n"
)


def calls(number: int) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the calls of one run with their results."""
    for at in range(number, number + CALLS // 4):
        mails = "".join(MAIL.format(at + each) for each in range(1 + at % 20))
        price = f"{{'lamp {at}': {{'product_id': 'P{at}', 'price': {at % 90}.5}}}}"
        text = f"The lamp {at} that you like costs {at % 90}.50, dear Ann."
        yield "read_mails", {"folder": "inbox", "page": at}, mails
        yield "search_products", {"name": "lamp"}, price
        yield "add_to_cart", {"product_id": f"P{at}", "quantity": 1}, f"P{at} is in the cart."
        yield "send_mail", {"to": "ann@example.org", "body": text}, "The mail was sent."


def decisions(guard: Guard, number: int, times: list[float]) -> GuardedRun:
    """Add the microseconds of each decision of a run."""
    guarded = GuardedRun(guard, f"run {number}", TASK, ask=lambda question: True)
    for tool, arguments, result in calls(number):
        begin = time.thread_time_ns()
        if guarded.before(tool, arguments).call is not None:
            guarded.after(result)
        times.append((time.thread_time_ns() - begin) / 1e3)
    return guarded


def kept(guard: Guard, runs: int) -> float:
    """Return the KB that runs keep on average once they are over, texts included."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        held = [decisions(guard, 10_000 + number, []) for number in range(runs)]
        return (tracemalloc.get_traced_memory()[0] - before) / len(held) / 1024
    finally:
        tracemalloc.stop()


def measure(runs: int = 50) -> list[Table]:
    """Measure decisions, and memory."""
    logging.getLogger("agent_guard").setLevel(logging.ERROR)
    guard, times = Guard.open(READY), list[float]()
    decisions(guard, 0, [])
    for number in range(runs):
        decisions(guard, 100 * (number + 1), times)
    rows = [
        ("decision, config/guard/ready.yaml: p50", "us", quantile(times, 0.5), Target(200.0)),
        ("decision, config/guard/ready.yaml: p99", "us", quantile(times, 0.99), Target(1000.0)),
        (f"what a run of {CALLS} calls keeps, with its texts", "KB", kept(guard, runs), None),
    ]
    return [Table(("What", "Unit", "Figure", "Target"), rows)]


if __name__ == "__main__":
    sys.exit(run(measure))
