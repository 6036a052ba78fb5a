"""The diary of the source tree, with what its own page says about it."""

import re
from dataclasses import dataclass
from pathlib import Path

import memseal

_SENTENCES = re.compile(r"## Ten sentences.*?```\n(.*?)```", re.DOTALL)
_QUESTION = re.compile(r"^\| (?P<question>[^|`]+) \| `(?P<entry>diary-\d{4})` \|", re.MULTILINE)


@dataclass(frozen=True)
class Diary:
    """Where the entries are, ten sentences that stand in them, and questions with the entry that answers each."""

    path: Path
    sentences: tuple[str, ...]
    questions: dict[str, str]


def find_diary() -> Diary | None:
    """Return the diary, or None where memseal does not run from its source tree."""
    folder = Path(memseal.__file__).parents[2] / "examples" / "data"
    path, page = folder / "diary.jsonl", folder / "README.md"
    if not path.is_file() or not page.is_file():
        return None
    text = page.read_text(encoding="utf-8")
    block = _SENTENCES.search(text)
    sentences = tuple(block[1].splitlines()) if block else ()
    questions = {match["entry"]: match["question"] for match in _QUESTION.finditer(text)}
    return Diary(path, sentences, questions)
