"""The official Python SDK 2.x before a server that is composed of others: once with version negotiation (2026-07-28), once the legacy way."""

import asyncio
import os

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from composed import Answering, Walk
from person import Callback, MemoryStorage, ask_the_person, check, finish

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
            client_metadata=OAuthClientMetadata(client_name="Python SDK 2.x, composed", redirect_uris=[callback.redirect_url]),
            storage=storage,
            redirect_handler=ask_the_person,
            callback_handler=arrived,
        )

    for mode, version in [("auto", "2026-07-28"), ("legacy", "2025-11-25")]:
        answering = Answering(types)
        callbacks = {
            "elicitation_callback": answering.elicit,
            "sampling_callback": answering.sample,
            "list_roots_callback": answering.roots,
        }
        # As the SDK's own client: streams may be silent for longer.
        async with httpx2.AsyncClient(auth=authorization(), timeout=httpx2.Timeout(30, read=300)) as http:
            async with Client(streamable_http_client(URL, http_client=http), mode=mode, **callbacks) as client:
                check(client.protocol_version == version, f"{mode} negotiation speaks {version}", client.protocol_version)
                await Walk(client, answering, str).whole()


asyncio.run(main())
finish()
