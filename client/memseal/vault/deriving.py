"""The part of an open vault that is about what is made of memories."""

from collections.abc import Sequence
from typing import Protocol

from memseal.consolidation.atoms import Group
from memseal.consolidation.wording import Wording, prompt_of
from memseal.errors import MemoryUnknown
from memseal.memory.texts import parse_id
from memseal.vault.folder.batch import Batch
from memseal.vault.held import Held
from memseal.vault.writes import consolidating, writing
from memseal.vault.writes.consolidating import Consolidation, Planned
from memseal.vault.writes.masking import covered
from memseal.vault.writes.writing import embedded_vectors, new_id, remember_batches


class Sanitizing(Protocol):
    """What swaps personal data for stand-ins, and back: a `memseal.Sanitizer`."""

    def sanitize_many(self, texts: Sequence[str], /) -> Sequence[str]:
        """Return the texts with stand-ins."""
        ...

    def restore(self, reply: str, /) -> str:
        """Return a reply with the real values."""
        ...


class Deriving(Held):
    """Composites and affinities are made of memories, and taken back."""

    def plan_consolidation(self) -> list[Planned]:
        """Return what `consolidate` would make now, worded by template; nothing is written."""
        with self._reading() as opened:
            view = opened.logbook.view
            groups = consolidating.groups_of(view, writing.present())
            return [consolidating.planned(group, consolidating.worded(view, group)) for group in groups]

    def consolidate(
        self, *, wording: Wording | None = None, sanitizer: Sanitizing | None = None, if_due: bool = False
    ) -> Consolidation:
        """Make composites (by week, by topic) and affinities (what recurs) of the active atoms, in one durable write.

        Each names in `derived_from` what it was made of. Memories are added, none is changed or taken out of recall but
        an earlier version of a pattern that has grown; what was made already, or was undone, is not made again.
        `wording(prompt)` writes the texts instead of the templates: it sees the memories through `sanitizer` alone
        (`memseal.Sanitizer`), which is needed then, and its answer is restored. With `if_due` nothing is done where a
        run was made in this week already (ISO 8601, in UTC), here or on a device that was synchronised with since: call
        it as often as you like, at each start or once a day. Raises `TypeError`, `MemoryInvalid` for
        an answer that can be no memory, or what `wording` and the sanitizer raise; then nothing was written.
        """
        if wording is not None and sanitizer is None:
            raise TypeError("wording needs a sanitizer: the memories must not leave as they are")
        if if_due and not self._is_consolidation_due():
            return Consolidation(None, ())
        answers: dict[tuple[object, ...], str] = {}
        if wording is not None and sanitizer is not None:
            with self._reading() as opened:
                groups = consolidating.groups_of(opened.logbook.view, writing.present())
            # The vault is free meanwhile: a model takes its time.
            answers = {_what(group): _asked(group, wording, sanitizer) for group in groups}
        with self._writing() as opened:
            view, now = opened.logbook.view, writing.present()
            groups = consolidating.groups_of(view, now)
            if wording is not None:  # what changed meanwhile is for the next run
                groups = [group for group in groups if _what(group) in answers]
            wanted = [
                consolidating.planned(group, answers.get(_what(group)) or consolidating.worded(view, group))
                for group in groups
            ]
            run = new_id()
            operations, made = consolidating.operations_of(view, wanted, run, now)
            vectors = embedded_vectors(view, self._embedder, [each.draft for each in operations])
            if batches := [*remember_batches(view, operations, vectors, now), *consolidating.noted(view, now)]:
                self._write(batches)
            return Consolidation(run.hex() if made else None, tuple(made))

    def _is_consolidation_due(self) -> bool:
        with self._writing() as opened:
            return consolidating.is_due(opened.logbook.view, writing.present())

    def undo_consolidation(self, run: str) -> int:
        """Take back all that a run made, and return how many memories that is; it is not made again.

        They are retracted: `restore` brings single ones back. Raises `MemoryUnknown` where nothing stands of it.
        """
        with self._writing() as opened:
            operations, count = consolidating.undo_of(opened.logbook.view, parse_id(run).hex(), writing.present())
            if not count:
                raise MemoryUnknown("nothing stands of a consolidation with this id")
            self._write([Batch(operations)])
            return count


def _what(group: Group) -> tuple[object, ...]:
    return group.rule, group.key, group.replaces, tuple(member.id for member in group.members)


def _asked(group: Group, wording: Wording, sanitizer: Sanitizing) -> str:
    # The texts, and not the prompt: what is said of a person in one counts for all, and nothing is replaced twice.
    contents = sanitizer.sanitize_many([covered(member.content) for member in group.members])
    answer: object = wording(prompt_of(group, contents))
    return consolidating.checked_answer(sanitizer.restore(answer) if isinstance(answer, str) else answer)
