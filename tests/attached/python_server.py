"""An MCP server on standard input and output, written with the official Python SDK."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("python-attached")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


server.run("stdio")
