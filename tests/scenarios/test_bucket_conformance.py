"""The protocol, as anybody's server is judged by it, on a server whose store is a bucket."""

import os
import subprocess
import sys
from itertools import chain

from tests.profile import THOROUGH
from tests.scenarios.conftest import StartServer

VAULT_LIMIT_BYTES = "6000000"
# What the store decides. Signatures, forms of requests and the rules of a keyring are checked before it is asked, alike
# for each store: tests/interop/test_conformance.py runs all of them.
OF_THE_STORE = (
    "segments",
    "floors",
    "checkpoints",
    "completing",
    "heads",
    "logs",
    "keys",
    "limits",
    "keyring/conflict",
)


def test_server_on_a_bucket_follows_the_protocol(start_server: StartServer, seaweed_bucket: str) -> None:
    server = start_server(seaweed_bucket, "--max-vault-bytes", VAULT_LIMIT_BYTES)
    only = () if THOROUGH else chain.from_iterable(("--only", group) for group in OF_THE_STORE)
    judged = subprocess.run(
        [sys.executable, "-m", "memseal_conformance", server.url, "--vault-limit", VAULT_LIMIT_BYTES, *only],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
        check=False,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert " 0 failed" in judged.stdout
