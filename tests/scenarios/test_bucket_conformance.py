"""The whole protocol, as anybody's server is judged by it, on a server whose store is a bucket."""

import os
import subprocess
import sys

from tests.scenarios.conftest import StartServer
from tests.server.seaweed import seaweed, seaweed_bucket

__all__ = ["seaweed", "seaweed_bucket"]  # fixtures too

VAULT_LIMIT_BYTES = "6000000"


def test_server_on_a_bucket_follows_the_whole_protocol(start_server: StartServer, seaweed_bucket: str) -> None:
    server = start_server(seaweed_bucket, "--max-vault-bytes", VAULT_LIMIT_BYTES)
    judged = subprocess.run(
        [sys.executable, "-m", "memseal_conformance", server.url, "--vault-limit", VAULT_LIMIT_BYTES],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
        check=False,
    )
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert " 0 failed" in judged.stdout
