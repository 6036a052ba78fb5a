"""Two devices and a server that cannot read what it keeps."""

import subprocess
import sys
import tempfile
from pathlib import Path

from memseal import Vault

PASSPHRASE = "correct horse battery staple"


def main(server: str, folder: Path) -> None:
    with Vault.create(folder / "laptop", PASSPHRASE, device_name="laptop") as laptop:
        laptop.remember("The spare key is under the third flower pot.", source="chat", kind="fact")
        laptop.sync(server)

        with Vault.join(folder / "phone", laptop.emergency_kit, PASSPHRASE, server, device_name="phone") as phone:
            [hit] = phone.search("where is the spare key?")
            print("the phone finds:", hit.memory.content)
            phone.supersede(hit.memory.id, "The neighbour has the spare key now.", source="chat")
            phone.sync()
            laptop.sync()
            print("the laptop knows:", laptop.search("spare key")[0].memory.content)
            print("both hold the same state:", laptop.state_digest() == phone.state_digest())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "memseal_server", "--store", f"{place}/server", "--listen", "127.0.0.1:0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            try:
                ready = next(iter(process.stdout or ()))  # listening on http://127.0.0.1:…
                main(ready.split()[-1], Path(place))
            finally:
                process.terminate()
