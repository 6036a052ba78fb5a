"""The sanitizer: what goes out has stand-ins, what comes back has the real values."""

import asyncio
import hashlib
import secrets
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, cast, overload

from memseal.errors import SanitizerBlocked, SanitizerFailed, SanitizerInput
from memseal.privacy import structures, tokens
from memseal.privacy.checking import Finder
from memseal.privacy.folding import key_of
from memseal.privacy.known import Known
from memseal.privacy.lexicon import Lexicon
from memseal.privacy.pairs import Pairs
from memseal.privacy.remaining import counts, originals, says_more
from memseal.privacy.replacing import Replacement, replace
from memseal.privacy.report import joined, report_of
from memseal.privacy.restoring import Restorer, Stream
from memseal.privacy.spans import NATURAL, Span, resolve
from memseal.sanitize.acquaintances import HasMemories, KeepsSessions, acquaintances
from memseal.sanitize.detecting import Detector, Source
from memseal.sanitize.guard import guarded
from memseal.sanitize.lexicon import lexicon
from memseal.sanitize.model import NameModel, default_model
from memseal.sanitize.pools import pools
from memseal.sanitize.results import Clean, CleanMessages, CleanObject

MOST_CHARACTERS: Final = 1_000_000  # of one text: what is longer is refused rather than let through in part
_ROUNDS: Final = 4  # of repairing before nothing is let out
_CACHED: Final = 4_096

ModelChoice = NameModel | None | Literal["default"]


