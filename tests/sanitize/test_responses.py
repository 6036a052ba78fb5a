"""OpenAI's client for responses, guarded, against a provider on this machine."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.responses import Response
from pydantic import BaseModel

from memseal.errors import SanitizerBlocked, SanitizerInput
from memseal.sanitize import Sanitizer
from tests.sanitize.building import by_rules
from tests.sanitize.fake_llm import MANNERS
from tests.sanitize.served import QUESTION, SEAL, THOUGHT, Provider, serving

TOOL: Any = {
    "type": "function",
    "name": "send",
    "description": "Sends a mail, mostly to Sarah Chen",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string", "enum": ["to Thomas Berger", "to nobody"]}},
        "required": ["text"],
    },
}
CUSTOM: Any = {"type": "custom", "name": "note"}


@pytest.fixture
def provider(with_sockets: None) -> Iterator[Provider]:
    with serving() as made:
        yield made


def options(provider: Provider) -> dict[str, Any]:
    return {"base_url": f"{provider.url}/v1", "api_key": "none", "max_retries": 0}


@pytest.fixture
def client(provider: Provider) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(**options(provider)) as made:
        yield made


@pytest.fixture
def session() -> Sanitizer:
    return by_rules()


def test_answer_is_of_the_clients_own_type_with_real_values(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        answer = safe.responses.create(model="m", instructions="You work for Thomas Berger.", input=QUESTION)
    assert isinstance(answer, Response)
    assert answer.output_text == QUESTION
    assert answer.instructions == "You work for Thomas Berger."
    assert provider.saw_nothing()


@pytest.mark.parametrize("manner", MANNERS)
def test_streamed_answer_is_what_restoring_it_whole_gives(
    client: openai.OpenAI, session: Sanitizer, provider: Provider, manner: str
) -> None:
    with session.guard(client) as safe:
        whole = safe.responses.create(model=manner, input=QUESTION)
        events = list(safe.responses.create(model=manner, input=QUESTION, stream=True))
    said = {event.type: event for event in events}
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    assert said["response.output_text.done"].text == whole.output_text
    assert said["response.content_part.done"].part.text == whole.output_text
    assert said["response.output_item.done"].item.content[0].text == whole.output_text
    assert said["response.completed"].response.output_text == whole.output_text
    assert "901820" in whole.output_text
    assert provider.saw_nothing()


def test_what_was_held_back_is_said_before_the_text_is_done(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        kinds = [event.type for event in safe.responses.create(model="m", input="Ask Sarah Chen", stream=True)]
    assert kinds.index("response.output_text.done") > max(
        place for place, kind in enumerate(kinds) if kind == "response.output_text.delta"
    )
    assert provider.saw_nothing()


@pytest.mark.parametrize("stream", [False, True])
def test_function_is_called_with_real_values_and_its_result_is_hidden(
    client: openai.OpenAI, session: Sanitizer, provider: Provider, stream: bool
) -> None:
    with session.guard(client) as safe:
        answer = safe.responses.create(model="m", input=QUESTION, tools=[TOOL], stream=stream)
        if stream:
            events = list(answer)
            written = "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta")
            assert json.loads(written) == {"text": QUESTION, QUESTION: 2}
            answer = events[-1].response
        call = answer.output[0]
        assert json.loads(call.arguments) == {"text": QUESTION, QUESTION: 2}
        assert (call.name, call.call_id) == ("send", "call_1")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "sent to Sarah Chen"}
        asked = [{"role": "user", "content": QUESTION}, call, result]
        again = safe.responses.create(model="m", input=asked)
    assert again.output_text == QUESTION
    assert provider.asked["input"][1]["name"] == "send"
    assert provider.asked["input"][2]["call_id"] == "call_1"
    assert provider.saw_nothing()


def test_tool_definition_keeps_what_programs_read(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        safe.responses.create(model="m", input=QUESTION, tools=[TOOL])
    [sent] = provider.asked["tools"]
    assert sent["name"] == "send"
    assert sent["strict"] is True
    assert list(sent["parameters"]["properties"]) == sent["parameters"]["required"] == ["text"]
    assert sent["parameters"]["properties"]["text"]["enum"][1] == "to nobody"
    assert provider.saw_nothing()


@pytest.mark.parametrize("stream", [False, True])
def test_words_for_a_tool_of_free_text_are_restored(
    client: openai.OpenAI, session: Sanitizer, provider: Provider, stream: bool
) -> None:
    with session.guard(client) as safe:
        answer = safe.responses.create(model="m", input=QUESTION, tools=[CUSTOM], stream=stream)
        if stream:
            events = list(answer)
            assert "".join(e.delta for e in events if e.type == "response.custom_tool_call_input.delta") == QUESTION
            answer = events[-1].response
    assert answer.output[0].input == QUESTION
    assert provider.saw_nothing()


def test_reasoning_is_restored_and_goes_back_as_the_provider_sealed_it(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        answer = safe.responses.create(model="m", input=QUESTION, reasoning={"effort": "low", "summary": "auto"})
        assert answer.output[0].summary[0].text == THOUGHT + QUESTION
        events = list(safe.responses.create(model="m", input=QUESTION, reasoning={"effort": "low"}, stream=True))
        safe.responses.create(model="m", input=[{"role": "user", "content": QUESTION}, *answer.output])
    thought = "".join(e.delta for e in events if e.type == "response.reasoning_summary_text.delta")
    assert thought == THOUGHT + QUESTION
    assert provider.asked["input"][1]["encrypted_content"] == SEAL
    assert provider.saw_nothing()


def test_response_before_is_named_as_it_is(client: openai.OpenAI, session: Sanitizer, provider: Provider) -> None:
    with session.guard(client) as safe:
        first = safe.responses.create(model="m", input=QUESTION)
        safe.responses.create(model="m", input="And Sarah Chen?", previous_response_id=first.id)
    assert provider.asked["previous_response_id"] == first.id
    assert provider.saw_nothing()


def test_helper_that_gathers_a_stream_has_real_values(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe, safe.responses.stream(model="shouts", input=QUESTION, tools=[TOOL]) as stream:
        events = list(stream)
        gathered = stream.get_final_response()
    pieces = [event for event in events if event.type == "response.function_call_arguments.delta"]
    written = "".join(event.delta for event in pieces)
    assert pieces[-1].snapshot == written
    assert json.loads(gathered.output[0].arguments) == json.loads(written)
    assert "SARAH CHEN" in json.loads(written)["text"]
    assert provider.saw_nothing()


class Answer(BaseModel):
    """Who is to be told."""

    answer: str
    names: list[str]


def test_parsed_answer_has_real_values(client: openai.OpenAI, session: Sanitizer, provider: Provider) -> None:
    with session.guard(client) as safe:
        answer = safe.responses.parse(model="writes JSON", input=QUESTION, text_format=Answer)
    assert answer.output_parsed.answer == QUESTION
    assert "Thomas Berger" in answer.output_parsed.names
    assert provider.saw_nothing()


async def test_async_client_is_guarded_as_well(provider: Provider, session: Sanitizer) -> None:
    async with openai.AsyncOpenAI(**options(provider)) as inner:
        with session.guard(inner) as safe:
            answer = await safe.responses.create(model="m", input=QUESTION)
            assert answer.output_text == QUESTION
            stream = await safe.responses.create(model="m", input=QUESTION, stream=True)
            said = [event.delta async for event in stream if event.type == "response.output_text.delta"]
            assert "".join(said) == QUESTION
            async with safe.responses.stream(model="m", input=QUESTION) as gathering:
                assert (await gathering.get_final_response()).output_text == QUESTION
    assert provider.saw_nothing()


PICTURE = "data:image/png;base64,iVBORw0KGgo="
PLACES: dict[str, dict[str, Any]] = {
    "instructions": {"instructions": "You work for Sarah Chen"},
    "a message": {"input": [{"role": "developer", "content": "Sarah Chen is the owner"}]},
    "a part": {"input": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]},
    "a picture's caption": {
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": PICTURE, "detail": "auto"},
                    {"type": "input_text", "text": "This is Sarah Chen"},
                ],
            }
        ]
    },
    "a tool's result": {
        "input": [
            {"type": "function_call_output", "call_id": "call_1", "output": '{"to": "Sarah Chen", "Sarah Chen": 1}'}
        ]
    },
    "a tool's call": {
        "input": [
            {
                "type": "function_call",
                "call_id": "call_1",
                "name": "send",
                "arguments": '{"id": "s.chen@example.com", "Sarah Chen": {"type": "Thomas Berger"}}',
            }
        ]
    },
    "a tool": {"tools": [TOOL]},
    "metadata": {"metadata": {"customer": "s.chen@example.com", "Sarah Chen": "vip"}},
    "user": {"user": "s.chen@example.com"},
    "safety_identifier": {"safety_identifier": "s.chen@example.com"},
    "prompt_cache_key": {"prompt_cache_key": "chat of Sarah Chen"},
    "prompt": {"prompt": {"id": "pmpt_1", "variables": {"who": "Sarah Chen", "id": "s.chen@example.com"}}},
    "a format": {
        "text": {
            "format": {
                "type": "json_schema",
                "name": "answer",
                "schema": {"type": "object", "description": "about Sarah Chen", "properties": {}},
            }
        }
    },
    "extra_body": {"extra_body": {"note": "from Sarah Chen", "nested": [{"id": "Sarah Chen"}]}},
    "extra_query": {"extra_query": {"for": "Sarah Chen"}},
    "an address as an id": {"previous_response_id": "s.chen@example.com"},
    "a place that no version knows": {"tool_choice": {"type": "later", "words": "Sarah Chen"}},
}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_leaves_from(client: openai.OpenAI, session: Sanitizer, provider: Provider, place: str) -> None:
    asked = {"model": "m", "input": [{"role": "user", "content": "hello"}], **PLACES[place]}
    if isinstance(asked["input"], list) and all(item.get("role") != "user" for item in asked["input"]):
        asked["input"] = [*asked["input"], {"role": "user", "content": "hello"}]
    with session.guard(client) as safe:
        safe.responses.create(**asked)
    assert provider.saw_nothing()
    assert PICTURE in provider.received[0] or place != "a picture's caption"


PDF = "data:application/pdf;base64,JVBERi0xLjcK"
REFUSED: dict[str, dict[str, Any]] = {
    "a file": {"input": [{"role": "user", "content": [{"type": "input_file", "file_data": PDF, "filename": "a"}]}]},
    "sound": {"input": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklG" * 200}}]}]},
    "bytes": {"input": [{"role": "user", "content": b"Sarah Chen"}]},
    "a generator": {"input": ({"role": "user", "content": text} for text in (QUESTION,))},
    "an object": {"extra_body": {"note": object()}},
    "a function": {"tools": [lambda: "Sarah Chen"]},
    "tokens": {"input": [[45431, 16747]]},
    "a name that is no text": {"extra_body": {4930901820: "x"}},
    "deep nesting": {"extra_body": {"a": json.loads("[" * 100 + "]" * 100)}},
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_looked_through_is_refused(
    client: openai.OpenAI, session: Sanitizer, provider: Provider, what: str
) -> None:
    with session.guard(client) as safe, pytest.raises(SanitizerInput) as refused:
        safe.responses.create(**{"model": "m", "input": "hello", **REFUSED[what]})
    assert "Chen" not in str(refused.value)
    assert provider.received == []


class Telling(BaseModel):
    """What Sarah Chen is to be told."""

    answer: str


BLOCKED: dict[str, dict[str, Any]] = {
    "an id": {"previous_response_id": "resp_sarah.chen"},
    "the name of a field": {"extra_body": {"sarah_chen": 1}},
    "a field of a tool": {"tools": [{**TOOL, "parameters": {"type": "object", "properties": {"Sarah Chen": {}}}}]},
    "the name of a tool": {"tools": [{"type": "function", "name": "mail_sarah", "parameters": {}}]},
    "a number": {"extra_body": {"card": 4111111111111111}},
    "a header": {"extra_headers": {"X-User": "Sarah Chen"}},
    "a model": {"model": "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4"},
}


@pytest.mark.parametrize("what", BLOCKED)
def test_something_personal_where_no_stand_in_can_stand_is_refused(
    client: openai.OpenAI, session: Sanitizer, provider: Provider, what: str
) -> None:
    session.sanitize(QUESTION)
    with session.guard(client) as safe, pytest.raises(SanitizerBlocked) as refused:
        safe.responses.create(**{"model": "m", "input": "hello", **BLOCKED[what]})
    assert "arah" not in str(refused.value)
    assert provider.received == []


def test_class_whose_schema_is_personal_is_refused(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe, pytest.raises(SanitizerBlocked):
        safe.responses.parse(model="m", input="hello", text_format=Telling)
    assert provider.received == []


def test_header_that_proves_the_caller_and_settings_of_a_client_go_as_they_are(
    client: openai.OpenAI, session: Sanitizer, provider: Provider
) -> None:
    with session.guard(client) as safe:
        other = safe.with_options(api_key="sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4", timeout=20)
        answer = other.responses.create(
            model="m", input=QUESTION, extra_headers={"Authorization": "Bearer sk-proj-a1B2c3D4e5F6g7H8i9J0"}, timeout=9
        )
    assert answer.output_text == QUESTION
    assert provider.saw_nothing()
