"""How a call ends: what a handler returns or raises, and its JSON."""

import dataclasses
import enum
import json
from typing import Any, Optional


class ToolFailure(Exception):
    """A failure that the model reads. Raise it."""

    def __init__(self, message, data=None, *, retryable=None, retry_after_ms=None):
        super().__init__(str(message))
        self.message = str(message)
        self.data = data
        self.retryable = True if retryable is None and retry_after_ms is not None else retryable
        self.retry_after_ms = retry_after_ms


class HostError(ToolFailure):
    """Why the host did not do what was asked. `kind` is `denied`, `unavailable`, `timeout` and so on."""

    def __init__(self, kind, message, data=None, **options):
        super().__init__(message, data, **options)
        self.kind = kind


class InvokeError(HostError):
    """Why another tool gave no value. `kind` is `denied`, `limit` or `unavailable` if no call was made; `failed`, `ask_user`,
    `halt`, `tool_error` or `refused` if it ended so. `data` is what a tool that `failed` gave as data, and else the ending."""


@dataclasses.dataclass
class Output:
    """A result with a message for a person, with further parts, or after which the model need not speak. Return it."""

    value: Any
    message: Optional[str] = None
    parts: list = dataclasses.field(default_factory=list)
    end_turn: bool = False


@dataclasses.dataclass
class Question:
    """What `ask_user` returns."""

    question: str
    options: Any = None
    answer_schema: Any = None
    state: Any = None


@dataclasses.dataclass
class Halt:
    """What `halt` returns."""

    reason: str
    result: Any = None


def ask_user(question, options=None, *, answer_schema=None, state=None):
    """Suspends the agent's loop until a person answers. Return what this returns."""
    return Question(str(question), options, answer_schema, state)


def halt(reason, result=None):
    """Ends the agent's loop with a result. Return what this returns."""
    return Halt(str(reason), result)


def _plain(value):
    """What `json` cannot write by itself."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    raise TypeError(f"the type {type(value).__name__} has no JSON form")


def written(what, value):
    """The value as JSON. A `ToolFailure` says why there is none."""
    try:
        return json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise ToolFailure(f"the tool's {what} cannot be written as JSON: {error}") from None
