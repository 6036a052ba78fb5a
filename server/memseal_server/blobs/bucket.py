"""Keep objects in a bucket that any number of processes share."""

import asyncio
import hashlib
import random
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self, TypeVar

from memseal_server.blobs import AlreadyThere, Info, Listed, Run, Stored, StoreUnavailable, Usage, numbered
from memseal_server.blobs.s3 import Again, Bucket, NoRange, NotThere, Taken
from memseal_server.recent import Recent
from memseal_server.sharing import Sharing

_ADDRESS = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", re.ASCII)
_PREFIX = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*", re.ASCII)
_DIGEST = re.compile("[0-9a-f]{64}", re.ASCII)

# The pauses between them add up to a second or two.
_TRIES = 6
_FIRST_PAUSE_SECONDS = 0.05
# Whoever asked has gone by then.
_PATIENCE_SECONDS = 20.0
# What other processes put and delete is seen after this time: a listing for each put would be too much.
_USAGE_SECONDS = 60.0
_USAGES_BOUND = 10_000
_LISTED_AT_ONCE = 1_000
# Hashing more would hold up the other requests.
_LONG_BYTES = 256 * 1024

Result = TypeVar("Result")


@dataclass(frozen=True)
class _Found(Info):
    put: str | None  # which put it came by, where the bucket still says so


