"""How a call ends: what a handler returns or raises, and its JSON."""

import dataclasses
import enum
import json
import re
from typing import Any, Optional


# Milliseconds that the host can be told.
_LONGEST = 2**64 - 1


class ToolFailure(Exception):
    """A failure that the model reads. Raise it."""

    def __init__(self, message, data=None, *, retryable=None, retry_after_ms=None):
        super().__init__(str(message))
        self.message = str(message)
        self.data = data
        self.retryable = True if retryable is None and retry_after_ms is not None else retryable
        self.retry_after_ms = None if retry_after_ms is None else min(max(0, int(retry_after_ms)), _LONGEST)


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


_MAX_DEPTH = 127
_HALF = re.compile("[\ud800-\udfff]")
# Possessive: what could be tried again for each character would take 100 bytes of memory for it.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_INNERMOST = re.compile(r"[\[{][^\[\]{}]*[\]}]")
# Digits of the largest number that JSON's readers know, a double.
_DIGITS = re.compile(r"\d{310}")
_LARGE_NUMBER = "a number in it is too large"
# What Python says, and what every language says.
_PROBLEMS = {
    "integer string conversion": _LARGE_NUMBER,
    "not JSON compliant: nan": "a number in it is NaN",
    "not JSON compliant": "a number in it is infinite",
}
_TOO_DEEP = f"it nests deeper than {_MAX_DEPTH} levels"


def as_json(value):
    """The value as JSON. A `ValueError` says why there is none."""
    try:
        text = json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text in it is not Unicode: it has half of a surrogate pair") from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except TypeError as error:
        raise ValueError(str(error)) from None
    except ValueError as error:
        known = [problem for cause, problem in _PROBLEMS.items() if cause in str(error)]
        raise ValueError(known[0] if known else str(error)) from None
    if len(text) > _MAX_DEPTH:
        _check(_STRING.sub("", text))
    return text


def _check(text):
    """Finds what the host would refuse in JSON without its strings. Each step takes the innermost arrays and objects away."""
    if _DIGITS.search(text):
        raise ValueError(_LARGE_NUMBER)
    for _ in range(_MAX_DEPTH):
        text, count = _INNERMOST.subn("", text)
        if count == 0:
            return
    if "[" in text or "{" in text:
        raise ValueError(_TOO_DEEP)


def written(what, value):
    """The value as JSON. A `ToolFailure` says why there is none."""
    try:
        return as_json(value)
    except ValueError as problem:
        raise ToolFailure(f"the tool's {what} cannot be written as JSON: {problem}") from None


def words(value):
    """The value as a text. Half of a surrogate pair, which UTF-8 has no form for, is written as its escape: `\\ud83d`."""
    return _HALF.sub(lambda half: f"\\u{ord(half[0]):x}", str(value))
