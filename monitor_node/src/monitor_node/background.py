"""What takes long and must not hold up the ticks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def in_background(name: str, task: Callable[[], Result]) -> Future[Result]:
    """Do something in a thread that nobody has to wait for when the process ends.

    The threads of a pool are waited for, however long they go on with what nobody will use.
    """
    future: Future[Result] = Future()

    def work() -> None:
        try:
            future.set_result(task())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
