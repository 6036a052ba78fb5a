"""Say how a run went: as a table by section, or as JSON."""

import json
from collections.abc import Sequence
from itertools import groupby

from memseal_conformance.running import Outcome, Result


def as_text(results: Sequence[Result]) -> str:
    """Return a table by section, a sentence for each case that did not pass, and the closing line."""
    sections = [(name, list(group)) for name, group in groupby(results, key=lambda result: result.case.section)]
    width = max(len(name) for name, _ in sections)
    lines = [f"{'section':{width}}  passed  failed  skipped"]
    for name, group in sections:
        numbers = [_count(group, outcome) for outcome in Outcome]
        lines.append(f"{name:{width}}  {numbers[0]:6}  {numbers[1]:6}  {numbers[2]:7}")
    for outcome in (Outcome.SKIPPED, Outcome.FAILED):
        for result in results:
            if result.outcome is outcome:
                lines += ["", f"{outcome.value}  {result.case.id}: {result.case.title}", f"        {result.sentence}"]
    return "\n".join([*lines, "", closing_line(results)])


def as_json(results: Sequence[Result], url: str, seed: bytes) -> str:
    """Return all results as one JSON document."""
    document = {
        "url": url,
        "seed": seed.hex(),
        **{outcome.value: _count(results, outcome) for outcome in Outcome},
        "cases": [
            {
                "id": result.case.id,
                "section": result.case.section,
                "title": result.case.title,
                "outcome": result.outcome.value,
                "sentence": result.sentence,
            }
            for result in results
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False)


def closing_line(results: Sequence[Result]) -> str:
    """Return the last line of a run."""
    return f"{_count(results, Outcome.PASSED)} passed, {_count(results, Outcome.FAILED)} failed"


def _count(results: Sequence[Result], outcome: Outcome) -> int:
    return sum(result.outcome is outcome for result in results)
