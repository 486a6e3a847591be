"""Tools for AI agents in Python: a function with the decorator `tool` becomes a tool."""

from ._endings import HostError, InvokeError, Output, ToolFailure, ask_user, halt
from ._host import Response, abort, budget, fetch, fetch_async, invoke, kv, progress, secrets
from ._tool import Context, Need, tool

__all__ = [
    "Context", "HostError", "InvokeError", "Need", "Output", "Response", "ToolFailure", "abort", "ask_user", "budget", "fetch",
    "fetch_async", "halt", "invoke", "kv", "progress", "secrets", "tool",
]
