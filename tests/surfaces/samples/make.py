"""Write the samples that real packages make: `python tests/surfaces/samples/make.py`.

Needs `pip install vaultmem==0.3.3 provenmem==0.1.4 mem0ai==2.2.1`, in an environment of its own. Ids and times differ
from run to run; README.md says what is in them.
"""

import importlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VAULTMEM_PASSPHRASE = "a sample's passphrase"
TEXTS = ("I met Bob at the conference yesterday", "I prefer short answers", "My language for data work is Python")


def make_vaultmem(folder: Path) -> None:
    """Two sessions of a vault, as its own `create`, `open` and `add` write it."""
    vaultmem: Any = importlib.import_module("vaultmem")
    shutil.rmtree(folder, ignore_errors=True)
    with vaultmem.VaultSession.create(folder, VAULTMEM_PASSPHRASE, owner="ada", embedder=vaultmem.NullEmbedder()) as s:
        for text in TEXTS[:2]:
            s.add(text)
    with vaultmem.VaultSession.open(folder, VAULTMEM_PASSPHRASE, embedder=vaultmem.NullEmbedder()) as s:
        s.add(TEXTS[2])
    (folder / "session.lock").unlink(missing_ok=True)


def make_vaultmem_blobs(folder: Path) -> None:
    """The same in its other layout: a file for each atom, and an index that is not needed to read them."""
    vaultmem: Any = importlib.import_module("vaultmem")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    index = folder / "index.db"
    backends = {"blob_store": vaultmem.FileBlobStore(folder), "search_index": vaultmem.SQLiteSearchIndex(index)}
    with vaultmem.VaultSession.create(
        folder, VAULTMEM_PASSPHRASE, owner="ada", embedder=vaultmem.NullEmbedder(), **backends
    ) as s:
        for text in TEXTS[:2]:
            s.add(text)
    for path in (*folder.glob("index.db*"), folder / "session.lock"):
        path.unlink(missing_ok=True)


def make_provenmem(path: Path) -> None:
    """Memories of all states: active, superseded twice, retracted."""
    provenmem: Any = importlib.import_module("provenmem")
    path.unlink(missing_ok=True)
    vault = provenmem.Vault(path)
    vault.remember("The staging database is on port 5433", kind="fact", source="chat", tags=["infra", "db"])
    first, _ = vault.remember("Deploys go out on Fridays", kind="decision", source="meeting", meta={"room": "blue"})
    second, _ = vault.supersede(first.id, "Deploys go out on Tuesdays", source="meeting")
    vault.supersede(second.id, "Deploys go out on Mondays", source="meeting")
    wrong, _ = vault.remember("The moon is made of cheese", source="joke")
    vault.forget(wrong.id, reason="it was a joke")
    vault.close()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def make_mem0(path: Path) -> None:
    """What `get_all` returns after `add(..., infer=False)`; the embedder is mem0's own mock, nothing is contacted."""
    os.environ.update(MEM0_TELEMETRY="False", OPENAI_API_KEY="none", MEM0_DIR=str(path.parent / ".mem0"))
    embeddings: Any = importlib.import_module("mem0.embeddings.mock")
    factory: Any = importlib.import_module("mem0.utils.factory")
    factory.EmbedderFactory.create = staticmethod(lambda *_, **__: embeddings.MockEmbeddings())
    mem0: Any = importlib.import_module("mem0")
    store = {"provider": "qdrant", "config": {"path": str(path.parent / ".qdrant"), "embedding_model_dims": 10}}
    memory = mem0.Memory.from_config({"vector_store": store, "history_db_path": ":memory:"})
    chat = [
        {"role": "user", "name": "ada", "content": "I moved to Porto in May"},
        {"role": "assistant", "content": "Noted: Porto since May."},
    ]
    memory.add(chat, user_id="ada", run_id="trip", infer=False, metadata={"mood": "glad"})
    memory.add("Ada is allergic to peanuts", user_id="ada", infer=False)
    everything = memory.get_all(filters={"user_id": "ada"}, top_k=100)
    path.write_text(json.dumps(everything, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for leftover in (path.parent / ".qdrant", path.parent / ".mem0"):
        shutil.rmtree(leftover, ignore_errors=True)


if __name__ == "__main__":
    make_vaultmem(HERE / "vaultmem")
    make_vaultmem_blobs(HERE / "vaultmem-blobs")
    make_provenmem(HERE / "provenmem.db")
    make_mem0(HERE / "mem0.json")
