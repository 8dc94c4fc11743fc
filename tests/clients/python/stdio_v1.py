"""The official Python SDK 1.x over stdio, through `portolan connect`."""

import asyncio
import os

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from person import check, finish, use_tools

SERVER = StdioServerParameters(
    command=os.environ["PORTOLAN_BINARY"],
    args=["connect", os.environ["PORTOLAN_MCP_URL"]],
    env={name: os.environ[name] for name in ("PORTOLAN_API_KEY", "HOME")},
)


async def main():
    async with stdio_client(SERVER) as (read, write):
        async with ClientSession(read, write) as session:
            opened = await session.initialize()
            check(opened.protocolVersion == "2025-11-25", "the session speaks 2025-11-25", opened.protocolVersion)
            await session.send_ping()
            await use_tools(lambda cursor: session.list_tools(cursor=cursor), session.call_tool)


asyncio.run(main())
finish()
