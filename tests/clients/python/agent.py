"""What both agents share: a scripted model, a person who answers, the loop, and checks that print one line each.

Replace `ScriptedModel` by a model and `Person` by your user interface; the loop stays.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

Json = dict[str, Any]


class ScriptedModel:
    """Stands in for a model: each turn is a list of tool calls, or the final text."""

    TURNS: list[list[Json] | str] = [
        [{"name": "calculator", "arguments": {"expression": "6 * 7"}}],
        [{"name": "calculator", "arguments": {"expresion": "1"}}],  # a typing error, which a model makes too
        [{"name": "book_table", "arguments": {"date": "2030-05-04", "time": "18:30", "party_size": 2}}],
        [{"name": "panics", "arguments": {"words": "out of paper"}}],
        "Your table is booked.",
    ]

    def __init__(self) -> None:
        self.turns = iter(self.TURNS)

    def reply(self, messages: list[Json], tools: list[Json]) -> list[Json] | str:
        offered = {tool["name"] for tool in tools}
        reply = next(self.turns)
        assert isinstance(reply, str) or all(call["name"] in offered for call in reply)
        return reply


class Person:
    """Stands in for the user: answers a form by the names of its fields."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def answer(self, question: str) -> Json:
        self.asked.append(question)
        return {"name": "Ada"}


async def run_agent(
    model: ScriptedModel, tools: list[Json], call: Callable[[str, Json], Awaitable[Json]]
) -> tuple[str, list[Json]]:
    """The agent loop: returns the final text, and what the tools answered."""
    messages: list[Json] = [{"role": "user", "content": "What is 6 * 7? And book a table for two."}]
    results: list[Json] = []
    while True:
        reply = model.reply(messages, tools)
        if isinstance(reply, str):
            return reply, results
        for wanted in reply:
            result = await call(wanted["name"], wanted["arguments"])
            results.append(result)
            messages.append({"role": "tool", "name": wanted["name"], "content": result})


def check(name: str, holds: bool, seen: Any = "") -> None:
    """Prints one line, and ends the program if the check failed."""
    print(f"{'ok' if holds else 'FAILED'}: {name}", flush=True)
    if not holds:
        sys.exit(f"{name}: {seen!r}")
