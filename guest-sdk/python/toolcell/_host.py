"""What a handler asks of the host: requests, secrets, keys, other tools, progress, the log."""

import json as _json
import logging
import math
import types

from componentize_py_types import Err
from wit_world.imports import abort as _abort
from wit_world.imports import budget as _budget
from wit_world.imports import http as _http
from wit_world.imports import invoke as _invoke
from wit_world.imports import kv as _kv
from wit_world.imports import log as _log
from wit_world.imports import progress as _progress
from wit_world.imports import reveal as _reveal
from wit_world.imports import secrets as _secrets

from ._endings import HostError, InvokeError, words, written
from ._tool import TOOLS

_KINDS = {
    "Fault_Denied": ("denied", "{}"),
    "Fault_Invalid": ("invalid", "the request cannot be sent: {}"),
    "Fault_Unreachable": ("unreachable", "the server cannot be reached: {}"),
    "Fault_Timeout": ("timeout", "the server did not answer in time"),
    "Fault_OverBudget": ("over_budget", "the limits of the call do not allow the request: {}"),
    "Fault_Broken": ("broken", "the connection broke: {}"),
    "Fault_InvalidKey": ("invalid_key", "the key or the cursor is not valid: {}"),
    "Fault_OverQuota": ("over_quota", "the store cannot keep the value: {}"),
    "Fault_Unavailable": ("unavailable", "not available: {}"),
    "Fault_Limit": ("limit", "{}"),
}
_ENDINGS = {
    "Ending_Error": ("failed", "{message}"),
    "Ending_AskUser": ("ask_user", "the other tool asks a person: {question}"),
    "Ending_Halt": ("halt", "the other tool stops the loop: {reason}"),
    "Ending_ToolError": ("tool_error", "the other tool failed: {message}"),
    "Ending_Refusal": ("refused", "the host refused the call: {message}"),
}
_PAGE = 100
# Whether a call runs: the host's functions cannot be called while the component is built.
state = types.SimpleNamespace(is_in_cell=False)


def _asked(what, function, *arguments, kind=None, error=HostError):
    if not state.is_in_cell:
        raise RuntimeError(f"{what} works in a handler only, not while the module is loaded")
    if kind and not any(need.kind == kind for tool in TOOLS.values() for need in tool.needs):
        hint = f'add Need("{kind}", pattern, reason) to its `needs`'
        raise error("denied", f"{what} is not among what the tool needs: {hint}")
    try:
        return function(*arguments)
    except Err as fault:
        name, text = _KINDS.get(type(fault.value).__name__, ("unavailable", "{}"))
        raise error(name, text.format(getattr(fault.value, "value", ""))) from None


def _text(text):
    """The text. What is none, or has no UTF-8, raises: the host's functions would end the interpreter."""
    if not isinstance(text, str):
        raise TypeError(f"a text is needed, not the type {type(text).__name__}")
    text.encode()
    return text


def _bytes(data):
    return data if isinstance(data, bytes) else bytes(memoryview(data))


def _milliseconds(time):
    return None if time is None else min(max(0, math.ceil(time)), 2**64 - 1)


class Response:
    """What a server answered. `body` is bytes; redirects are not followed. `headers` has names in lower case; lines of one name
    are one value, joined with a comma."""

    def __init__(self, answer, url):
        self.status, self.body, self.url = answer.status, bytes(answer.body), url
        self.headers = {}
        for name, value in answer.headers:
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        self.ok = 200 <= self.status < 300

    def text(self):
        """The body as UTF-8."""
        return self.body.decode("utf-8", "replace")

    def json(self):
        """The body as JSON."""
        return _json.loads(self.body)


def fetch(url, *, method="GET", headers=None, body=None, json=None, secret=None, timeout_ms=None):
    """Sends a request under the tool's grants. `secret` is what `secrets.get` returns; the host puts it into the request."""
    request = _request(url, method, headers, body, json, timeout_ms)
    return Response(_asked("fetch()", _http.send, request, secret, kind="http"), url)


async def fetch_async(url, *, method="GET", headers=None, body=None, json=None, secret=None, timeout_ms=None):
    """Sends a request as `fetch` does, while other tasks run. A task that is cancelled gives its request up."""
    import asyncio

    request = _request(url, method, headers, body, json, timeout_ms)
    with _asked("fetch_async()", _http.start, request, secret, kind="http") as pending:
        # The host has it released before the request.
        with pending.subscribe() as ready:
            await asyncio.get_running_loop().until(ready)
        return Response(_asked("fetch_async()", pending.finish), url)


