"""Run the server: `memseal-server --store ./data --listen 127.0.0.1:8420`."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

from memseal_server import __version__, logs
from memseal_server.app import listen
from memseal_server.blobs import StoreUnavailable
from memseal_server.blobs.sqlite import SqliteStore
from memseal_server.limits import Limits
from memseal_server.segments import MAX_SEGMENT_BYTES

_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  named here to refuse them as an identity
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65_535
# A thousand memories take about 1 MiB.
_DEFAULT_VAULT_BYTES = 10 * 1024**3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until it is told to end (SIGTERM, SIGINT); return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    host, port = options.listen
    if host in _EVERYWHERE and not options.url:
        parser.error("--url is needed where the server listens on every address")
    logs.start(options.log_level)
    try:
        asyncio.run(_serve(options, host, port))
    except (StoreUnavailable, OSError) as error:
        logs.failed("start_failed", error)
        sys.stderr.write(f"memseal-server: cannot start: {error}\n")
        return 1
    return 0


async def _serve(options: argparse.Namespace, host: str, port: int) -> None:
    ending = _end_on_signals()
    limits = Limits(
        registration_open=options.registration == "open",
        max_object_bytes=min(options.max_object_bytes, MAX_SEGMENT_BYTES),
        max_vault_bytes=options.max_vault_bytes or None,
        max_waiters=options.max_waiters,
    )
    store = await SqliteStore.open(options.store)
    try:
        listener = await listen(store, limits, host=host, port=port, identities=tuple(options.url))
        sys.stdout.write(f"listening on {listener.origin}\n")
        sys.stdout.flush()
        await ending.wait()
        await listener.close()
    finally:
        await store.close()


def _end_on_signals() -> asyncio.Event:
    # signal.signal and not the loop's own method, which Windows does not have.
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(ending.set)

    for name in ("SIGINT", "SIGTERM", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)
    return ending


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memseal-server", description="Keep vaults for others, without being able to read them."
    )
    add = parser.add_argument
    add("--version", action="version", version=f"memseal-server {__version__}")
    add("--store", type=_folder, required=True, help="folder for the objects; it is made if it is not there")
    add("--listen", type=_address, default=("127.0.0.1", 8420), help="host:port; port 0 takes any free one")
    add("--url", type=_identity, action="append", default=[], help="origin that clients use (repeatable)")
    add("--registration", choices=("open", "closed"), default="open", help="whether new vaults are taken")
    add("--max-object-bytes", type=_size, default=MAX_SEGMENT_BYTES, help="largest segment (at most 68 MiB)")
    add("--max-vault-bytes", type=_size, default=_DEFAULT_VAULT_BYTES, help="limit of a vault; 0 is none")
    add("--max-waiters", type=_size, default=Limits.max_waiters, help="requests that may wait at a time")
    add("--log-level", choices=logs.LEVELS, default="info", help="least level of the lines on standard error")
    return parser


def _folder(text: str) -> Path:
    if "://" in text:
        raise argparse.ArgumentTypeError("only a folder can be the store")
    return Path(text)


def _size(text: str) -> int:
    size = int(text)
    if size < 0:
        raise argparse.ArgumentTypeError("it cannot be negative")
    return size


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > _MAX_PORT:
        raise argparse.ArgumentTypeError("it is not host:port")
    return host, int(port)


def _identity(text: str) -> str:
    parts = urlsplit(text)
    host = parts.hostname
    if parts.scheme not in _DEFAULT_PORTS or not host or parts.username is not None:
        raise argparse.ArgumentTypeError("it is not an origin like https://host or https://host:port")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError("an origin has no path")
    shown = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{shown}{port}"


if __name__ == "__main__":
    raise SystemExit(main())
