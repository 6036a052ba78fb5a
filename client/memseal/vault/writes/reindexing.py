"""Give vectors to the memories that have none of the pinned model."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from memseal.embedding import Embedder
from memseal.errors import EmbedderUnavailable
from memseal.index.view import EMBEDDING
from memseal.memory.memory import to_microseconds
from memseal.memory.operations import Setting
from memseal.recall import index_text
from memseal.vault.folder.batch import Batch
from memseal.vault.folder.opening import Opened
from memseal.vault.writes.writing import embed_batches, new_id, unit_codes

_STEP = 256  # memories a step: each step is one durable write, and what a break costs at most


def reindex(
    writing: Callable[[], AbstractContextManager[Opened]],
    write: Callable[[Sequence[Batch]], None],
    embedder: Embedder | None,
    progress: Callable[[int, int], None] | None,
) -> int:
    """Embed step by step; the vault is free for others between two steps."""
    if embedder is None:
        raise EmbedderUnavailable("no embedding model: install memseal[embed], or open the vault with an embedder")
    done, total = 0, None
    while True:
        with writing() as opened:
            _pin(opened, write, embedder)
            missing = opened.logbook.view.state.without_vector(_STEP)
            if total is None:
                total = opened.logbook.view.state.count("m.vector IS NULL")
            if not missing:
                return done
            vectors = embedder.embed([index_text(content, author) for _, content, author in missing])
            codes = unit_codes(vectors, len(missing))
            write(embed_batches([target for target, _, _ in missing], embedder.name, codes))
            done += len(missing)
        if progress is not None:
            progress(done, max(total, done))


def _pin(opened: Opened, write: Callable[[Sequence[Batch]], None], embedder: Embedder) -> None:
    """Pin the embedder's model; where another was pinned, the vectors of that one are passed over from now on."""
    view = opened.logbook.view
    if view.pinned == (embedder.name, embedder.dimension):
        return
    value = {"model": embedder.name, "dimension": embedder.dimension}
    write([Batch([Setting(new_id(), EMBEDDING, value, to_microseconds(datetime.now(UTC)))])])
