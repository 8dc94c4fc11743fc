"""What both SDK generations need from their surroundings: a loopback callback, as desktop clients have one,
a store in memory, and lines that the harness reads. `open URL` asks the person to open a browser."""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

failures = 0


def check(holds, sentence, found=None):
    """One line of the report."""
    global failures
    failures += 0 if holds else 1
    print(f"{'ok' if holds else 'not ok'} - {sentence}" + ("" if holds else f"; found {found!r}"), flush=True)


def finish():
    """Ends the program: 0 only if every check held."""
    print("1..done", flush=True)
    sys.exit(1 if failures else 0)


class Callback:
    """Listens on a free loopback port; `arrival` is the query of the first callback."""

    async def start(self):
        self.arrival = asyncio.get_running_loop().create_future()
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.redirect_url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/callback"
        return self

    async def _serve(self, reader, writer):
        target = (await reader.readline()).split(b" ")[1].decode()
        while (await reader.readline()).strip():
            pass
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()
        parts = urlsplit(target)
        if parts.path == "/callback" and not self.arrival.done():
            self.arrival.set_result({name: values[0] for name, values in parse_qs(parts.query).items()})


class MemoryStorage:
    """TokenStorage of either SDK."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


async def ask_the_person(url):
    print(f"open {url}", flush=True)


async def failure(call):
    """The text of the error that a call ends with, whether raised or as a result."""
    try:
        result = await call
    except Exception as error:
        return str(error)
    is_error = getattr(result, "is_error", None) or getattr(result, "isError", None)
    return "\n".join(block.text for block in result.content) if is_error else f"no error: {result!r}"


async def use_tools(list_tools, call_tool):
    """The checks that every client makes once it is connected."""
    names, pages, cursor = [], 0, None
    while pages < 50:
        page = await list_tools(cursor)
        names += [tool.name for tool in page.tools]
        cursor = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
        pages += 1
        if cursor is None:
            break
    check(pages > 1, "the list comes in several pages", pages)
    check(len(set(names)) == len(names), "no tool is listed twice", names)
    check({"echo_message", "get_thing"} <= set(names), "the imported operations are listed", names)

    text = "Grüße, 海图 🧭"
    echo = await call_tool("echo_message", {"message": text})
    structured = getattr(echo, "structured_content", None) or getattr(echo, "structuredContent", None)
    check(structured == {**(structured or {}), "message": text}, "the API's answer comes back as structured content", echo)
    check(json.loads(echo.content[0].text)["message"] == text, "and as text", echo)

    missing = await failure(call_tool("get_thing", {"id": 404}))
    check("404" in missing, "an error of the API is a tool error with its status", missing)
    wrong = await failure(call_tool("get_thing", {"id": "seven"}))
    check("id" in wrong and "no error" not in wrong, "a wrong argument is refused and named", wrong)
    unknown = await failure(call_tool("no_such_tool", {}))
    check("no error" not in unknown and "tool" in unknown.lower(), "an unknown tool is an error", unknown)
