"""Do texts come back exactly, in whatever pieces a reply arrives, and is nothing left that has a stand-in?

    python tests/bench/round_trips.py [--generated 10000] [--texts FILE.jsonl …] [--most 1000]

Generated texts mix people, data, half tokens and odd characters; each line of a file has a `text`. What goes out is
searched, whatever the letter case, signs between letters, accents' forms and disguises, for every value that has a
stand-in. No text is printed.
"""

import argparse
import json
import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

import memseal
from memseal.privacy.folding import fold
from memseal.sanitize import Clean

PEOPLE = (
    "Sarah Chen|CHEN|sarah's|O'Neil|Dr. Priya Nair|王小明|Anna Петрова|J. R. Ellison|José Núñez|S\u200barah|Ｃｈｅｎ"
)
DATA = "a.b@example.com|+49 30 901820|GB82WEST12345698765432|[EMAIL_1]|EMAIL_2|\\[email\\_3\\]|[PHONE_|219-09-9999"
WORDS = "the|of|will|May|met|in|Lyon|--|\n|\t|“quoted”|3.5 %|%40|&#64;|é|Ⅷ|ß|İ|ǅ|👩‍💻|{|}|<b>|</b>|**|_|`|\\|,|."
SHORTEST = 5
SESSION = 200  # texts of one session


def generated(count: int) -> list[str]:
    """Return texts from a fixed seed."""
    draw = random.Random(7)
    kinds = [each.split("|") for each in (PEOPLE, DATA, WORDS, WORDS)]
    return [
        draw.choice((" ", " ", "", "\n")).join(draw.choice(draw.choice(kinds)) for _ in range(draw.randrange(14)))
        for _ in range(count)
    ]


def real(files: Sequence[str], most: int) -> list[str]:
    """Return texts of files, evenly taken."""
    texts = [json.loads(line)["text"] for file in files for line in Path(file).read_text("utf-8").splitlines() if line]
    return texts[:: max(1, len(texts) // most)][:most]


def pieces(text: str, draw: random.Random) -> Iterator[str]:
    """Cut a text at random places."""
    start = 0
    while start < len(text):
        end = start + draw.randrange(1, 9)
        yield text[start:end]
        start = end


def left(clean: Clean) -> int:
    """Count values that the outgoing text still has as words of their own, beside stand-ins."""
    rest = clean.text
    for item in sorted(clean.report.items, key=lambda item: -len(item.standin)):
        rest = rest.replace(item.standin, " \0 ")
    shown = _plain(rest)
    values = {"".join(filter(str.isalnum, _plain(item.value))) for item in clean.report.items}
    return sum(len(value) >= SHORTEST and _as_it_may_be_written(value).search(shown) is not None for value in values)


def _plain(text: str) -> str:
    # The small form of some letters is a letter and a mark: İ must not end a word for that.
    return "".join(letter for letter in fold(text).text.casefold() if not unicodedata.combining(letter))


def _as_it_may_be_written(value: str) -> re.Pattern[str]:
    letters = r"[^\w\0]{0,3}".join(map(re.escape, value))
    return re.compile(rf"(?<![^\W_]){letters}(?![^\W_])")


def run(texts: Sequence[str]) -> dict[str, int]:
    """Return counts over the texts."""
    draw = random.Random(3)
    counts: dict[str, int] = dict.fromkeys(
        ("texts", "refused", "come back changed", "otherwise in pieces", "values left"), 0
    )
    for start in range(0, len(texts), SESSION):
        sanitizer = memseal.Sanitizer(seed=start.to_bytes(32, "big"))
        for text in texts[start : start + SESSION]:
            counts["texts"] += 1
            try:
                clean = sanitizer.sanitize(text)
            except memseal.MemsealError:
                counts["refused"] += 1
                continue
            counts["come back changed"] += sanitizer.restore(clean) != text
            counts["otherwise in pieces"] += "".join(sanitizer.restore_stream(pieces(clean, draw))) != text
            counts["values left"] += left(clean)
    return counts


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generated", type=int, default=10_000)
    parser.add_argument("--texts", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--most", type=int, default=1_000)
    chosen = parser.parse_args()
    rows = {"generated": run(generated(chosen.generated))}
    if chosen.texts:
        rows["real"] = run(real(chosen.texts, chosen.most))
    table = Table("", *next(iter(rows.values())))
    for name, counts in rows.items():
        table.add_row(name, *(f"{count:,}" for count in counts.values()))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
