"""A system's clock that a test sets, for the processes that it starts."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
COMPILER = shutil.which("cc") or shutil.which("gcc")
Setter = Callable[[float], None]


@contextmanager
def settable(folder: Path) -> Iterator[tuple[dict[str, str], Setter]]:
    """Yield variables to start a process with, and what sets its clock ahead, in seconds."""
    assert COMPILER is not None
    library, shift = folder / "set_clock.so", folder / "shift"
    command = [COMPILER, "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"]
    subprocess.run(command, check=True)
    shift.write_bytes(bytes(8))
    with shift.open("r+b") as file, mmap.mmap(file.fileno(), 8) as seen:

        def set_clock(ahead: float) -> None:
            seen[:] = struct.pack("=q", round(ahead * 1e9))

        yield {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(shift)}, set_clock
