"""What a call hands to a provider: texts get stand-ins, what programs read is looked at, all else is refused."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from memseal.errors import SanitizerBlocked, SanitizerInput
from memseal.privacy.spans import NATURAL
from memseal.sanitize import fields, records
from memseal.sanitize.fields import Mode
from memseal.sanitize.thoughts import Thoughts

if TYPE_CHECKING:
    from memseal.sanitize.sanitizer import Sanitizer

_NEVER_SENT: Final = frozenset(("timeout", "max_retries", "cast_to", "stream_cls"))
_NOT_GIVEN: Final = frozenset(("NotGiven", "Omit"))  # how clients mark an argument that was left out
# Of the headers of a call these are how it proves itself; no other may say anything personal.
_PROOFS: Final = frozenset(("authorization", "x-api-key", "api-key", "proxy-authorization"))
_PLACED: Final = "argument "  # begins the name of an argument that has none
_PLAIN: Final = re.compile(r"[A-Za-z_$./-]{1,40}\Z")  # a field, a tool: neither a number nor a key
_SURE: Final = 0.97  # of a secret: ids look random as well
_LONG_NUMBER: Final = 1_000_000  # a shorter one identifies nobody
_DEEPEST: Final = 64


class Outgoing:
    """Makes the arguments of a call fit to leave; what is not fit raises, and nothing leaves."""

    def __init__(self, sanitizer: "Sanitizer", thoughts: Thoughts) -> None:
        """Take the session, and the thoughts that go back as they came."""
        self._sanitizer = sanitizer
        self._thoughts = thoughts

    def clean(self, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments with stand-ins; those in which nothing was replaced stay the very objects they were.

        Raises `SanitizerInput` for what cannot be looked through, and `SanitizerBlocked` for something personal where
        programs read.
        """
        arguments = {**{f"{_PLACED}{place}": value for place, value in enumerate(given, 1)}, **named}
        plain = {name: records.plain(value) for name, value in arguments.items()}
        texts: list[str] = []
        words: list[_Word] = []
        for name, value in plain.items():
            _Walk(name, _keeping(texts), words.append, self._thoughts).argument(value)
        clean = iter(self._sanitizer.sanitize_many(texts))
        for word in dict.fromkeys(words):
            self._look_at(word)
        changed = {name: _Walk(name, _next_of(clean), _skip, self._thoughts).argument(plain[name]) for name in plain}
        sent = [arguments[name] if changed[name] == plain[name] else changed[name] for name in arguments]
        return sent[: len(given)], dict(zip(named, sent[len(given) :], strict=True))

    def _look_at(self, word: "_Word") -> None:
        found = {span.type for span in self._sanitizer.known(word.text)}
        if not word.sealed and not _PLAIN.match(word.text):
            # A word alone may be a name to a model that sees nothing else; and ids look like secrets.
            alone = fields.is_one_word(word.text)
            found |= {
                span.type
                for span in self._sanitizer.personal(word.text)
                if not (alone and (span.type in NATURAL or (span.type == "SECRET" and span.score < _SURE)))
            }
        if found:
            raise SanitizerBlocked(
                tuple(sorted(found)), f"{word.argument} (where programs read, so no stand-in can stand there)"
            )


class _Word(NamedTuple):
    """What stays as it is in an argument."""

    argument: str
    text: str
    sealed: bool = False