class Sanitizer:
    """One session's stand-ins. The same object serves all its messages, and any number of threads."""

    def __init__(
        self,
        *,
        vault: HasMemories | KeepsSessions | None = None,
        session: str | None = None,
        owner: str | Iterable[str] = (),
        contacts: str | Iterable[str] = (),
        terms: Mapping[str, str | Iterable[str]] | None = None,
        allow: str | Iterable[str] = (),
        model: ModelChoice = "default",
        sources: Sequence[Source] = (),
        detector: Detector | None = None,
        thresholds: Mapping[str, float] | None = None,
        on_leak: Literal["repair", "block"] = "repair",
        seed: bytes | None = None,
    ) -> None:
        """Start a session.

        `owner` are the user's names and aliases, `contacts` people's names, `terms` other words by kind; all are always
        replaced, as are people that the vault knows. `allow` is never replaced. `sources` are the app's recognisers.
        Where something is left after replacing, it is replaced as well, or with `on_leak="block"` an error is raised.
        `session` names one that the vault keeps: it goes on where it was kept last, see `keep`. Raises `SessionLost`
        where that is damaged.
        """
        self._lexicon: Lexicon = lexicon()
        people = [
            *_several(owner),
            *_several(contacts),
            *(acquaintances(vault, self._lexicon) if vault is not None else ()),
        ]
        listed = {"PERSON": people}
        for kind, given in (terms or {}).items():
            listed.setdefault(kind, []).extend(_several(given))
        self._listed = Known(listed)
        self._detector = detector or Detector(
            default_model() if model == "default" else model, self._listed, sources, thresholds=thresholds
        )
        self._allowed = {key_of(term) for term in _several(allow)}
        self._on_leak = on_leak
        self._pairs = Pairs(seed or secrets.token_bytes(32), self._lexicon, pools(self._lexicon))
        self._busy = threading.RLock()
        self._found: dict[bytes, list[Span]] = {}
        self._issued: set[bytes] = set()
        self._restorer = Restorer(self._pairs)
        self._finder = Finder(self._pairs, self._lexicon)
        self._session = None if session is None else _Session(vault, session)
        if self._session is not None and (kept := self._session.kept()) is not None:
            self.load(kept)

    def __repr__(self) -> str:
        return f"<Sanitizer with {len(self._pairs)} stand-ins>"

    @property
    def missing(self) -> tuple[str, ...]:
        """What this installation cannot find, in sentences."""
        return self._detector.missing

    @overload
    def sanitize(self, content: str) -> Clean: ...
    @overload
    def sanitize(self, content: list[Any]) -> CleanMessages: ...
    @overload
    def sanitize(self, content: dict[str, Any]) -> CleanObject: ...
    def sanitize(self, content: str | list[Any] | dict[str, Any]) -> Clean | CleanMessages | CleanObject:
        """Return the content with stand-ins: a text, a list of messages, or a message or tool call.

        Raises `SanitizerInput`, `SanitizerFailed` or `SanitizerBlocked`; then nothing is let out.
        """
        if isinstance(content, str):
            return self.sanitize_many([content])[0]
        walked = structures.texts_of(content)
        clean = self.sanitize_many(walked)
        changed = structures.with_texts(content, clean)
        report = joined([text.report for text in clean], self.missing)
        return CleanObject(changed, report) if isinstance(content, dict) else CleanMessages(changed, report)

    def sanitize_many(self, texts: Sequence[str]) -> list[Clean]:
        """Return several texts with stand-ins; together is faster than one by one."""
        for text in texts:
            _check(text)
            if isinstance(text, Clean):  # once is enough, even where it is nothing but stand-ins
                self._issued.add(_digest(text))
        spans = self._detected(texts)
        with self._busy:
            for text in texts:
                if _digest(text) not in self._issued:
                    self._pairs.see(text)
            if len(texts) > 1:  # what the last one tells is known in the first one then
                for text, found in zip(texts, spans, strict=True):
                    self._replaced(text, found)
            return self._checked(texts, spans)

    @overload
    def restore(self, reply: str) -> str: ...
    @overload
    def restore(self, reply: list[Any]) -> list[Any]: ...
    @overload
    def restore(self, reply: dict[str, Any]) -> dict[str, Any]: ...
    def restore(self, reply: str | list[Any] | dict[str, Any]) -> str | list[Any] | dict[str, Any]:
        """Return the reply with the real values of stand-ins that this session issued; nothing else changes."""
        restorer = self.restorer()
        if isinstance(reply, str):
            return restorer.restore(reply)
        restored = [restorer.restore(text) for text in structures.texts_of(reply)]
        changed: list[Any] | dict[str, Any] = structures.with_texts(reply, restored)
        return changed

    def restore_stream(self, chunks: Iterable[str]) -> Iterator[str]:
        """Return a reply that arrives in pieces with real values: together what `restore` of the whole gives."""
        stream = self.stream()
        for chunk in chunks:
            if shown := stream.push(chunk):
                yield shown
        if shown := stream.end():
            yield shown

    async def arestore_stream(self, chunks: AsyncIterable[str]) -> AsyncIterator[str]:
        """Do what `restore_stream` does, where pieces are awaited."""
        stream = self.stream()
        async for chunk in chunks:
            if shown := stream.push(chunk):
                yield shown
        if shown := stream.end():
            yield shown

    async def asanitize(self, content: Any) -> Any:
        """Do what `sanitize` does, in a thread."""
        return await asyncio.to_thread(self.sanitize, content)

    @contextmanager
    def guard(self, client: Any) -> Generator[Any]:
        """Lend a provider's client whose calls are sanitized and whose answers are restored, streamed ones too.

        It may be of the shape that OpenAI's has (chat completions, responses) or Anthropic's (messages), or any other:
        all that is handed over is sanitized, or looked at where programs read it (ids, names of tools and fields), or
        refused where it cannot be looked through (files other than pictures, tokens, objects, functions).
        """
        yield guarded(client, self)

    def known(self, text: str) -> list[Span]:
        """Return what a text has of this session's values and of the names given by list; makes no stand-in."""
        with self._busy:
            return [*self._known(text), *self._permitted(text, self._listed.find(text))]

    def personal(self, text: str) -> list[Span]:
        """Return all that is personal in a text; makes no stand-in. Raises what `sanitize` raises."""
        _check(text)
        return [*self.known(text), *self._detected([text])[0]]

    def stream(self, escape: Callable[[str], str] = str) -> Stream:
        """Return what restores one reply piece by piece."""
        return Stream(self.restorer, escape)

    def restorer(self) -> Restorer:
        """Return what restores everything that was issued until now."""
        with self._busy:
            self._restorer.renew()
            return self._restorer

    def save(self) -> dict[str, Any]:
        """Return the session as plain values. They are as secret as what they hide: keep them sealed."""
        with self._busy:
            return {**self._pairs.save(), "issued": sorted(self._issued)}

    def keep(self) -> None:
        """Keep the session in the vault, sealed, under the name it was made with.

        Raises `SessionLost` where something was erased since it began: it may hold that; begin another one.
        """
        if self._session is None:
            raise SanitizerInput("a session that is kept has a vault and a name: Sanitizer(vault=vault, session=name)")
        self._session.keep(self.save())

    def load(self, saved: Mapping[str, Any]) -> None:
        """Go on with a session that was saved; raises `SanitizerInput` where this is none, or newer software's."""
        with self._busy:
            try:
                self._pairs = Pairs.load(saved, self._lexicon, pools(self._lexicon))
                self._issued = {_digest_of(each) for each in saved["issued"]}
            except (KeyError, TypeError, ValueError) as error:
                raise SanitizerInput("this is no saved session that this version knows") from error
            self._restorer = Restorer(self._pairs)
            self._finder = Finder(self._pairs, self._lexicon)

    def _detected(self, texts: Sequence[str]) -> list[list[Span]]:
        digests = [_digest(text) for text in texts]
        with self._busy:
            todo = {
                digest: text
                for digest, text in zip(digests, texts, strict=True)
                if digest not in self._found and digest not in self._issued
            }
        found = dict(zip(todo, self._run(list(todo.values())), strict=True))
        with self._busy:
            if len(self._found) > _CACHED:
                self._found.clear()
            self._found.update(found)
            return [self._found.get(digest) or found.get(digest, []) for digest in digests]

    def _run(self, texts: list[str]) -> list[list[Span]]:
        try:
            found = self._detector.detect(texts)
        except Exception as error:  # noqa: BLE001  see below
            # Whatever a recogniser raises: without it nothing may leave, and the error's words may hold the text.
            raise SanitizerFailed(f"a recogniser failed ({type(error).__name__}), so nothing was let out") from None
        return [
            [
                span
                for span in spans
                if 0 <= span.start < span.end <= len(text) and key_of(text[span.start : span.end]) not in self._allowed
            ]
            for text, spans in zip(texts, found, strict=True)
        ]

    def _replaced(self, text: str, found: Sequence[Span]) -> tuple[str, list[Replacement]]:
        """Replace what was found, what is known, and what reads like a stand-in; it must come back exactly."""
        if _digest(text) in self._issued:
            return text, []
        spans = resolve(text, (*found, *self._known(text), *self._lookalikes(text)))
        for natural in (True, False):
            output, made = replace(text, spans, self._pairs, natural=natural)
            if self.restorer().restore(output) == text:
                return output, made
        raise SanitizerFailed("the text would not come back as it was, so nothing was let out")

    def _known(self, text: str) -> list[Span]:
        self._finder.renew()
        return self._permitted(text, self._finder.find(text))

    def _permitted(self, text: str, found: Iterable[Span]) -> list[Span]:
        return [span for span in found if key_of(text[span.start : span.end]) not in self._allowed]

    def _lookalikes(self, text: str) -> list[Span]:
        """Return what is no stand-in here but reads like one: it gets a stand-in, and so comes back unharmed."""
        found = [Span(match.start(), match.end(), "TEXT", 1.0, "token") for match in tokens.LIKE.finditer(text)]
        for start, end, entry in self.restorer().issued(text):
            if not entry.standin.startswith("["):
                found.append(Span(start, end, entry.type if entry.type in NATURAL else "TEXT", 0.98, "stand-in"))
        return found

    def _checked(self, texts: Sequence[str], spans: list[list[Span]]) -> list[Clean]:
        repaired: list[set[tuple[int, int]]] = [set() for _ in texts]
        left: list[list[Span]] = []
        for _ in range(_ROUNDS):
            drafts = [self._replaced(text, found) for text, found in zip(texts, spans, strict=True)]
            left = self._left(texts, drafts)
            if not any(left):
                break
            if self._on_leak == "block":
                raise SanitizerBlocked(_types(left))
            spans = [[*found, *more] for found, more in zip(spans, left, strict=True)]
            for known, more in zip(repaired, left, strict=True):
                known.update((span.start, span.end) for span in more)
        else:
            raise SanitizerBlocked(_types(left))
        self._issued.update(_digest(output) for output, made in drafts if says_more(output, made))
        return [
            Clean(output, report_of(text, output, made, frozenset(places), self.missing))
            for text, (output, made), places in zip(texts, drafts, repaired, strict=True)
        ]

    def _left(self, texts: Sequence[str], drafts: Sequence[tuple[str, list[Replacement]]]) -> list[list[Span]]:
        """Return what is personal in the outgoing texts still, in the places of the originals."""
        again = self._detected([output for output, _ in drafts])
        return [
            []
            if _digest(text) in self._issued
            else [
                span
                for found in (*self._known(output), *(span for span in second if counts(span)))
                for span in originals(text, made, found, self._lexicon)
            ]
            for text, (output, made), second in zip(texts, drafts, again, strict=True)
        ]


