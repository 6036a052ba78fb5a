"""The manifest of the interop vectors: its cases, and the bytes that they name."""

import json
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "interop-vectors"

Case: TypeAlias = dict[str, Any]


def load(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def cases() -> list[Case]:
    """All cases; an empty manifest stops the run."""
    found: list[Case] = load("manifest.json")["cases"]
    if not found:
        raise ValueError("the manifest has no case")
    return found


def octets(value: Any) -> bytes:
    """The byte string that an input names."""
    match value:
        case str():
            return bytes.fromhex(value)
        case {"file": str(path), **rest} if not rest:
            return (FOLDER / path).read_bytes()
        case {"join": [*pieces], **rest} if not rest:
            return b"".join(map(octets, pieces))
        case {"repeat": piece, "times": int(times), **rest} if not rest:
            return octets(piece) * times
        case _:
            raise ValueError(f"not a byte string that this runner knows: {value!r:.80}")


def written_out(value: Any) -> Any:
    """What is expected, with hex in the place of files and repetitions."""
    match value:
        case {"file": _} | {"join": _} | {"repeat": _, "times": _}:
            return octets(value).hex()
        case dict():
            return {name: written_out(inner) for name, inner in value.items()}
        case list():
            return [written_out(inner) for inner in value]
        case _:
            return value
