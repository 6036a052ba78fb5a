"""Anthropic's client, guarded, against a provider on this machine."""

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic.types import Message

from memseal.errors import SanitizerBlocked, SanitizerInput
from memseal.sanitize import Sanitizer
from tests.sanitize.building import by_rules
from tests.sanitize.fake_llm import MANNERS
from tests.sanitize.served import QUESTION, SEAL, THOUGHT, Provider, serving

ASKED: Any = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": QUESTION}]}
TOOL: Any = {
    "name": "send",
    "description": "Sends a mail, mostly to Sarah Chen",
    "input_schema": {"type": "object", "properties": {"text": {"type": "string"}, "id": {"type": "string"}}},
}
THINKING: Any = {"type": "enabled", "budget_tokens": 2048}


@pytest.fixture
def provider(with_sockets: None) -> Iterator[Provider]:
    with serving() as made:
        yield made


def options(provider: Provider) -> dict[str, Any]:
    return {"base_url": provider.url, "api_key": "none", "max_retries": 0}


@pytest.fixture
def client(provider: Provider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(**options(provider)) as made:
        yield made


@pytest.fixture
def session() -> Sanitizer:
    return by_rules()


def said(events: list[Any], kind: str, name: str) -> str:
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    return "".join(getattr(delta, name) for delta in deltas if delta.type == kind)


def test_answer_is_of_the_clients_own_type_with_real_values(
    client: anthropic.Anthropic, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        answer = safe.messages.create(**ASKED, system="You work for Thomas Berger.")
    assert answer.content[0].text == QUESTION
    assert isinstance(answer, Message)
    assert json.loads(answer.model_dump_json())["content"][0]["text"] == QUESTION
    assert provider.saw_nothing()


@pytest.mark.parametrize("manner", MANNERS)
def test_streamed_answer_is_what_restoring_it_whole_gives(
    client: anthropic.Anthropic, session: Sanitizer, provider: Provider, manner: str
) -> None:
    asked = {**ASKED, "model": manner}
    with session.guard(client) as safe:
        whole = safe.messages.create(**asked).content[0].text
        events = list(safe.messages.create(**asked, stream=True))
        with safe.messages.stream(**asked) as stream:
            gathered = list(stream)
            message = stream.get_final_message()
        with safe.messages.stream(**asked) as stream:
            pieces = list(stream.text_stream)
            assert stream.get_final_text() == whole
    texts = [event for event in gathered if event.type == "text"]
    assert said(events, "text_delta", "text") == said(gathered, "text_delta", "text") == "".join(pieces) == whole
    assert "".join(event.text for event in texts) == texts[-1].snapshot == message.content[0].text == whole
    assert [event.content_block.text for event in gathered if event.type == "content_block_stop"] == [whole]
    assert gathered[-1].message.content[0].text == whole
    assert provider.saw_nothing()


def test_each_event_comes_within_its_block(client: anthropic.Anthropic, session: Sanitizer, provider: Provider) -> None:
    asked = {**ASKED, "messages": [{"role": "user", "content": "Ask Sarah Chen"}], "tools": [TOOL]}
    with session.guard(client) as safe:
        events = list(safe.messages.create(**asked, stream=True))
    opened: list[int] = []
    for event in events:
        if event.type == "content_block_start":
            opened.append(event.index)
        elif event.type == "content_block_delta":
            assert opened[-1:] == [event.index]
        elif event.type == "content_block_stop":
            assert opened.pop() == event.index
    assert [event.type for event in events].count("content_block_start") == 2


@pytest.mark.parametrize("way", ["whole", "events", "gathered"])
def test_tool_is_called_with_real_values_and_its_result_is_hidden(
    client: anthropic.Anthropic, session: Sanitizer, provider: Provider, way: str
) -> None:
    asked = {**ASKED, "tools": [TOOL]}
    with session.guard(client) as safe:
        if way == "whole":
            message = safe.messages.create(**asked)
        else:
            with safe.messages.stream(**asked) as stream:
                gathered = list(stream)
                message = stream.get_final_message()
            events = list(safe.messages.create(**asked, stream=True)) if way == "events" else gathered
            assert json.loads(said(events, "input_json_delta", "partial_json")) == {"text": QUESTION, "id": QUESTION}
            last = [event for event in gathered if event.type == "input_json"][-1]
            assert last.snapshot == {"text": QUESTION, "id": QUESTION}
        call = message.content[-1]
        assert (call.name, call.id, call.input) == ("send", "toolu_1", {"text": QUESTION, "id": QUESTION})
        result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "to Sarah Chen"}]}
        turns = [*ASKED["messages"], {"role": "assistant", "content": message.content}]
        again = safe.messages.create(**{**asked, "messages": [*turns, {"role": "user", "content": [result]}]})
    assert again.content[0].text == "ok"
    sent = provider.asked["messages"]
    assert sent[1]["content"][-1]["name"] == "send"
    assert sent[2]["content"][0]["tool_use_id"] == "toolu_1"
    assert provider.saw_nothing()


