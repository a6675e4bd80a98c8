"""How many threads the linear algebra of a process uses."""

from __future__ import annotations

import os

LIMITS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def compute_in_one_thread() -> None:
    """Keep NumPy's and SciPy's linear algebra to one thread, unless the user has asked for more.

    The matrices are small, and on a busy machine threads that wait for each other burn its cores:
    the tables of a model of 138 recordings took 17 s of processor time in two threads, and 1 s in
    one. This has to come before NumPy is imported, since its libraries read the limit only then.
    """
    for name in LIMITS:
        os.environ.setdefault(name, "1")