class BucketStore:
    """A prefix of a bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._usages: Recent[str, tuple[float, Usage]] = Recent(_USAGES_BOUND)
        self._counting = Sharing[str, Usage]()
        self._looking = Sharing[str, bool]()
        self._recounts: set[asyncio.Task[None]] = set()  # the event loop itself keeps no task alive

    @classmethod
    async def open(cls, address: str) -> Self:
        """Open the store at `s3://bucket/prefix`; nothing is asked of the bucket yet."""
        match = _ADDRESS.fullmatch(address)
        prefix = (match[2] or "").strip("/") if match else ""
        if match is None or (prefix and not _PREFIX.fullmatch(prefix)):
            raise StoreUnavailable("the address of a bucket is s3://bucket or s3://bucket/prefix")
        return cls(await Bucket.open(match[1], f"{prefix}/" if prefix else ""))

    async def put_new(self, key: str, content: bytes, digest: bytes | None = None) -> Stored | AlreadyThere:
        """Store an object unless its key is taken; either answer promises that what lies there is durable."""
        # Where an answer was lost the key is taken: by this put, which has to know it for its own, or by another
        # one of the same bytes.
        put = secrets.token_hex(16)
        metadata = {"sha256": (digest or await _digest_of(content)).hex(), "put": put}

        async def try_once() -> _Found | None:
            try:
                await self._bucket.put(key, content, metadata)
            except Taken:
                try:
                    found = await self._find(key)
                except NotThere:  # deleted since, or on its way
                    raise Again from None
                if found.put == put and found.length != len(content):
                    # The line broke, and the bucket kept what had come. Nobody else puts under this name of a put, and
                    # nobody was told that the object is there.
                    await self._bucket.delete(key)
                    raise Again from None
                return found
            return None

        found = await self._patiently(try_once)
        if found is not None and found.put != put:
            return AlreadyThere(found.length, found.digest)
        self._count(key, len(content))
        return Stored()

    async def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        """Return an object's bytes from `start` up to `end` (None: all that follow), or None if it is not there."""
        if end is not None and end <= start:
            return b"" if await self._is_there(key) else None
        try:
            return await self._patiently(lambda: self._bucket.get(key, start, end))
        except NotThere:
            return None
        except NoRange:
            return b""

    async def head(self, key: str) -> Info | None:
        """Return an object's length and digest, or None if it is not there."""
        try:
            found = await self._patiently(lambda: self._find(key))
        except NotThere:
            return None
        return Info(found.length, found.digest)

    async def last(self, runs: Sequence[Run]) -> list[int | None]:
        """Return each run's last number, at most its `most`, or None where nothing lies under its first."""
        return await asyncio.gather(*(self._last(run) for run in runs))

    async def missing(self, keys: Sequence[str]) -> list[str]:
        """Return those of these keys under which nothing lies, in their order; not all of one moment."""
        there = await asyncio.gather(*(self._is_there(key) for key in keys))
        return [key for key, is_there in zip(keys, there, strict=True) if not is_there]

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects for good; a key under which nothing lies is passed over."""
        # One by one: not every server has the request for many.
        await asyncio.gather(*(self._delete(key) for key in keys))
        folders = {_first_folder(key) for key in keys}
        self._usages.drop(lambda folder: folder in folders)

    async def listed(self, folder: str, after: str, limit: int) -> list[Listed]:
        """Return at most `limit` objects under a folder (`""`: all), those with the least keys greater than `after`."""
        return await self._patiently(lambda: self._bucket.list(folder, after, min(limit, _LISTED_AT_ONCE)))

    async def usage(self, folder: str) -> Usage:
        """Return what lies under a first folder (given with its `/`); it may be of a minute ago."""
        now = asyncio.get_running_loop().time()
        counted = self._usages.get(folder)
        if counted is None:
            return await self._counting.run(folder, lambda: self._count_all(folder))
        until, usage = counted
        if until <= now:
            # Whoever asks does not wait for it: a large vault has hundreds of pages.
            self._usages.put(folder, (now + _USAGE_SECONDS, usage))
            recount = asyncio.create_task(self._recount(folder))
            self._recounts.add(recount)
            recount.add_done_callback(self._recounts.discard)
        return usage

    async def totals(self) -> None:
        """Return None: everything would have to be listed."""

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless the store answers now."""
        try:
            await self._bucket.list("", "", 1)
        except Again as error:
            raise StoreUnavailable("the bucket does not answer") from error

    async def close(self) -> None:
        """End the store's work; what was acknowledged stays."""
        for recount in self._recounts:
            recount.cancel()
        await self._bucket.close()

    async def _find(self, key: str) -> _Found:
        found = await self._bucket.describe(key)
        digest, put = found.metadata.get("sha256", ""), found.metadata.get("put")
        if _DIGEST.fullmatch(digest):
            return _Found(found.length, bytes.fromhex(digest), put)
        # Copied by a tool that leaves metadata behind.
        content = await self._bucket.get(key, 0, None)
        return _Found(len(content), await _digest_of(content), put)

    async def _is_there(self, key: str) -> bool:
        # Each request to a vault asks for its next version: those that come together share the question.
        return await self._looking.run(key, lambda: self._look(key))

    async def _look(self, key: str) -> bool:
        try:
            await self._patiently(lambda: self._bucket.describe(key))
        except NotThere:
            return False
        return True

    async def _last(self, run: Run) -> int | None:
        low, step = run.first, 1
        if not await self._is_there(numbered(run.folder, low)):
            return None
        while low + step <= run.most and await self._is_there(numbered(run.folder, low + step)):
            low, step = low + step, 2 * step
        high = min(low + step, run.most + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if await self._is_there(numbered(run.folder, middle)) else (low, middle)
        return low

    async def _delete(self, key: str) -> None:
        try:
            await self._patiently(lambda: self._bucket.delete(key))
        except NotThere:
            return

    async def _patiently(self, ask: Callable[[], Awaitable[Result]]) -> Result:
        clock = asyncio.get_running_loop().time
        until = clock() + _PATIENCE_SECONDS
        tries = 1
        while True:
            try:
                return await ask()
            except Again as error:
                pause = random.uniform(0, _FIRST_PAUSE_SECONDS * 2**tries)  # noqa: S311  so that racers part
                if tries == _TRIES or clock() + pause > until:
                    raise StoreUnavailable("the bucket does not answer, or not to the point") from error
            tries += 1
            await asyncio.sleep(pause)

    async def _count_all(self, folder: str) -> Usage:
        found: list[Listed] = []
        while page := await self.listed(folder, found[-1].key if found else "", _LISTED_AT_ONCE):
            found += page
        usage = Usage(len(found), sum(each.length for each in found))
        self._usages.put(folder, (asyncio.get_running_loop().time() + _USAGE_SECONDS, usage))
        return usage

    async def _recount(self, folder: str) -> None:
        with suppress(StoreUnavailable):  # the next one will do
            await self._count_all(folder)

    def _count(self, key: str, length: int) -> None:
        folder = _first_folder(key)
        counted = self._usages.get(folder)
        if counted is not None:
            until, usage = counted
            self._usages.put(folder, (until, Usage(usage.objects + 1, usage.bytes + length)))


def _first_folder(key: str) -> str:
    return key.partition("/")[0] + "/"


async def _digest_of(content: bytes) -> bytes:
    if len(content) <= _LONG_BYTES:
        return hashlib.sha256(content).digest()
    return await asyncio.to_thread(lambda: hashlib.sha256(content).digest())