@pytest.mark.parametrize("way", ["whole", "events", "gathered"])
def test_thought_is_restored_and_goes_back_to_the_letter_as_it_was_signed(
    client: anthropic.Anthropic, session: Sanitizer, provider: Provider, way: str
) -> None:
    asked = {**ASKED, "model": "inflects", "thinking": THINKING}
    with session.guard(client) as safe:
        if way == "events":
            events = list(safe.messages.create(**asked, stream=True))
            thought = said(events, "thinking_delta", "thinking")
        elif way == "gathered":
            with safe.messages.stream(**asked) as stream:
                thought = stream.get_final_message().content[0].thinking
        else:
            thought = safe.messages.create(**asked).content[0].thinking
        assert thought.startswith(THOUGHT)
        assert "Thomas Berger's friend" in thought
        block = {"type": "thinking", "thinking": thought, "signature": SEAL}
        turns = [*ASKED["messages"], {"role": "assistant", "content": [block]}, {"role": "user", "content": "go on"}]
        safe.messages.create(**{**ASKED, "messages": turns})
    sent = provider.asked["messages"][1]["content"][0]
    hidden = json.loads(provider.received[0])["messages"][0]["content"]
    assert sent == {"type": "thinking", "thinking": THOUGHT + MANNERS["inflects"](hidden), "signature": SEAL}
    assert provider.saw_nothing()


def test_thought_that_the_provider_never_had_is_sanitized(
    client: anthropic.Anthropic, session: Sanitizer, provider: Provider
) -> None:
    block = {"type": "thinking", "thinking": "Sarah Chen is the owner", "signature": SEAL}
    turns = [*ASKED["messages"], {"role": "assistant", "content": [block]}, {"role": "user", "content": "go on"}]
    with session.guard(client) as safe:
        safe.messages.create(**{**ASKED, "messages": turns})
    assert provider.saw_nothing()


async def test_async_client_is_guarded_as_well(provider: Provider, session: Sanitizer) -> None:
    async with anthropic.AsyncAnthropic(**options(provider)) as inner:
        with session.guard(inner) as safe:
            answer = await safe.messages.create(**ASKED)
            assert answer.content[0].text == QUESTION
            events = [event async for event in await safe.messages.create(**ASKED, stream=True)]
            assert said(events, "text_delta", "text") == QUESTION
            async with safe.messages.stream(**ASKED) as stream:
                assert "".join([text async for text in stream.text_stream]) == QUESTION
                assert (await stream.get_final_message()).content[0].text == QUESTION
    assert provider.saw_nothing()


