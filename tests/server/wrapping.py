"""A store that passes everything on to another; what it does otherwise is for those who derive from it."""

from collections.abc import Sequence

from memseal_server.blobs import AlreadyThere, BlobStore, Info, Listed, Run, Stored, Totals, Usage


class Wrapping:
    """All of the port."""

    def __init__(self, inner: BlobStore) -> None:
        self.inner = inner

    async def put_new(self, key: str, content: bytes, digest: bytes | None = None) -> Stored | AlreadyThere:
        return await self.inner.put_new(key, content, digest)

    async def get(self, key: str, start: int = 0, end: int | None = None) -> bytes | None:
        return await self.inner.get(key, start, end)

    async def head(self, key: str) -> Info | None:
        return await self.inner.head(key)

    async def last(self, runs: Sequence[Run]) -> list[int | None]:
        return await self.inner.last(runs)

    async def missing(self, keys: Sequence[str]) -> list[str]:
        return await self.inner.missing(keys)

    async def delete(self, keys: Sequence[str]) -> None:
        await self.inner.delete(keys)

    async def listed(self, folder: str, after: str, limit: int) -> list[Listed]:
        return await self.inner.listed(folder, after, limit)

    async def usage(self, folder: str) -> Usage:
        return await self.inner.usage(folder)

    async def totals(self) -> Totals | None:
        return await self.inner.totals()

    async def check(self) -> None:
        await self.inner.check()

    async def close(self) -> None:
        await self.inner.close()
