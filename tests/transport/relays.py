"""What stands between a device and its server, on loopback: relays that encrypt, tunnel, or cut."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field

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
    """An HTTP proxy that opens tunnels (CONNECT) to this machine, and asks for a name and password where one is set."""

    authorization: str | None = None
    seen: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split()
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
        self.seen.append({"target": target, **headers})
        if method != "CONNECT":
            writer.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
        elif self.authorization not in (None, headers.get("proxy-authorization")):
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await relay(reader, writer, int(target.rpartition(":")[2]))
            return
        await writer.drain()
