"""Runs the server as a program of its own."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

SERVER = Path(__file__).parent.parent.parent / "server"


@dataclass(frozen=True)
class Running:
    """A server process that listens at `origin`."""

    process: asyncio.subprocess.Process
    origin: str
    said: asyncio.Task[bytes]
    """What it writes to standard error, taken from it as it comes: a full pipe would stop it."""

    async def kill(self) -> None:
        """End it as a power cut would: nothing is flushed or closed."""
        self.process.kill()
        await self.process.wait()

    async def end(self, number: int) -> tuple[int, str]:
        """Send a signal; return the exit code and what the process wrote to standard error."""
        self.process.send_signal(number)
        errors = await self.said
        return await self.process.wait(), errors.decode()


_started: list[asyncio.subprocess.Process] = []


async def end_all() -> None:
    """Kill what was started and still runs: a test that failed half-way leaves nothing behind."""
    while _started:
        process = _started.pop()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def start(store: Path | str, *options: str) -> Running:
    return await _listening(await start_process("--store", str(store), "--listen", "127.0.0.1:0", *options))


async def start_dying(store: Path | str, where: str) -> Running:
    """Start a server that dies at a place in its code, `module:Class.method`, as a kill there would end it."""
    module, _, name = where.partition(":")
    program = (
        f"import os, sys; from memseal_server import __main__; from {module} import {name.partition('.')[0]}\n"
        f"{name} = lambda *arguments: os._exit(9)\n"
        "sys.exit(__main__.main(sys.argv[1:]))"
    )
    return await _listening(await _start("-c", program, "--store", str(store), "--listen", "127.0.0.1:0"))


async def _listening(process: asyncio.subprocess.Process) -> Running:
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert line.startswith("listening on http://127.0.0.1:"), line
    assert process.stderr is not None
    said = asyncio.create_task(process.stderr.read())
    return Running(process, line.removeprefix("listening on ").strip(), said)


async def start_process(*arguments: str) -> asyncio.subprocess.Process:
    return await _start("-m", "memseal_server", *arguments)


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SERVER)},
    )
    _started.append(process)
    return process
