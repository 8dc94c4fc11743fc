"""Load by an official Python SDK, 1.x or 2.x, as the chaos test wants it: calls with progress, one after the other, through the SDK's
own reconnect logic. What the SDK saw leaves as JSON lines; a closed stdin ends it.

Needs PORTOLAN_MCP_URL, PORTOLAN_TOKEN_FILE, PORTOLAN_LOAD_NAME, PORTOLAN_LOAD_WORKERS."""

import json
import os
import random
import sys
import threading
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from importlib.metadata import version

import anyio
from mcp import ClientSession
from mcp.client.streamable_http import StreamableHTTPTransport, streamable_http_client

IS_FIRST = version("mcp").startswith("1.")
if IS_FIRST:
    import httpx
else:
    import httpx2 as httpx
    from mcp import Client

URL = os.environ["PORTOLAN_MCP_URL"]
TOKEN_FILE = os.environ["PORTOLAN_TOKEN_FILE"]
NAME = os.environ["PORTOLAN_LOAD_NAME"]
WORKERS = int(os.environ["PORTOLAN_LOAD_WORKERS"])

is_over = threading.Event()
current = ContextVar("the call whose stream is read", default=None)
calls = {}


def write(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Call:
    """What is seen of one call."""

    def __init__(self, work):
        self.work, self.name = work, work["call"]
        self.token = None
        self.ids, self.again, self.place, self.same = [], [], None, {}
        self.status, self.resumed, self.gave_up, self.answer = 0, None, False, None
        self.scope = anyio.CancelScope()
        calls[self.name] = self

    def event(self, id, data):
        # What it showed is told back to it under another id, also where it has seen more meanwhile.
        if not data and id and self.place:
            self.same[id] = self.place
            return
        # The SDK's parser gives an event without an id the one before.
        if id and self.ids and id == self.ids[-1] and not self.again:
            id = None
        if not data and not id:
            return
        if id and self.again and self.again[0] == id:
            # The SDK asks once more for what it has: after a stream that it had resumed breaks, it starts from the older id.
            self.again.pop(0)
            return
        if id:
            self.ids.append(id)
        message = json.loads(data) if data else None
        if message and message.get("method") == "notifications/progress":
            token = message["params"]["progressToken"]
            message["params"]["progressToken"] = self.name if token == self.token else f"token {token}"
        if message and "method" not in message:
            self.answer = message
        write({"event": {"call": self.name, "id": id or None, "message": message}})

    def resume(self, status):
        self.resumed = status
        write({"resumed": {"call": self.name, "status": status}})

    def start_after(self, id):
        id = self.same.get(id, id)
        self.place = id
        self.again = self.ids[self.ids.index(id) + 1 :] if id in self.ids else []


def plain(message):
    """Out of the root model of 1.x."""
    return getattr(message, "root", message)


def watch():
    """The transport tells what passes, and does what it did."""
    transport = StreamableHTTPTransport
    post, event, reconnect = transport._handle_post_request, transport._handle_sse_event, transport._handle_reconnection

    async def watched_post(self, ctx):
        message = plain(ctx.session_message.message)
        if getattr(message, "method", None) == "tools/call":
            call = calls[message.params["arguments"]["call"]]
            call.token = (message.params.get("_meta") or {}).get("progressToken")
            current.set(call)
        return await post(self, ctx)

    async def watched_event(self, sse, *args, **named):
        call = current.get()
        if call:
            call.event(sse.id, sse.data)
        return await event(self, sse, *args, **named)

    async def watched_reconnect(self, ctx, last_event_id, retry_interval_ms=None, attempt=0):
        call = current.get()
        if call and attempt > 0 and call.resumed in (None, 200):
            call.resume(0)
        if call and attempt >= 2:
            call.gave_up = True
            # 1.x says nothing to who waits.
            call.scope.cancel()
        elif call:
            call.start_after(last_event_id)
            call.resumed = None
        return await reconnect(self, ctx, last_event_id, retry_interval_ms, attempt)

    transport._handle_post_request, transport._handle_sse_event = watched_post, watched_event
    transport._handle_reconnection = watched_reconnect


class Token(httpx.Auth):
    """The harness keeps a fresh one in a file."""

    def auth_flow(self, request):
        with open(TOKEN_FILE) as file:
            request.headers["authorization"] = "Bearer " + file.read().strip()
        yield request


async def seen(response):
    call = current.get()
    if not call:
        return
    if response.request.method == "POST":
        call.status = response.status_code
    elif "last-event-id" in response.request.headers:
        call.resume(response.status_code)


@asynccontextmanager
async def connected(mode):
    """A session of either SDK, and whether it is one of the stateless era."""
    async with httpx.AsyncClient(auth=Token(), timeout=40, event_hooks={"response": [seen]}) as http:
        if IS_FIRST:
            async with streamable_http_client(URL, http_client=http) as (read, write_stream, _):
                async with ClientSession(read, write_stream) as session:
                    await session.initialize()
                    yield session, False
        else:
            async with Client(streamable_http_client(URL, http_client=http), mode=mode) as client:
                yield client, client.protocol_version >= "2026"


def outcome(call, result, error):
    if result is not None:
        return {"message": {"result": result.model_dump(by_alias=True, mode="json", exclude_none=True)}}
    # It was given to the SDK, which then fell over something else.
    if call.answer is not None:
        return {"message": call.answer}
    text = str(error)
    # Before the SDK's own words: some of its errors stand for an HTTP status.
    if call.status >= 300:
        return {"http": call.status}
    if call.gave_up or "reconnection attempts were exhausted" in text:
        return {"gave_up": text or "two tries to resume have failed"}
    if "timed out" in text.lower():
        return {"hung": None}
    told = getattr(error, "error", None)
    if told is not None and "without a response" not in text and "Connection closed" not in text:
        return {"message": {"error": {"code": told.code, "message": told.message, "data": told.data}}}
    return {"refused": repr(error)}


async def run(session, call, safe, deadline):
    limit = (deadline + 60_000) / 1000
    result = error = None

    async def progress(*_):
        pass

    try:
        with call.scope:
            result = await session.call_tool(
                "look_up" if safe else "do_work",
                call.work,
                read_timeout_seconds=timedelta(seconds=limit) if IS_FIRST else limit,
                progress_callback=progress,
            )
    except Exception as thrown:
        error = thrown
    return "message" in end(call, result, error)


def end(call, result, error):
    """The outcome. Without an answer the caller opens a new session: 1.x may have fallen over."""
    del calls[call.name]
    found = outcome(call, result, error)
    write({"ended": {"call": call.name, **found}})
    return found


async def worker(number):
    count = made = 0
    while not is_over.is_set():
        count += 1
        call = None
        try:
            async with connected("auto" if count % 2 == 0 else "legacy") as (session, is_modern):
                for _ in range(random.randint(4, 11)):
                    if is_over.is_set():
                        break
                    made += 1
                    work = {
                        "call": f"{NAME}{'m' if is_modern else ''}-{number}-{made}",
                        "millis": random.choice([0, 10, 200, 1500, 2500, 5000, 8000]),
                        "size": random.choice([0, 0, 1000, 100000]),
                    }
                    safe, deadline = random.random() < 0.33, work["millis"] + 25_000
                    call = Call(work)
                    label = None if is_modern else f"{NAME} {number} session {count}"
                    write({"began": {"work": work, "session": label, "safe": safe, "deadline": deadline}})
                    if not await run(session, call, safe, deadline):
                        break
                    await anyio.sleep(random.random() * 0.4)
        except BaseException as error:
            # 1.x falls over as a whole when one request cannot be sent; so does its caller.
            if call and call.name in calls:
                end(call, None, error)
            if not isinstance(error, Exception):
                raise
            print(repr(error), file=sys.stderr)
            await anyio.sleep(1)


async def main():
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
    async with anyio.create_task_group() as tasks:
        for number in range(WORKERS):
            tasks.start_soon(worker, number)


watch()
anyio.run(main)
os._exit(0)
