import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from memseal.sanitize import Sanitizer
from tests.sanitize.building import SEED, Marked

QUESTION = "Mail Sarah Chen at s.chen@example.com"


class Client:
    """A client of the shape that OpenAI's has; it answers with what it was asked, and keeps that."""

    def __init__(self, answer: Any = None) -> None:
        self.seen: list[dict[str, Any]] = []
        self.answer = answer
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create, acreate=self._acreate))
        self.base_url = "http://127.0.0.1/v1"

    def _create(self, **request: Any) -> Any:
        self.seen.append(request)
        said = request["messages"][-1]["content"]
        return self.answer(said) if self.answer else completion(said)

    async def _acreate(self, **request: Any) -> Any:
        return self._create(**request)


def completion(said: str) -> SimpleNamespace:
    return SimpleNamespace(
        id="chatcmpl-1",
        choices=[
            SimpleNamespace(index=0, message=SimpleNamespace(role="assistant", content=said), finish_reason="stop")
        ],
    )


def piece(
    text: str | None = None, *, arguments: str | None = None, finish: str | None = None, number: int = 0
) -> SimpleNamespace:
    calls = None
    if arguments is not None:
        calls = [SimpleNamespace(index=0, id="call_1", function=SimpleNamespace(name="send", arguments=arguments))]
    delta = SimpleNamespace(content=text, tool_calls=calls)
    return SimpleNamespace(choices=[SimpleNamespace(index=number, delta=delta, finish_reason=finish)])


def sanitizer() -> Sanitizer:
    detector = Marked(PERSON="Sarah Chen", EMAIL="s.chen@example.com", SECRET='say "hi"\n')
    return Sanitizer(detector=detector, seed=SEED)  # type: ignore[arg-type]


MESSAGES = [{"role": "user", "content": QUESTION}]


def test_provider_sees_stand_ins_and_the_app_sees_real_values() -> None:
    client, session = Client(), sanitizer()
    with session.guard(client) as safe:
        answer = safe.chat.completions.create(model="m", messages=MESSAGES, user="s.chen@example.com")
    assert "Chen" not in repr(client.seen)
    assert "example.com" not in repr(client.seen)
    assert client.seen[0]["model"] == "m"
    assert type(client.seen[0]["messages"]) is list
    assert type(client.seen[0]["messages"][0]["content"]) is str
    assert answer.choices[0].message.content == QUESTION
    assert answer.choices[0].finish_reason == "stop"
    assert safe.base_url == client.base_url


