"""An MCP server with the official Python SDK 2.x, of both eras on one URL: sessions for clients that initialize, multi round-trip requests for the others."""

import asyncio
import socket
import sys

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    Completion,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
)
from pydantic import BaseModel

server = MCPServer("fixture-upstream-python", title="Fixture upstream", instructions="Every tool here exists for a test.", version="1.4.2")


@server.tool(description="Answers with a text.")
def test_simple_text() -> str:
    return "This is a simple text response for testing."


@server.tool(description="Fails.")
def test_error_handling() -> str:
    raise ValueError("This tool intentionally returns an error for testing")


@server.tool(description="Reports progress three times.")
async def test_tool_with_progress(ctx: Context) -> str:
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100, f"at {progress}")
        await anyio.sleep(0.05)
    return "Reported progress."


@server.tool(description="Takes its time, and can be cancelled.")
async def test_slow(milliseconds: int) -> str:
    await anyio.sleep(milliseconds / 1000)
    return f"Waited {milliseconds} ms."


class Sum(BaseModel):
    total: int


@server.tool(description="Adds, with an output schema.")
def test_add(a: int, b: int) -> Sum:
    return Sum(total=a + b)


class Name(BaseModel):
    name: str


@server.tool(description="Asks for a name and greets.")
async def test_ask_name(ctx: Context) -> str | InputRequiredResult:
    question = "What is your name?"
    if ctx.protocol_version and ctx.protocol_version >= "2026":
        answer = (ctx.input_responses or {}).get("user_name")
        if answer is None:
            params = ElicitRequestFormParams(message=question, requested_schema=Name.model_json_schema())
            return InputRequiredResult(input_requests={"user_name": ElicitRequest(params=params)})
        return f"Hello, {(answer.content or {}).get('name', 'stranger')}!"
    asked = await ctx.elicit(question, Name)
    return f"Hello, {asked.data.name if asked.action == 'accept' else 'stranger'}!"


@server.resource("test://static-text", name="static-text", description="A text that never changes.", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://template/{id}/data", name="template", description="One document for each id.", mime_type="application/json")
def template(id: str) -> str:
    return f'{{"id":"{id}","templateTest":true,"data":"Data for ID: {id}"}}'


@server.prompt(name="test_prompt_with_arguments", description="A prompt with arguments.")
def prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.completion()
async def complete(ref, argument, context) -> Completion:
    values = [word for word in ("paris", "park", "party") if word.startswith(argument.value)]
    return Completion(values=values, total=len(values), has_more=False)


async def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # Who connects before uvicorn is ready waits instead of being refused.
    listener.listen()
    running = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning"))
    print(f"listening {listener.getsockname()[1]}", flush=True)

    async def until_the_starter_is_gone():
        await asyncio.to_thread(sys.stdin.read)
        running.should_exit = running.force_exit = True

    await asyncio.gather(running.serve(sockets=[listener]), until_the_starter_is_gone())


asyncio.run(main())
