"""Vectors of the strings that people keep: emergency kit and recovery code (§7)."""

from hashlib import sha256
from typing import Any

from making.book import Book, Group
from making.keyrings import kit_secret, recovery_secret
from making.people import VAULT
from making.sealing import crockford, grouped, kit_bytes, kit_text, recovery_text

RULE = "vault-format §7"
SERVER = b"https://memory.example:8443"


def add(book: Book) -> None:
    group = book.group("kit")
    _add_kits(group)
    _add_kit_faults(group)
    _add_codes(group)


def _gives(secret: bytes, generation: int = 1, server: str = "") -> dict[str, Any]:
    return {"vault_id": VAULT, "secret": secret, "generation": generation, "server": server}


def _add_kits(group: Group) -> None:
    def reads(name: str, title: str, text: str, generation: int = 1, server: str = "") -> None:
        gives = _gives(kit_secret(generation), generation, server)
        group.ok(f"parse-{name}", RULE, title, "parse_kit", {"text": text}, **gives)

    text = kit_text()
    reads("plain", "a kit without a server", text)
    reads("server", "a kit with a server's identity", kit_text(server=SERVER), server=SERVER.decode())
    umlaut = "https://ged\u00e4chtnis.example"
    reads("server-utf8", "a server's identity in UTF-8", kit_text(server=umlaut.encode()), server=umlaut)
    reads("generation", "a kit of a later generation", kit_text(70_000), 70_000)
    reads("lower", "in lower case", text.lower())
    reads("no-hyphens", "without hyphens", text.replace("-", ""))
    reads("other-groups", "in groups of five, on two lines", "\r\n".join(_cut(text.replace("-", ""), 40)))
    reads(
        "spaces",
        "with white space of many kinds around and in it",
        "\u00a0\t" + text.replace("-", "\u2003") + "\u3000\n",
    )
    reads("letter-o", "O for each 0", text.replace("0", "O"))
    reads("letter-i", "I for each 1, in the prefix too", text.replace("1", "I"))
    reads("letter-l", "a small l for each 1", text.replace("1", "l"))


def _cut(text: str, size: int) -> list[str]:
    return [" ".join(_cut_groups(text[start : start + size])) for start in range(0, len(text), size)]


def _cut_groups(text: str) -> list[str]:
    return [text[start : start + 5] for start in range(0, len(text), 5)]


def _add_kit_faults(group: Group) -> None:
    def refused(name: str, title: str, text: str, code: str = "kit_malformed") -> None:
        group.refused(f"parse-{name}", RULE, title, "parse_kit", {"text": text}, code)

    text = kit_text()
    content = kit_bytes(kit_secret(1))
    middle = len(text) // 2
    other = "7" if text[middle] != "7" else "8"
    refused("letter", "one letter is another", text[:middle] + other + text[middle + 1 :])
    refused("letter-u", "it has a letter U", text[:-1] + "U")
    refused("letter-outside", "it has a letter of another script", text[:-1] + "\u0410")
    refused("letter-upper", "a dotless i, of which the capital is I", text.replace("1", "\u0131"))
    refused("hyphen-other", "another hyphen, which is no white space", text.replace("-", "\u2010"))
    refused("zero-width", "a zero-width space, which is no white space", text[:10] + "\u200b" + text[10:])
    refused("swapped", "two groups in another order", _swapped(text))
    refused("short", "the last letter is missing", text[:-1])
    refused("long", "one letter more", text + "0")
    refused("group-missing", "the last group is missing", text.rsplit("-", 1)[0])
    refused("empty", "nothing", "")
    refused("prefix-alone", "the prefix and no more", "MSEAL1-")
    refused("prefix-other", "another prefix", "MSEAL2" + text[6:])
    refused("prefix-missing", "no prefix", text[7:])
    refused("check", "the check is wrong", grouped(crockford(content[:-1] + bytes([content[-1] ^ 1])), "MSEAL1"))
    refused("check-label", "the check of another label", kit_text(label=b"memseal/v1/recovery"))
    refused("bits", "bits after the last byte that are not zero", text[:-1] + _next_letter(text[-1]))
    refused("bytes-few", "a byte too few, with a right check", resealed(content[:-5]))
    refused("server-bytes", "the server's identity is not UTF-8", kit_text(server=b"https://\xff"))
    refused("recovery", "a recovery code", recovery_text())
    refused("version", "another first byte, with a right check", kit_text(first=3), "kit_version")
    refused("version-0", "first byte 0", kit_text(first=0), "kit_version")


def _swapped(text: str) -> str:
    pieces = text.split("-")
    return "-".join([pieces[0], pieces[2], pieces[1], *pieces[3:]])


def _next_letter(letter: str) -> str:
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    return alphabet[alphabet.index(letter) + 1]


def resealed(content: bytes) -> str:
    return grouped(crockford(content + sha256(b"memseal/v1/kit" + content).digest()[:4]), "MSEAL1")


def _add_codes(group: Group) -> None:
    def reads(name: str, title: str, text: str, generation: int = 1, server: str = "") -> None:
        gives = _gives(recovery_secret(generation), generation, server)
        group.ok(f"code-{name}", RULE, title, "parse_recovery", {"text": text}, **gives)

    def refused(name: str, title: str, text: str, code: str = "kit_malformed") -> None:
        group.refused(f"code-{name}", RULE, title, "parse_recovery", {"text": text}, code)

    text = recovery_text()
    reads("plain", "a recovery code without a server", text)
    reads("server", "a recovery code with a server's identity", recovery_text(server=SERVER), server=SERVER.decode())
    reads(
        "mistyped",
        "lower case, spaces, o for 0 and l for 1",
        text.lower().replace("-", " ").replace("0", "o").replace("1", "l"),
    )
    refused("kit", "an emergency kit", kit_text())
    refused("letter-u", "it has a letter U", text[:-1] + "U")
    refused("short", "the last letter is missing", text[:-1])
    refused("check-label", "the check of an emergency kit", recovery_text(label=b"memseal/v1/kit"))
    refused("prefix-kit", "a recovery code behind the prefix of a kit", text.replace("MSEAL1R", "MSEAL1"))
    secret = kit_bytes(kit_secret(1), first=2, label=b"memseal/v1/recovery")
    refused("secret-short", "a secret of 16 bytes", grouped(crockford(secret), "MSEAL1R"))
    refused("version", "first byte 1, with a right check", recovery_text(first=1), "kit_version")