class _Walk:
    """One way through an argument: `change` gets each text, `look` each word that stays as it is."""

    def __init__(
        self, name: str, change: Callable[[str], str], look: Callable[[_Word], None], thoughts: Thoughts
    ) -> None:
        self._name = name
        self._change = change
        self._look = look
        self._thoughts = thoughts

    def argument(self, value: Any) -> Any:
        """Return the argument, changed."""
        name = self._name
        if name in _NEVER_SENT or type(value).__name__ in _NOT_GIVEN or isinstance(value, (int, float)):
            return value
        if name == "extra_headers":
            return self._headers(value)
        if name in ("input", "prompt") and fields.has_tokens(value):
            raise SanitizerInput(f"{name} is given as tokens, which cannot be looked through: give the text")
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, str) and name.startswith(_PLACED) and fields.is_one_word(value) and not value.isalpha():
            return self._word(value)  # an id or a path
        return self._any(value, name, fields.mode_within(name, {name: value}, "", "message"), {}, 0)

    def _headers(self, headers: Any) -> Any:
        if isinstance(headers, dict):
            for name, value in cast("Mapping[Any, Any]", headers).items():
                self._word(str(name))
                if str(name).casefold() not in _PROOFS:
                    self._word(str(value))
        elif headers is not None:
            raise SanitizerInput("extra_headers is no mapping, and cannot be looked through")
        return cast("Any", headers)

    def _class(self, given: type) -> type:
        """Look at the schema that a client makes of a class: all of it stays as it is."""
        schema: Callable[[], dict[str, Any]] | None = getattr(given, "model_json_schema", None)
        if schema is None:
            raise SanitizerInput(f"{self._name}: a class without a JSON schema cannot be looked through")
        _Walk(self._name, self._word, self._look, self._thoughts).argument(schema())
        return given

    def _any(self, value: Any, key: str, mode: Mode, holder: Mapping[Any, Any], depth: int) -> Any:
        if depth > _DEEPEST:
            raise SanitizerInput("the content is nested too deeply")
        if isinstance(value, str):
            return self._text(value, key, mode, holder)
        if isinstance(value, list):
            return [self._any(item, key, mode, holder, depth + 1) for item in cast("Sequence[Any]", value)]
        if isinstance(value, dict):
            return self._mapping(cast("Mapping[Any, Any]", value), key, mode, depth)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if abs(value) >= _LONG_NUMBER:
                self._word(repr(value))
        elif value is not None and not isinstance(value, bool):
            raise SanitizerInput(
                f"{type(value).__name__} in {self._name} cannot be looked through: give text, lists and mappings, "
                "or make this call with the client itself if it may leave as it is"
            )
        return value

    def _text(self, text: str, key: str, mode: Mode, holder: Mapping[Any, Any]) -> str:
        if mode != "data":
            if fields.is_sealed(key, holder, text):
                return self._word(text, sealed=True)
            if fields.is_word(key, text):
                return self._word(text)
            if key in ("arguments", "partial_json"):
                return self._json(text)
        return text if fields.is_picture(text) else self._change(text)

    def _json(self, text: str) -> str:
        try:
            parsed = json.loads(text)
        except ValueError:
            return self._change(text)
        changed = self._any(parsed, "", "data", {}, 1)
        return text if changed == parsed else json.dumps(changed, ensure_ascii=False)

    def _mapping(self, block: Mapping[Any, Any], key: str, mode: Mode, depth: int) -> Mapping[Any, Any]:
        if mode == "message" and fields.is_picture_source(block):
            return block
        written = self._written(block) if mode == "message" else None
        made: dict[Any, Any] = {}
        for name, value in block.items():
            if not isinstance(name, str):
                raise SanitizerInput(f"a mapping in {self._name} has names that are no text")
            inner = fields.mode_within(name, block, key, mode)
            if name == "thinking" and written is not None:
                made[name] = written
            elif mode == "message" and name == "name" and isinstance(value, str) and fields.names_tool(block, key):
                made[name] = self._word(value)
            else:
                shown = self._change(name) if mode == "data" else self._word(name)
                made[shown] = self._any(value, name, inner, block, depth + 1)
        return made

    def _written(self, block: Mapping[Any, Any]) -> str | None:
        thought = block.get("thinking")
        return self._thoughts.written(thought) if isinstance(thought, str) else None

    def _word(self, text: str, *, sealed: bool = False) -> str:
        self._look(_Word(self._name, text, sealed))
        return text


def _keeping(texts: list[str]) -> Callable[[str], str]:
    def keep(text: str) -> str:
        texts.append(text)
        return text

    return keep


def _next_of(clean: Iterator[Any]) -> Callable[[str], str]:
    return lambda _: next(clean).text


def _skip(_: _Word) -> None:
    """Look at nothing: it was looked at before."""
