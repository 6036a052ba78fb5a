"""How long it takes from a write on one device until it is found on another, both following one server."""

import statistics
import tempfile
import threading
import time
from pathlib import Path

from memseal import SyncState, Vault
from tests.bench.syncing.world import PASSPHRASE, filled, server


def measure(count: int) -> None:
    """Print the median and the worst."""
    arrived, taken = threading.Condition(), list[float]()

    def told(state: SyncState) -> None:
        with arrived:
            arrived.notify_all()

    with tempfile.TemporaryDirectory() as name, server(f"{name}/store") as (url, _):
        folder = Path(name)
        with filled(folder / "one", 1_000) as one:
            one.sync(url)
            with (
                Vault.join(folder / "two", one.emergency_kit, PASSPHRASE, embedder=None) as two,
                one.sync_in_background() as here,
                two.sync_in_background(on_state=told) as there,
            ):
                here.wait_until_synced()
                there.wait_until_synced()
                for number in range(count):
                    word = f"zebra{number}"

                    def is_there(word: str = word) -> bool:
                        return bool(two.search(word, limit=1))

                    before = time.perf_counter()
                    one.remember(f"the {word} stands by the river", source="bench")
                    with arrived:
                        if not arrived.wait_for(is_there, 60):
                            raise SystemExit("it never came")
                    taken.append(time.perf_counter() - before)
    print(f"from a write to its being found elsewhere, {count} writes one after the other")
    print(f"  median {statistics.median(taken) * 1e3:.0f} ms (under 1,000), worst {max(taken) * 1e3:.0f} ms")
