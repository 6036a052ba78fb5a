"""The client that OpenAI publishes, guarded, against a provider on this machine."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from aiohttp import web
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from memseal.privacy.folding import key_of
from memseal.sanitize import Sanitizer
from tests.sanitize.building import by_rules
from tests.sanitize.served import QUESTION, listening

MESSAGES: Any = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
TOOLS: Any = [
    {
        "type": "function",
        "function": {"name": "send", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}},
    }
]
PIECE = 7


class Provider:
    """Answers with the last message, or calls the tool with it; keeps every body that it was sent."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.port = 0

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.text()
        self.received.append(body)
        asked = json.loads(body)
        said = next(each["content"] for each in reversed(asked["messages"]) if each["role"] == "user")
        message = _tool_call(said) if "tools" in asked else {"role": "assistant", "content": said}
        if not asked.get("stream"):
            return web.json_response(_answer("chat.completion", "message", message, "stop"))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta in _deltas(message):
            await response.write(_event(_answer("chat.completion.chunk", "delta", delta, None)))
        await response.write(_event(_answer("chat.completion.chunk", "delta", {}, "stop")) + b"data: [DONE]\n\n")
        return response


def _tool_call(said: str) -> dict[str, Any]:
    function = {"name": "send", "arguments": json.dumps({"text": said, "count": 2})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant"}
    for call in message.get("tool_calls", ()):
        yield {"tool_calls": [{**call, "index": 0, "function": {"name": "send", "arguments": ""}}]}
        for piece in _pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
    for piece in _pieces(message["content"] or ""):
        yield {"content": piece}


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _answer(kind: str, name: str, content: dict[str, Any], finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, name: content, "finish_reason": finish, "logprobs": None}
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": "m", "choices": [choice]}


def _event(answer: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(answer)}\n\n".encode()


@pytest.fixture
def provider(with_sockets: None) -> Iterator[Provider]:
    made = Provider()
    with listening({"/v1/chat/completions": made.complete}) as made.port:
        yield made


def options(provider: Provider) -> dict[str, Any]:
    return {"base_url": f"http://127.0.0.1:{provider.port}/v1", "api_key": "none", "max_retries": 0}


@pytest.fixture
def client(provider: Provider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(**options(provider)) as made:
        yield made


@pytest.fixture
def session() -> Sanitizer:
    return by_rules()


def nothing_left(provider: Provider) -> bool:
    seen = key_of(" ".join(provider.received))
    return not any(word in seen for word in ("sarah", "chen", "berger", "thomas", "example", "901820"))


def test_answer_is_of_the_clients_own_type_with_real_values(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        answer = safe.chat.completions.create(model="m", messages=MESSAGES)
    assert isinstance(answer, ChatCompletion)
    assert answer.choices[0].message.content == QUESTION
    assert json.loads(answer.model_dump_json())["choices"][0]["message"]["content"] == QUESTION
    assert nothing_left(provider)


def test_streamed_answer_has_real_values(client: openai.OpenAI, session: Sanitizer, provider: Provider) -> None:
    with session.guard(client) as safe:
        pieces = list(safe.chat.completions.create(model="m", messages=MESSAGES, stream=True))
    assert all(isinstance(piece, ChatCompletionChunk) for piece in pieces)
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == QUESTION
    assert len(pieces) > 5
    assert nothing_left(provider)


def test_tool_is_called_with_real_values_and_its_result_is_hidden(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        message = safe.chat.completions.create(model="m", messages=MESSAGES, tools=TOOLS).choices[0].message
        call = message.tool_calls[0]
        assert json.loads(call.function.arguments) == {"text": QUESTION, "count": 2}
        result = {"role": "tool", "tool_call_id": call.id, "content": "sent to Sarah Chen"}
        again = safe.chat.completions.create(model="m", messages=[*MESSAGES, message.model_dump(), result])
    assert again.choices[0].message.content == QUESTION
    assert json.loads(provider.received[1])["messages"][-1]["tool_call_id"] == "call_1"
    assert nothing_left(provider)


def test_streamed_tool_call_is_whole_json_with_real_values(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        pieces = list(safe.chat.completions.create(model="m", messages=MESSAGES, tools=TOOLS, stream=True))
    calls = [call for piece in pieces for call in piece.choices[0].delta.tool_calls or ()]
    assert json.loads("".join(call.function.arguments or "" for call in calls)) == {"text": QUESTION, "count": 2}
    assert {call.function.name for call in calls if call.function.name} == {"send"}
    assert nothing_left(provider)


async def test_async_client_is_guarded_as_well(provider: Provider, session: Sanitizer) -> None:
    async with openai.AsyncOpenAI(**options(provider)) as inner:
        with session.guard(inner) as safe:
            answer = await safe.chat.completions.create(model="m", messages=MESSAGES)
            assert answer.choices[0].message.content == QUESTION
            stream = await safe.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            assert "".join([piece.choices[0].delta.content or "" async for piece in stream]) == QUESTION
    assert nothing_left(provider)


def test_messages_of_the_clients_own_types_are_hidden_as_well(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        first = safe.chat.completions.create(model="m", messages=MESSAGES).choices[0].message
        safe.chat.completions.create(model="m", messages=[*MESSAGES, first, MESSAGES[1]])
    assert nothing_left(provider)


def test_raw_response_lets_nothing_out_and_is_parsed_with_real_values(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        raw = safe.chat.completions.with_raw_response.create(model="m", messages=MESSAGES)
    assert raw.status_code == 200
    assert raw.parse().choices[0].message.content == QUESTION
    assert nothing_left(provider)
