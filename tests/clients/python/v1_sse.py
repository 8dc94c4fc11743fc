"""The official Python SDK 1.x on HTTP+SSE, the transport of 2024-11-05, from the 401 to the API's answer."""

import asyncio
import os

from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.sse import sse_client
from mcp.shared.auth import OAuthClientMetadata

from person import Callback, MemoryStorage, ask_the_person, check, finish, use_tools

URL = os.environ["PORTOLAN_MCP_URL"]


async def main():
    callback = await Callback().start()
    storage = MemoryStorage()

    async def arrived():
        answer = await callback.arrival
        return answer["code"], answer.get("state")

    auth = OAuthClientProvider(
        server_url=URL,
        client_metadata=OAuthClientMetadata(client_name="Python SDK 1.x, two endpoints", redirect_uris=[callback.redirect_url]),
        storage=storage,
        redirect_handler=ask_the_person,
        callback_handler=arrived,
    )
    async with sse_client(URL, auth=auth) as (read, write):
        async with ClientSession(read, write) as session:
            opened = await session.initialize()
            check(storage.tokens is not None, "the code buys a token")
            check(opened.protocolVersion == "2025-11-25", "any legacy revision is spoken here", opened.protocolVersion)
            await session.send_ping()
            await use_tools(lambda cursor: session.list_tools(cursor=cursor), session.call_tool)


asyncio.run(main())
finish()
