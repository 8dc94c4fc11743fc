"""The official Python SDK 2.x: once with version negotiation (2026-07-28), once the legacy way."""

import asyncio
import os

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from person import Callback, MemoryStorage, ask_the_person, check, finish, use_tools

URL = os.environ["PORTOLAN_MCP_URL"]


async def main():
    callback = await Callback().start()
    storage = MemoryStorage()

    async def arrived():
        answer = await callback.arrival
        return AuthorizationCodeResult(code=answer.get("code"), state=answer.get("state"), iss=answer.get("iss"))

    def authorization():
        return OAuthClientProvider(
            server_url=URL,
            client_metadata=OAuthClientMetadata(client_name="Python SDK 2.x", redirect_uris=[callback.redirect_url]),
            storage=storage,
            redirect_handler=ask_the_person,
            callback_handler=arrived,
        )

    for mode, version in [("auto", "2026-07-28"), ("legacy", "2025-11-25")]:
        async with httpx2.AsyncClient(auth=authorization(), timeout=30) as http:
            async with Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
                check(storage.tokens is not None, "a token is there")
                check(client.protocol_version == version, f"{mode} negotiation speaks {version}", client.protocol_version)
                await use_tools(lambda cursor: client.list_tools(cursor=cursor), client.call_tool)


asyncio.run(main())
finish()
