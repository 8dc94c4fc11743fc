"""An MCP server with the official Python SDK 2.x, of both eras on one URL: sessions for clients that initialize, multi round-trip requests for the others."""

import asyncio
import functools
import json
from typing import Annotated

import mcp_types as types
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError

import content

server = MCPServer(content.NAME, title="Fixture upstream", instructions=content.INSTRUCTIONS, version=content.VERSION)


class NeedsInput(Exception):
    """What a handler raises to end this round."""

    def __init__(self, result):
        self.result = result


def asking(handler):
    @functools.wraps(handler)
    async def rounds(*args, **kwargs):
        try:
            return await handler(*args, **kwargs)
        except NeedsInput as needs:
            return needs.result

    return rounds


class Rounds:
    """Asks as many rounds as a handler does. Rounds that are answered are kept in the state, since nothing else remembers them."""

    def __init__(self, ctx):
        self.able = ctx.client_capabilities
        self.given = ctx.input_responses or {}
        self.answered = json.loads(ctx.request_state) if ctx.request_state else []
        self.round = 0

    async def __call__(self, questions):
        current, self.round = self.round, self.round + 1
        if current < len(self.answered):
            return self.answered[current]
        given, self.given = self.given, {}
        if all(key in given for key in questions):
            self.answered.append({key: content.wire(given[key]) for key in questions})
            return self.answered[current]
        for question in questions.values():
            # `elicitation`, `sampling` or `roots`.
            needed = question["method"].split("/")[0]
            if getattr(self.able, needed, None) is None:
                data = {"requiredCapabilities": {needed: {}}}
                raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"The client has to declare {needed}.", data)
        state = content.compact(self.answered) if self.answered else None
        raise NeedsInput(types.InputRequiredResult.model_validate({"inputRequests": questions, "requestState": state}))


def asker(ctx):
    is_session = not ctx.protocol_version or ctx.protocol_version < "2026"
    return content.by_requests(ctx, types) if is_session else Rounds(ctx)


content.offer(server, types, Context, ToolError, asker, asking)


async def favorite() -> Elicit[content.Color]:
    return Elicit("What is your favorite color?", content.Color)


@server.tool(description="Asks for a color in the SDK's own way, and answers with a text, which the SDK gives as structured content too.")
async def test_ask_by_schema(color: Annotated[content.Color, Resolve(favorite)]) -> str:
    return f"You like {color.color}."


asyncio.run(content.serve(server.streamable_http_app()))