class _Session:
    """A session's place in a vault, and the erasures that were known when it began."""

    def __init__(self, vault: HasMemories | KeepsSessions | None, name: str) -> None:
        if vault is None or not hasattr(vault, "keep_session"):
            raise SanitizerInput("only a vault keeps a session: Sanitizer(vault=vault, session=name)")
        self._vault = cast("KeepsSessions", vault)
        self._name = name
        self._fence = self._vault.session_fence()

    def kept(self) -> dict[str, Any] | None:
        return self._vault.kept_session(self._name)

    def keep(self, saved: dict[str, Any]) -> None:
        self._vault.keep_session(self._name, saved, self._fence)


def _types(left: Sequence[Sequence[Span]]) -> tuple[str, ...]:
    return tuple(sorted({span.type for spans in left for span in spans}))


def _check(text: str) -> None:
    if not isinstance(text, str):
        raise SanitizerInput("a text is needed")
    if len(text) > MOST_CHARACTERS:
        raise SanitizerInput(f"the text has more than {MOST_CHARACTERS:,} characters: cut it into several")


def _digest_of(value: Any) -> bytes:
    if type(value) is not bytes:
        raise TypeError("a digest that is no byte string")
    return value


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _several(given: str | Iterable[str]) -> Iterable[str]:
    """Return what was given as one or several; a text taken for several would be its letters."""
    return (given,) if isinstance(given, str) else given
