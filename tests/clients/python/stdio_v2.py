"""The official Python SDK 2.x over stdio, through `portolan connect`, in both eras."""

import asyncio
import os

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from person import check, finish, use_tools

SERVER = StdioServerParameters(
    command=os.environ["PORTOLAN_BINARY"],
    args=["connect", os.environ["PORTOLAN_MCP_URL"]],
    env={name: os.environ[name] for name in ("PORTOLAN_API_KEY", "HOME")},
)


async def main():
    for mode, version in [("auto", "2026-07-28"), ("legacy", "2025-11-25")]:
        async with Client(stdio_client(SERVER), mode=mode) as client:
            check(client.protocol_version == version, f"{mode} negotiation speaks {version}", client.protocol_version)
            await use_tools(lambda cursor: client.list_tools(cursor=cursor), client.call_tool)


asyncio.run(main())
finish()
