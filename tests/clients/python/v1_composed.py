"""The official Python SDK 1.x before a server that is composed of others."""

import asyncio
import os

import httpx
import mcp.types as types
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl

from composed import Answering, Walk
from person import Callback, MemoryStorage, ask_the_person, check, finish

URL = os.environ["PORTOLAN_MCP_URL"]


async def main():
    callback = await Callback().start()
    storage = MemoryStorage()

    async def arrived():
        answer = await callback.arrival
        return answer["code"], answer.get("state")

    auth = OAuthClientProvider(
        server_url=URL,
        client_metadata=OAuthClientMetadata(client_name="Python SDK 1.x, composed", redirect_uris=[callback.redirect_url]),
        storage=storage,
        redirect_handler=ask_the_person,
        callback_handler=arrived,
    )
    answering = Answering(types)
    callbacks = {
        "elicitation_callback": answering.elicit,
        "sampling_callback": answering.sample,
        "list_roots_callback": answering.roots,
    }
    # As the SDK's own client: streams may be silent for longer.
    async with httpx.AsyncClient(auth=auth, timeout=httpx.Timeout(30, read=300)) as http:
        async with streamable_http_client(URL, http_client=http) as (read, write, _):
            async with ClientSession(read, write, **callbacks) as session:
                opened = await session.initialize()
                check(opened.protocolVersion == "2025-11-25", "the session speaks 2025-11-25", opened.protocolVersion)
                await Walk(session, answering, AnyUrl).whole()


asyncio.run(main())
finish()
