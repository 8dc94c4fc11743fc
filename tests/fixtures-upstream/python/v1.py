"""An MCP server with the official Python SDK 1.x, 2025-03-26 to 2025-11-25: sessions, requests to the client. Nothing later."""

import asyncio

import mcp.types as types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError

import content

server = FastMCP(content.NAME, instructions=content.INSTRUCTIONS, log_level="WARNING")


def asker(ctx):
    return content.by_requests(ctx, types)


content.offer(server, types, Context, ToolError, asker, asking=lambda handler: handler)


@server.tool(description="Asks for a color in the SDK's own way, and answers with a text, which the SDK gives as structured content too.")
async def test_ask_by_schema(ctx: Context) -> str:
    asked = await ctx.elicit("What is your favorite color?", content.Color)
    if asked.action != "accept":
        raise ToolError("Nobody said a color.")
    return f"You like {asked.data.color}."


asyncio.run(content.serve(server.streamable_http_app()))
