"""Run database work in a thread of its own, many jobs in one transaction."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from memseal_server.blobs import StoreUnavailable

Result = TypeVar("Result")
Work = Callable[[sqlite3.Connection], Result]

# Under load a commit's fsync is shared by this many; no one waits for more than one batch before its own.
_MAX_BATCH = 256


@dataclass(frozen=True)
class _Job:
    work: Work[Any]
    answer: asyncio.Future[Any]


class Worker:
    """A thread that takes the jobs that wait, runs them in one transaction and answers all of them after it."""

    def __init__(self, connection: sqlite3.Connection, *, begin: str) -> None:
        """Start the thread; `begin` is the statement that begins a transaction."""
        self._connection = connection
        self._begin = begin
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._closed = False
        # A daemon, so that a program that fails before it closes the store can end.
        self._thread = Thread(target=self._run, name="memseal-store", daemon=True)
        self._thread.start()

    async def run(self, work: Work[Result]) -> Result:
        """Return what the work returns, after the commit; `StoreUnavailable` if its transaction failed."""
        if self._closed:
            raise StoreUnavailable("the store is closed")
        answer: asyncio.Future[Result] = self._loop.create_future()
        self._jobs.put(_Job(work, answer))
        return await answer

    async def close(self) -> None:
        """Finish the jobs that wait, and end the thread."""
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)
        self._connection.close()

    def _run(self) -> None:
        going = True
        while going:
            batch, going = self._next_batch()
            if batch:
                results, failure = self._commit(batch)
                self._loop.call_soon_threadsafe(_answer, batch, results, failure)

    def _next_batch(self) -> tuple[list[_Job], bool]:
        batch: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) == _MAX_BATCH:
                return batch, True
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return batch, True
        return batch, False

    def _commit(self, batch: Sequence[_Job]) -> tuple[list[Any], Exception | None]:
        try:
            self._connection.execute(self._begin)
            results = [job.work(self._connection) for job in batch]
            self._connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001  a thread that died would leave every request waiting
            if self._connection.in_transaction:
                self._connection.rollback()
            return [], error
        return results, None


def _answer(batch: Sequence[_Job], results: Sequence[Any], failure: Exception | None) -> None:
    for position, job in enumerate(batch):
        if job.answer.done():  # its request was cancelled
            continue
        if failure is None:
            job.answer.set_result(results[position])
        else:
            unavailable = StoreUnavailable("the database failed")
            unavailable.__cause__ = failure
            job.answer.set_exception(unavailable)
