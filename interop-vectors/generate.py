"""Write the vectors: the manifest, its schema, the files of the cases, the tables that count them."""

import argparse
import json
import sys
from pathlib import Path

from making import groups, operations, tables
from making.book import Book, manifest_text

FOLDER = Path(__file__).parent
SPEC = FOLDER.parent / "format-spec"
# Folders whose files come from here alone; one that no case needs any more is removed.
OWN = ("frozen", "cases")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true", help="write nothing; fail where something would change")
    made = files()
    if not arguments.parse_args().check:
        _write(made)
        return
    stale = [path for path, content in made.items() if not path.is_file() or path.read_bytes() != content]
    stale += [path for path in _own_files() if path not in made]
    for path in stale:
        print(f"not what the generator makes: {path.relative_to(FOLDER.parent)}", file=sys.stderr)
    sys.exit(1 if stale else 0)


def files() -> dict[Path, bytes]:
    """Return the content of each file by its path."""
    book = Book(FOLDER)
    for add in groups.ALL:
        add(book)
    made = {FOLDER / path: content for path, content in book.all_files().items()}
    made[FOLDER / "manifest.json"] = manifest_text(book.cases).encode()
    schema = operations.schema(tables.codes(SPEC / "errors.md"))
    made[FOLDER / "manifest.schema.json"] = (json.dumps(schema, indent=1) + "\n").encode()
    made |= {FOLDER.parent / path: text.encode() for path, text in book.pages.items()}
    readme = FOLDER / "README.md"
    made[readme] = tables.filled(readme.read_text(encoding="utf-8"), book.cases).encode()
    return made


def _write(made: dict[Path, bytes]) -> None:
    for path in _own_files():
        if path not in made:
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
    for path, content in made.items():
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _own_files() -> list[Path]:
    return [path for name in OWN for path in (FOLDER / name).rglob("*") if path.is_file()]


if __name__ == "__main__":
    main()
