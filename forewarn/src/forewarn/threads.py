"""Threads: how many the linear algebra of a process uses, and those that end with the process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

LIMITS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Result = TypeVar("Result")


def compute_in_one_thread() -> None:
    """Keep NumPy's and SciPy's linear algebra to one thread, unless the user has asked for more.

    The matrices are small, and on a busy machine threads that wait for each other burn its cores:
    the tables of a model of 138 recordings took 17 s of processor time in two threads, and 1 s in
    one. This has to come before NumPy is imported, since its libraries read the limit only then.
    """
    for name in LIMITS:
        os.environ.setdefault(name, "1")


def in_background(name: str, task: Callable[[], Result]) -> Future[Result]:
    """Do something in a thread that ends with the process.

    The threads of a pool are waited for, even if their result is no longer of use.
    """
    future: Future[Result] = Future()

    def work() -> None:
        try:
            future.set_result(task())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
