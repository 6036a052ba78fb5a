"""AsyncVault: the same verbs, awaited."""

import asyncio
import inspect
import threading
from pathlib import Path

import pytest

from memseal import AsyncVault, Memory, MemsealError, Vault
from memseal.errors import PassphraseWrong, VaultClosed


async def test_verbs_are_awaited_and_the_event_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    async with await AsyncVault.create(tmp_path / "v", "correct horse", embedder=None) as vault:
        memory = await vault.remember("the spare key is under the blue pot", source="test")
        hits = await vault.search("where is the spare key")
        assert [hit.memory.id for hit in hits] == [memory.id]
    ticking.cancel()
    assert ticks > 100


async def test_many_tasks_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    async with await AsyncVault.create(tmp_path / "v", "correct horse", embedder=None) as vault:
        await asyncio.gather(*(vault.remember(f"number {number}", source="test") for number in range(50)))
        assert await vault.count() == 50


async def test_errors_come_through(tmp_path: Path) -> None:
    async with await AsyncVault.create(tmp_path / "v", "correct horse", embedder=None):
        pass
    with pytest.raises(PassphraseWrong):
        await AsyncVault.open(tmp_path / "v", "wrong")
    vault = await AsyncVault.open(tmp_path / "v", "correct horse", embedder=None)
    await vault.close()
    await vault.close()
    with pytest.raises((VaultClosed, RuntimeError)):
        await vault.count()


async def test_a_write_that_was_begun_is_finished_though_its_task_is_cancelled(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def write(vault: Vault) -> None:
        begun.set()
        go_on.wait()
        vault.remember("begun", source="test")

    async with await AsyncVault.create(tmp_path / "v", "correct horse", embedder=None) as vault:
        writing = asyncio.create_task(vault.run(write))
        await asyncio.to_thread(begun.wait)
        writing.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert await vault.count() == 1


async def test_after_closing_every_verb_says_that_the_vault_was_closed(tmp_path: Path) -> None:
    vault = await AsyncVault.create(tmp_path / "vault", "correct horse", embedder=None)
    waiting = [asyncio.ensure_future(vault.remember(f"note {n}", source="test")) for n in range(5)]
    await asyncio.sleep(0)  # all have asked for the vault's thread
    await vault.close()
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(end, Memory | VaultClosed) for end in ends)
    with pytest.raises(VaultClosed):
        await vault.count()
    with pytest.raises(VaultClosed):
        await vault.sync_in_background(str(tmp_path))
    await vault.close()


def test_every_public_verb_of_the_vault_is_there() -> None:
    verbs = {name for name, _ in inspect.getmembers(Vault) if not name.startswith("_")}
    assert verbs <= set(dir(AsyncVault))
    assert issubclass(PassphraseWrong, MemsealError)