def test_stream_that_is_left_early_is_closed(
    client: anthropic.Anthropic, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe, safe.messages.stream(**ASKED) as stream:
        assert next(stream).type == "message_start"
    assert stream.response.is_closed


def test_messages_in_a_batch_are_hidden(client: anthropic.Anthropic, session: Sanitizer, provider: Provider) -> None:
    requests = [{"custom_id": "one", "params": {**ASKED, "system": "Sarah Chen asks"}}]
    with session.guard(client) as safe, pytest.raises(anthropic.NotFoundError):  # this provider has no batches
        safe.messages.batches.create(requests=requests)
    with session.guard(client) as safe:
        safe.post("/v1/messages", body={**ASKED, "system": "Sarah Chen asks"}, cast_to=Message)
    assert provider.saw_nothing()


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
PROSE = {"type": "text", "media_type": "text/plain", "data": "a letter to Sarah Chen"}
PLACES: dict[str, dict[str, Any]] = {
    "system": {"system": "You work for Sarah Chen"},
    "a block of the system prompt": {
        "system": [{"type": "text", "text": "for Sarah Chen", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    },
    "a picture's caption": {"content": [IMAGE, {"type": "text", "text": "This is Sarah Chen"}]},
    "a document": {
        "content": [{"type": "document", "title": "Sarah Chen", "context": "s.chen@example.com", "source": PROSE}]
    },
    "a document of blocks": {
        "content": [
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "Sarah Chen"}]}}
        ]
    },
    "a search result": {
        "content": [
            {
                "type": "search_result",
                "source": "https://crm.example.com/sarah.chen",
                "title": "Sarah Chen",
                "content": [{"type": "text", "text": "s.chen@example.com"}],
            }
        ]
    },
    "a tool's result": {
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "Sarah Chen", "is_error": False}]
    },
    "a tool's call": {
        "messages": [
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "send",
                        "input": {"id": "s.chen@example.com", "type": "Sarah Chen", "Thomas Berger": {"role": "Sarah"}},
                    }
                ],
            },
            {"role": "user", "content": "hello"},
        ]
    },
    "a tool": {"tools": [TOOL]},
    "an example of a tool": {
        "tools": [{**TOOL, "input_examples": [{"text": "Sarah Chen", "id": "s.chen@example.com"}]}]
    },
    "metadata": {"metadata": {"user_id": "s.chen@example.com"}},
    "stop_sequences": {"stop_sequences": ["Sarah Chen"]},
    "extra_body": {"extra_body": {"later": {"words": ["Sarah Chen"]}}},
}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_leaves_from(client: anthropic.Anthropic, session: Sanitizer, provider: Provider, place: str) -> None:
    given = dict(PLACES[place])
    content = given.pop("content", "hello")
    with session.guard(client) as safe:
        safe.messages.create(**{**ASKED, "messages": [{"role": "user", "content": content}], **given})
    assert provider.saw_nothing()
    if place == "a picture's caption":
        assert provider.asked["messages"][0]["content"][0] == IMAGE


def source(**fields: str) -> list[dict[str, Any]]:
    return [{"type": "document", "source": fields}]


REFUSED: dict[str, Any] = {
    "a file": source(type="base64", media_type="application/pdf", data="JVBERi0xLjcK"),
    "a text as bytes": source(type="base64", media_type="text/plain", data="U2FyYWggQ2hlbg=="),
    "a picture that is none": source(type="base64", media_type="image/png", data="Sarah Chen, s.chen@example.com"),
    "bytes without a name": source(type="later", data="U2Fy" * 200),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_looked_through_is_refused(
    client: anthropic.Anthropic, session: Sanitizer, provider: Provider, what: str
) -> None:
    with session.guard(client) as safe, pytest.raises(SanitizerInput) as refused:
        safe.messages.create(**{**ASKED, "messages": [{"role": "user", "content": REFUSED[what]}]})
    assert "Chen" not in str(refused.value)
    assert provider.received == []


def test_tool_that_would_run_past_the_guard_is_refused(
    client: anthropic.Anthropic, session: Sanitizer, provider: Provider
) -> None:
    @anthropic.beta_tool
    def look_up(name: str) -> str:
        """Look up somebody."""
        return f"{name}: s.chen@example.com"

    with session.guard(client) as safe, pytest.raises(SanitizerInput):
        safe.beta.messages.tool_runner(**ASKED, tools=[look_up])
    assert provider.received == []


def test_sealed_bytes_with_something_known_in_them_are_refused(
    client: anthropic.Anthropic, session: Sanitizer, provider: Provider
) -> None:
    session.sanitize(QUESTION)
    block = {"type": "redacted_thinking", "data": "AAAA/Berger/AAAAAAAAAAAAAA=="}
    turns = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "go on"}]
    with session.guard(client) as safe, pytest.raises(SanitizerBlocked):
        safe.messages.create(**{**ASKED, "messages": turns})
    assert provider.received == []