def test_answer_of_mappings_is_restored_too() -> None:
    client = Client(
        lambda said: {"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]}
    )
    with sanitizer().guard(client) as safe:
        answer = safe.chat.completions.create(messages=MESSAGES)
    assert answer["choices"][0]["message"]["content"] == QUESTION


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_streamed_answer_is_restored_however_it_is_cut(size: int) -> None:
    def stream(said: str) -> Iterator[SimpleNamespace]:
        for start in range(0, len(said), size):
            yield piece(said[start : start + size])
            yield piece(said[start : start + size].upper(), number=1)
        yield piece(finish="stop")
        yield piece(finish="stop", number=1)

    with sanitizer().guard(Client(stream)) as safe:
        pieces = list(safe.chat.completions.create(messages=MESSAGES, stream=True))
    for number, expected in ((0, QUESTION), (1, "MAIL SARAH CHEN AT s.chen@example.com")):
        parts = [part.choices[0].delta.content or "" for part in pieces if part.choices[0].index == number]
        assert "".join(parts) == expected


@pytest.mark.parametrize("size", [1, 3, 100])
def test_tool_call_that_arrives_in_pieces_is_whole_json_with_real_values(size: int) -> None:
    session = sanitizer()
    secret = session.sanitize('say "hi"\n').text

    def stream(said: str) -> Iterator[SimpleNamespace]:
        arguments = json.dumps({"to": said.split()[-1], "text": secret, "n": 2})
        for start in range(0, len(arguments), size):
            yield piece(arguments=arguments[start : start + size])
        yield piece(finish="tool_calls")

    with session.guard(Client(stream)) as safe:
        pieces = list(safe.chat.completions.create(messages=MESSAGES, stream=True))
    arguments = "".join(call.function.arguments for part in pieces for call in part.choices[0].delta.tool_calls or [])
    assert json.loads(arguments) == {"to": "s.chen@example.com", "text": 'say "hi"\n', "n": 2}


def test_stream_that_breaks_off_gives_what_it_held_back() -> None:
    def stream(said: str) -> Iterator[SimpleNamespace]:
        yield piece(said[:-3])

    with sanitizer().guard(Client(stream)) as safe:
        pieces = list(safe.chat.completions.create(messages=MESSAGES, stream=True))
    assert "".join(part.choices[0].delta.content for part in pieces) == "Mail Sarah Chen at [EMAIL"


def test_tool_call_in_one_answer_is_json_with_real_values() -> None:
    def answer(said: str) -> SimpleNamespace:
        function = SimpleNamespace(name="send", arguments=json.dumps({"id": said.split()[-1], "type": "mail"}))
        message = SimpleNamespace(
            role="assistant", content=None, tool_calls=[SimpleNamespace(id="call_1", function=function)]
        )
        return SimpleNamespace(choices=[SimpleNamespace(index=0, message=message)])

    with sanitizer().guard(Client(answer)) as safe:
        message = safe.chat.completions.create(messages=MESSAGES).choices[0].message
    assert json.loads(message.tool_calls[0].function.arguments) == {"id": "s.chen@example.com", "type": "mail"}


async def test_awaited_answer_and_awaited_stream_are_restored() -> None:
    async def stream(said: str) -> AsyncIterator[SimpleNamespace]:
        for character in said:
            yield piece(character)
        yield piece(finish="stop")

    session = sanitizer()
    with session.guard(Client()) as safe:
        answer = await safe.chat.completions.acreate(messages=MESSAGES)
        assert answer.choices[0].message.content == QUESTION
    with session.guard(Client(stream)) as safe:
        pieces = [part async for part in await safe.chat.completions.acreate(messages=MESSAGES, stream=True)]
    assert "".join(part.choices[0].delta.content or "" for part in pieces) == QUESTION


@pytest.mark.parametrize(
    "event",
    [
        lambda said: {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": said},
        lambda said: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": said}},
        lambda said: {"type": "text", "text": said, "snapshot": said},
        lambda said: said,
    ],
    ids=["responses", "messages", "a helper", "plain texts"],
)
def test_stream_of_any_shape_that_breaks_off_gives_what_it_held_back(event: Callable[[str], Any]) -> None:
    client = Client(lambda said: iter([event(said[:-9]), event(said[-9:-3])]))
    with sanitizer().guard(client) as safe:
        first, second, rest = safe.chat.completions.create(messages=MESSAGES, stream=True)
    assert first == event("Mail Sarah Chen at ")
    assert second in (event(""), {**event(""), "snapshot": "Mail Sarah Chen at "} if isinstance(first, dict) else "")
    assert "[EMAIL" in str(rest)


def test_event_of_a_shape_that_nobody_knows_is_restored_as_it_is() -> None:
    client = Client(lambda said: iter([{"type": "later", "words": [said, {"id": said}]}, {"words": said}, 7, None]))
    with sanitizer().guard(client) as safe:
        later = list(safe.chat.completions.create(messages=MESSAGES, stream=True))
    assert later[0]["words"][0] == QUESTION
    assert later[1:] == [{"words": QUESTION}, 7, None]


@dataclass(frozen=True, slots=True)
class Said:
    content: str
    times: tuple[str, ...] = ()


def test_answer_in_a_data_class_keeps_its_type() -> None:
    client = Client(lambda said: Said(said, (said,)))
    with sanitizer().guard(client) as safe:
        assert safe.chat.completions.create(messages=MESSAGES) == Said(QUESTION, (QUESTION,))


@dataclass
class Bound:
    """A client that an earlier call gave, in the clothes of data."""

    client: Client

    def invoke(self, text: str) -> Any:
        return self.client.chat.completions.create(messages=[{"role": "user", "content": text}])


def test_object_that_can_call_the_provider_stays_guarded() -> None:
    client = Client()
    client.chat.bind = lambda: Bound(client)
    with sanitizer().guard(client) as safe:
        answer = safe.chat.bind().invoke(QUESTION)
    assert "Chen" not in repr(client.seen)
    assert answer.choices[0].message.content == QUESTION


def test_call_in_which_nothing_is_personal_hands_over_the_very_objects_that_it_was_given() -> None:
    client, messages = Client(), [{"role": "user", "content": "hello"}]
    with sanitizer().guard(client) as safe:
        safe.chat.completions.create(messages=messages)
    assert client.seen[0]["messages"] is messages


def test_guard_shows_nothing_in_its_repr() -> None:
    with sanitizer().guard(Client()) as safe:
        assert repr(safe) == "<guarded Client>"
