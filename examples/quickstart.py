"""Remember, search and correct, in a vault of your own."""

import tempfile
from pathlib import Path

from memseal import Vault


def main(folder: Path) -> None:
    with Vault.create(folder / "notes.vault", "correct horse battery staple") as vault:
        print("Write this down, it is your emergency kit:", vault.emergency_kit)
        vault.remember("Cashews make me ill; almonds are fine.", source="doctor", kind="fact", tags=["allergy"])
        coffee = vault.remember("I have gone off coffee since the flu.", source="chat", kind="preference")
        vault.supersede(coffee.id, "Coffee is good again: one small cup at seven.", source="chat")

        for hit in vault.search("which nuts are safe? and may I have coffee?"):
            print(f"{hit.memory.content}  (because of {', '.join(hit.why.terms) or 'its meaning'})")
        print("taken back, but kept:", vault.get(coffee.id).content)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
