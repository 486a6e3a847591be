"""Tools for AI agents in Python: a function with the decorator `tool` becomes a tool."""

from ._endings import HostError, Output, ToolFailure, ask_user, halt
from ._host import Response, abort, budget, fetch, kv, progress, secrets
from ._tool import Context, Need, tool

__all__ = [
    "Context", "HostError", "Need", "Output", "Response", "ToolFailure", "abort", "ask_user", "budget", "fetch", "halt", "kv",
    "progress", "secrets", "tool",
]
