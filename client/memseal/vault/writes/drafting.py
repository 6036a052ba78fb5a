"""Between the fields that are written and the memory that apps see."""

from datetime import datetime

from memseal.memory.memory import Draft, Memory, State, draft, from_microseconds
from memseal.memory.operations import Remember
from memseal.memory.traits import carried_on, read_traits


def memory_of(operation: Remember, written_at: datetime, state: State = State.ACTIVE) -> Memory:
    """Return a memory that was just written, or would be: as the state has it, without asking."""
    what = operation.draft
    return Memory(
        id=operation.id.hex(),
        content=what.content,
        kind=what.kind,
        source=what.source,
        written_at=written_at,
        captured_at=None if what.captured_at is None else from_microseconds(what.captured_at),
        tags=tuple(sorted(what.tags)),
        author=what.author,
        thread=what.thread,
        position=what.position,
        origin=what.origin,
        state=state,
        traits=read_traits(what.others),
    )


def draft_of(memory: Memory) -> Draft:
    """Return the fields to write a memory's text again, as a version of another; its origin stays with the first."""
    what = draft(
        memory.content,
        source=memory.source,
        kind=memory.kind,
        tags=memory.tags,
        author=memory.author,
        thread=memory.thread,
        position=memory.position,
        captured_at=memory.captured_at,
    )
    return what._replace(others={**carried_on(memory.traits), **what.others})
