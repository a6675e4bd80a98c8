"""The loop of all fuzzing: time, a limit for each input, and a limit of memory.

``FOREWARN_FUZZ_SECONDS`` says how long each target runs, with other inputs each time; the seed is
printed. Without it there is one round, with the same inputs each time.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from extent import examples
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parent))

SECONDS = float(os.environ.get("FOREWARN_FUZZ_SECONDS", "0"))
PER_INPUT = 10.0 if SECONDS else 60.0
"""Processor seconds that one input may take: a small machine may run the suite, not the search."""
MEMORY = 2 << 30
"""Bytes of address space that all of it may take, beyond what the process has at the start."""
INPUTS_A_ROUND = examples(100)


class HangError(BaseException):
    """An input took too long: no ``except Exception`` may swallow it."""


def _alarm(*_: object) -> None:
    raise HangError(f"more than {PER_INPUT:g} s of processor time for one input")


@contextmanager
def _limited_memory() -> Iterator[None]:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def _limited_time() -> Iterator[None]:
    # Of the processor's time, so that a busy machine makes no difference.
    before = signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, PER_INPUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def fuzz(strategy: st.SearchStrategy[Any], check: Callable[[Any], None]) -> None:
    """Check inputs until the time is up; hypothesis makes a failing one small and shows it."""
    inputs = 0

    def guarded(value: Any) -> None:
        nonlocal inputs
        inputs += 1
        try:
            with _limited_time():
                check(value)
        except HangError:  # hypothesis shows no input for what is no Exception
            print(f"hangs: {value!r}")
            raise

    first = random.randrange(1 << 30) if "FOREWARN_FUZZ_SECONDS" in os.environ else 0
    end, turn = time.monotonic() + SECONDS, 0
    with _limited_memory():
        # In the suite always the same inputs: chance finds belong into `make fuzz`.
        while turn == 0 or time.monotonic() < end:
            attempt = seed(first + turn)(given(strategy)(guarded))
            settings(
                max_examples=INPUTS_A_ROUND,
                deadline=None,
                database=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            )(attempt)()
            turn += 1
    print(f"{inputs} inputs, seeds from {first} on")


@pytest.fixture(name="fuzz", scope="session")
def fuzz_fixture() -> Callable[[st.SearchStrategy[Any], Callable[[Any], None]], None]:
    """Return the loop."""
    return fuzz
