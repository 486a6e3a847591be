"""Types of the module `toolcell`, for editors. `toolcell build` brings the module itself."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, List, TypeVar, overload

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Need:
    """Something that the tool needs, which an operator grants or refuses."""

    kind: str
    """`http`, `secret`, `reveal`, `kv` or `invoke`."""
    pattern: str
    """For example `GET https://api.example.com/v1`, a secret's name, `write notes/*`, or another tool's name."""
    reason: str


@dataclass(frozen=True)
class Context:
    """Where the call comes from. A parameter of this type gets it. A field that the caller did not give is None."""

    call_id: str
    remaining_ms: int
    attempt: int
    session_id: str | None = ...
    request_id: str | None = ...
    thread_id: str | None = ...
    run_id: str | None = ...
    tenant: str | None = ...
    metadata: Any = ...
    is_answered: bool = ...
    answer: Any = ...
    state: Any = ...


@overload
def tool(function: _Function, /) -> _Function: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    needs: Iterable[Need | tuple[str, str, str]] = (),
    output: Any = None,
    attributes: Mapping[str, Any] | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    destructive: bool = False,
    open_world: bool = False,
    max_execution_ms: int | None = None,
    validate: Callable[..., Any] | None = None,
    visible: Callable[[Context], Any] | None = None,
) -> Callable[[_Function], _Function]:
    """Makes a tool of a function: its type hints become the JSON Schema, its docstring the descriptions."""


class ToolFailure(Exception):
    """A failure that the model reads. Raise it."""

    message: str
    data: Any
    retryable: bool | None
    retry_after_ms: int | None

    def __init__(
        self, message: object, data: Any = None, *, retryable: bool | None = None, retry_after_ms: int | None = None
    ) -> None: ...


class HostError(ToolFailure):
    """Why the host did not do what was asked. `kind` is `denied`, `unavailable`, `timeout` and so on."""

    kind: str

    def __init__(self, kind: str, message: object, data: Any = None, **options: Any) -> None: ...


class InvokeError(HostError):
    """Why another tool gave no value. `kind` is `denied`, `limit` or `unavailable` if no call was made; `failed`, `ask_user`,
    `halt`, `tool_error` or `refused` if it ended so. `data` is what a tool that `failed` gave as data, and else the ending."""


@dataclass
class Output:
    """A result with a message for a person, with further parts, or after which the model need not speak. Return it.

    A part is a text, or a dict with a `type`: `text` (`text`), `image` or `audio` (`mime_type`, and `data` as bytes),
    `resource_link` (`uri`; `name`, `description` and `mime_type` if wanted).
    """

    value: Any
    message: str | None = ...
    parts: list[str | dict[str, Any]] = ...
    end_turn: bool = ...


def ask_user(question: object, options: Any = None, *, answer_schema: Any = None, state: Any = None) -> Any:
    """Suspends the agent's loop until a person answers. Return what this returns."""


def halt(reason: object, result: Any = None) -> Any:
    """Ends the agent's loop with a result. Return what this returns."""


class Response:
    """What a server answered. `body` is bytes; redirects are not followed. `headers` has names in lower case; lines of one name
    are one value, joined with a comma."""

    status: int
    body: bytes
    url: str
    headers: dict[str, str]
    ok: bool

    def text(self) -> str:
        """The body as UTF-8."""

    def json(self) -> Any:
        """The body as JSON."""


def fetch(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: str | bytes | None = None,
    json: Any = None,
    secret: Any = None,
    timeout_ms: int | None = None,
) -> Response:
    """Sends a request under the tool's grants. `secret` is what `secrets.get` returns; the host puts it into the request."""


async def fetch_async(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: str | bytes | None = None,
    json: Any = None,
    secret: Any = None,
    timeout_ms: int | None = None,
) -> Response:
    """Sends a request as `fetch` does, while other tasks run. A task that is cancelled gives its request up."""


class _SecretStore:
    """Secrets by name. `get` gives a handle for `fetch`; `reveal` gives the value, and is granted rarely."""

    def get(self, name: str) -> Any: ...
    def reveal(self, name: str) -> str: ...


class _KeyStore:
    """Keys and values that outlive the call. Values are JSON; `get_bytes` and `set_bytes` are for bytes."""

    def get_bytes(self, key: str) -> bytes | None: ...
    def get(self, key: str, default: Any = None) -> Any: ...
    def set_bytes(self, key: str, value: bytes, *, ttl_ms: int | None = None) -> int: ...
    def set(self, key: str, value: Any, *, ttl_ms: int | None = None) -> int: ...
    def delete(self, key: str) -> bool: ...
    def list(self, prefix: str = "") -> List[str]:
        """The keys that begin with the prefix."""


def invoke(name: str, /, **arguments: Any) -> Any:
    """Calls another tool of the host and returns its value. Raises `InvokeError` if there is none."""


class _Abort:
    """Whether the caller wants the call to end."""

    @property
    def requested(self) -> bool: ...


def progress(done: float, total: float | None = None, message: object = None) -> None:
    """Reports how far the call has come."""


def budget() -> Any:
    """What is left of the call's budget: `fuel`, `milliseconds` and `memory`."""


secrets: _SecretStore
kv: _KeyStore
abort: _Abort
