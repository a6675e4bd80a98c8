"""Further interpreters that import nothing from the folder that they are started in.

``python -c`` and ``-m`` look there first: a `json.py` beside the recordings would be run.
"""

from __future__ import annotations

import sys
from multiprocessing import get_context, util
from multiprocessing.context import SpawnContext

_LEAVE_FOLDER = "import sys; sys.path[:] = filter(None, sys.path); "
_ITS_CODE = "del sys.argv[1]; exec(sys.argv.pop(1))"
"""Run the code of `multiprocessing`, which follows ours as another ``-c CODE``."""
_FLAGS = "_args_from_interpreter_flags"
_plain_flags = getattr(util, _FLAGS)


def command(code: str, *arguments: object) -> list[str]:
    """Return a command that runs code, in which `sys` is imported, in an interpreter like this."""
    return [sys.executable, "-c", f"{_LEAVE_FOLDER}{code}", *map(str, arguments)]


def spawning() -> SpawnContext:
    """Return how to start processes with `multiprocessing`, its tracker of resources included.

    No option of an interpreter does this in Python 3.10, but for ``-I``, which leaves out
    ``PYTHONPATH`` as well.
    """
    setattr(util, _FLAGS, _flags)
    return get_context("spawn")


def _flags() -> list[str]:
    return [*_plain_flags(), *command(_ITS_CODE)[1:]]
