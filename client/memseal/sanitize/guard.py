"""A client of a provider, wrapped: what is called with it is sanitized, what it answers is restored."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Self

from memseal.sanitize import records
from memseal.sanitize.answers import Answers
from memseal.sanitize.outgoing import Outgoing
from memseal.sanitize.pieces import Pieces
from memseal.sanitize.thoughts import Thoughts

if TYPE_CHECKING:
    from memseal.sanitize.sanitizer import Sanitizer

# These make a client with other settings, such as its key; they send nothing.
_SETTINGS: Final = frozenset(("with_options", "copy"))


def guarded(client: Any, sanitizer: "Sanitizer") -> "Guarded":
    """Return a client whose calls are sanitized and whose answers are restored."""
    thoughts = Thoughts()
    return Guarded(client, Outgoing(sanitizer, thoughts), Answers(sanitizer, thoughts))


class Guarded:
    """Stands for a client or a part of one; everything that is called through it passes the sanitizer."""

    def __init__(self, inner: Any, outgoing: Outgoing, answers: Answers) -> None:
        """Take the client, and what its calls and answers go through."""
        self._inner = inner
        self._outgoing = outgoing
        self._answers = answers

    def __repr__(self) -> str:
        return f"<guarded {type(self._inner).__name__}>"

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in _SETTINGS:
            return self._with_settings(found)
        if isinstance(found, (str, int, float, bytes, type(None))):
            return found
        if records.is_value(found):  # such as what a stream has gathered until now
            return self._answers.restored(found)
        if hasattr(found, "__next__") or hasattr(found, "__anext__"):
            part = GuardedStream(found, self._outgoing, self._answers)
            setattr(self, name, part)  # the same at the next look: it holds back the end of a text
            return part
        return Guarded(found, self._outgoing, self._answers)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call what is wrapped with stand-ins, and return its answer with real values.

        Raises `SanitizerInput`, `SanitizerFailed` or `SanitizerBlocked`; then nothing is let out.
        """
        given, named = self._outgoing.clean(args, kwargs)
        return self._answer(self._inner(*given, **named))

    def __enter__(self) -> Any:
        return self._entered(self._inner.__enter__())

    def __exit__(self, *error: object) -> Any:
        return self._inner.__exit__(*error)

    async def __aenter__(self) -> Any:
        return self._entered(await self._inner.__aenter__())

    async def __aexit__(self, *error: object) -> Any:
        return await self._inner.__aexit__(*error)

    def _entered(self, entered: Any) -> Any:
        return self if entered is self._inner else self._answer(entered)

    def _with_settings(self, change: Callable[..., Any]) -> Callable[..., "Guarded"]:
        def other(**settings: Any) -> Guarded:
            return Guarded(change(**settings), self._outgoing, self._answers)

        return other

    def _answer(self, answer: Any) -> Any:
        if hasattr(answer, "__await__"):
            return self._awaited(answer)
        if records.is_value(answer):
            return self._answers.restored(answer)
        if hasattr(answer, "__aiter__") or records.is_stream(answer):
            return GuardedStream(answer, self._outgoing, self._answers)
        return Guarded(answer, self._outgoing, self._answers)  # such as a raw response: its methods return answers

    async def _awaited(self, answer: Any) -> Any:
        return self._answer(await answer)


class GuardedStream(Guarded):
    """Stands for an answer that arrives in pieces; together they are what restoring it whole gives."""

    def __init__(self, inner: Any, outgoing: Outgoing, answers: Answers) -> None:
        """Take the stream, and what calls and answers go through."""
        super().__init__(inner, outgoing, answers)
        self._pieces = self._restored()
        self._async_pieces = self._awaited_pieces()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return next(self._pieces)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._async_pieces)

    def _restored(self) -> Iterator[Any]:
        pieces = Pieces(self._answers)
        for piece in self._inner:
            yield from map(self._answered, pieces.take(piece))
        yield from pieces.rest()

    def _answered(self, piece: Any) -> Any:
        return piece if records.is_value(piece) else Guarded(piece, self._outgoing, self._answers)

    async def _awaited_pieces(self) -> AsyncIterator[Any]:
        pieces = Pieces(self._answers)
        async for piece in self._inner:
            for shown in pieces.take(piece):
                yield self._answered(shown)
        for shown in pieces.rest():
            yield shown
