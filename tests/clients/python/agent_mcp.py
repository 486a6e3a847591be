"""An agent that uses the tools of a toolcell server over MCP, with the official SDK.

    TOOLCELL_KEY=tck_… python agent_mcp.py MODE http://127.0.0.1:8700
    python agent_mcp.py MODE toolcell serve --stdio --config /path/to/toolcell.toml

MODE is the revision: `legacy` opens a session, as 2025-11-25 says; `2026-07-28` has none.
"""

import os
import sys
from contextlib import AsyncExitStack
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult

from agent import Json, Person, ScriptedModel, check, run_agent


async def main(mode: str, target: list[str]) -> None:
    person = Person()

    async def ask(_context: Any, form: Any) -> ElicitResult:
        return ElicitResult(action="accept", content=person.answer(form.message))

    async with AsyncExitStack() as stack:
        http = None
        if target[0].startswith("http://"):
            headers = {"Authorization": f"Bearer {os.environ['TOOLCELL_KEY']}"}
            http = await stack.enter_async_context(httpx2.AsyncClient(base_url=target[0], headers=headers, timeout=60))
            server: Any = streamable_http_client(f"{target[0]}/mcp", http_client=http)
        else:
            server = StdioServerParameters(command=target[0], args=target[1:], env=dict(os.environ))
        client = await stack.enter_async_context(Client(server, mode=mode, elicitation_callback=ask))
        expected = "2025-11-25" if mode == "legacy" else mode
        check("speaks the revision", client.protocol_version == expected, client.protocol_version)

        listed = (await client.list_tools()).tools
        check("lists the tools, sorted by name", [t.name for t in listed] == sorted(t.name for t in listed), listed)
        tools = [{"name": tool.name, "parameters": tool.input_schema} for tool in listed]

        async def call(name: str, arguments: Json) -> Json:
            return (await client.call_tool(name, arguments)).model_dump(by_alias=True)

        text, results = await run_agent(ScriptedModel(), tools, call)
        answer, mistake, booking, crash = results
        check("calls a tool and gets its value", answer["content"][0]["text"] == "42", answer)
        refusal = mistake["isError"] and mistake["_meta"]["toolcell/error"]["refusal"]
        check("sees a refusal with its reason", refusal["kind"] == "invalid_arguments", mistake)
        check("is asked one question", len(person.asked) == 1, person.asked)
        booked = booking["structuredContent"]["booking"]["name"]
        check("answers it, and the call goes on", booked == "Ada", booking)
        error = crash["isError"] and crash["_meta"]["toolcell/error"]["tool_error"]
        check("sees a panic as a typed error", error["cause"]["kind"] == "unreachable", crash)
        check("ends with the text of the model", text == "Your table is booked.", text)

        try:
            await client.call_tool("nothing", {})
            check("sees an unknown tool as an error of the protocol", False)
        except MCPError as error:
            check("sees an unknown tool as an error of the protocol", error.error.code == -32602, error)

        async def runs(calls: int) -> Json:
            """Waits until so many calls run. Over HTTP the tenant's usage says so."""
            if http is None:
                await anyio.sleep(1)
                return {}
            while (usage := (await http.get("/v1/usage")).json())["running"] != calls:
                await anyio.sleep(0)
            return usage

        # A call that never ends by itself: whatever cancels the task cancels the call.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "spin", {})
            await runs(1)
            tasks.cancel_scope.cancel()
        check("cancels a call that runs", tasks.cancel_scope.cancelled_caught)
        usage = await runs(0)
        if http is not None:
            check("the tool has ended", usage["outcomes"].get("cancelled") == 1, usage)
        answer = await call("calculator", {"expression": "1 + 1"})
        check("goes on after it", answer["content"][0]["text"] == "2", answer)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2:])
