"""What both Python fixtures serve: the names and texts of the other fixtures (`../typescript/content.mjs`), registered by the decorators that people write
servers with. The two generations of the SDK name their types' members differently, so results are written here as they are on the wire.

A server supplies `asker(ctx)`, which gives `await ask({key: {method, params}})` → {key: result}, and `asking`, a decorator for handlers that ask."""

import asyncio
import base64
import json
import os
import socket
import sys
from typing import Annotated

import anyio
import uvicorn
from mcp.shared.message import ServerMessageMetadata
from pydantic import BaseModel

NAME = "fixture-upstream-python"
VERSION = "1.4.2"
INSTRUCTIONS = "Every tool here exists for a test."

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="


class Weather(BaseModel):
    city: str
    degrees: float


class Color(BaseModel):
    color: str


def compact(value):
    """JSON as JavaScript writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def form(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


def elicit(message, schema):
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(question, most=100):
    message = {"role": "user", "content": {"type": "text", "text": question}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": most}}


ROOTS = {"method": "roots/list", "params": {}}
TEXT = {"type": "string"}


def said(sampled):
    content = sampled["content"]
    return (content[0] if isinstance(content, list) else content)["text"]


def given(answer, name, otherwise):
    return (answer.get("content") or {}).get(name, otherwise)


def wire(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def by_requests(ctx, types):
    """Asks as a session does: by requests, all at once, on the stream of the call."""
    kinds = {
        "elicitation/create": (types.ElicitRequest, types.ElicitResult),
        "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
        "roots/list": (types.ListRootsRequest, types.ListRootsResult),
    }

    async def one(question):
        request, answer = kinds[question["method"]]
        on = ServerMessageMetadata(related_request_id=ctx.request_id)
        return wire(await ctx.session.send_request(request.model_validate(question), answer, metadata=on))

    async def ask(questions):
        answers = await asyncio.gather(*(one(question) for question in questions.values()))
        return dict(zip(questions, answers))

    return ask


def offer(server, types, Context, ToolError, asker, asking):
    """Registers everything at a server of either generation."""
    CallToolResult = types.CallToolResult

    def result(*content, **more):
        return CallToolResult.model_validate({"content": list(content), **more})

    def text(value):
        return result({"type": "text", "text": value})

    read_only = types.ToolAnnotations.model_validate({"readOnlyHint": True})

    @server.tool(description="Answers with a text.", annotations=read_only)
    def test_simple_text() -> CallToolResult:
        return text("This is a simple text response for testing.")

    @server.tool(description="Answers with an image.")
    def test_image_content() -> CallToolResult:
        return result({"type": "image", "data": PNG, "mimeType": "image/png"})

    @server.tool(description="Answers with a sound.")
    def test_audio_content() -> CallToolResult:
        return result({"type": "audio", "data": WAV, "mimeType": "audio/wav"})

    @server.tool(description="Answers with a resource inside.")
    def test_embedded_resource() -> CallToolResult:
        held = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}
        return result({"type": "resource", "resource": held})

    @server.tool(description="Answers with a text, an image and a resource.")
    def test_multiple_content_types() -> CallToolResult:
        held = {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": compact({"test": "data", "value": 123})}
        return result(
            {"type": "text", "text": "Multiple content types test:"},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "resource", "resource": held},
        )

    @server.tool(description="Answers with a link and structured content.")
    def test_structured_content(city: str) -> Annotated[CallToolResult, Weather]:
        structured = {"city": city, "degrees": 21.5}
        return result(
            {"type": "text", "text": compact(structured)},
            {"type": "resource_link", "uri": "test://static-text", "name": "static-text", "mimeType": "text/plain"},
            structuredContent=structured,
        )

    @server.tool(description="Logs three lines while it runs.")
    async def test_tool_with_logging(ctx: Context) -> CallToolResult:
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.log("info", line, logger_name="fixture")
            await anyio.sleep(0.02)
        return text("Logged three lines.")

    @server.tool(description="Reports progress three times.")
    async def test_tool_with_progress(ctx: Context) -> CallToolResult:
        for progress, message in ((0, "begun"), (50, "half"), (100, "done")):
            await ctx.report_progress(progress, 100, message)
            await anyio.sleep(0.02)
        return text("Reported progress.")

    @server.tool(description="Fails.")
    def test_error_handling() -> CallToolResult:
        raise ToolError("This tool intentionally returns an error for testing")

    @server.tool(description="Takes its time, and can be cancelled.")
    async def test_slow(milliseconds: int) -> CallToolResult:
        await anyio.sleep(milliseconds / 1000)
        return text(f"Waited {milliseconds} ms.")

    @server.tool(description="Asks the client for a completion.")
    @asking
    async def test_sampling(prompt: str, ctx: Context) -> CallToolResult:
        answers = await asker(ctx)({"answer": sample(prompt)})
        return text(f"LLM response: {said(answers['answer'])}")

    @server.tool(description="Asks the user.")
    @asking
    async def test_elicitation(message: str, ctx: Context) -> CallToolResult:
        schema = form(username={**TEXT, "description": "User's response"}, email={**TEXT, "description": "User's email address"})
        user = (await asker(ctx)({"user": elicit(message, schema)}))["user"]
        return text(f"User response: action={user['action']}, content={compact(user.get('content') or {})}")

    @server.tool(description="Asks for a name and greets.")
    @asking
    async def test_input_required_result_elicitation(ctx: Context) -> CallToolResult:
        answers = await asker(ctx)({"user_name": elicit("What is your name?", form(name=TEXT))})
        return text(f"Hello, {given(answers['user_name'], 'name', 'stranger')}!")

    @server.tool(description="Asks for the capital of France.")
    @asking
    async def test_input_required_result_sampling(ctx: Context) -> CallToolResult:
        answers = await asker(ctx)({"capital_question": sample("What is the capital of France?")})
        return text(said(answers["capital_question"]))

    @server.tool(description="Asks for the roots.")
    @asking
    async def test_input_required_result_list_roots(ctx: Context) -> CallToolResult:
        answers = await asker(ctx)({"client_roots": ROOTS})
        return text("Roots: " + ", ".join(root["uri"] for root in answers["client_roots"]["roots"]))

    @server.tool(description="Asks for a name, a completion and the roots at once.")
    @asking
    async def test_input_required_result_multiple_inputs(ctx: Context) -> CallToolResult:
        questions = {
            "user_name": elicit("What is your name?", form(name=TEXT)),
            "greeting": sample("Generate a greeting", 50),
            "client_roots": ROOTS,
        }
        answers = await asker(ctx)(questions)
        name, roots = given(answers["user_name"], "name", "stranger"), answers["client_roots"]["roots"]
        return text(f"{said(answers['greeting'])} {name}, {len(roots)} roots")

    @server.tool(description="Asks for a name and then for a color.")
    @asking
    async def test_input_required_result_multi_round(ctx: Context) -> CallToolResult:
        ask = asker(ctx)
        first = (await ask({"step1": elicit("Step 1: What is your name?", form(name=TEXT))}))["step1"]
        second = (await ask({"step2": elicit("Step 2: What is your favorite color?", form(color=TEXT))}))["step2"]
        return text(f"{given(first, 'name', 'Somebody')} likes {given(second, 'color', 'nothing')}.")

    @server.prompt(description="A prompt without arguments.")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="A prompt with arguments.")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="A prompt with a resource inside.")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list:
        held = {"uri": resourceUri, "mimeType": "text/plain", "text": "Embedded resource content for testing."}
        return [
            {"role": "user", "content": {"type": "resource", "resource": held}},
            {"role": "user", "content": {"type": "text", "text": "Please process the embedded resource above."}},
        ]

    @server.prompt(description="A prompt with an image.")
    def test_prompt_with_image() -> list:
        return [
            {"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}},
            {"role": "user", "content": {"type": "text", "text": "Please analyze the image above."}},
        ]

    @server.prompt(description="A prompt that asks for its context.")
    @asking
    async def test_input_required_result_prompt(ctx: Context) -> str:
        question = elicit("What context should the prompt use?", form(context=TEXT))
        answers = await asker(ctx)({"user_context": question})
        return f"Context: {given(answers['user_context'], 'context', 'none')}"

    @server.resource("test://static-text", name="static-text", description="A text that never changes.", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", name="static-binary", description="An image that never changes.", mime_type="image/png")
    def static_binary() -> bytes:
        return base64.b64decode(PNG)

    @server.resource("test://template/{id}/data", name="template", description="One document for each id.", mime_type="application/json")
    def template(id: str) -> str:
        return compact({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})

    @server.completion()
    async def complete(ref, argument, context) -> types.Completion:
        values = [word for word in ("paris", "park", "party") if word.startswith(argument.value)]
        return types.Completion.model_validate({"values": values, "total": len(values), "hasMore": False})


class Guarded:
    """Lets the holder of the token in, if one is wanted."""

    def __init__(self, app):
        self.app = app
        self.token = os.environ.get("FIXTURE_TOKEN")

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and self.token:
            shown = dict(scope["headers"]).get(b"authorization")
            if shown != f"Bearer {self.token}".encode():
                await send({"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]})
                await send({"type": "http.response.body", "body": b""})
                return
        await self.app(scope, receive, send)


async def serve(app):
    """Serves on a free port, says which on stdout, and ends when whoever started it is gone."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # Who connects before uvicorn is ready waits instead of being refused.
    listener.listen()
    running = uvicorn.Server(uvicorn.Config(Guarded(app), log_level="warning"))
    print(f"listening {listener.getsockname()[1]}", flush=True)

    async def until_the_starter_is_gone():
        await asyncio.to_thread(sys.stdin.read)
        running.should_exit = running.force_exit = True

    await asyncio.gather(running.serve(sockets=[listener]), until_the_starter_is_gone())
