"""Read model files in another process, where that takes neither time nor memory from the ticks.

Parsing tens of megabytes of JSON holds the interpreter for as long as it takes, in whatever thread,
and leaves many times the memory of the model behind.
"""

from __future__ import annotations

import os
import pickle
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from forewarn.errors import ModelError
from forewarn.files.interpreters import command
from forewarn.models.counts import CountModel, Provenance
from forewarn.models.file import load_model

MEGABYTE = 1_000_000
SMALL = MEGABYTE
"""Bytes that are parsed within a fraction of a tick, and sooner than another process begins."""
_AT_ONCE = 1000  # recordings: what comes in one piece holds the interpreter
_NICE = 10
_READ = f"""
from {__name__} import write_pieces
write_pieces(sys.argv[1], int(sys.argv[2]), sys.stdout.buffer)
"""


def load_in_subprocess(path: Path | str, most: int) -> CountModel:
    """Return the model in a file of at most `most` bytes; takes long, but blocks no other thread.

    Raises ModelError as `load_model` does; also if the other process ends before it has read the
    file.
    """
    with suppress(OSError):  # load_model says what is wrong
        if Path(path).stat().st_size <= SMALL:
            return load_model(path, min(most, SMALL))
    reader = command(_READ, path, most)
    # A Ctrl-C is for the node; the other process ends with its pipe.
    with subprocess.Popen(reader, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            found = pickle.load(process.stdout)
            if isinstance(found, dict):
                raise ModelError(**found)
            provenance: list[Provenance] = []
            while piece := pickle.load(process.stdout):
                provenance += piece
        except (EOFError, pickle.UnpicklingError) as error:
            raise ModelError(
                f"could not be read: the process that reads it ended with {process.wait()}",
                accepted="a model file that fits into the memory",
                file=path,
            ) from error
    model: CountModel = replace(found, provenance=tuple(provenance))
    return model


def _pieces(path: str, most: int) -> Iterator[object]:
    try:
        model = load_model(path, most)
    except ModelError as error:
        yield {
            "problem": error.problem,
            "accepted": error.accepted,
            "file": error.file,
            "key": error.key,
        }
        return
    yield replace(model, provenance=())
    for first in range(0, len(model.provenance), _AT_ONCE):
        yield model.provenance[first : first + _AT_ONCE]
    yield ()


def write_pieces(path: str, most: int, out: BinaryIO) -> None:
    """Write the model in pieces; the parent ends this process if it takes too long."""
    with suppress(OSError):
        os.nice(_NICE)
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(BrokenPipeError):
        for piece in _pieces(path, most):
            pickle.dump(piece, out, pickle.HIGHEST_PROTOCOL)
        out.flush()