def _request(url, method, headers, body, json, timeout_ms):
    headers = [(_text(name), _text(value)) for name, value in (headers or {}).items()]
    if json is not None:
        body = written("request", json)
        if all(name.lower() != "content-type" for name, _ in headers):
            headers.append(("content-type", "application/json"))
    if isinstance(body, str):
        body = body.encode()
    body = None if body is None else _bytes(body)
    return _http.Request(_text(method).upper(), _text(url), headers, body, _milliseconds(timeout_ms))


class _SecretStore:
    """Secrets by name. `get` gives a handle for `fetch`; `reveal` gives the value, and is granted rarely."""

    def get(self, name):
        return _asked("secrets.get()", _secrets.get, _text(name))

    def reveal(self, name):
        return _asked("secrets.reveal()", _reveal.value, _text(name), kind="reveal")


class _KeyStore:
    """Keys and values that outlive the call. Values are JSON; `get_bytes` and `set_bytes` are for bytes."""

    def get_bytes(self, key):
        entry = _asked("kv", _kv.get, _text(key), kind="kv")
        return None if entry is None else bytes(entry.data)

    def get(self, key, default=None):
        data = self.get_bytes(key)
        return default if data is None else _json.loads(data)

    def set_bytes(self, key, value, *, ttl_ms=None):
        return _asked("kv", _kv.set, _text(key), _bytes(value), _milliseconds(ttl_ms), kind="kv")

    def set(self, key, value, *, ttl_ms=None):
        return self.set_bytes(key, written("value", value).encode(), ttl_ms=ttl_ms)

    def delete(self, key):
        return _asked("kv", _kv.delete, _text(key), kind="kv")

    def list(self, prefix=""):
        keys, cursor = [], None
        while True:
            page = _asked("kv", _kv.list, _text(prefix), cursor, _PAGE, kind="kv")
            keys += page.keys
            cursor = page.cursor
            if cursor is None:
                return keys


def invoke(name, /, **arguments):
    """Calls another tool of the host and returns its value. Raises `InvokeError` if there is none."""
    text = written("arguments", arguments)
    ended = _asked("invoke()", _invoke.call, _text(name), text, kind="invoke", error=InvokeError)
    ending = _json.loads(ended.value)
    if type(ended).__name__ == "Ending_Ok":
        return ending["value"]
    kind, words = _ENDINGS[type(ended).__name__]
    message = words.format(**ending)
    if kind != "failed":
        raise InvokeError(kind, message, ending)
    retryable, retry_after_ms = ending.get("retryable"), ending.get("retry_after_ms")
    raise InvokeError(kind, message, ending.get("data"), retryable=retryable, retry_after_ms=retry_after_ms)


class _Abort:
    """Whether the caller wants the call to end."""

    @property
    def requested(self):
        return state.is_in_cell and _abort.requested()


def progress(done, total=None, message=None):
    """Reports how far the call has come."""
    # The host counts in whole numbers: parts of one are told in percent.
    if total and (done != int(done) or total != int(total)):
        done, total = round(done / total * 100), 100
    message = None if message is None else words(message)
    _asked("progress()", _progress.report, max(0, int(done)), None if total is None else max(0, int(total)), message)


def budget():
    """What is left of the call's budget: `fuel`, `milliseconds` and `memory`."""
    return _asked("budget()", _budget.remaining)


class _LogHandler(logging.Handler):
    """Writes the lines of `logging` to the tool's log."""

    def emit(self, record):
        if state.is_in_cell:
            levels = [(logging.ERROR, "ERROR"), (logging.WARNING, "WARN"), (logging.INFO, "INFO"), (logging.DEBUG, "DEBUG")]
            level = next((name for least, name in levels if record.levelno >= least), "TRACE")
            try:
                line = words(self.format(record))
            except Exception as error:
                # As with other handlers of `logging`, a line that cannot be made does not end the call.
                line = f"a line of the log cannot be made: {type(error).__name__} at {record.filename}:{record.lineno}"
            _log.log(_log.Level[level], line)


secrets = _SecretStore()
kv = _KeyStore()
abort = _Abort()
logging.root.addHandler(_LogHandler())
logging.root.setLevel(logging.DEBUG)
