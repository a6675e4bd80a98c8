"""Reads recordings on the workers of a Dask cluster; no other module imports `distributed`.

Dask does all scheduling: a task whose worker dies goes to another one, and a recording at which
workers die again and again is given up. Tasks are handed over a few at a time, so that neither
scheduler nor client has to remember more of them, however many recordings there are.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import socket
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forewarn.errors import InputError, RecordingError
from forewarn.learning.executors import WAITING, LeftOut, Progress, Result, call, settled
from forewarn.learning.shard_key import code_version

PATIENCE = 30
"""Seconds to wait for the scheduler, and for its first worker."""


@dataclass(frozen=True)
class Cluster:
    """Reads on the workers of a scheduler, such as ``tcp://scheduler:8786``.

    `address`: where the scheduler listens.
    `left_out`: called with each recording that cannot be read, which is then left out.
    """

    address: str
    left_out: LeftOut | None = None

    def each(
        self,
        paths: Sequence[Path],
        work: Callable[..., Result],
        shared: Sequence[Any],
        progress: Progress | None = None,
    ) -> Generator[tuple[Path, Result], None, None]:
        """See `Executor.each`."""
        task = pickle.dumps((work, *shared))
        with self._client() as client:
            threads = self._checked_threads(client)
            waiting: deque[tuple[Path, Any]] = deque()
            # A task of its own: it goes to each worker once, and is there again if one dies.
            held = client.submit(bytes, task, pure=False)
            version = code_version()
            try:
                for path in paths:
                    done = client.submit(call_of_version, version, held, path, pure=False)
                    waiting.append((path, done))
                    if len(waiting) >= WAITING * threads:
                        yield from self._next(waiting, progress)
                while waiting:
                    yield from self._next(waiting, progress)
            finally:
                # Enough, or an error: what has not begun need not begin.
                with suppress(Exception):  # the scheduler may have gone
                    client.cancel([future for _, future in waiting])

    def _next(
        self, waiting: deque[tuple[Path, Any]], progress: Progress | None
    ) -> Iterator[tuple[Path, Any]]:
        path, future = waiting[0]
        yield from settled(path, lambda: self._result(path, future), progress, self.left_out)
        waiting.popleft()

    def _result(self, path: Path, future: Any) -> Any:
        from distributed import CancelledError, KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise RecordingError(
                f"workers died while they read it, the last one {error.last_worker.address}",
                file=path,
                accepted="a recording that a worker has the memory for; its log says why it died",
            ) from error
        except (CancelledError, OSError) as error:
            raise self._gone() from error

    def _gone(self) -> InputError:
        return InputError(
            "the scheduler has gone; shards that were computed are in the store, if there is one",
            file=self.address,
            accepted="the same command once more when a scheduler runs",
        )

    @contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            import distributed
        except ImportError as error:
            raise InputError(
                f"Dask distributed is not installed ({error})",
                key="--scheduler",
                accepted="pip install './forewarn[fleet]', here and on the workers",
            ) from error
        for name in [*logging.root.manager.loggerDict]:
            if name.startswith("distributed"):
                logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters we say
        try:
            # A client without an answer would wait for another minute when it is collected.
            asyncio.run(_reached(self.address))
            client = distributed.Client(self.address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(
                f"no scheduler answers ({error})",
                key="--scheduler",
                file=self.address,
                accepted="the address that `dask scheduler` prints, such as tcp://scheduler:8786",
            ) from error
        try:
            yield client
        finally:
            with suppress(Exception):
                client.close(timeout=2)

    def _checked_threads(self, client: Any) -> int:
        """Return how many threads all workers have; raise InputError if one cannot serve."""
        threads = client.nthreads()
        if not threads:
            with suppress(TimeoutError):
                client.wait_for_workers(1, timeout=PATIENCE)
            threads = client.nthreads()
        if not threads:
            raise InputError(
                f"has no worker after {PATIENCE} s",
                file=self.address,
                accepted="at least one `dask worker` with Forewarn",
            )
        for worker, found in client.run(code_version, on_error="return").items():
            if found != code_version():
                raise other_version(worker, str(found))
        return sum(threads.values())


async def _reached(address: str) -> None:
    """Connect to a scheduler; raises OSError or ValueError if none answers."""
    from distributed import Security
    from distributed.comm import connect

    given = Security().get_connection_args("client")
    found = await connect(address, timeout=PATIENCE, **given)
    await found.close()


def call_of_version(version: str, task: bytes, path: Path) -> Any:
    """Do a task on a worker, whose version is checked again: it may have joined since."""
    if code_version() != version:
        raise other_version(socket.gethostname(), code_version(), version)
    return call(task, path)


def other_version(worker: str, found: str, wanted: str = "") -> InputError:
    """Return the error that refuses a worker."""
    return InputError(
        f"the worker runs {found}",
        file=worker,
        accepted=f"{wanted or code_version()}, as here: other code may count otherwise",
    )
