"""Providers on this machine, which answer as OpenAI's responses and Anthropic's messages do."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from memseal.privacy.folding import key_of
from tests.sanitize.fake_llm import MANNERS

QUESTION = "Tell Sarah Chen, s.chen@example.com, that Thomas Berger called from +49 30 901820."
HIDDEN = ("sarah", "chen", "berger", "thomas", "example.com", "901820")
THOUGHT = "I should quote: "
SEAL = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds" * 3
PIECE = 3


class Provider:
    """Says what it was told in the manner that the model's name asks for; calls a tool with it where it has tools."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> dict[str, Any]:
        """What was sent last."""
        asked: dict[str, Any] = json.loads(self.received[-1])
        return asked

    def saw_nothing(self) -> bool:
        seen = key_of(" ".join(self.received))
        return bool(self.received) and not any(word in seen for word in HIDDEN)

    async def responses(self, request: web.Request) -> web.StreamResponse:
        asked = await self._asked(request)
        output = _output(asked)
        if not asked.get("stream"):
            return web.json_response(_response(asked, output))
        return await _stream(request, _response_events(asked, output))

    async def messages(self, request: web.Request) -> web.StreamResponse:
        asked = await self._asked(request)
        message = _message(asked)
        if not asked.get("stream"):
            return web.json_response(message)
        return await _stream(request, _message_events(message))

    async def _asked(self, request: web.Request) -> dict[str, Any]:
        self.received.append(await request.text())
        asked: dict[str, Any] = json.loads(self.received[-1])
        return asked


@contextmanager
def serving() -> Generator[Provider]:
    """Lend a provider that listens."""
    made = Provider()
    with listening({"/v1/responses": made.responses, "/v1/messages": made.messages}) as made.port:
        yield made


@contextmanager
def listening(routes: Mapping[str, Callable[[web.Request], Awaitable[web.StreamResponse]]]) -> Generator[int]:
    """Answer what is posted to these paths, in a thread; lends the port."""
    ports, ready, loop = list[int](), threading.Event(), asyncio.new_event_loop()
    stopping = asyncio.Event()

    async def serve() -> None:
        app = web.Application()
        app.add_routes([web.post(path, answer) for path, answer in routes.items()])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ports.append(runner.addresses[0][1])
        ready.set()
        await stopping.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
        loop.close()


async def _stream(request: web.Request, events: Iterator[dict[str, Any]]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for event in events:
        await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    return response


def _cut(text: str) -> Iterator[str]:
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _said(messages: Any) -> str:
    """Return the last text that the user said."""
    if isinstance(messages, str):
        return messages
    said = [message["content"] for message in messages if message.get("role") == "user"][-1]
    if isinstance(said, str):
        return said
    texts = [block["text"] for block in said if "text" in block]
    return texts[-1] if texts else "ok"


def _bent(asked: dict[str, Any], said: str) -> str:
    return MANNERS[asked["model"]](said) if asked["model"] in MANNERS else said


# ── OpenAI's responses ──────────────────────────────────────────────────────────────────────────────


def _output(asked: dict[str, Any]) -> list[dict[str, Any]]:
    said = _bent(asked, _said(asked["input"]))
    output: list[dict[str, Any]] = []
    if "reasoning" in asked:
        summary = [{"type": "summary_text", "text": THOUGHT + said}]
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": SEAL})
    kinds = [tool["type"] for tool in asked.get("tools", ())]
    if "function" in kinds:
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "send", "status": "completed"}
        output.append({**call, "arguments": json.dumps({"text": said, said: 2})})
    elif "custom" in kinds:
        output.append({"type": "custom_tool_call", "id": "ct_1", "call_id": "call_1", "name": "note", "input": said})
    else:
        part = {"type": "output_text", "text": said, "annotations": []}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        output.append({**message, "content": [part]})
    return output


def _response(asked: dict[str, Any], output: list[dict[str, Any]], status: str = "completed") -> dict[str, Any]:
    return {
        "id": "resp_68af0c1b2d3e4f5061728394a5b6c7d8",
        "object": "response",
        "created_at": 1733000000,
        "model": asked["model"],
        "status": status,
        "output": output,
        "instructions": asked.get("instructions"),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _response_events(asked: dict[str, Any], output: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    events = [{"type": "response.created", "response": _response(asked, [], "in_progress")}]
    for place, item in enumerate(output):
        events += _item_events(place, item)
    events.append({"type": "response.completed", "response": _response(asked, output)})
    return ({**event, "sequence_number": number} for number, event in enumerate(events))


def _item_events(place: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind, where = item["type"], {"output_index": place, "item_id": item["id"]}
    empty: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "reasoning": {"summary": []},
        "function_call": {"arguments": ""},
    }
    yield {
        "type": "response.output_item.added",
        "output_index": place,
        "item": {**item, **empty.get(kind, {"input": ""})},
    }
    if kind == "message":
        text, where = item["content"][0]["text"], {**where, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        yield {"type": "response.content_part.added", **where, "part": part}
        for piece in _cut(text):
            yield {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **where, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **where, "part": {**part, "text": text}}
    elif kind == "reasoning":
        text, where = item["summary"][0]["text"], {**where, "summary_index": 0}
        yield {"type": "response.reasoning_summary_part.added", **where, "part": {"type": "summary_text", "text": ""}}
        for piece in _cut(text):
            yield {"type": "response.reasoning_summary_text.delta", **where, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **where, "text": text}
    else:
        stem, name = (
            ("function_call_arguments", "arguments") if kind == "function_call" else ("custom_tool_call_input", "input")
        )
        for piece in _cut(item[name]):
            yield {"type": f"response.{stem}.delta", **where, "delta": piece}
        yield {"type": f"response.{stem}.done", **where, name: item[name]}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


# ── Anthropic's messages ────────────────────────────────────────────────────────────────────────────


def _message(asked: dict[str, Any]) -> dict[str, Any]:
    said = _bent(asked, _said(asked["messages"]))
    content: list[dict[str, Any]] = []
    if "thinking" in asked:
        content.append({"type": "thinking", "thinking": THOUGHT + said, "signature": SEAL})
    content.append({"type": "text", "text": said})
    if "tools" in asked:
        content.append({"type": "tool_use", "id": "toolu_1", "name": "send", "input": {"text": said, "id": said}})
    return {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "content": content,
        "stop_reason": "tool_use" if "tools" in asked else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _message_events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _block_events(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = block["type"]
    empty: dict[str, dict[str, Any]] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty[kind]}}
    name, delta = {
        "text": ("text", "text_delta"),
        "thinking": ("thinking", "thinking_delta"),
        "tool_use": ("partial_json", "input_json_delta"),
    }[kind]
    for piece in _cut(json.dumps(block["input"]) if kind == "tool_use" else block[kind]):
        yield {"type": "content_block_delta", "index": index, "delta": {"type": delta, name: piece}}
    if kind == "thinking":
        signature = {"type": "signature_delta", "signature": block["signature"]}
        yield {"type": "content_block_delta", "index": index, "delta": signature}
    yield {"type": "content_block_stop", "index": index}
