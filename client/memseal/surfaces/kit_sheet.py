"""The sheet that a person keeps: an emergency kit or recovery code as text, PNG or printable HTML."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from typing import Final

from memseal.format.kit import parse_kit, parse_recovery_code

_CONSONANTS: Final = "bdfghjklmnprstvz"
_VOWELS: Final = "aiou"
_GROUPS: Final = 6
"""Groups of four letters on a line: as many as people copy without losing their place."""
_QUIET_ZONE: Final = 4
"""Light modules around a QR code, as ISO/IEC 18004 asks for."""


@dataclass(frozen=True)
class Sheet:
    """What a sheet says; `secret` is the string itself, also in the QR code."""

    title: str
    secret: str
    purpose: str
    steps: Sequence[str]
    warning: str
    facts: Sequence[tuple[str, str]]

    def lines(self) -> list[str]:
        """Return the string in lines of a few groups each."""
        groups = self.secret.split("-")
        starts = range(0, len(groups), _GROUPS)
        lines = ["-".join(groups[start : start + _GROUPS]) for start in starts]
        return [f"{line}-" for line in lines[:-1]] + lines[-1:]


def kit_sheet(kit: str, made_on: date) -> Sheet:
    """Return the sheet of an emergency kit."""
    parsed = parse_kit(kit)
    return Sheet(
        title="memseal emergency kit",
        secret=kit,
        purpose="With this kit and your passphrase, a new device joins your vault. Without the passphrase it opens"
        " nothing.",
        steps=(
            "Print this sheet or write the kit down. If you have it as a file, delete the file then.",
            "Keep it away from your devices, and do not write the passphrase on it.",
            "On a new device: run memseal join, give it this kit (typed, or read from the code), then the passphrase.",
            "After a new kit or a new passphrase this sheet opens nothing any more: destroy it, keep the newer one.",
        ),
        warning="If the passphrase is lost and there is no recovery code, nobody can recover the memories.",
        facts=_facts(parsed.vault_id, "Kit number", parsed.generation, parsed.server, made_on),
    )


def recovery_sheet(code: str, made_on: date) -> Sheet:
    """Return the sheet of a recovery code."""
    parsed = parse_recovery_code(code)
    return Sheet(
        title="memseal recovery code",
        secret=code,
        purpose="This code opens your vault alone, without the passphrase. Whoever has it can read everything.",
        steps=(
            "Print this sheet or write the code down. If you have it as a file, delete the file then.",
            "Keep it where nobody else comes: a safe, a bank, someone you would trust with all of it.",
            "When the passphrase is lost: run memseal recover, give it this code, and choose a new passphrase.",
            "After a new recovery code this sheet opens nothing any more: destroy it, keep the newer one.",
        ),
        warning="The code is kept nowhere else and cannot be shown again. If this sheet is lost, make a new one.",
        facts=_facts(parsed.vault_id, "Code number", parsed.generation, parsed.server, made_on),
    )


def _facts(vault_id: bytes, number: str, generation: int, server: str, made_on: date) -> Sequence[tuple[str, str]]:
    digits = vault_id.hex()
    return (
        ("Vault in words", in_words(vault_id)),
        ("Vault id", " ".join(digits[start : start + 8] for start in range(0, len(digits), 8))),
        ("Server", server or "none when this was made"),
        (number, str(generation)),
        ("Made on", made_on.isoformat()),
    )


def in_words(content: bytes) -> str:
    """Return bytes as words that can be read aloud: a proquint (arXiv:0901.4016) for each two bytes."""
    pairs = (int.from_bytes(content[start : start + 2], "big") for start in range(0, len(content), 2))
    return " ".join(
        _CONSONANTS[pair >> 12]
        + _VOWELS[pair >> 10 & 3]
        + _CONSONANTS[pair >> 6 & 15]
        + _VOWELS[pair >> 4 & 3]
        + _CONSONANTS[pair & 15]
        for pair in pairs
    )


# ── text ────────────────────────────────────────────────────────────────────────────────────────────


def as_text(sheet: Sheet) -> str:
    """Return the sheet as plain text."""
    width = max(len(name) for name, _ in sheet.facts) + 2
    parts = [
        [sheet.title.upper()],
        [sheet.purpose],
        [f"    {line}" for line in sheet.lines()],
        [f"{number}. {step}" for number, step in enumerate(sheet.steps, start=1)],
        [sheet.warning],
        [f"{name + ':':<{width}}{value}" for name, value in sheet.facts],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


# ── HTML ────────────────────────────────────────────────────────────────────────────────────────────

_STYLE: Final = """
@page { size: A4; margin: 18mm }
body { color: #000; background: #fff; font: 11pt/1.45 system-ui, sans-serif; max-width: 174mm; margin: 10mm auto }
h1 { font-size: 20pt; margin: 0 0 3mm }
.secret { display: flex; gap: 8mm; align-items: center; margin: 6mm 0; break-inside: avoid }
.secret svg { flex: none; width: 62mm; height: 62mm }
.secret code { font: 600 12pt/1.9 ui-monospace, monospace; white-space: pre }
li { margin: 0 0 1.5mm }
.warning { border: 0.6mm solid #000; padding: 3mm 4mm; font-weight: 600; break-inside: avoid }
table { border-collapse: collapse; margin-top: 6mm; break-inside: avoid }
th { text-align: left; font-weight: 600; padding: 0.6mm 6mm 0.6mm 0; vertical-align: top }
td { font-family: ui-monospace, monospace }
@media print { body { margin: 0 } }
"""


def as_html(sheet: Sheet) -> str:
    """Return the sheet as one HTML file for A4: no script, and nothing that is loaded from anywhere."""
    steps = "".join(f"<li>{escape(step)}</li>" for step in sheet.steps)
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in sheet.facts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        f"<title>{escape(sheet.title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(sheet.title)}</h1><p>{escape(sheet.purpose)}</p>"
        f'<div class="secret">{_svg(sheet.secret)}<code>{escape(chr(10).join(sheet.lines()))}</code></div>'
        f'<ol>{steps}</ol><p class="warning">{escape(sheet.warning)}</p><table>{rows}</table></body></html>\n'
    )


def _svg(secret: str) -> str:
    # Imported here, as Pillow is below: only who wants a picture waits for them.
    import segno

    code = segno.make(secret, error="m", micro=False)
    return code.svg_inline(border=_QUIET_ZONE, omitsize=True, svgclass=None, lineclass=None)


# ── PNG ─────────────────────────────────────────────────────────────────────────────────────────────

_DPI: Final = 150
_PAGE: Final = (1240, 1754)
"""A4 at that resolution."""
_MARGIN: Final = 110
_CODE_MOST: Final = 560
"""Pixels that a QR code may be wide: it is drawn in whole pixels for each module, so that no edge is blurred."""


def as_png(sheet: Sheet) -> bytes:
    """Return the sheet as a picture of an A4 page."""
    page = _Page()
    page.write(sheet.title, 48, after=20)
    page.write(sheet.purpose, 26, after=10)
    page.code(sheet.secret)
    for line in sheet.lines():
        page.write(line, 34, indent=60)
    page.top += 30
    for number, step in enumerate(sheet.steps, start=1):
        page.write(f"{number}.  {step}", 24, after=6)
    page.top += 14
    page.write(sheet.warning, 27, after=24)
    for name, value in sheet.facts:
        page.write(f"{name}:  {value}", 23, after=4)
    return page.to_bytes()


class _Page:
    """A page that is written from the top down."""

    def __init__(self) -> None:
        from PIL import Image, ImageDraw

        # Of a server with a very long name there is more than a page: then the picture is longer.
        self._image = Image.new("L", (_PAGE[0], 2 * _PAGE[1]), 255)
        self._draw = ImageDraw.Draw(self._image)
        self.top = _MARGIN

    def write(self, text: str, size: int, *, after: int = 0, indent: int = 0) -> None:
        """Write a paragraph, in a typeface that comes with the library."""
        from PIL import ImageFont

        font = ImageFont.load_default(size)
        for line in _wrapped(text, font.getlength, _PAGE[0] - 2 * _MARGIN - indent):
            self._draw.text((_MARGIN + indent, self.top), line, fill=0, font=font)
            self.top += size * 7 // 5
        self.top += after

    def code(self, secret: str) -> None:
        """Draw a QR code in the middle."""
        import segno

        rows = list(segno.make(secret, error="m", micro=False).matrix_iter(border=_QUIET_ZONE))
        side = _CODE_MOST // len(rows)
        left = (_PAGE[0] - len(rows) * side) // 2
        for number, row in enumerate(rows):
            for column, dark in enumerate(row):
                if dark:
                    x, y = left + column * side, self.top + number * side
                    self._draw.rectangle((x, y, x + side - 1, y + side - 1), fill=0)
        self.top += len(rows) * side

    def to_bytes(self) -> bytes:
        """Return the page as a PNG file."""
        target = io.BytesIO()
        self._image.crop((0, 0, _PAGE[0], max(_PAGE[1], self.top + _MARGIN))).save(
            target, "PNG", optimize=True, dpi=(_DPI, _DPI)
        )
        return target.getvalue()


def _wrapped(text: str, width: Callable[[str], float], most: int) -> list[str]:
    """Return a paragraph in lines that are at most so wide; a word that is wider has a line of its own."""
    lines = list[str]()
    for word in text.split():
        if lines and width(f"{lines[-1]} {word}") <= most:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
