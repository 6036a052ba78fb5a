"""What was replaced as one page of HTML: the text and what goes out, side by side, with nothing from elsewhere."""

import html
from collections.abc import Sequence

from memseal.privacy.report import Item, Report
from memseal.surfaces.display import visible

_OUT = ' class="out"'
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem;color:#1b1f24;background:#fff}
main{display:grid;grid-template-columns:1fr 1fr;gap:1.5rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f7f9;padding:1rem;border-radius:6px}
mark{background:#ffe3a3;border-radius:3px}mark.out{background:#c9ecd2}
table{border-collapse:collapse}td,th{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #ddd}
@media(max-width:50rem){main{display:block}}
"""


def page(text: str, output: str, report: Report) -> str:
    """Return the page. It shows the values: it is as private as the text itself."""
    rows = "".join(
        f"<tr><td>{html.escape(item.type)}</td><td>{html.escape(visible(item.value))}</td>"
        f"<td>{html.escape(visible(item.standin))}</td><td>{html.escape(visible(item.source))}</td></tr>"
        for item in _distinct(report.items)
    )
    notes = "".join(f"<p>{html.escape(visible(note))}</p>" for note in report.missing)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>What leaves this device</title><style>{_STYLE}</style><h1>What leaves this device</h1>"
        "<p>This page shows the real values: keep it as private as the text.</p>"
        f"<main><section><h2>The text</h2><pre>{_marked(text, _places(report.items), '')}</pre></section>"
        f"<section><h2>What goes out</h2><pre>{_marked(output, _outgoing(report.items), _OUT)}</pre></section></main>"
        "<h2>Stand-ins</h2><table><tr><th>type</th><th>value</th><th>stand-in</th><th>found by</th></tr>"
        f"{rows}</table>{notes}</html>\n"
    )


def _places(items: Sequence[Item]) -> list[tuple[int, int, str]]:
    return [(item.start, item.end, f"{item.type}: {item.standin}") for item in items]


def _outgoing(items: Sequence[Item]) -> list[tuple[int, int, str]]:
    """Return where stand-ins are: each moves all after it by as much as it is longer than its value."""
    places: list[tuple[int, int, str]] = []
    shift = 0
    for item in items:
        start = item.start + shift
        places.append((start, start + len(item.standin), item.type))
        shift += len(item.standin) - (item.end - item.start)
    return places


def _marked(text: str, places: Sequence[tuple[int, int, str]], kind: str) -> str:
    parts: list[str] = []
    last = 0
    for start, end, title in places:
        parts += (_shown(text[last:start]), f'<mark{kind} title="{html.escape(visible(title))}">')
        parts += (_shown(text[start:end]), "</mark>")
        last = end
    return "".join((*parts, _shown(text[last:])))


def _shown(text: str) -> str:
    return "\n".join(html.escape(visible(line)) for line in text.split("\n"))


def _distinct(items: Sequence[Item]) -> list[Item]:
    return list({(item.type, item.value, item.standin): item for item in items}.values())
