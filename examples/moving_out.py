"""Take your memories elsewhere in one file, and leave nothing behind of what you do not want kept."""

import tempfile
from pathlib import Path

from memseal import Vault, open_bundle

PASSPHRASE = "correct horse battery staple"
FILE_PASSPHRASE = "one for the file alone"


def main(folder: Path) -> None:
    with Vault.create(folder / "old.vault", PASSPHRASE) as vault:
        vault.remember("The piano tuner comes on the first of May.", source="phone")
        code = vault.remember("The alarm code is 4711.", source="note")

        receipt = vault.erase(code.id, reason="not for keeping")
        print("erased:", ", ".join(f"{place.name} {place.progress}" for place in receipt.places))

        vault.export_bundle(folder / "memories.mseal", FILE_PASSPHRASE)

    with open_bundle(folder / "memories.mseal", FILE_PASSPHRASE) as bundle:
        print("in the file:", [memory.content for memory in bundle.list()])

    with Vault.create(folder / "new.vault", "another passphrase altogether") as vault:
        vault.import_bundle(folder / "memories.mseal", FILE_PASSPHRASE)
        print("in the new vault:", vault.search("when is the piano tuned?")[0].memory.content)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
