"""A bare aiohttp handler, as a program: it stores what is put, durably, and gives it back. Nothing is checked."""

import asyncio
import os
import sys
from pathlib import Path

from aiohttp import web


def application(folder: Path) -> web.Application:
    async def put(request: web.Request) -> web.Response:
        body = await request.read()
        await asyncio.to_thread(_store, folder / request.match_info["name"], body)
        return web.Response(status=201)

    async def get(request: web.Request) -> web.Response:
        return web.Response(body=await asyncio.to_thread((folder / request.match_info["name"]).read_bytes))

    app = web.Application(client_max_size=1 << 30)
    app.router.add_put("/{name}", put)
    app.router.add_get("/{name}", get)
    return app


def _store(path: Path, body: bytes) -> None:
    with path.open("wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


async def main(folder: Path) -> None:
    runner = web.AppRunner(application(folder), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"listening on http://{host}:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
