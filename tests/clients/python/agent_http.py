"""An agent that uses the tools of a toolcell server over HTTP, with the standard library only.

    TOOLCELL_KEY=tck_… python agent_http.py http://127.0.0.1:8700
"""

import asyncio
import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

from agent import Json, Person, ScriptedModel, check, run_agent


class Toolcell:
    """The HTTP API of one server, with the key of one tenant."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def request(self, method: str, path: str, body: Json | None = None, headers: Json = {}) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, self.headers | headers, method=method)
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, json.loads(response.read() or "null")
        except urllib.error.HTTPError as refused:  # a problem, as in RFC 9457: `code`, `detail`, `hint`
            return refused.code, json.loads(refused.read())

    def tools(self) -> list[Json]:
        """All tools, page by page."""
        tools, cursor = [], ""
        while True:
            _, page = self.request("GET", f"/v1/tools{cursor}")
            tools += page["tools"]
            if not page.get("next_cursor"):
                return tools
            cursor = f"?cursor={page['next_cursor']}"

    def call(self, name: str, arguments: Json, person: Person) -> Json:
        """Makes a call, asks the person as often as the tool wants to, and returns the outcome."""
        body: Json = {"name": name, "arguments": arguments}
        while True:
            status, completion = self.request("POST", "/v1/calls", body)
            if status != 200:
                return {"problem": completion}
            question = completion["outcome"].get("ask_user")
            if question is None:
                return completion["outcome"]
            body["resume"] = {"answer": person.answer(question["question"]), "state": question["state"]}


async def main(url: str, key: str) -> None:
    server, person = Toolcell(url, key), Person()
    tools = server.tools()
    check("lists the tools, sorted by name", [tool["name"] for tool in tools] == sorted(t["name"] for t in tools))

    async def call(name: str, arguments: Json) -> Json:
        return await asyncio.to_thread(server.call, name, arguments, person)

    text, results = await run_agent(ScriptedModel(), tools, call)
    answer, mistake, booking, crash = results
    check("calls a tool and gets its value", answer["ok"]["value"] == 42, answer)
    check("sees a refusal with its reason", mistake["refusal"]["kind"] == "invalid_arguments", mistake)
    check("is asked one question", len(person.asked) == 1, person.asked)
    check("answers it, and the call goes on", booking["ok"]["value"]["booking"]["name"] == "Ada", booking)
    check("sees a panic as a typed error", crash["tool_error"]["cause"]["kind"] == "unreachable", crash)
    check("ends with the text of the model", text == "Your table is booked.", text)

    status, problem = server.request("POST", "/v1/calls", {"name": "nothing"})
    check("sees a problem with a code", (status, problem["code"]) == (404, "unknown_tool"), problem)

    # A call that never ends by itself. The client chooses the id of the request, and cancels it by that id.
    headers = {"x-request-id": "endless"}
    endless = asyncio.create_task(asyncio.to_thread(server.request, "POST", "/v1/calls", {"name": "spin"}, headers))
    while server.request("GET", "/v1/usage")[1]["running"] != 1:
        await asyncio.sleep(0)
    status, _ = server.request("DELETE", "/v1/calls/endless")
    check("cancels a call that runs", status == 202, status)
    _, completion = await endless
    ending = completion["outcome"]["tool_error"]
    check("the call says that it was cancelled", ending["cause"]["status"] == "cancelled", completion)
    _, usage = server.request("GET", "/v1/usage")
    check("the tool has ended", usage["running"] == 0 and usage["outcomes"]["cancelled"] == 1, usage)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], os.environ["TOOLCELL_KEY"]))
