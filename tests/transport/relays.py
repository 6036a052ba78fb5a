"""What stands between a device and its server, on loopback: relays that encrypt, tunnel, or cut."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field

from yarl import URL

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.contextmanager
def serving(handler: Handler, trust: ssl.SSLContext | None = None) -> Generator[int]:
    """Accept connections in a thread of its own, and yield the port."""
    loop = asyncio.new_event_loop()

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await handler(reader, writer)
        writer.close()

    async def start() -> asyncio.Server:
        return await asyncio.start_server(handled, "127.0.0.1", 0, ssl=trust)

    async def end(server: asyncio.Server) -> None:
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports that were closed let go in the loop's next turn

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, seen: bytearray | None = None
) -> None:
    """Pass on in both directions until one side ends; `seen` gets what goes to the port."""
    there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
    ways = [
        asyncio.create_task(_pass(reader, there_writer, bytearray() if seen is None else seen)),
        asyncio.create_task(_pass(there_reader, writer, bytearray())),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        there_writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: bytearray) -> None:
    while content := await reader.read(1 << 16):
        seen += content
        writer.write(content)
        await writer.drain()


@dataclass
class ConnectProxy:
    """An HTTP proxy to this machine that opens tunnels (CONNECT), or passes a request on that names a whole URL.

    Where `authorization` is set it asks for name and password.
    """

    authorization: str | None = None
    seen: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split()
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
        self.seen.append({"target": target, **headers})
        if self.authorization not in (None, headers.get("proxy-authorization")):
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        elif method != "CONNECT":
            await _pass_on(reader, writer, method, URL(target), headers)
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await relay(reader, writer, int(target.rpartition(":")[2]))
            return
        await writer.drain()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, url: URL, headers: dict[str, str]
) -> None:
    """Send a request to the server as an origin takes it, on a connection of its own, without what is for the proxy."""
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    kept = {name: value for name, value in headers.items() if not name.startswith("proxy-")}
    lines = [f"{method} {url.raw_path_qs} HTTP/1.1", *(f"{name}: {value}" for name, value in kept.items())]
    there_reader, there_writer = await asyncio.open_connection("127.0.0.1", url.port)
    there_writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
    while content := await there_reader.read(1 << 16):
        writer.write(content)
    there_writer.close()
    await writer.drain()
