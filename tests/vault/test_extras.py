"""What only a server needs comes with an extra: where it is missing, a vault says which."""

import subprocess
import sys
from pathlib import Path

import pytest

PASSPHRASE = "correct horse battery staple"

WITHOUT = """
import sys
sys.modules[{module!r}] = None
import memseal
with memseal.Vault.create(sys.argv[1], passphrase={passphrase!r}, embedder=None) as vault:
    vault.remember('a vault without a server needs none of it', source='test')
    try:
        {call}
    except memseal.MemsealError as error:
        print(error.code, error)
    print(vault.count())
"""


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("aiohttp", "vault.sync('http://127.0.0.1:9')"),
        ("aiohttp", "vault.pair(print, remote='http://127.0.0.1:9')"),
        ("spake2", "vault.pair(print, remote='http://127.0.0.1:9')"),
        ("spake2", "memseal.Vault.join_with_code(sys.argv[1] + '2', '1', 'x' * 16, 'http://127.0.0.1:9')"),
    ],
)
def test_extra_that_is_not_installed_is_named(tmp_path: Path, module: str, call: str) -> None:
    script = WITHOUT.format(module=module, passphrase=PASSPHRASE, call=call)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "vault")], capture_output=True, encoding="utf-8", check=False
    )
    assert done.stdout == f"extra_missing this needs {module}: pip install 'memseal[sync]'\n1\n", done.stderr
